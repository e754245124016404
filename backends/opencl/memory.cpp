// Blocks of device memory, pinned host memory, and copies. Read next: streams.cpp.
#include <memory>

#include "opencl.hpp"

namespace rosin::opencl {
namespace {

Memory make_buffer(rosin_device* device, cl_mem_flags flags, uint64_t bytes) {
  cl_int code = CL_SUCCESS;
  Memory memory(clCreateBuffer(device->context.get(), flags, static_cast<size_t>(bytes), nullptr, &code));
  check(code, "clCreateBuffer");
  return memory;
}

/// Drivers put off the allocation until the first use, where its failure would hit a kernel; so the first use is here.
void touch(rosin_device* device, cl_mem memory) {
  const cl_uchar zero = 0;
  check(clEnqueueFillBuffer(device->service.get(), memory, &zero, 1, 0, 1, 0, nullptr, nullptr), "clEnqueueFillBuffer");
  check(clFinish(device->service.get()), "clFinish");
}

/// What a failed allocation calls by other names is a lack of memory too.
[[noreturn]] void no_memory(uint64_t bytes, const std::string& why) {
  throw Failure{ROSIN_OUT_OF_MEMORY, "no block of " + std::to_string(bytes) + " bytes is left: " + why};
}

/// Counts the bytes as given out. Some drivers hand out more than there is, and fall over when it is used.
void reserve(rosin_device* device, uint64_t bytes) {
  const rosin_device_info& info = device->facts->info;
  if (bytes > info.largest_allocation)
    no_memory(bytes, "the largest block of this device has " + std::to_string(info.largest_allocation));
  const std::lock_guard lock(device->lock);
  if (bytes > info.memory - device->used) {
    no_memory(bytes, "of the device's " + std::to_string(info.memory) + ", " + std::to_string(device->used) +
                         " are given out");
  }
  device->used += bytes;
}

void give_back(rosin_device* device, uint64_t bytes) {
  const std::lock_guard lock(device->lock);
  device->used -= bytes;
}

/// Whether this is host memory that copies may use after the call.
bool is_pinned(rosin_device* device, const void* address, uint64_t bytes) {
  const char* first = static_cast<const char*>(address);
  const std::lock_guard lock(device->lock);
  auto block = device->pinned.upper_bound(first);
  if (block == device->pinned.begin()) return false;
  --block;
  return first + bytes <= block->first + block->second.bytes;
}

void check_place(const rosin_place& place, uint64_t bytes) {
  if (!place.memory || place.offset > place.memory->bytes || bytes > place.memory->bytes - place.offset)
    throw Failure{ROSIN_INVALID, "a copy reaches beyond its block of device memory"};
}

}  // namespace

rosin_status alloc(rosin_device* device, uint64_t bytes, rosin_memory** out) {
  return guarded([&] {
    if (bytes == 0) throw Failure{ROSIN_INVALID, "a block has at least one byte"};
    auto memory = std::make_unique<rosin_memory>();
    memory->bytes = bytes;
    reserve(device, bytes);
    try {
      memory->memory = make_buffer(device, CL_MEM_READ_WRITE, bytes);
      touch(device, memory->memory.get());
    } catch (const Failure& failure) {
      give_back(device, bytes);
      no_memory(bytes, failure.text);
    }
    *out = memory.release();
  });
}

void release(rosin_device* device, rosin_memory* memory) {
  if (!memory) return;
  give_back(device, memory->bytes);
  delete memory;
}

rosin_status alloc_pinned(rosin_device* device, uint64_t bytes, void** out) {
  return guarded([&] {
    if (bytes == 0) throw Failure{ROSIN_INVALID, "a block has at least one byte"};
    PinnedBlock block{make_buffer(device, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, bytes), bytes};
    cl_int code = CL_SUCCESS;
    void* address = clEnqueueMapBuffer(device->service.get(), block.memory.get(), CL_TRUE, CL_MAP_READ | CL_MAP_WRITE,
                                       0, static_cast<size_t>(bytes), 0, nullptr, nullptr, &code);
    if (code != CL_SUCCESS || !address) no_memory(bytes, "clEnqueueMapBuffer gave none");
    const std::lock_guard lock(device->lock);
    device->pinned.emplace(static_cast<const char*>(address), std::move(block));
    *out = address;
  });
}

void release_pinned(rosin_device* device, void* memory) {
  PinnedBlock block;
  {
    const std::lock_guard lock(device->lock);
    const auto found = device->pinned.find(static_cast<const char*>(memory));
    if (found == device->pinned.end()) return;
    block = std::move(found->second);
    device->pinned.erase(found);
  }
  clEnqueueUnmapMemObject(device->service.get(), block.memory.get(), memory, 0, nullptr, nullptr);
  clFinish(device->service.get());
}

rosin_status copy_in(rosin_stream* stream, rosin_place to, const void* from, uint64_t bytes) {
  return guarded([&] {
    check_place(to, bytes);
    if (bytes == 0) return;
    const cl_bool wait = is_pinned(stream->device, from, bytes) ? CL_FALSE : CL_TRUE;
    check(clEnqueueWriteBuffer(stream->queue.get(), to.memory->memory.get(), wait, to.offset, bytes, from, 0, nullptr,
                               nullptr),
          "clEnqueueWriteBuffer");
  });
}

rosin_status copy_out(rosin_stream* stream, void* to, rosin_place from, uint64_t bytes) {
  return guarded([&] {
    check_place(from, bytes);
    if (bytes == 0) return;
    const cl_bool wait = is_pinned(stream->device, to, bytes) ? CL_FALSE : CL_TRUE;
    check(clEnqueueReadBuffer(stream->queue.get(), from.memory->memory.get(), wait, from.offset, bytes, to, 0, nullptr,
                              nullptr),
          "clEnqueueReadBuffer");
  });
}

rosin_status copy(rosin_stream* stream, rosin_place to, rosin_place from, uint64_t bytes) {
  return guarded([&] {
    check_place(to, bytes);
    check_place(from, bytes);
    if (bytes == 0) return;
    check(clEnqueueCopyBuffer(stream->queue.get(), from.memory->memory.get(), to.memory->memory.get(), from.offset,
                              to.offset, bytes, 0, nullptr, nullptr),
          "clEnqueueCopyBuffer");
  });
}

rosin_status fill(rosin_stream* stream, rosin_place to, uint64_t bytes, uint8_t value) {
  return guarded([&] {
    check_place(to, bytes);
    if (bytes == 0) return;
    check(clEnqueueFillBuffer(stream->queue.get(), to.memory->memory.get(), &value, 1, to.offset, bytes, 0, nullptr,
                              nullptr),
          "clEnqueueFillBuffer");
  });
}

}  // namespace rosin::opencl
