// See work.hpp.
#include "work.hpp"

#include <cstring>

namespace rosin::reference {
namespace {

void check_groups(const rosin_launch& launch) {
  constexpr uint32_t most[3] = {2147483647, 65535, 65535};
  for (int dim = 0; dim < 3; ++dim) {
    need(launch.groups[dim] >= 1 && launch.groups[dim] <= most[dim], "launch: too many groups, or none");
  }
}

}  // namespace

Work launch_work(rosin_device& device, const rosin_kernel& kernel, const rosin_launch* launch) {
  need(kernel.device == &device, "launch: the kernel was loaded on another device");
  const rosin_launch all = taken(launch);
  check_groups(all);
  std::vector<Block> blocks;
  for (size_t i = 0; i < kernel.code.buffer_count(); ++i) {
    const rosin_place& place = all.buffers[i];
    need(place.offset % offset_unit == 0, "launch: an offset that is not aligned");
    char* base = bytes_at(device, place, 0);
    blocks.push_back({base, place.memory->bytes - place.offset});
  }
  std::vector<rosin_number> parameters;
  if (const size_t count = kernel.code.parameter_count()) {
    parameters.assign(all.parameters, all.parameters + count);
  }
  return [&device, &kernel, all, blocks = std::move(blocks), parameters = std::move(parameters),
          copies = device.copies_out()] {
    device.begin_launch(kernel.code.name(), copies);
    kernel.code.run(all.groups, blocks.data(), parameters.data());
  };
}

Work call_work(const rosin_device& device, const rosin_call& call, const rosin_place* buffers, rosin_place workspace,
               const rosin_call_numbers* numbers) {
  need(call.device == &device, "call_run: the call was prepared on another device");
  bytes_at(device, workspace, matmul_workspace);
  return [what = call.what, run = matmul_run(call, buffers, numbers)] { matmul(what, run); };
}

Work fill_work(const rosin_device& device, rosin_place to, uint64_t bytes, uint8_t value) {
  char* target = bytes_at(device, to, bytes);
  return [=] { std::memset(target, value, bytes); };
}

Work copy_work(const rosin_device& device, rosin_place to, rosin_place from, uint64_t bytes) {
  char* target = bytes_at(device, to, bytes);
  const char* source = bytes_at(device, from, bytes);
  need(target + bytes <= source || source + bytes <= target, "copy: the ranges overlap");
  return [=] { std::memcpy(target, source, bytes); };
}

}  // namespace rosin::reference
