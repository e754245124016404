// See plane_sums.hpp.
#include "cpu/plane_sums.hpp"

#include <algorithm>
#include <cstring>

#include "plan/structure.hpp"

namespace rosin::cpu {
namespace {

/// The lanes of a run of so many pixels become its sums: as scalar/make_combine.hpp halves sixteen lanes.
void halve(const CombineLoops& loops, int64_t size, int64_t channels, int64_t pixels, unsigned char* lanes) {
  int64_t used = std::min<int64_t>(pixels, 16);  // the others hold the neutral element
  for (int64_t half = 8; half > 0; half /= 2) {
    if (used <= half) continue;
    loops.combine(lanes, lanes + half * channels * size, (used - half) * channels);
    used = half;
  }
}

}  // namespace

PlaneRuns::PlaneRuns(std::span<const int64_t> sizes, int64_t channel_count, int64_t image_count)
    : channels(channel_count), images(image_count) {
  int64_t total = 1;
  for (const int64_t size : sizes) total *= size;
  pixels = total / std::max<int64_t>(1, channels * images);
  const auto line = std::find_if(sizes.begin(), sizes.end(), [](int64_t size) { return size != 1; });
  const bool fits = pixels <= strip_limit || (pixels <= line_limit && line != sizes.end() && *line == pixels);
  const SumOrder order = sum_order(sizes, 1);
  run = std::max<int64_t>(1, fits ? pixels : order.block);
  span = std::max<int64_t>(1, fits ? pixels : order.span);
}

SumOrder PlaneRuns::cut(int64_t target) const {
  if (run == span) return SumOrder::cut(elements(), elements(), run * channels, target);
  return SumOrder::cut(elements(), span * channels, run * channels, target);
}

void add_to_runs(const PlaneRuns& runs, const CombineLoops& loops, int64_t size, int64_t begin, int64_t count,
                 const unsigned char* x, unsigned char* lanes, unsigned char* sums) {
  const int64_t all = runs.lanes(), channels = runs.channels;
  const int64_t span = runs.span * channels, run = runs.run * channels;
  while (count > 0) {
    const int64_t in_span = begin % span, at = in_span % run;
    const int64_t length = std::min(run, span - in_span + at), taken = std::min(count, length - at);
    if (at == 0) loops.neutral(lanes, std::min(all, length));
    for (int64_t done = 0, place = at % all; done < taken; place = 0) {
      const int64_t next = std::min(taken - done, all - place);
      loops.combine(lanes + place * size, x + done * size, next);
      done += next;
    }
    if (at + taken == length) {
      halve(loops, size, channels, length / channels, lanes);
      const int64_t number = begin / span * runs.runs_of_span() + in_span / run;
      std::memcpy(sums + number * channels * size, lanes, static_cast<size_t>(channels * size));
    }
    begin += taken;
    count -= taken;
    x += taken * size;
  }
}

}  // namespace rosin::cpu
