// What is optional, where it is offered: copies between devices, native handles. Vendor calls: call_checks.cpp.
// Graphs: graph_checks.cpp.
#include "checks.hpp"

namespace rosin::conformance {
namespace {

std::vector<float> numbers(size_t count, int seed) {
  std::vector<float> all(count);
  // Small integers: every order of summation gives the same.
  for (size_t i = 0; i < count; ++i) all[i] = static_cast<float>((i * 7 + static_cast<size_t>(seed)) % 13) - 6;
  return all;
}

void copies_between_devices(Rig& rig) {
  if (!rig.api.copy_peer) return;
  int32_t count = 0;
  rig.good(rig.api.device_count(&count), "device_count");
  for (int32_t i = 0; i < count; ++i) {
    if (i == rig.number) continue;
    Rig other(rig.api, i);
    const Memory here(rig, 4000), there(other, 4000);
    const auto values = numbers(1000, i);
    rig.write<float>(here.at(), values);
    rig.sync();
    const rosin_status status = rig.api.copy_peer(other.stream, there.at(40), rig.device, here.at(80), 2000);
    if (status == ROSIN_UNSUPPORTED) continue;
    rig.good(status, "copy_peer");
    const std::vector<float> wanted(values.begin() + 20, values.begin() + 520);
    expect(other.read<float>(there.at(40), 500) == wanted, "copy_peer changed what it copied");
  }
}

void native_handles_are_there_where_offered(Rig& rig) {
  const Memory memory(rig, 16);
  if (rig.api.native_stream) expect(rig.api.native_stream(rig.stream) != nullptr, "native_stream gives null");
  if (rig.api.native_memory) expect(rig.api.native_memory(memory.at().memory) != nullptr, "native_memory gives null");
}

constexpr Check checks[] = {
    {"copies between devices", copies_between_devices},
    {"native handles are there where offered", native_handles_are_there_where_offered},
};

}  // namespace

const Part extras_part = {"extras", checks};

}  // namespace rosin::conformance
