// The pretended machine behind libcuda's stand-in: devices, memory, and work that waits in streams. See README.md. All
// of it is used with the lock of the API held. Read next: machine.cpp, kernels.cpp, libcuda.cpp.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "kernel_runtime.hpp"

// What a build of these files under another vendor's names says otherwise.
#ifdef FAKE_HIP
#define FAKE_OPTIONS "FAKE_HIP"
#define FAKE_COUNTS fake_hip_counts
#elif defined(FAKE_METAL)
#define FAKE_OPTIONS "FAKE_METAL"
#else
#define FAKE_OPTIONS "FAKE_CUDA"
#define FAKE_COUNTS fake_cuda_counts
#endif

namespace fake {

// Codes of the CUDA driver.
enum Code : int {
  success = 0,
  invalid_value = 1,
  out_of_memory = 2,
  not_initialized = 3,
  no_device = 100,
  invalid_device = 101,
  invalid_image = 200,
  invalid_context = 201,
  invalid_handle = 400,
  not_found = 500,
  not_ready = 600,
  operating_system = 304,
  illegal_address = 700,
  launch_failed = 719,
  not_supported = 801,
  not_captured = 900,
  other_topology = 910
};

/// Thrown where a call is wrong, or fails; becomes the call's code.
struct __attribute__((visibility("default"))) Trouble {
  int code;
  std::string text;
};

/// FAKE_CUDA, see README.md.
struct Options {
  int devices = 1, architecture = 90, driver = 13000;
  uint64_t memory = uint64_t{1} << 33, order = 1;
  int code = 0;  // that calls fail with which fail as asked; 0: one that suits the function
  bool peer = true, checks = true;
  bool collectives_first = false;
  std::string log;
  bool idle = false;                               // kernels and calls of libraries compute nothing
  bool nan = true;                                 // of cuBLASLt and cuDNN: whether their relu leaves NaN
  int cudnn = 91900, cudnn_runtime = 13000;        // versions of cuDNN, and of the CUDA that it is built for
  std::string gfx = "gfx1100";                     // "name=gfx90a:xnack-": the architecture of HIP
  int hipblaslt = 100000;                          // its version
  int miopen = 30200;                              // its version
  std::string wrong;                               // "miopen", "attention": whose results are wrong
  unsigned warp = 32;                              // items that exchange values
  int metal = 3, apple = 8, system = 14;           // of Metal: its version, Apple's family or 0, the version of macOS
  bool unified = true;                             // of Metal: the host sees the device's memory
  bool attention = true;                           // of Metal: from macOS 15 on, MPSGraph has it
  bool leaks = false;                              // of Metal: objects that live at the end are an error
  std::map<std::string, std::set<int64_t>> fails;  // numbers of calls, by function

  Options();
};

struct DeviceMemory {
  int device = 0;
  uint64_t bytes = 0;
  std::shared_ptr<void> storage;
  std::unique_ptr<u32[], void (*)(void*)> writers{nullptr, nullptr}, readers{nullptr, nullptr};
};

/// A point of a stream that an event was recorded at.
struct Point {
  bool passed = false;
  double time = 0;  // when it was passed
};

struct Work {
  std::function<void()> run;
  std::string what;     // of a library's work: graphs are updated with the same alone
  double time = 0.001;  // that it takes, in pretended milliseconds
  std::shared_ptr<Point> waits, marks;
  std::vector<uint64_t> addresses;  // of device memory that it uses
  std::function<bool()> ready;      // of what waits for other processes: asked when it is the first of its stream
};

struct Context {
  int device = 0, uses = 0;
  int lost = 0;  // the code that all calls give since a fault
  std::string why;
};

struct Stream {
  Context* context = nullptr;
  std::deque<Work> work;
  std::unique_ptr<std::vector<Work>> captured;  // what was given since its capture began
  std::thread::id captured_by;
};

struct Event {
  Context* context = nullptr;
  bool has_time = true;
  std::shared_ptr<Point> point;
};

struct Module;

struct Function {
  Module* module = nullptr;
  std::string name;
  Item* item = nullptr;  // the library's
  void (*run)(void**) = nullptr;
  Block (*find)(u64 address) = nullptr;  // null: all memory of the machine
  int items = 0;
  bool barrier = false;
  int largest_shared = 0;  // bytes of shared memory that a launch may name; 0: the usual
  std::vector<int> sizes;  // of parameters; 0: an address
};

struct Module {
  Context* context = nullptr;
  void* library = nullptr;
  std::map<std::string, Function> functions;
};

class Machine {
 public:
  static Machine& instance();

  Context& context_of(int device);
  uint64_t alloc(Context& context, uint64_t bytes);
  /// Memory of the host that the device uses too, until it is freed here.
  void adopt(Context& context, void* memory, uint64_t bytes);
  void free(Context& context, uint64_t address);
  uint64_t left(const Context& context) const;
  void* alloc_host(uint64_t bytes);
  void free_host(void* address);
  void pin(void* address, uint64_t bytes);
  void unpin(void* address);
  bool is_pinned(const void* address, uint64_t bytes) const;
  /// Error (invalid_value): not inside one block of the device.
  void check_range(const Context& context, uint64_t address, uint64_t bytes) const;
  Block find(uint64_t address);

  Stream* add_stream(Context& context);
  Event* add_event(Context& context);
  void remove(Stream* stream);
  void remove(Event* event);
  Stream& checked(Stream* stream);
  Event& checked(Event* event);

  void give(Stream& stream, Work work);
  /// Whether the calling thread captures a stream.
  bool captures() const;
  /// Runs work, of any stream, until the condition holds; where all that is left waits for other processes, so it does.
  void run_until(const std::function<bool()>& holds);
  /// Runs one piece of work at random; false where there is none that may run.
  bool run_one();
  void finish(const Context& context);
  /// From now on all calls of the context fail like this.
  void lose(Context& context, const Trouble& trouble);

  Options options;
  std::map<std::string, int64_t, std::less<>> calls;  // so far, by function
  int64_t modules = 0, graphs = 0;                    // that live
  size_t blocks() const { return blocks_.size(); }
  size_t pinned() const { return pinned_.size(); }
  size_t streams() const { return streams_.size(); }
  size_t events() const { return events_.size(); }

 private:
  std::vector<Stream*> ready_streams() const;
  void note(const std::string& what);

  std::map<int, Context> contexts_;
  std::map<uint64_t, DeviceMemory> blocks_;
  std::map<uint64_t, uint64_t> pinned_;
  std::set<Stream*> streams_;
  std::set<Event*> events_;
  double time_ = 0;
  std::mt19937_64 random_{options.order};
};

/// Runs all blocks of a launch. `shared`: bytes of shared memory that it names.
void run_kernel(const Function& function, const unsigned (&grid)[3], std::vector<std::vector<unsigned char>> values,
                unsigned shared);

}  // namespace fake
