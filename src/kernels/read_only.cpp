// Buffers that a launch only reads, in memory that it does not write under another name either: devices load from them
// by another way, and compilers move such loads. Read first: launches.hpp.
#include <algorithm>

#include "kernels/launches.hpp"

namespace rosin::kernels {
namespace {

void mark(const Layout& layout, Launch& launch) {
  const std::vector<char> stored = stored_buffers(launch.code);
  std::vector<Extent> extents;
  for (const LaunchBuffer& buffer : launch.buffers) extents.push_back(extent_of(layout, buffer));
  bool marked = false;
  for (size_t i = 0; i < extents.size(); ++i) {
    // Flags and the guard: others write them too.
    bool written = stored[i] || launch.buffers[i].scratch < -1;
    for (size_t k = 0; k < extents.size(); ++k) written = written || (stored[k] && extents[i].meets(extents[k]));
    if (written) continue;
    launch.code.instructions.push_back(
        make_instruction(KernelOperation::read_only, ScalarType::int32, {}, static_cast<int64_t>(i)));
    marked = true;
  }
  if (!marked) return;
  launch.code.name.resize(launch.code.name.rfind('_'));
  name_by_hash(launch.code);
}

}  // namespace

Extent extent_of(const Layout& layout, const LaunchBuffer& buffer) {
  if (buffer.value < 0) return {Extent::Of::scratch, buffer.scratch};
  if (const std::optional<int64_t> memory = memory_of(layout, buffer)) return {Extent::Of::value, *memory};
  const auto at = static_cast<size_t>(buffer.value);
  const int64_t begin = layout.places[at].at;
  const auto bytes = static_cast<int64_t>(size_of(layout.structure->graph.values[at].dtype));
  return {Extent::Of::arena, 0, begin, begin + layout.views[at].count() * bytes};
}

bool share_memory(const Layout& layout, const LaunchBuffer& a, const LaunchBuffer& b) {
  return extent_of(layout, a).meets(extent_of(layout, b));
}

void mark_read_only(const Layout& layout, LaunchList& list) {
  if (!list.device.read_only) return;
  for (Launch& launch : list.launches) {
    if (launch.call < 0) mark(layout, launch);
  }
}

}  // namespace rosin::kernels
