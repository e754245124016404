// See machine.hpp.
#include "machine.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>

namespace fake {
namespace {

constexpr uint64_t alignment = 256;

/// Zeros that take no memory before they are written.
std::shared_ptr<void> untouched(uint64_t bytes) {
  void* block = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (block == MAP_FAILED) return nullptr;
  return {block, [bytes](void* all) { munmap(all, bytes); }};
}

uint64_t number_of(const std::string& text) { return std::strtoull(text.c_str(), nullptr, 10); }

}  // namespace

Options::Options() {
  const char* value = std::getenv(FAKE_OPTIONS);
  std::string rest = value ? value : "";
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(','), rest.size());
    const std::string option = rest.substr(0, end);
    rest.erase(0, std::min(end + 1, rest.size()));
    const size_t equals = option.find('=');
    if (equals == option.npos) continue;
    const std::string name = option.substr(0, equals), given = option.substr(equals + 1);
    if (name == "devices") devices = static_cast<int>(number_of(given));
    if (name == "arch") architecture = static_cast<int>(number_of(given));
    if (name == "driver") driver = static_cast<int>(number_of(given));
    if (name == "memory") memory = number_of(given);
    if (name == "code") code = static_cast<int>(number_of(given));
    if (name == "order") order = number_of(given);
    if (name == "peer") peer = given != "0";
    if (name == "checks") checks = given != "0";
    if (name == "idle") idle = given != "0";
    if (name == "nan") nan = given != "0";
    if (name == "collectives") collectives_first = given == "first";
    if (name == "log") log = given;
    if (name == "cudnn") cudnn = static_cast<int>(number_of(given));
    if (name == "hipblaslt") hipblaslt = static_cast<int>(number_of(given));
    if (name == "miopen") miopen = static_cast<int>(number_of(given));
    if (name == "wrong") wrong = given;
    if (name == "cudnn_runtime") cudnn_runtime = static_cast<int>(number_of(given));
    if (name == "name") gfx = given;
    if (name == "warp") warp = static_cast<unsigned>(number_of(given));
    if (name == "metal") metal = static_cast<int>(number_of(given));
    if (name == "apple") apple = static_cast<int>(number_of(given));
    if (name == "system") system = static_cast<int>(number_of(given));
    if (name == "unified") unified = given != "0";
    if (name == "attention") attention = given != "0";
    if (name == "leaks") leaks = given != "0";
    const size_t colon = given.rfind(':');
    if (name == "fail" && colon != given.npos) {
      std::string calls = given.substr(colon + 1);
      for (char& c : calls) c = c == '+' ? ' ' : c;
      char* at = calls.data();
      for (char* next = at; *at; at = next) {
        const long long call = std::strtoll(at, &next, 10);
        if (next == at) break;
        fails[given.substr(0, colon)].insert(call);
      }
    }
  }
}

// Never destroyed: plug-ins give things back while the process exits.
Machine& Machine::instance() {
  static Machine* machine = new Machine;
  return *machine;
}

Context& Machine::context_of(int device) {
  if (device < 0 || device >= options.devices) throw Trouble{invalid_device, "there is no such device"};
  Context& context = contexts_[device];
  context.device = device;
  return context;
}

uint64_t Machine::left(const Context& context) const {
  uint64_t used = 0;
  for (const auto& [address, block] : blocks_) used += block.device == context.device ? block.bytes : 0;
  return options.memory - std::min(options.memory, used);
}

uint64_t Machine::alloc(Context& context, uint64_t bytes) {
  if (bytes == 0) throw Trouble{invalid_value, "an allocation of no bytes"};
  if (bytes > left(context)) throw Trouble{out_of_memory, "out of memory"};
  DeviceMemory block;
  block.device = context.device;
  block.bytes = bytes;
  block.storage =
      options.idle ? untouched(bytes + alignment) : std::shared_ptr<void>(std::malloc(bytes + alignment), std::free);
  if (!block.storage) throw Trouble{out_of_memory, "the machine has no such block"};
  const auto start = reinterpret_cast<uint64_t>(block.storage.get());
  const uint64_t address = (start + alignment - 1) / alignment * alignment;
  if (!options.idle) std::memset(reinterpret_cast<void*>(address), 0xCD, bytes);
  blocks_.emplace(address, std::move(block));
  return address;
}

void Machine::adopt(Context& context, void* memory, uint64_t bytes) {
  DeviceMemory block;
  block.device = context.device;
  block.bytes = bytes;
  blocks_.emplace(reinterpret_cast<uint64_t>(memory), std::move(block));
}

void Machine::free(Context& context, uint64_t address) {
  const auto found = blocks_.find(address);
  if (found == blocks_.end()) throw Trouble{invalid_value, "no block of memory begins at the address that is freed"};
  if (found->second.device != context.device) throw Trouble{invalid_context, "memory of another device is freed"};
  const uint64_t end = address + found->second.bytes;
  for (const Stream* stream : streams_) {
    for (const Work& work : stream->work) {
      const auto inside = [&](uint64_t at) { return at >= address && at < end; };
      if (std::any_of(work.addresses.begin(), work.addresses.end(), inside)) {
        throw Trouble{invalid_value, "memory is freed while work that waits in a stream uses it"};
      }
    }
  }
  blocks_.erase(found);
}

void* Machine::alloc_host(uint64_t bytes) {
  if (bytes == 0) throw Trouble{invalid_value, "an allocation of no bytes"};
  void* address = std::malloc(bytes);
  if (!address) throw Trouble{out_of_memory, "out of pinned memory"};
  std::memset(address, 0xCE, bytes);
  pinned_.emplace(reinterpret_cast<uint64_t>(address), bytes);
  return address;
}

void Machine::free_host(void* address) {
  if (pinned_.erase(reinterpret_cast<uint64_t>(address)) == 0)
    throw Trouble{invalid_value, "no pinned memory is freed"};
  std::free(address);
}

void Machine::pin(void* address, uint64_t bytes) {
  if (bytes == 0 || is_pinned(address, bytes)) throw Trouble{invalid_value, "no bytes, or pinned already"};
  pinned_.emplace(reinterpret_cast<uint64_t>(address), bytes);
}

void Machine::unpin(void* address) {
  if (pinned_.erase(reinterpret_cast<uint64_t>(address)) == 0) throw Trouble{invalid_value, "it is not pinned"};
}

bool Machine::is_pinned(const void* address, uint64_t bytes) const {
  const auto first = reinterpret_cast<uint64_t>(address);
  auto block = pinned_.upper_bound(first);
  if (block == pinned_.begin()) return false;
  --block;
  return first + bytes <= block->first + block->second;
}

void Machine::check_range(const Context& context, uint64_t address, uint64_t bytes) const {
  auto block = blocks_.upper_bound(address);
  if (block == blocks_.begin()) throw Trouble{invalid_value, "an address outside of all blocks of memory"};
  --block;
  if (address + bytes > block->first + block->second.bytes) {
    throw Trouble{invalid_value, "a range that reaches beyond its block of memory, or memory that was freed"};
  }
  if (block->second.device != context.device) throw Trouble{invalid_context, "memory of another device"};
}

Block Machine::find(uint64_t address) {
  auto found = blocks_.upper_bound(address);
  if (found == blocks_.begin()) return {};
  --found;
  DeviceMemory& block = found->second;
  if (address > found->first + block.bytes) return {};
  if (options.checks && !block.writers) {
    block.writers = {static_cast<u32*>(std::calloc(block.bytes, sizeof(u32))), std::free};
    block.readers = {static_cast<u32*>(std::calloc(block.bytes, 2 * sizeof(u32))), std::free};
  }
  return {found->first, found->first + block.bytes, block.writers.get(), block.readers.get()};
}

Stream* Machine::add_stream(Context& context) {
  auto* stream = new Stream{&context, {}, nullptr, {}};
  streams_.insert(stream);
  return stream;
}

Event* Machine::add_event(Context& context) {
  auto* event = new Event{&context, true, nullptr};
  events_.insert(event);
  return event;
}

void Machine::remove(Stream* stream) {
  if (checked(stream).captured) throw Trouble{not_captured, "a stream is destroyed while it is captured"};
  run_until([&] { return stream->work.empty(); });
  streams_.erase(stream);
  delete stream;
}

void Machine::remove(Event* event) {
  checked(event);
  events_.erase(event);
  delete event;
}

Stream& Machine::checked(Stream* stream) {
  if (!streams_.contains(stream)) throw Trouble{invalid_handle, "no such stream"};
  return *stream;
}

Event& Machine::checked(Event* event) {
  if (!events_.contains(event)) throw Trouble{invalid_handle, "no such event"};
  return *event;
}

void Machine::give(Stream& stream, Work work) {
  if (!stream.captured) return stream.work.push_back(std::move(work));
  if (!work.run) throw Trouble{not_captured, "the stand-in captures no events"};
  stream.captured->push_back(std::move(work));
}

bool Machine::captures() const {
  return std::any_of(streams_.begin(), streams_.end(), [](const Stream* stream) {
    return stream->captured && stream->captured_by == std::this_thread::get_id();
  });
}

/// Whether work of other processes is all that the stream waits for, or will when it has seen events that have passed.
bool is_at_collective(const Stream& stream) {
  const auto is_over = [](const Work& work) { return work.waits && work.waits->passed; };
  const auto next = std::find_if_not(stream.work.begin(), stream.work.end(), is_over);
  return next != stream.work.end() && next->ready;
}

/// Those whose first work may run. Where collectives come first, all else waits as soon as one lacks other processes
/// alone.
std::vector<Stream*> Machine::ready_streams() const {
  std::vector<Stream*> ready;
  for (Stream* stream : streams_) {
    if (stream->work.empty()) continue;
    const Work& first = stream->work.front();
    if (first.waits && !first.waits->passed) continue;
    const bool may_run = !first.ready || stream->context->lost || first.ready();
    if (options.collectives_first && is_at_collective(*stream)) {
      return may_run ? std::vector{stream} : std::vector<Stream*>{};
    }
    if (may_run) ready.push_back(stream);
  }
  return ready;
}

void Machine::note(const std::string& what) {
  if (options.log.empty() || what.empty()) return;
  std::ofstream(options.log + "." + std::to_string(getpid()), std::ios::app) << what << '\n';
}

bool Machine::run_one() {
  const std::vector<Stream*> ready = ready_streams();
  if (ready.empty()) return false;
  Stream& stream = *ready[random_() % ready.size()];
  const Work work = std::move(stream.work.front());
  stream.work.pop_front();
  note(work.what);
  try {
    if (work.run && !stream.context->lost) work.run();
  } catch (const Trouble& trouble) {
    lose(*stream.context, trouble);
  }
  time_ += work.time;
  if (work.marks) *work.marks = {true, time_};
  return true;
}

void Machine::lose(Context& context, const Trouble& trouble) {
  context.lost = trouble.code;
  context.why = trouble.text;
}

void Machine::run_until(const std::function<bool()>& holds) {
  while (!holds()) {
    if (run_one()) continue;
    const bool waits_for_others = std::any_of(streams_.begin(), streams_.end(), [](const Stream* stream) {
      return !stream->work.empty() && stream->work.front().ready;
    });
    if (!waits_for_others) throw Trouble{launch_failed, "streams wait for each other for ever"};
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

void Machine::finish(const Context& context) {
  run_until([&] {
    return std::all_of(streams_.begin(), streams_.end(),
                       [&](const Stream* stream) { return stream->context != &context || stream->work.empty(); });
  });
}

}  // namespace fake
