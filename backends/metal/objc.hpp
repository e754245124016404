// The Objective-C runtime from C++: messages, ownership, autorelease pools. Its functions are opened at run time, so
// nothing is linked and no compiler of Objective-C is needed. They are those of Apple's "Objective-C Runtime" page, and
// of "Objective-C Automatic Reference Counting" at clang.llvm.org (retain, release, pools).
// Read next: messages.hpp (what is said to whom), metal.hpp.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include "common/failure.hpp"

namespace rosin::metal {

using Id = struct OpaqueObject*;          // any object; nil takes every message and answers 0
using Selector = struct OpaqueSelector*;  // the name of a message

/// The runtime's functions.
struct Runtime {
  Id (*get_class)(const char* name);
  Selector (*register_name)(const char* name);
  void (*message_send)();  // called as the method that answers is: see Message
  Id (*retain)(Id object);
  void (*release)(Id object);
  void* (*pool_push)();
  void (*pool_pop)(void* pool);
};

/// Opened by the_metal(), which comes before every message.
const Runtime& runtime();

/// A message with the C types of its answer and arguments. Answers are numbers and addresses: structs would come back
/// in ways that differ between processors.
template <class Signature> class Message;
template <class Answer, class... Arguments> class Message<Answer(Arguments...)> {
 public:
  constexpr explicit Message(const char* name) : name_(name) {}
  Answer operator()(Id to, Arguments... arguments) const {
    using Method = Answer (*)(Id, Selector, Arguments...);
    return reinterpret_cast<Method>(runtime().message_send)(to, selector(), arguments...);
  }
  Selector selector() const {
    Selector known = selector_.load(std::memory_order_relaxed);
    if (!known) selector_.store(known = runtime().register_name(name_), std::memory_order_relaxed);
    return known;
  }

 private:
  const char* name_;
  mutable std::atomic<Selector> selector_{nullptr};
};

/// Owns one reference to an object.
class Owned {
 public:
  Owned() = default;
  Owned(Owned&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Owned(const Owned& other) : object_(other.object_ ? runtime().retain(other.object_) : nullptr) {}
  Owned& operator=(Owned other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Owned() {
    if (object_) runtime().release(object_);
  }
  Id get() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }

  /// What `new...` and `MTLCopy...` give: the reference is the caller's.
  static Owned given(Id object) {
    Owned made;
    made.object_ = object;
    return made;
  }
  /// What other methods give belongs to the pool.
  static Owned shared(Id object) { return given(object ? runtime().retain(object) : nullptr); }

 private:
  Id object_ = nullptr;
};

/// Takes what methods give without a reference, and lets it go at its end.
class Pool {
 public:
  Pool() : pool_(runtime().pool_push()) {}
  ~Pool() { runtime().pool_pop(pool_); }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

 private:
  void* pool_;
};

/// plugin::guarded, for what sends messages.
template <class F> rosin_status pooled(F&& call) noexcept {
  return plugin::guarded([&] {
    const Pool pool;
    call();
  });
}

/// An NSString of the pool, and the text of one; nil has none.
Id string_of(const char* text);
std::string text_of(Id string);

}  // namespace rosin::metal
