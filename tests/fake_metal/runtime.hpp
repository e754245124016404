// The Objective-C runtime for the stand-in of Metal: classes, objects with counted references, pools. Whoever breaks
// its rules ends the process with a text. All of it is used with the lock held, which methods take by themselves. Read
// next: runtime.cpp, objects.hpp, metal.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace fake_metal {

using Selector = const struct Name*;

/// What an object of some class has.
struct State {
  virtual ~State() = default;
};

struct Class;

/// Stays after its end, so that it is known when somebody uses it.
struct Object {
  const Class* isa = nullptr;
  int64_t references = 1;
  std::unique_ptr<State> state;
  bool is_dead = false;
};

/// Ends the process: what real objects answer to with an assertion, or with nothing good.
[[noreturn]] void misuse(const std::string& what);

/// One for all that there is.
std::recursive_mutex& lock();
using Guard = std::lock_guard<std::recursive_mutex>;

/// The class of that name, made when it is first asked for.
Class& class_named(const std::string& name);
using Method = void (*)();
void add_method(Class& of, const char* selector, Method method, bool of_class = false);

/// `method`: a function of (Object* self, Selector, arguments...).
template <class Answer, class... Arguments>
void method(const char* of, const char* selector, Answer (*run)(Object*, Selector, Arguments...)) {
  add_method(class_named(of), selector, reinterpret_cast<Method>(run));
}
template <class Answer, class... Arguments>
void class_method(const char* of, const char* selector, Answer (*run)(Object*, Selector, Arguments...)) {
  add_method(class_named(of), selector, reinterpret_cast<Method>(run), true);
}

/// An object whose one reference is the caller's.
Object* made(const char* of, std::unique_ptr<State> state);
Object* retain(Object* object);
void release(Object* object);
/// Gives the caller's reference to the thread's pool, which there must be.
Object* autoreleased(Object* object);

/// The state of an object that must be one of this kind.
template <class T> T& state_of(Object* object) {
  if (!object) misuse("nil where an object is needed");
  if (object->is_dead) misuse("an object is used that has been released by all");
  auto* state = dynamic_cast<T*>(object->state.get());
  if (!state) misuse("an object of another class than is needed");
  return *state;
}

/// A reference that counts.
class Kept {
 public:
  explicit Kept(Object* object = nullptr) : object_(object ? retain(object) : nullptr) {}
  Kept(Kept&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Kept(const Kept& other) : Kept(other.object_) {}
  Kept& operator=(Kept other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Kept() {
    if (object_) release(object_);
  }
  Object* get() const { return object_; }

 private:
  Object* object_ = nullptr;
};

/// Of a class object.
const std::string& name_of_class(Object* of);

/// Whether the message that is being answered fails, as FAKE_METAL asks; counted when it was sent.
bool fails();

/// Counts a call of a function that is no message; whether it fails.
bool counted(const char* function);

}  // namespace fake_metal
