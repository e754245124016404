// Command queues, command buffers and their encoders.
#include <cstring>

#include "objects.hpp"

namespace fake_metal {
namespace {

constexpr int most_buffers = 64;  // of a queue, that have not ended
constexpr double for_ever = 120;  // seconds
constexpr uint64_t word = 4;      // what blits on macOS are made of

double now = 0;  // pretended seconds

fake::Machine& machine() { return fake::Machine::instance(); }

Object* command_buffer(Object* queue, Selector) {
  const bool failed = fails();
  Queue& its = state_of<Queue>(queue);
  if (!wait_until([&] { return its.buffers < most_buffers; }, for_ever))
    misuse("a queue has 64 command buffers, and none of them ends");
  const Guard guard(lock());
  if (failed) return nullptr;
  auto buffer = std::make_unique<CommandBuffer>();
  buffer->queue = Kept(queue);
  ++its.buffers;
  return autoreleased(made("MTLCommandBuffer", std::move(buffer)));
}

/// A command buffer that takes something.
CommandBuffer& open(Object* self, const char* what) {
  auto& buffer = state_of<CommandBuffer>(self);
  if (buffer.is_committed) misuse(std::string(what) + ": the command buffer was committed");
  if (buffer.encoder) misuse(std::string(what) + ": an encoder has not ended");
  return buffer;
}

template <class T> Object* encoder(Object* self, const char* of) {
  const bool failed = fails();
  const Guard guard(lock());
  CommandBuffer& buffer = open(self, of);
  if (failed) return nullptr;
  auto made_now = std::make_unique<T>();
  made_now->buffer = Kept(self);
  buffer.encoder = made_now.get();
  return autoreleased(made(of, std::move(made_now)));
}

/// Later pieces of a command buffer that fails are not done; nor does it send anything.
void run_or_fail(CommandBuffer& buffer, const std::function<void()>& run) {
  if (!buffer.failure.empty()) return;
  try {
    run();
  } catch (const fake::Trouble& trouble) {
    buffer.failure =
        "Caused GPU Address Fault Error (0000000b:kIOGPUCommandBufferCallbackErrorPageFault): " + trouble.text;
  }
}

void commit(Object* self, Selector) {
  const bool failed = fails();
  const Guard guard(lock());
  CommandBuffer& buffer = open(self, "commit");
  buffer.is_committed = true;
  if (failed) buffer.failure = "Internal Error (0000000e:kIOGPUCommandBufferCallbackErrorInternal) as FAKE_METAL asks";
  fake::Stream& stream = *buffer.its_queue().stream;
  for (fake::Work& work : buffer.work) machine().give(stream, std::move(work));
  buffer.work.clear();
  fake::Work last;
  last.run = [kept = Kept(self)] {
    auto& ended = state_of<CommandBuffer>(kept.get());
    ended.has_ended = true;
    ended.end_time = now;
    --ended.its_queue().buffers;
    ended.kept.clear();
  };
  machine().give(stream, std::move(last));
}

uint64_t status(Object* self, Selector) {
  const Guard guard(lock());
  const auto& buffer = state_of<CommandBuffer>(self);
  if (!buffer.is_committed) return 0;
  if (!buffer.has_ended) machine().run_one();
  return !buffer.has_ended ? 2 : buffer.failure.empty() ? 4 : 5;
}

void wait(Object* self, Selector) {
  const auto& buffer = state_of<CommandBuffer>(self);
  if (!buffer.is_committed) misuse("waitUntilCompleted: the command buffer was not committed");
  if (!wait_until([&] { return buffer.has_ended; }, for_ever)) misuse("waitUntilCompleted: it does not end");
}

Object* error(Object* self, Selector) {
  const Guard guard(lock());
  const auto& buffer = state_of<CommandBuffer>(self);
  if (!buffer.has_ended || buffer.failure.empty()) return nullptr;
  return autoreleased(make_error("MTLCommandBufferErrorDomain", 3, buffer.failure));
}

void encode_signal(Object* self, Selector, Object* event, uint64_t value) {
  const Guard guard(lock());
  CommandBuffer& buffer = open(self, "encodeSignalEvent:value:");
  SharedEvent& its = state_of<SharedEvent>(event);
  buffer.keep(event);
  buffer.add([&its, value] { its.value = value; }, {});
}

void encode_wait(Object* self, Selector, Object* event, uint64_t value) {
  const Guard guard(lock());
  CommandBuffer& buffer = open(self, "encodeWaitForEvent:value:");
  const SharedEvent& its = state_of<SharedEvent>(event);
  buffer.keep(event);
  buffer.add([] {}, {});
  buffer.work.back().ready = [&buffer, &its, value] { return !buffer.failure.empty() || its.value >= value; };
}

// ---- Encoders

struct ComputeEncoder : Encoder {
  std::shared_ptr<const Kernel> kernel;
  std::vector<unsigned char> bytes;  // of index 0
  std::map<Object*, uint64_t> used;  // resources, and for what
};
struct BlitEncoder : Encoder {};

struct Size {
  uint64_t width, height, depth;
  std::array<uint32_t, 3> all() const {
    return {static_cast<uint32_t>(width), static_cast<uint32_t>(height), static_cast<uint32_t>(depth)};
  }
};
struct Range {
  uint64_t location, length;
};

void end_encoding(Object* self, Selector) {
  const Guard guard(lock());
  auto& its = state_of<Encoder>(self);
  its.commands("endEncoding").encoder = nullptr;
  its.has_ended = true;
}

void set_pipeline(Object* self, Selector, Object* pipeline) {
  const Guard guard(lock());
  auto& its = state_of<ComputeEncoder>(self);
  its.commands("setComputePipelineState:").keep(pipeline);
  its.kernel = state_of<Pipeline>(pipeline).kernel;
}

void set_bytes(Object* self, Selector, const void* bytes, uint64_t count, uint64_t index) {
  const Guard guard(lock());
  auto& its = state_of<ComputeEncoder>(self);
  its.commands("setBytes:length:atIndex:");
  if (count == 0 || count > most_bytes || index != 0) misuse("setBytes:length:atIndex: of no, or too many bytes");
  const auto* from = static_cast<const unsigned char*>(bytes);
  its.bytes.assign(from, from + count);
}

/// Does not keep it: what is reached through addresses is the caller's to keep.
void use_resource(Object* self, Selector, Object* buffer, uint64_t usage) {
  const Guard guard(lock());
  auto& its = state_of<ComputeEncoder>(self);
  its.commands("useResource:usage:");
  state_of<Buffer>(buffer);
  if (usage == 0 || usage > 3) misuse("useResource:usage: for nothing");
  its.used[buffer] |= usage;
}

void dispatch(Object* self, Selector, Size groups, Size threads) {
  const bool failed = fails();
  const Guard guard(lock());
  auto& its = state_of<ComputeEncoder>(self);
  CommandBuffer& buffer = its.commands("dispatchThreadgroups:threadsPerThreadgroup:");
  if (!its.kernel) misuse("dispatchThreadgroups:threadsPerThreadgroup: without a pipeline");
  const Binding binding{its.bytes.empty() ? nullptr : its.bytes.data(), its.bytes.size()};
  const std::string wrong = its.kernel->check(binding, groups.all(), threads.all());
  if (!wrong.empty()) misuse(wrong);
  std::vector<Resource> resources;
  std::vector<uint64_t> addresses;
  for (const auto& [object, usage] : its.used) {
    const Buffer& used = state_of<Buffer>(object);
    resources.push_back({used.address, used.bytes, (usage & 2) != 0});
    addresses.push_back(used.address);
  }
  buffer.add(
      [kernel = its.kernel, bytes = its.bytes, resources, groups, threads, failed] {
        if (failed) throw fake::Trouble{fake::illegal_address, kernel->name + " faults as FAKE_METAL asks"};
        kernel->run({bytes.data(), bytes.size()}, resources, groups.all(), threads.all());
      },
      std::move(addresses));
}

/// The host's address of bytes of a buffer that a blit may name.
uint64_t part(Object* buffer, uint64_t offset, uint64_t bytes, const char* what) {
  const auto& its = state_of<Buffer>(buffer);
  if (bytes == 0 || offset > its.bytes || bytes > its.bytes - offset) misuse(std::string(what) + ": beyond the buffer");
  if (offset % word != 0 || bytes % word != 0) misuse(std::string(what) + ": no multiple of 4 bytes");
  return its.address + offset;
}

void copy(Object* self, Selector, Object* from, uint64_t from_offset, Object* to, uint64_t to_offset, uint64_t bytes) {
  const Guard guard(lock());
  constexpr const char* what = "copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:";
  CommandBuffer& buffer = state_of<BlitEncoder>(self).commands(what);
  const uint64_t source = part(from, from_offset, bytes, what), target = part(to, to_offset, bytes, what);
  if (source < target + bytes && target < source + bytes) misuse(std::string(what) + ": the ranges overlap");
  buffer.keep(from);
  buffer.keep(to);
  buffer.add([=] { std::memcpy(reinterpret_cast<void*>(target), reinterpret_cast<const void*>(source), bytes); },
             {source, target});
}

void fill(Object* self, Selector, Object* of, Range range, uint8_t value) {
  const Guard guard(lock());
  constexpr const char* what = "fillBuffer:range:value:";
  CommandBuffer& buffer = state_of<BlitEncoder>(self).commands(what);
  const uint64_t target = part(of, range.location, range.length, what);
  buffer.keep(of);
  buffer.add([=] { std::memset(reinterpret_cast<void*>(target), value, range.length); }, {target});
}

}  // namespace

Object* next_buffer(Object* queue) { return command_buffer(queue, nullptr); }
void commit_buffer(Object* buffer) { commit(buffer, nullptr); }

Queue::~Queue() {
  if (stream) machine().remove(stream);
}

CommandBuffer::~CommandBuffer() {
  if (encoder) misuse("a command buffer ends before its encoder");
  if (!is_committed && queue.get()) --its_queue().buffers;
}

void CommandBuffer::add(std::function<void()> run, std::vector<uint64_t> addresses) {
  fake::Work piece;
  piece.run = [this, run = std::move(run)] {
    now += 1e-6;
    run_or_fail(*this, run);
  };
  piece.addresses = std::move(addresses);
  work.push_back(std::move(piece));
}

Encoder::~Encoder() {
  if (!has_ended) misuse("an encoder is released without endEncoding");
}

CommandBuffer& Encoder::commands(const char* what) const {
  if (has_ended) misuse(std::string(what) + ": after endEncoding");
  return state_of<CommandBuffer>(buffer.get());
}

void define_commands() {
  method(
      "MTLDevice", "newCommandQueue", +[](Object* self, Selector) -> Object* {
        const bool failed = fails();
        const Guard guard(lock());
        if (failed) return nullptr;
        auto queue = std::make_unique<Queue>();
        queue->device = Kept(self);
        queue->stream = machine().add_stream(*state_of<Device>(self).context);
        return made("MTLCommandQueue", std::move(queue));
      });
  method("MTLCommandQueue", "commandBuffer", command_buffer);
  const char* const buffer = "MTLCommandBuffer";
  method(
      buffer, "computeCommandEncoder",
      +[](Object* self, Selector) { return encoder<ComputeEncoder>(self, "MTLComputeCommandEncoder"); });
  method(
      buffer, "blitCommandEncoder",
      +[](Object* self, Selector) { return encoder<BlitEncoder>(self, "MTLBlitCommandEncoder"); });
  method(buffer, "commit", commit);
  method(buffer, "status", status);
  method(buffer, "waitUntilCompleted", wait);
  method(buffer, "error", error);
  method(buffer, "encodeSignalEvent:value:", encode_signal);
  method(buffer, "encodeWaitForEvent:value:", encode_wait);
  method(
      buffer, "GPUEndTime", +[](Object* self, Selector) { return state_of<CommandBuffer>(self).end_time; });
  const char* const compute = "MTLComputeCommandEncoder";
  method(compute, "setComputePipelineState:", set_pipeline);
  method(compute, "setBytes:length:atIndex:", set_bytes);
  method(compute, "useResource:usage:", use_resource);
  method(compute, "dispatchThreadgroups:threadsPerThreadgroup:", dispatch);
  method(compute, "endEncoding", end_encoding);
  const char* const blit = "MTLBlitCommandEncoder";
  method(blit, "copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:", copy);
  method(blit, "fillBuffer:range:value:", fill);
  method(blit, "endEncoding", end_encoding);
}

}  // namespace fake_metal
