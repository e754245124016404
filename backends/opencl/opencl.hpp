// What the files of this plug-in share: its objects behind the handles of rosin/backend.h, and how calls fail.
// Read first: rosin/backend.h. Read next: devices.cpp, memory.cpp, streams.cpp, programs.cpp, plugin.cpp (the table).
#pragma once

#define CL_TARGET_OPENCL_VERSION 120

#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <rosin/backend.h>

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "common/failure.hpp"
#include "common/program_bytes.hpp"

namespace rosin::opencl {

using plugin::error_text;
using plugin::Failure;
using plugin::guarded;
using plugin::Signature;

/// Throws where `code` is an error; `what` names the OpenCL function.
void check(cl_int code, const char* what);

/// Owns one reference to an OpenCL object.
template <class T, auto release> class Handle {
 public:
  Handle() = default;
  explicit Handle(T object) : object_(object) {}
  Handle(Handle&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Handle() {
    if (object_) release(object_);
  }
  T get() const { return object_; }

 private:
  T object_ = nullptr;
};
using Context = Handle<cl_context, clReleaseContext>;
using Queue = Handle<cl_command_queue, clReleaseCommandQueue>;
using Memory = Handle<cl_mem, clReleaseMemObject>;
using Event = Handle<cl_event, clReleaseEvent>;
using Program = Handle<cl_program, clReleaseProgram>;
using Kernel = Handle<cl_kernel, clReleaseKernel>;

/// What is known of a device before it is opened.
struct DeviceFacts {
  cl_platform_id platform = nullptr;
  cl_device_id id = nullptr;
  rosin_device_info info{};
  std::string options;        // of every build
  bool keeps_source = false;  // compile() gives the source instead of the driver's binary
};

/// All usable devices of all platforms, in the drivers' order; looked for once. Throws where there is no driver.
const std::vector<DeviceFacts>& all_devices();

/// Makes an in-order queue.
Queue make_queue(cl_context context, cl_device_id id);

struct PinnedBlock {
  Memory memory;
  uint64_t bytes = 0;
};

rosin_status device_count(int32_t* count);
rosin_status capabilities(const rosin_capability** list, uint32_t* count);
rosin_status device_info(int32_t device, rosin_device_info* info);
rosin_status open(int32_t device, rosin_device** out);
void close(rosin_device* device);

rosin_status alloc(rosin_device* device, uint64_t bytes, rosin_memory** out);
void release(rosin_device* device, rosin_memory* memory);
rosin_status alloc_pinned(rosin_device* device, uint64_t bytes, void** out);
void release_pinned(rosin_device* device, void* memory);
rosin_status copy_in(rosin_stream* stream, rosin_place to, const void* from, uint64_t bytes);
rosin_status copy_out(rosin_stream* stream, void* to, rosin_place from, uint64_t bytes);
rosin_status copy(rosin_stream* stream, rosin_place to, rosin_place from, uint64_t bytes);

rosin_status fill(rosin_stream* stream, rosin_place to, uint64_t bytes, uint8_t value);

rosin_status stream_create(rosin_device* device, rosin_stream** out);
rosin_status stream_adopt(rosin_device* device, void* native, rosin_stream** out);
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

}  // namespace rosin::opencl

struct rosin_device {
  const rosin::opencl::DeviceFacts* facts = nullptr;
  rosin::opencl::Context context;
  rosin::opencl::Queue service;                              // for work that belongs to no stream
  std::mutex lock;                                           // guards what follows
  uint64_t used = 0;                                         // bytes given out
  std::map<const char*, rosin::opencl::PinnedBlock> pinned;  // by their addresses
  std::deque<rosin::opencl::Event> retired;                  // see streams.cpp; the oldest first
};

struct rosin_memory {
  rosin::opencl::Memory memory;
  uint64_t bytes = 0;
};

struct rosin_stream {
  rosin_device* device = nullptr;
  rosin::opencl::Queue queue;
};

struct rosin_event {
  rosin_device* device = nullptr;  // of the stream that it was recorded on last
  rosin::opencl::Event event;
};

struct rosin_kernel {
  rosin::opencl::Signature signature;
  rosin::opencl::Kernel kernel;
  std::mutex lock;  // arguments belong to the cl_kernel, so setting them and launching is one act
};

struct rosin_module {
  rosin::opencl::Program program;
  std::deque<rosin_kernel> kernels;  // which do not move
};
