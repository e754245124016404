// What the files of this plug-in share: its objects behind the handles of rosin/backend.h.
// Read first: rosin/backend.h, objc.hpp, messages.hpp. Read next: devices.cpp, streams.cpp, memory.cpp, bytes.cpp,
// programs.cpp, plugin.cpp (the table).
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <rosin/backend.h>

#include "common/failure.hpp"
#include "common/program_bytes.hpp"
#include "metal/messages.hpp"
#include "metal/objc.hpp"

namespace rosin::metal {

struct Executable;  // graph.hpp

using plugin::error_text;
using plugin::Failure;
using plugin::guarded;
using plugin::Signature;

/// What is known of a device before it is opened.
struct DeviceFacts {
  Owned id;
  rosin_device_info info{};
  bool is_unified = false;  // the host writes and reads its memory
};

/// Metal as it is here, looked for once: the devices that can be used, in the system's order.
struct Metal {
  std::vector<DeviceFacts> devices;
  std::string system;            // "macOS 14.5"
  std::string passed_over;       // names of devices without Metal 3
  std::string why_no_graphs;     // of MPSGraph; empty: there are
  std::string why_no_attention;  // of MPSGraph, by what it knows of
};
/// Throws ROSIN_UNSUPPORTED with the reason where there is none.
const Metal& the_metal();

/// Throws ROSIN_DEVICE_FAULT where work of the device has failed.
void check_lost(rosin_device& device);
/// Forgets work that has ended, and notes what failed of it; then as check_lost.
void check_work(rosin_device& device);

/// The command buffer that work of the stream goes to, with no encoder open: for what encodes by itself.
Id open_buffer(rosin_stream& stream);
/// Encoders of it. The queue's command buffers run one after another, and work of an encoder too.
Id compute_encoder(rosin_stream& stream);
Id blit_encoder(rosin_stream& stream);
/// Something encoded by itself, may have started the command buffer on the way, and went on in this one.
void go_on_in(rosin_stream& stream, Id buffer);
/// Starts what was encoded, if anything was.
void commit(rosin_stream& stream);
/// Counts a piece of work, and starts it with those before once they are many.
void note_work(rosin_stream& stream);
/// Starts what was encoded, waits for all, and throws where some of it failed.
void finish(rosin_stream& stream);
/// Whether nothing of the stream is under way or will be.
bool is_idle(rosin_stream& stream);

/// A part of a buffer that the device sees.
struct Part {
  Id buffer = nullptr;
  uint64_t offset = 0;
};
/// Where `bytes` of a block begin. Throws ROSIN_INVALID where they reach beyond it.
Part part_of(const rosin_place& place, uint64_t bytes);

/// Gives copies and fills of any size to the stream; those of words are blits, the bytes that are left kernels.
void give_copy(rosin_stream& stream, Part to, Part from, uint64_t bytes);
void give_fill(rosin_stream& stream, Part to, uint64_t bytes, uint8_t value);

/// A compiled text. Throws ROSIN_COMPILE_FAILED with the log.
Owned library_of(const rosin_device& device, const char* text);
/// One of its kernels. Throws ROSIN_INVALID where there is none of that name.
Owned pipeline_of(const rosin_device& device, const Owned& library, const Signature& signature);

/// The arguments of a kernel, eight bytes each, and the buffers that they point into.
class Arguments {
 public:
  void clear() { words_.clear(), buffers_.clear(); }
  void add(Part part) {
    words_.push_back(send::gpu_address(part.buffer) + part.offset);
    buffers_.push_back(part.buffer);
  }
  void add(uint64_t number) { words_.push_back(number); }
  const std::vector<uint64_t>& words() const { return words_; }
  const std::vector<Id>& buffers() const { return buffers_; }

 private:
  std::vector<uint64_t> words_;
  std::vector<Id> buffers_;
};
void give_launch(rosin_stream& stream, Id pipeline, uint64_t group, Size groups, const Arguments& arguments);

/// A block that the host sees. Throws ROSIN_OUT_OF_MEMORY.
Owned host_block(const rosin_device& device, uint64_t bytes);

rosin_status device_count(int32_t* count);
rosin_status capabilities(const rosin_capability** list, uint32_t* count);
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
rosin_status fill(rosin_stream* stream, rosin_place to, uint64_t bytes, uint8_t value);

rosin_status stream_create(rosin_device* device, rosin_stream** out);
rosin_status stream_adopt(rosin_device* device, void* native, rosin_stream** out);
void stream_destroy(rosin_stream* stream);
rosin_status stream_sync(rosin_stream* stream);
void* native_stream(rosin_stream* stream);
rosin_status event_create(rosin_device* device, rosin_event** out);
rosin_status event_create_timed(rosin_device* device, rosin_event** out);
void event_destroy(rosin_event* event);
rosin_status event_record(rosin_event* event, rosin_stream* stream);
rosin_status event_query(rosin_event* event);
rosin_status event_sync(rosin_event* event);
rosin_status event_elapsed(rosin_event* from, rosin_event* to, double* seconds);
rosin_status stream_wait(rosin_stream* stream, rosin_event* event);

rosin_status compile(rosin_device* device, const char* target, const rosin_program* program, void** bytes,
                     uint64_t* count);
void free_bytes(void* bytes);
rosin_status load(rosin_device* device, const void* bytes, uint64_t count, rosin_module** out);
void unload(rosin_module* module);
rosin_status kernel(rosin_module* module, const char* name, rosin_kernel** out);
rosin_status launch(rosin_stream* stream, rosin_kernel* kernel, const rosin_launch* launch);
rosin_status compile_key(rosin_device* device, const char** key);

}  // namespace rosin::metal

struct rosin_device {
  const rosin::metal::DeviceFacts* facts = nullptr;
  rosin::metal::Id id() const { return facts->id.get(); }

  std::mutex lock;                                                         // guards what follows
  std::map<const char*, std::pair<rosin::metal::Owned, uint64_t>> pinned;  // buffers and their bytes, by address
  std::vector<rosin::metal::Owned> under_way;                              // command buffers that were started
  std::vector<rosin_stream*> streams;                                      // which wait for each other
  std::string why_lost;                                                    // once work has failed
  std::string compiled_text;  // what compile() made last waits here for load()
  rosin::metal::Owned compiled;
  std::map<std::string, std::weak_ptr<const rosin::metal::Executable>> graphs;  // of calls, by what they follow from
  rosin::metal::Owned copy_bytes, fill_bytes;  // kernels of bytes.cpp, once they were needed
};

struct rosin_memory {
  rosin::metal::Owned buffer;
  uint64_t bytes = 0;
  char* contents = nullptr;  // null where the host does not see them
};

struct rosin_stream {
  rosin_device* device = nullptr;
  rosin::metal::Owned queue;
  rosin::metal::Owned signal;  // reaches `started` when all that was started has ended
  uint64_t started = 0;        // command buffers
  rosin::metal::Owned last;    // of them
  rosin::metal::Owned open;    // the next one, while work is encoded
  rosin::metal::Owned graphs;  // MPSGraph's around that, once it has encoded
  rosin::metal::Owned encoder;
  std::vector<rosin::metal::Id> used;  // buffers that the encoder's kernels have been told of, sorted
  enum class Encodes { nothing, kernels, copies } encodes = Encodes::nothing;
  int work = 0;  // pieces in `open`
};

struct rosin_event {
  rosin_device* device = nullptr;  // of the stream that it was recorded on last
  bool is_timed = false;
  rosin::metal::Owned buffer, signal;  // the last command buffer before it, and what that sends at its end
  uint64_t value = 0;
};

struct rosin_kernel {
  rosin::plugin::Signature signature;
  rosin::metal::Owned pipeline;
};

struct rosin_module {
  std::deque<rosin_kernel> kernels;  // which do not move
};
