// The objects of the stand-in of Metal. Read first: runtime.hpp, ../fake_cuda/machine.hpp, msl.hpp. Read next:
// foundation.cpp, device.cpp, commands.cpp.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "machine.hpp"
#include "msl.hpp"
#include "runtime.hpp"

namespace fake_metal {

/// Makes all classes known, once.
void define_classes();
void define_foundation();
void define_device();
void define_commands();
void define_graphs();

/// Whether objects of its class have such a method.
bool responds(Object* object, Selector selector);
/// A line for each class with objects that live.
std::string living();

// ---- Foundation

struct String : State {
  std::string text;
  explicit String(std::string of) : text(std::move(of)) {}
};

Object* make_string(const std::string& text);
const std::string& text_in(Object* string);
Object* make_array(const std::vector<Object*>& all);
const std::vector<Kept>& objects_in(Object* array);
int64_t number_in(Object* number);
/// Keys and values of a dictionary, in the order in which they were given.
const std::vector<std::pair<Kept, Kept>>& pairs_in(Object* dictionary);
Object* make_error(const std::string& domain, int64_t code, const std::string& text);

// ---- Devices and what they make. The references that they hold keep what they stand on.

struct Device : State {
  fake::Context* context = nullptr;
};

struct Buffer : State {
  Kept device;
  uint64_t address = 0, bytes = 0;  // the host's
  bool is_shared = true;
  ~Buffer() override;
};

struct SharedEvent : State {
  uint64_t value = 0;
};

struct Pipeline : State {
  std::shared_ptr<const Kernel> kernel;
};

// ---- Commands

struct Queue : State {
  Kept device;
  fake::Stream* stream = nullptr;
  int buffers = 0;  // that have not ended
  ~Queue() override;
};

struct CommandBuffer : State {
  Kept queue;
  std::vector<fake::Work> work;  // until it is committed
  std::vector<Kept> kept;        // until it has ended
  const State* encoder = nullptr;
  bool is_committed = false, has_ended = false, fails = false;
  std::string failure;
  double end_time = 0;
  ~CommandBuffer() override;

  Queue& its_queue() const { return state_of<Queue>(queue.get()); }
  /// What the device does when it gets there; `addresses`: the host's, of memory that is used.
  void add(std::function<void()> run, std::vector<uint64_t> addresses);
  void keep(Object* object) { kept.emplace_back(object); }
};

/// What the messages of these names do.
Object* next_buffer(Object* queue);
void commit_buffer(Object* buffer);

/// An encoder of a command buffer, the only one that is open.
struct Encoder : State {
  Kept buffer;
  bool has_ended = false;
  ~Encoder() override;

  CommandBuffer& commands(const char* what) const;
};

/// Runs work of any queue until the condition holds; false where it does not within this time. Without the lock.
bool wait_until(const std::function<bool()>& holds, double seconds);

}  // namespace fake_metal
