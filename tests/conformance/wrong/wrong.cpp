// A plug-in that breaks one rule of backend.h: the reference plug-in (the file that WRONG_OF names) behind a few
// functions that do otherwise, as WRONG says. The conformance program has to see each: ../wrong_test.py.
#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "wrong.hpp"

rosin_backend real;
rosin_backend wrong;

namespace {

using Instructions = std::vector<rosin_instruction>;
void (*edit)(Instructions&) = nullptr;
void (*edit_kernel)(rosin_kernel_code&) = nullptr;

/// Compiles other code than was given.
rosin_status compile_edited(rosin_device* device, const char* target, const rosin_program* program, void** bytes,
                            uint64_t* count) {
  rosin_program changed = *program;
  std::vector<rosin_kernel_code> kernels(program->kernels, program->kernels + program->kernel_count);
  std::vector<Instructions> lists;
  for (rosin_kernel_code& kernel : kernels) {
    lists.emplace_back(kernel.instructions, kernel.instructions + kernel.instruction_count);
    if (edit) edit(lists.back());
    if (edit_kernel) edit_kernel(kernel);
  }
  for (size_t i = 0; i < kernels.size(); ++i) {
    kernels[i].instructions = lists[i].data();
    kernels[i].instruction_count = static_cast<uint32_t>(lists[i].size());
  }
  changed.kernels = kernels.data();
  return real.compile(device, target, &changed, bytes, count);
}

void each(Instructions& all, int operation, const std::function<void(rosin_instruction&)>& change) {
  for (rosin_instruction& in : all) {
    if (in.operation == operation) change(in);
  }
}

void computes(void (*how)(Instructions&)) {
  edit = how;
  wrong.compile = compile_edited;
}

template <int from, int to> void replaced(Instructions& all) {
  each(all, from, [](rosin_instruction& in) { in.operation = to; });
}

/// x * y + z with one rounding where there shall be two.
void contracted(Instructions& all) {
  each(all, ROSIN_ADD, [&](rosin_instruction& in) {
    const rosin_instruction& x = all[in.operands[0]];
    if (in.type != ROSIN_SCALAR_FLOAT32 || x.operation != ROSIN_MULTIPLY) return;
    in = {ROSIN_FMA, in.type, {x.operands[0], x.operands[1], in.operands[1]}, 0};
  });
}

rosin_place moved(rosin_place place) {
  place.offset += place.offset ? 64 : 0;
  return place;
}

/// The launch with other numbers than were given.
void launches(void (*how)(rosin_launch&, std::vector<rosin_place>&)) {
  static void (*change)(rosin_launch&, std::vector<rosin_place>&);
  change = how;
  wrong.launch = [](rosin_stream* stream, rosin_kernel* kernel, const rosin_launch* given) {
    rosin_launch launch = *given;
    std::vector<rosin_place> places(given->buffers, given->buffers + 1);
    change(launch, places);
    if (places[0].offset != given->buffers[0].offset) launch.buffers = places.data();
    return real.launch(stream, kernel, &launch);
  };
}

/// Says something else of its devices than is so.
void facts(void (*how)(rosin_device_info&)) {
  static void (*change)(rosin_device_info&);
  change = how;
  wrong.device_info = [](int32_t device, rosin_device_info* info) {
    const rosin_status status = real.device_info(device, info);
    if (status == ROSIN_OK && info->size == sizeof *info) change(*info);
    return status;
  };
}

rosin_status bad_query(rosin_event*) { return ROSIN_INVALID; }

const Way ways[] = {
    {"half of the graphs", [] { wrong.graph_add = nullptr; }},
    {"blank in a version",
     [] {
       wrong.capabilities = [](const rosin_capability** list, uint32_t* count) {
         static const rosin_capability one = {"library", "1 2"};
         *list = &one;
         *count = 1;
         return ROSIN_OK;
       };
     }},
    {"small groups",
     [] {
       wrong.device_info = [](int32_t device, rosin_device_info* info) {
         const rosin_status status = real.device_info(device, info);
         if (status == ROSIN_OK && info->size == sizeof *info) info->largest_group = 16;
         return status;
       };
     }},
    {"info beyond its size",
     [] {
       wrong.device_info = [](int32_t device, rosin_device_info* info) {
         rosin_device_info all{};
         all.size = sizeof all;
         const rosin_status status = real.device_info(device, &all);
         const size_t size = info->size;
         if (status == ROSIN_OK) *info = all, info->size = size;
         return status;
       };
     }},
    {"any device opens", [] { wrong.open = [](int32_t, rosin_device** out) { return real.open(0, out); }; }},
    {"opens once",
     [] {
       wrong.open = [](int32_t device, rosin_device** out) {
         static int left = 2;
         return left-- > 0 ? real.open(device, out) : ROSIN_INVALID;
       };
     }},
    {"one error text",
     [] {
       static std::string last;
       wrong.alloc = [](rosin_device* device, uint64_t bytes, rosin_memory** out) {
         const rosin_status status = real.alloc(device, bytes, out);
         if (status != ROSIN_OK) last = real.error_text();
         return status;
       };
       wrong.open = [](int32_t device, rosin_device** out) {
         const rosin_status status = real.open(device, out);
         if (status != ROSIN_OK) last = real.error_text();
         return status;
       };
       wrong.error_text = [] { return last.c_str(); };
     }},
    {"one block for all",
     [] {
       wrong.alloc = [](rosin_device* device, uint64_t, rosin_memory** out) {
         static rosin_memory* block = nullptr;
         const rosin_status status = block ? ROSIN_OK : real.alloc(device, 1 << 24, &block);
         *out = block;
         return status;
       };
       wrong.release = [](rosin_device*, rosin_memory*) {};
     }},
    {"blocks of no bytes",
     [] {
       wrong.alloc = [](rosin_device* device, uint64_t bytes, rosin_memory** out) {
         return real.alloc(device, bytes ? bytes : 1, out);
       };
     }},
    {"more free than there is",
     [] {
       wrong.memory_left = [](rosin_device*, uint64_t* left, uint64_t* total) {
         *left = 2;
         *total = 1;
         return ROSIN_OK;
       };
     }},
    {"copies in a byte less",
     [] {
       wrong.copy_in = [](rosin_stream* stream, rosin_place to, const void* from, uint64_t bytes) {
         return real.copy_in(stream, to, from, bytes ? bytes - 1 : 0);
       };
     }},
    {"copies to the beginning",
     [] {
       wrong.copy_in = [](rosin_stream* stream, rosin_place to, const void* from, uint64_t bytes) {
         return real.copy_in(stream, {to.memory, 0}, from, bytes);
       };
     }},
    {"copies nothing", [] { wrong.copy = [](rosin_stream*, rosin_place, rosin_place, uint64_t) { return ROSIN_OK; }; }},
    {"copies pinned memory late",
     [] {
       wrong.copy_out = [](rosin_stream* stream, void* to, rosin_place from, uint64_t bytes) {
         return bytes == 100003 ? ROSIN_OK : real.copy_out(stream, to, from, bytes);
       };
     }},
    {"reads host memory late",
     [] {
       static rosin_place late{};
       static const void* source = nullptr;
       wrong.copy_in = [](rosin_stream* stream, rosin_place to, const void* from, uint64_t bytes) {
         if (bytes != 1 << 20) return real.copy_in(stream, to, from, bytes);
         late = to;
         source = from;
         return ROSIN_OK;
       };
       wrong.copy_out = [](rosin_stream* stream, void* to, rosin_place from, uint64_t bytes) {
         if (bytes == 1 << 20 && source) real.copy_in(stream, late, source, bytes);
         source = nullptr;
         return real.copy_out(stream, to, from, bytes);
       };
     }},
    {"gives a block where there is none",
     [] {
       wrong.alloc = [](rosin_device* device, uint64_t bytes, rosin_memory** out) {
         return real.alloc(device, bytes > uint64_t{1} << 40 ? 1 : bytes, out);
       };
     }},
    {"keeps what is released", [] { wrong.release = [](rosin_device*, rosin_memory*) {}; }},
    {"a new event has not ended", [] { wrong.event_query = bad_query; }},
    {"event_sync returns at once", [] { wrong.event_sync = [](rosin_event*) { return ROSIN_OK; }; }},
    {"stream_sync returns at once", [] { wrong.stream_sync = [](rosin_stream*) { return ROSIN_OK; }; }},
    {"no stream waits", [] { wrong.stream_wait = [](rosin_stream*, rosin_event*) { return ROSIN_OK; }; }},
    {"devices know only their own events",
     [] {
       static std::map<rosin_stream*, rosin_device*> of_stream;
       static std::map<rosin_event*, rosin_device*> of_event;
       static std::mutex lock;  // of both
       wrong.stream_create = [](rosin_device* device, rosin_stream** out) {
         const rosin_status status = real.stream_create(device, out);
         const std::lock_guard guard(lock);
         if (status == ROSIN_OK) of_stream[*out] = device;
         return status;
       };
       wrong.event_record = [](rosin_event* event, rosin_stream* stream) {
         const std::lock_guard guard(lock);
         of_event[event] = of_stream[stream];
         return real.event_record(event, stream);
       };
       wrong.stream_wait = [](rosin_stream* stream, rosin_event* event) {
         const std::lock_guard guard(lock);
         const bool own = of_event.count(event) == 0 || of_event[event] == of_stream[stream];
         return own ? real.stream_wait(stream, event) : ROSIN_INVALID;
       };
     }},
    {"adopts another stream",
     [] {
       wrong.stream_adopt = [](rosin_device* device, void*, rosin_stream** out) {
         return real.stream_create(device, out);
       };
     }},
    {"threads are mixed up",
     [] {
       wrong.copy_in = [](rosin_stream* stream, rosin_place to, const void* from, uint64_t bytes) {
         std::vector<char> other(bytes, 1);
         return real.copy_in(stream, to, bytes == 100000 ? other.data() : from, bytes);
       };
     }},
    {"loads once",
     [] {
       wrong.load = [](rosin_device* device, const void* bytes, uint64_t count, rosin_module** out) {
         static int left = 1;
         return left-- > 0 ? real.load(device, bytes, count, out) : ROSIN_INVALID;
       };
     }},
    {"needs a device to compile",
     [] {
       wrong.compile = [](rosin_device* device, const char* target, const rosin_program* program, void** bytes,
                          uint64_t* count) {
         return device ? real.compile(device, target, program, bytes, count) : ROSIN_INVALID;
       };
     }},
    {"takes any bytes",
     [] {
       wrong.load = [](rosin_device* device, const void* bytes, uint64_t count, rosin_module** out) {
         static std::vector<char> last;
         const auto* from = static_cast<const char*>(bytes);
         const rosin_status status = real.load(device, bytes, count, out);
         if (status == ROSIN_OK) last.assign(from, from + count);
         else if (!last.empty()) return real.load(device, last.data(), last.size(), out);
         return status;
       };
     }},
    {"compile fails without a word", [] { wrong.error_text = [] { return ""; }; }},
    {"any kernel is there",
     [] {
       wrong.kernel = [](rosin_module* module, const char* name, rosin_kernel** out) {
         const rosin_status status = real.kernel(module, name, out);
         return status == ROSIN_OK ? status : real.kernel(module, "there", out);
       };
     }},
    {"a group less",
     [] { launches([](rosin_launch& l, std::vector<rosin_place>&) { l.groups[0] -= l.groups[0] > 1; }); }},
    {"one dim of groups", [] { launches([](rosin_launch& l, std::vector<rosin_place>&) { l.groups[2] = 1; }); }},
    {"offsets elsewhere",
     [] { launches([](rosin_launch&, std::vector<rosin_place>& places) { places[0] = moved(places[0]); }); }},
    {"other parameters",
     [] {
       launches([](rosin_launch& l, std::vector<rosin_place>&) {
         static const rosin_number zeros[16] = {};
         if (l.parameters) l.parameters = zeros;
       });
     }},
    {"vectors without vector bytes", [] { facts([](rosin_device_info& info) { info.vector_bytes = 0; }); }},
    {"shuffles without a warp", [] { facts([](rosin_device_info& info) { info.warp = 1; }); }},
    {"lanes are the first",
     [] {
       computes([](Instructions& all) { each(all, ROSIN_LANE, [](rosin_instruction& in) { in.immediate = 0; }); });
     }},
    {"vectors are one element",
     [] {
       computes([](Instructions& all) {
         each(all, ROSIN_STORE_VECTOR, [&](rosin_instruction& in) {
           uint32_t value = in.operands[1];
           while (all[value].operation == ROSIN_JOIN) value = all[value].operands[0];
           in = {ROSIN_STORE, in.type, {in.operands[0], value}, in.immediate & INT32_MAX};
         });
       });
     }},
    {"joins late",
     [] {
       computes([](Instructions& all) {
         for (size_t i = 0; i + 2 < all.size(); ++i) {
           if (all[i].operation != ROSIN_JOIN || all[i + 2].operation != ROSIN_ASSIGN) continue;
           std::swap(all[i], all[i + 1]);  // the join, the literal that is assigned, and the assignment
           std::swap(all[i + 1], all[i + 2]);
           all[i + 1].operands[1] = static_cast<uint32_t>(i);
           for (size_t k = i + 3; k < all.size(); ++k) {
             for (uint32_t& operand : all[k].operands) operand = operand == i ? static_cast<uint32_t>(i + 2) : operand;
           }
           return;
         }
       });
     }},
    {"marked buffers are others",
     [] {
       computes([](Instructions& all) {
         bool marked = false;
         each(all, ROSIN_READ_ONLY, [&](rosin_instruction&) { marked = true; });
         each(all, ROSIN_LOAD, [&](rosin_instruction& in) { in.immediate = marked ? 0 : in.immediate; });
       });
     }},
    {"shuffles nothing",
     [] {
       computes([](Instructions& all) {
         each(all, ROSIN_SHUFFLE, [](rosin_instruction& in) { in = {ROSIN_VARIABLE, in.type, {in.operands[0]}, 0}; });
       });
     }},
    {"rows of matrices take turns",
     [] {
       computes([](Instructions& all) {
         each(all, ROSIN_MULTIPLY_MATRICES, [&](rosin_instruction& in) {
           rosin_instruction& rows = all[in.operands[0]];  // the join of two joins
           std::swap(rows.operands[0], rows.operands[1]);
         });
       });
     }},
    {"chooses once",
     [] {
       computes([](Instructions& all) {
         each(all, ROSIN_CHOOSE, [](rosin_instruction& in) { in.immediate &= ~int64_t{1}; });
       });
     }},
    {"nobody comes last",
     [] {
       computes([](Instructions& all) {
         each(all, ROSIN_ARRIVE, [&](rosin_instruction& in) { all[in.operands[1]].immediate *= 2; });
       });
     }},
    {"packs the other way round",
     [] {
       computes([](Instructions& all) {
         each(all, ROSIN_PACK, [](rosin_instruction& in) { std::swap(in.operands[0], in.operands[1]); });
       });
     }},
    {"shared vectors are where they were written",
     [] {
       computes([](Instructions& all) {
         uint32_t place = 0;
         each(all, ROSIN_SHARED_STORE_VECTOR, [&](rosin_instruction& in) { place = in.operands[0]; });
         each(all, ROSIN_SHARED_LOAD_VECTOR, [&](rosin_instruction& in) { in.operands[0] = place; });
       });
     }},
    {"matrices without warps", [] { facts([](rosin_device_info& info) { info.warp = 64; }); }},
    {"large arrays are small",
     [] {
       edit_kernel = [](rosin_kernel_code& kernel) {
         static std::vector<rosin_shared_array> arrays;
         arrays.assign(kernel.shared, kernel.shared + kernel.shared_count);
         for (rosin_shared_array& array : arrays) array.count = array.count > 4096 ? 4096 : array.count;
         kernel.shared = arrays.data();
       };
       wrong.compile = compile_edited;
     }},
    {"minimum is maximum", [] { computes(replaced<ROSIN_MINIMUM, ROSIN_MAXIMUM>); }},
    {"less is less or equal", [] { computes(replaced<ROSIN_LESS, ROSIN_LESS_EQUAL>); }},
    {"select is the other",
     [] {
       computes([](Instructions& all) {
         each(all, ROSIN_SELECT, [](rosin_instruction& in) { std::swap(in.operands[1], in.operands[2]); });
       });
     }},
    {"fma is a product", [] { computes(replaced<ROSIN_FMA, ROSIN_MULTIPLY>); }},
    {"products and sums are contracted", [] { computes(contracted); }},
    {"conversions keep nothing",
     [] {
       computes([](Instructions& all) {
         each(all, ROSIN_CONVERT, [](rosin_instruction& in) { in = {ROSIN_LITERAL, in.type, {}, 1}; });
       });
     }},
    {"reinterpreting converts", [] { computes(replaced<ROSIN_REINTERPRET, ROSIN_CONVERT>); }},
    {"literals are others",
     [] {
       computes([](Instructions& all) {
         each(all, ROSIN_LITERAL, [](rosin_instruction& in) { in.immediate ^= in.type >= ROSIN_SCALAR_INT64; });
       });
     }},
    {"no barrier",
     [] {
       computes([](Instructions& all) {
         each(all, ROSIN_BARRIER, [](rosin_instruction& in) { in = {ROSIN_LITERAL, ROSIN_SCALAR_INT32, {}, 0}; });
       });
     }},
    {"every branch runs",
     [] {
       computes([](Instructions& all) {
         // The condition becomes what is true: a literal put where the comparison stood.
         each(all, ROSIN_IF, [&](rosin_instruction& in) {
           all[in.operands[0]] = {ROSIN_LITERAL, ROSIN_SCALAR_BOOL, {}, 1};
         });
       });
     }},
    {"loops end early",
     [] {
       computes([](Instructions& all) {
         each(all, ROSIN_LOOP, [](rosin_instruction& in) { in.operands[1] = in.operands[0]; });
       });
     }},
    {"variables do not change",
     [] {
       computes([](Instructions& all) {
         each(all, ROSIN_ASSIGN, [](rosin_instruction& in) { in = {ROSIN_LITERAL, ROSIN_SCALAR_INT32, {}, 0}; });
       });
     }},
    {"elements are their neighbours",
     [] {
       computes([](Instructions& all) {
         each(all, ROSIN_LOAD, [](rosin_instruction& in) { in = {ROSIN_LITERAL, in.type, {}, 0}; });
       });
     }},
    {"peers copy nothing",
     [] {
       wrong.copy_peer = [](rosin_stream*, rosin_place, rosin_device*, rosin_place, uint64_t) { return ROSIN_OK; };
     }},
    {"handles are null", [] { wrong.native_stream = [](rosin_stream*) -> void* { return nullptr; }; }},
    {"a compile key that changes",
     [] {
       wrong.compile_key = [](rosin_device*, const char** key) {
         static int turn = 0;
         *key = turn++ % 2 ? "one" : "other";
         return ROSIN_OK;
       };
     }},
    {"fills a byte more",
     [] {
       wrong.fill = [](rosin_stream* stream, rosin_place to, uint64_t bytes, uint8_t value) {
         return real.fill(stream, to, bytes + 1, value);
       };
     }},
    {"blocks in order are of no use",
     [] {
       wrong.alloc_ordered = [](rosin_stream* stream, uint64_t, rosin_memory** out) {
         return real.alloc_ordered(stream, 64, out);
       };
     }},
    {"stays pinned", [] { wrong.unpin = [](rosin_device*, void*) {}; }},
    {"any peer",
     [] {
       wrong.peer = [](rosin_device*, int32_t, int32_t* reaches) {
         *reaches = 2;
         return ROSIN_OK;
       };
     }},
    {"time runs backwards",
     [] {
       wrong.event_elapsed = [](rosin_event* from, rosin_event* to, double* seconds) {
         return real.event_elapsed(to, from, seconds);
       };
     }},
    {"no stream of low priority",
     [] {
       wrong.stream_create_with = [](rosin_device* device, int32_t priority, rosin_stream** out) {
         return priority == ROSIN_PRIORITY_LOW ? ROSIN_INVALID : real.stream_create_with(device, priority, out);
       };
     }},
    {"a block twice",
     [] {
       wrong.alloc = [](rosin_device* device, uint64_t bytes, rosin_memory** out) {
         static rosin_memory* shared = nullptr;
         if (!shared && real.alloc(device, 1 << 20, &shared) != ROSIN_OK) return ROSIN_OUT_OF_MEMORY;
         if (bytes > 1 << 20) return real.alloc(device, bytes, out);
         *out = shared;
         return ROSIN_OK;
       };
       wrong.release = [](rosin_device*, rosin_memory*) {};
     }},
    {"programs of one kernel",
     [] {
       wrong.compile = [](rosin_device* device, const char* target, const rosin_program* program, void** bytes,
                          uint64_t* count) {
         rosin_program first = *program;
         first.kernel_count = 1;
         return real.compile(device, target, &first, bytes, count);
       };
     }},
    {"few groups",
     [] {
       launches(
           [](rosin_launch& l, std::vector<rosin_place>&) { l.groups[0] = l.groups[0] > 1000 ? 1000 : l.groups[0]; });
     }},
    {"little shared memory",
     [] {
       wrong.compile = compile_edited;
       edit_kernel = [](rosin_kernel_code& kernel) {
         static rosin_shared_array small[8];
         for (uint32_t i = 0; i < kernel.shared_count && i < 8; ++i) {
           small[i] = kernel.shared[i];
           if (small[i].count > 1024) small[i].count = 1024;
         }
         if (kernel.shared_count > 0) kernel.shared = small;
       };
     }},
    {"launches are lost",
     [] {
       wrong.launch = [](rosin_stream* stream, rosin_kernel* kernel, const rosin_launch* launch) {
         static int turn = 0;
         return ++turn % 7 == 0 ? ROSIN_OK : real.launch(stream, kernel, launch);
       };
     }},
    {"quick functions are far off", [] { computes(replaced<ROSIN_EXP2_APPROXIMATE, ROSIN_NEGATE>); }},
    {"damaged bytes are whole",
     [] {
       wrong.load = [](rosin_device* device, const void* bytes, uint64_t count, rosin_module** out) {
         static std::vector<char> last;
         const auto* from = static_cast<const char*>(bytes);
         const rosin_status status = real.load(device, bytes, count, out);
         if (status == ROSIN_OK) last.assign(from, from + count);
         return status == ROSIN_OK || last.empty() ? status : real.load(device, last.data(), last.size(), out);
       };
     }},
};

}  // namespace

extern "C" __attribute__((visibility("default"))) const rosin_backend* rosin_backend_open(uint32_t abi) {
  static bool made = false;
  if (abi != ROSIN_BACKEND_ABI) return nullptr;
  if (made) return &wrong;
  void* library = dlopen(std::getenv("WRONG_OF"), RTLD_NOW | RTLD_LOCAL);
  if (!library) return nullptr;
  real = *reinterpret_cast<rosin_backend_open_function>(dlsym(library, "rosin_backend_open"))(abi);
  wrong = real;
  for (const std::span<const Way> some : {std::span<const Way>(ways), call_ways}) {
    for (const Way& way : some) {
      if (std::string(std::getenv("WRONG")) != way.name) continue;
      way.take();
      made = true;
      return &wrong;
    }
  }
  return nullptr;
}
