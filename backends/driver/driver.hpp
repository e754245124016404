// What CUDA and HIP share: a table of the driver's functions, which both have under two names, and the objects behind
// the handles of rosin/backend.h. Nothing is linked; the plug-in opens the driver when it is asked for its devices.
// Read first: rosin/backend.h, common/failure.hpp. Read next: devices.cpp, memory.cpp, streams.cpp, programs.cpp,
// calls.cpp, graphs.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <rosin/backend.h>

#include "common/failure.hpp"
#include "common/program_bytes.hpp"

namespace rosin::driver {

using plugin::Failure;
using plugin::guarded;

// The driver's own types. Its handles are pointers, its device addresses numbers of 64 bits.
using Code = int;
using DeviceNumber = int;
using Address = uint64_t;
using Context = struct OpaqueContext*;
using Stream = struct OpaqueStream*;
using Event = struct OpaqueEvent*;
using Module = struct OpaqueModule*;
using Function = struct OpaqueFunction*;

/// The driver's functions. Names and signatures are those of the CUDA driver API without its prefix and versions.
struct Functions {
  Code (*init)(unsigned flags);
  Code (*driver_version)(int* version);
  Code (*error_name)(Code code, const char** text);
  Code (*error_string)(Code code, const char** text);
  Code (*device_count)(int* count);
  Code (*device_get)(DeviceNumber* device, int ordinal);
  Code (*device_name)(char* name, int length, DeviceNumber device);
  Code (*device_memory)(size_t* bytes, DeviceNumber device);
  Code (*device_attribute)(int* value, int attribute, DeviceNumber device);
  Code (*device_pci)(char* text, int length, DeviceNumber device);
  Code (*context_retain)(Context* context, DeviceNumber device);  // the primary one, which other libraries use too
  Code (*context_release)(DeviceNumber device);
  Code (*context_push)(Context context);
  Code (*context_pop)(Context* context);
  Code (*memory_info)(size_t* free, size_t* total);
  Code (*alloc)(Address* address, size_t bytes);
  Code (*free)(Address address);
  Code (*alloc_host)(void** address, size_t bytes, unsigned flags);
  Code (*free_host)(void* address);
  Code (*copy_in)(Address to, const void* from, size_t bytes, Stream stream);
  Code (*copy_out)(void* to, Address from, size_t bytes, Stream stream);
  Code (*copy)(Address to, Address from, size_t bytes, Stream stream);
  Code (*copy_peer)(Address to, Context to_context, Address from, Context from_context, size_t bytes, Stream stream);
  Code (*stream_create)(Stream* stream, unsigned flags);
  Code (*stream_destroy)(Stream stream);
  Code (*stream_sync)(Stream stream);
  Code (*stream_wait)(Stream stream, Event event, unsigned flags);
  Code (*event_create)(Event* event, unsigned flags);
  Code (*event_destroy)(Event event);
  Code (*event_record)(Event event, Stream stream);
  Code (*event_query)(Event event);
  Code (*event_sync)(Event event);
  Code (*module_load)(Module* module, const void* image);
  Code (*module_unload)(Module module);
  Code (*module_function)(Function* function, Module module, const char* name);
  Code (*launch)(Function function, unsigned x, unsigned y, unsigned z, unsigned items_x, unsigned items_y,
                 unsigned items_z, unsigned shared_bytes, Stream stream, void** parameters, void** extra);
  // What may be missing, and is null then.
  Code (*function_set)(Function function, int attribute, int value);
  Code (*fill)(Address to, unsigned char value, size_t bytes, Stream stream);
  Code (*reaches)(int* reaches, DeviceNumber device, DeviceNumber other);
  Code (*priorities)(int* least, int* greatest);
  Code (*stream_create_with)(Stream* stream, unsigned flags, int priority);
  Code (*event_elapsed)(float* milliseconds, Event from, Event to);
  Code (*pin)(void* memory, size_t bytes, unsigned flags);
  Code (*unpin)(void* memory);
};

/// What a code of the driver means to rosin; codes that stand nowhere are ROSIN_INVALID.
struct Meaning {
  Code code;
  rosin_status status;
};

/// The driver as one vendor has it: made once by the plug-in, when it is first asked for devices.
struct Driver {
  Functions functions{};
  std::vector<Meaning> meanings;

  rosin_status status_of(Code code) const;
  /// Throws where `code` is an error; `what` is what was asked for.
  void check(Code code, const char* what) const;
};

using Graph = struct OpaqueGraph*;
using GraphNode = struct OpaqueGraphNode*;
using ReadyGraph = struct OpaqueReadyGraph*;

struct LaunchArguments {
  Function function = nullptr;
  unsigned groups[3] = {}, items = 0;
  unsigned large_shared = 0;  // bytes of shared arrays, where they are more than every kernel may have
  void** parameters = nullptr;
};
struct CopyArguments {
  Address from = 0, to = 0;
  void* host = nullptr;  // where it goes, unless it goes to `to`
  size_t bytes = 0;
};
struct FillArguments {
  Address to = 0;
  size_t bytes = 0;
  unsigned char value = 0;
};

/// What a plug-in's libraries keep with a device, whose context is current when it goes.
struct Attached {
  virtual ~Attached() = default;
};

/// Graphs of the driver, whose arguments the vendors put into structs of their own. The device's context is current.
class Graphs {
 public:
  virtual ~Graphs() = default;
  virtual Code create(Graph* graph) const = 0;
  virtual void destroy(Graph graph) const = 0;
  virtual Code add(GraphNode* node, Graph graph, const std::vector<GraphNode>& behind,
                   const LaunchArguments& arguments) const = 0;
  virtual Code add(GraphNode* node, Graph graph, const std::vector<GraphNode>& behind, const CopyArguments& arguments,
                   Context context) const = 0;
  virtual Code add(GraphNode* node, Graph graph, const std::vector<GraphNode>& behind, const FillArguments& arguments,
                   Context context) const = 0;
  /// All nodes of another graph as one, which are copied.
  virtual Code add(GraphNode* node, Graph graph, const std::vector<GraphNode>& behind, Graph inside) const = 0;
  virtual Code finish(ReadyGraph* ready, Graph graph) const = 0;
  virtual void destroy(ReadyGraph ready) const = 0;
  virtual Code update(ReadyGraph ready, GraphNode node, const LaunchArguments& arguments) const = 0;
  virtual Code update(ReadyGraph ready, GraphNode node, const CopyArguments& arguments, Context context) const = 0;
  virtual Code update(ReadyGraph ready, GraphNode node, const FillArguments& arguments, Context context) const = 0;
  virtual Code update(ReadyGraph ready, GraphNode node, Graph inside) const = 0;
  virtual Code launch(ReadyGraph ready, Stream stream) const = 0;
  /// Work that is given to the stream between these two is not done; it becomes the nodes of a graph.
  virtual Code begin_capture(Stream stream) const = 0;
  virtual Code end_capture(Stream stream, Graph* graph) const = 0;
};

/// Null where the driver is too old for them. Defined by each plug-in.
const Graphs* the_graphs();

/// Defined by each plug-in. Throws ROSIN_UNSUPPORTED with the reason where there is no usable driver.
const Driver& the_driver();
/// Facts of one device, from its driver. Defined by each plug-in.
rosin_device_info info_of(int ordinal);
/// From text to what module_load takes, for a target of info_of. Throws ROSIN_COMPILE_FAILED with the log. Defined by
/// each plug-in.
std::string compiled_text(const std::string& target, const char* text);

/// The device's context is the calling thread's as long as this lives; then what it had before.
class Current {
 public:
  explicit Current(const rosin_device& device);
  ~Current();
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;
};

rosin_status device_count(int32_t* count);
rosin_status device_info(int32_t device, rosin_device_info* info);
rosin_status open(int32_t device, rosin_device** out);
void close(rosin_device* device);

rosin_status alloc(rosin_device* device, uint64_t bytes, rosin_memory** out);
void release(rosin_device* device, rosin_memory* memory);
rosin_status memory_left(rosin_device* device, uint64_t* free_bytes, uint64_t* total_bytes);
rosin_status alloc_pinned(rosin_device* device, uint64_t bytes, void** out);
void release_pinned(rosin_device* device, void* memory);
rosin_status copy_in(rosin_stream* stream, rosin_place to, const void* from, uint64_t bytes);
rosin_status copy_out(rosin_stream* stream, void* to, rosin_place from, uint64_t bytes);
rosin_status copy(rosin_stream* stream, rosin_place to, rosin_place from, uint64_t bytes);
rosin_status copy_peer(rosin_stream* stream, rosin_place to, rosin_device* from_device, rosin_place from,
                       uint64_t bytes);

rosin_status fill(rosin_stream* stream, rosin_place to, uint64_t bytes, uint8_t value);
rosin_status pin(rosin_device* device, void* memory, uint64_t bytes);
void unpin(rosin_device* device, void* memory);
rosin_status peer(rosin_device* device, int32_t other, int32_t* reaches);

rosin_status stream_create(rosin_device* device, rosin_stream** out);
rosin_status stream_create_with(rosin_device* device, int32_t priority, rosin_stream** out);
rosin_status stream_adopt(rosin_device* device, void* native, rosin_stream** out);
rosin_status event_create_timed(rosin_device* device, rosin_event** out);
rosin_status event_elapsed(rosin_event* from, rosin_event* to, double* seconds);
void stream_destroy(rosin_stream* stream);
rosin_status stream_sync(rosin_stream* stream);
rosin_status event_create(rosin_device* device, rosin_event** out);
void event_destroy(rosin_event* event);
rosin_status event_record(rosin_event* event, rosin_stream* stream);
rosin_status event_query(rosin_event* event);
rosin_status event_sync(rosin_event* event);
rosin_status stream_wait(rosin_stream* stream, rosin_event* event);

rosin_status compile(rosin_device* device, const char* target, const rosin_program* program, void** bytes,
                     uint64_t* count);
void free_bytes(void* bytes);
rosin_status load(rosin_device* device, const void* bytes, uint64_t count, rosin_module** out);
void unload(rosin_module* module);
rosin_status kernel(rosin_module* module, const char* name, rosin_kernel** out);
rosin_status launch(rosin_stream* stream, rosin_kernel* kernel, const rosin_launch* launch);

/// Addresses of a launch, and where the driver finds each argument: buffers, then parameters.
struct LaunchPlaces {
  std::vector<Address> addresses;
  std::vector<void*> places;

  /// Throws ROSIN_INVALID where the launch is none of this kernel.
  LaunchArguments fill(const rosin_kernel& kernel, const rosin_launch& launch);
};

void call_destroy(rosin_call* call);
rosin_status call_run(rosin_stream* stream, rosin_call* call, const rosin_place* buffers, rosin_place workspace,
                      const rosin_call_numbers* numbers);
rosin_status call_tune(rosin_stream* stream, rosin_call* call, const rosin_place* buffers, rosin_place workspace,
                       uint64_t bytes, const rosin_call_numbers* numbers, uint64_t* needed);
rosin_status call_choice(rosin_call* call, const void** bytes, uint64_t* count);

/// Throws ROSIN_UNSUPPORTED where the driver lacks the function.
template <class F> F needed(F function, const char* what) {
  if (function) return function;
  throw Failure{ROSIN_UNSUPPORTED, std::string(what) + ": the driver is too old for it"};
}

/// Where `bytes` of a block begin. Throws ROSIN_INVALID where they reach beyond it.
Address address_of(const rosin_place& place, uint64_t bytes);

rosin_status graph_create(rosin_device* device, rosin_graph** out);
rosin_status graph_add(rosin_graph* graph, const rosin_graph_node* node);
rosin_status graph_finish(rosin_graph* graph);
rosin_status graph_update(rosin_graph* graph, uint32_t node, const rosin_graph_node* arguments);
rosin_status graph_launch(rosin_stream* stream, rosin_graph* graph);
void graph_destroy(rosin_graph* graph);

void* native_stream(rosin_stream* stream);
void* native_memory(rosin_memory* memory);

/// The table with the functions above, under the name of the back end.
rosin_backend table_of(const char* name, const char* version);

}  // namespace rosin::driver

struct rosin_device {
  rosin::driver::DeviceNumber number = 0;
  rosin::driver::Context context = nullptr;
  std::string target;
  int64_t shared_bytes = 0;  // that every kernel may have
  std::mutex attaching;
  std::unique_ptr<rosin::driver::Attached> attached;
};

/// A prepared call of a vendor's library.
struct rosin_call {
  virtual ~rosin_call() = default;
  // With the device's context current; they throw.

  /// Gives its work to the stream, which may be captured.
  virtual void run(rosin::driver::Stream stream, const rosin_place* buffers, rosin_place workspace,
                   const rosin_call_numbers* numbers) = 0;
  /// Finds the fastest way within `bytes` of workspace; gives the bytes that it needs.
  virtual uint64_t tune(rosin::driver::Stream stream, const rosin_place* buffers, rosin_place workspace, uint64_t bytes,
                        const rosin_call_numbers* numbers) = 0;
  /// Its way, as bytes.
  virtual std::string_view choice() = 0;

  rosin_device* device = nullptr;
};

struct rosin_memory {
  rosin::driver::Address address = 0;
  uint64_t bytes = 0;
};

struct rosin_stream {
  rosin_device* device = nullptr;
  rosin::driver::Stream stream = nullptr;
  bool adopted = false;  // it goes on without this
};

struct rosin_event {
  rosin_device* device = nullptr;
  rosin::driver::Event event = nullptr;
};

struct rosin_kernel {
  rosin::plugin::Signature signature;
  unsigned large_shared = 0;  // as LaunchArguments has it
  rosin::driver::Function function = nullptr;
  rosin_device* device = nullptr;
};

struct rosin_module {
  rosin_device* device = nullptr;
  rosin::driver::Module module = nullptr;
  std::deque<rosin_kernel> kernels;  // which do not move
};
