// See weight_order.hpp.
#include "amdgpu/weight_order.hpp"

#include "vendor/kept.hpp"

namespace rosin::amdgpu {
namespace {

constexpr unsigned items = 256;
constexpr unsigned flipped = 1, channels_first = 2, to_rosin = 4;

// Element i of rosin's is element `there` of MIOpen's.
constexpr const char* text = R"(
extern "C" __attribute__((global)) __attribute__((amdgpu_flat_work_group_size(256, 256))) void weights_$T()"
                             R"($T* to, const $T* __restrict__ from, u32 count, u32 channels, u32 taps, u32 how) {
  const u32 i = __builtin_amdgcn_workgroup_id_x() * 256u + __builtin_amdgcn_workitem_id_x();
  if (i >= count) return;
  const u32 row = i / taps, own = i - row * taps, tap = (how & 1u) ? taps - 1u - own : own;
  const u32 filter = row / channels, channel = row - filter * channels;
  const u32 there = (how & 2u) ? (filter * taps + tap) * channels + channel : row * taps + tap;
  if (how & 4u) to[i] = from[there];
  else to[there] = from[i];
}
)";

std::string text_for(const std::string& type) {
  std::string made = text;
  for (size_t at = made.find("$T"); at != made.npos; at = made.find("$T", at)) made.replace(at, 2, type);
  return made;
}

}  // namespace

const rosin_host* host_of_programs = nullptr;

WeightKernel::~WeightKernel() {
  if (module_) driver::the_driver().functions.module_unload(module_);
}

/// The program is compiled once for all processes.
void WeightKernel::load() {
  const driver::Driver& driver = driver::the_driver();
  const std::string program =
      "typedef unsigned short u16;\ntypedef unsigned int u32;\n" + text_for("u16") + text_for("u32");
  const std::string key = "for " + target_ + " by hipRTC " + the_compiler().version() + ":\n" + program;
  std::string code = vendor::kept(host_of_programs, key);
  if (!code.empty() && driver.functions.module_load(&module_, code.data()) == 0) return;
  code = the_compiler().compile(target_, program.c_str());
  driver.check(driver.functions.module_load(&module_, code.data()), "load of a program");
  vendor::keep(host_of_programs, key, code);
}

void WeightKernel::get_ready() {
  const std::lock_guard guard(compiling_);
  if (of_singles_) return;
  if (!module_) load();
  const driver::Driver& driver = driver::the_driver();
  driver.check(driver.functions.module_function(&of_halves_, module_, "weights_u16"), "search for a kernel");
  driver.check(driver.functions.module_function(&of_singles_, module_, "weights_u32"), "search for a kernel");
}

void WeightKernel::run(driver::Stream stream, const WeightOrder& order, To whom, driver::Address from,
                       driver::Address to) const {
  unsigned how =
      (order.flipped ? flipped : 0) | (order.channels_first ? channels_first : 0) | (whom == To::rosin ? to_rosin : 0);
  unsigned count = order.count, channels = order.channels, taps = order.taps;
  void* arguments[] = {&to, &from, &count, &channels, &taps, &how};
  const driver::Driver& driver = driver::the_driver();
  driver.check(driver.functions.launch(order.element_bytes == 2 ? of_halves_ : of_singles_, (count + items - 1) / items,
                                       1, 1, items, 1, 1, 0, stream, arguments, nullptr),
               "weights of a convolution");
}

}  // namespace rosin::amdgpu
