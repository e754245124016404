// The table of functions, infos, errors, and blocks of memory as far as nothing is stored in them.
#include <algorithm>
#include <thread>

#include "checks.hpp"

namespace rosin::conformance {
namespace {

void the_table_is_complete(Rig& rig) {
  const rosin_backend& api = rig.api;
  expect(api.name && *api.name && api.version, "name or version is missing");
  expect(api.error_text && api.device_count && api.device_info && api.open && api.close, "a device function is null");
  expect(api.alloc && api.release && api.alloc_pinned && api.release_pinned, "a memory function is null");
  expect(api.stream_create && api.stream_destroy && api.stream_sync && api.event_create && api.event_destroy &&
             api.event_record && api.event_query && api.event_sync && api.stream_wait,
         "a function of streams or events is null");
  expect(api.copy_in && api.copy_out && api.copy, "a copy function is null");
  expect(api.compile && api.free_bytes && api.load && api.unload && api.kernel && api.launch,
         "a function of kernels is null");
  expect(!api.call_prepare == !api.call_run && !api.call_prepare == !api.call_destroy &&
             !api.call_prepare == !api.call_takes,
         "half of the vendor calls");
  expect(!api.call_tune == !api.call_choice && (!api.call_tune || api.call_prepare), "half of the choices of calls");
  const bool graphs = api.graph_create != nullptr;
  expect(!api.graph_add != graphs && !api.graph_finish != graphs && !api.graph_update != graphs &&
             !api.graph_launch != graphs && !api.graph_destroy != graphs,
         "half of the graph functions");
  expect(!api.alloc_ordered == !api.release_ordered && !api.pin == !api.unpin &&
             !api.event_create_timed == !api.event_elapsed && !api.range_begin == !api.range_end,
         "half of what belongs together");
}

/// Printable ASCII from `least` on.
bool is_printable(const char* text, char least) {
  return text && std::all_of(text, text + std::strlen(text), [least](char c) { return c >= least && c < 127; });
}

void capabilities_have_names_and_stay(Rig& rig) {
  if (!rig.api.capabilities) return;
  const rosin_capability *list = nullptr, *again = nullptr;
  uint32_t count = 0, counted_again = 0;
  rig.good(rig.api.capabilities(&list, &count), "capabilities");
  for (uint32_t i = 0; i < count; ++i) {
    expect(is_printable(list[i].name, ' ') && *list[i].name, "a name is empty or not printable");
    expect(is_printable(list[i].version, '!'), "a version has blanks or is not printable");
    expect(!list[i].reason || !std::strchr(list[i].reason, '\n'), "a reason has several lines");
    for (uint32_t k = 0; k < i; ++k) expect(std::strcmp(list[i].name, list[k].name) != 0, "a name stands there twice");
  }
  rig.good(rig.api.capabilities(&again, &counted_again), "capabilities");
  expect(again == list && counted_again == count, "the list is another one when it is asked for again");
}

template <size_t n> bool is_text(const char (&text)[n]) { return std::find(text, text + n, '\0') != text + n; }

void the_info_keeps_its_bounds(Rig& rig) {
  const rosin_device_info& info = rig.info;
  expect(is_text(info.name) && *info.name, "name is empty or without end");
  expect(is_text(info.driver) && is_text(info.capability) && is_text(info.pci), "a text without end");
  expect(is_text(info.target) && *info.target, "target is empty or without end");
  expect(info.memory > 0 && info.largest_allocation > 0, "no memory");
  expect(info.kind >= ROSIN_DEVICE_GPU && info.kind <= ROSIN_DEVICE_OTHER, "kind is no rosin_device_kind");
  expect(info.language >= ROSIN_LANGUAGE_NONE && info.language <= ROSIN_LANGUAGE_METAL, "no rosin_language");
  expect(info.float64 == 0 || info.float64 == 1, "float64 is neither 0 nor 1");
  expect(info.largest_group >= 256, "largest_group is below 256");
  expect(info.shared_bytes >= 16384, "shared_bytes is below 16384");
  const int32_t unit = info.alignment;
  expect(unit >= 1 && unit <= 256 && (unit & (unit - 1)) == 0, "alignment is no power of two up to 256");
  expect(info.units >= 0 && info.warp >= 0 && info.warp <= info.largest_group && info.cache_bytes >= 0 &&
             info.registers >= 0,
         "a number of units, items, bytes or registers that cannot be");
  expect(info.largest_shared == 0 || info.largest_shared >= info.shared_bytes, "largest_shared is below shared_bytes");
  expect(info.argument_bytes == 0 || info.argument_bytes >= 256, "argument_bytes is below 256");
  const auto takes = [&](uint64_t what) { return (info.instructions & what) != 0; };
  expect(!takes(ROSIN_TAKES_VECTORS) || info.vector_bytes >= 4, "it takes vectors, and vector_bytes is below 4");
  const bool exchanges = info.warp >= 2 && info.warp <= 128 && (info.warp & (info.warp - 1)) == 0;
  expect(!takes(ROSIN_TAKES_SHUFFLE) || exchanges, "it takes shuffles, and warp is no power of two from 2 to 128");
  expect(!takes(ROSIN_TAKES_LARGE_SHARED) || info.largest_shared > info.shared_bytes,
         "it takes large shared arrays, and largest_shared is not above shared_bytes");
  const uint64_t beside = ROSIN_TAKES_VECTORS | ROSIN_TAKES_SHUFFLE;
  expect(!takes(ROSIN_TAKES_MATRICES) || (info.warp == 32 && (info.instructions & beside) == beside),
         "it multiplies matrices, and takes no vectors or shuffles, or warp is not 32");
  const bool squares = info.matrix_layout >= ROSIN_LAYOUT_MFMA && info.matrix_layout <= ROSIN_LAYOUT_WMMA12 &&
                       info.warp == (info.matrix_layout == ROSIN_LAYOUT_MFMA ? 64 : 32);
  expect(!takes(ROSIN_TAKES_SQUARE_MATRICES) ||
             (squares && !takes(ROSIN_TAKES_MATRICES) && (info.instructions & beside) == beside),
         "it multiplies square matrices, and takes no vectors or shuffles, or matrix_layout or warp is none of them");
  const int32_t vector = info.vector_bytes;
  expect(vector >= 0 && vector <= 64 && (vector & (vector - 1)) == 0, "vector_bytes is no power of two up to 64");
}

void an_older_caller_gets_no_more_than_it_asked_for(Rig& rig) {
  union {
    rosin_device_info info;
    unsigned char bytes[sizeof(rosin_device_info)];
  } small;
  std::memset(small.bytes, 0xa5, sizeof(small.bytes));
  small.info.size = sizeof(size_t) + sizeof(small.info.name);
  rig.good(rig.api.device_info(rig.number, &small.info), "device_info");
  expect(std::strcmp(small.info.name, rig.info.name) == 0, "another name for a smaller struct");
  unsigned char* const end = small.bytes + sizeof(small.bytes);
  expect(std::all_of(small.bytes + small.info.size, end, [](unsigned char c) { return c == 0xa5; }),
         "device_info wrote behind info->size");
}

void devices_that_are_not_there_are_refused(Rig& rig) {
  int32_t count = 0;
  rig.good(rig.api.device_count(&count), "device_count");
  rosin_device_info info{};
  info.size = sizeof(info);
  rosin_device* device = nullptr;
  for (const int32_t wrong : {count, -1}) {
    rig.fails(rig.api.device_info(wrong, &info), ROSIN_INVALID, "device_info of no device");
    rig.fails(rig.api.open(wrong, &device), ROSIN_INVALID, "open of no device");
    expect(device == nullptr, "open failed and gave something out");
  }
}

void a_device_opens_again(Rig& rig) {
  for (int i = 0; i < 3; ++i) {
    rosin_device* device = nullptr;
    rig.good(rig.api.open(rig.number, &device), "open");
    rig.api.close(device);
  }
}

void each_thread_has_its_own_error_text(Rig& rig) {
  rosin_device* device = nullptr;
  rig.fails(rig.api.open(-1, &device), ROSIN_INVALID, "open of no device");
  const std::string mine = rig.api.error_text();
  std::thread other([&] {
    int32_t count = 0;
    (void)rig.api.device_count(&count);
    rosin_memory* memory = nullptr;
    (void)rig.api.alloc(rig.device, 0, &memory);
  });
  other.join();
  expect(mine == rig.api.error_text(), "another thread's call changed this thread's error text");
}

void blocks_of_all_sizes_come_and_go(Rig& rig) {
  std::vector<std::unique_ptr<Memory>> blocks;
  for (const uint64_t bytes : {1u, 2u, 3u, 255u, 256u, 257u, 65536u, 1000003u}) {
    blocks.push_back(std::make_unique<Memory>(rig, bytes));
    for (size_t i = 0; i + 1 < blocks.size(); ++i) {
      expect(blocks[i]->at().memory != blocks.back()->at().memory, "two live blocks are one");
    }
  }
  blocks.erase(blocks.begin() + 2, blocks.begin() + 5);
  Memory again(rig, 4096);
}

void no_bytes_are_no_block(Rig& rig) {
  rosin_memory* memory = nullptr;
  rig.fails(rig.api.alloc(rig.device, 0, &memory), ROSIN_INVALID, "alloc of 0 bytes");
  expect(memory == nullptr, "alloc failed and gave something out");
}

void free_memory_is_part_of_all_memory(Rig& rig) {
  if (!rig.api.memory_left) return;
  uint64_t free_bytes = 0, total = 0;
  rig.good(rig.api.memory_left(rig.device, &free_bytes, &total), "memory_left");
  expect(total > 0 && free_bytes <= total, "free " + std::to_string(free_bytes) + " of " + std::to_string(total));
}

constexpr Check checks[] = {
    {"the table is complete", the_table_is_complete},
    {"capabilities have names and stay", capabilities_have_names_and_stay},
    {"the info keeps its bounds", the_info_keeps_its_bounds},
    {"an older caller gets no more than it asked for", an_older_caller_gets_no_more_than_it_asked_for},
    {"devices that are not there are refused", devices_that_are_not_there_are_refused},
    {"a device opens again", a_device_opens_again},
    {"each thread has its own error text", each_thread_has_its_own_error_text},
    {"blocks of all sizes come and go", blocks_of_all_sizes_come_and_go},
    {"no bytes are no block", no_bytes_are_no_block},
    {"free memory is part of all memory", free_memory_is_part_of_all_memory},
};

}  // namespace

const Part device_part = {"device", checks};

}  // namespace rosin::conformance
