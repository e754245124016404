// See plane_sums.hpp.
#include "cpu/plane_sums.hpp"

#include <algorithm>
#include <bit>
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

int64_t strip_of(int64_t channels) {
  constexpr int64_t least_channels = 32;  // fewer would be short loops
  if (channels < least_channels) return 0;
  const auto together = static_cast<uint64_t>(std::max<int64_t>(1, cached_elements / channels));
  return channels * static_cast<int64_t>(std::bit_floor(std::min<uint64_t>(together, 16)));
}

}  // namespace

PlaneRuns::PlaneRuns(std::span<const int64_t> sizes, int64_t channel_count, int64_t image_count)
    : channels(channel_count), images(image_count), strip(strip_of(channel_count)) {
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

PlaneRuns::Place PlaneRuns::place(int64_t element) const {
  const int64_t in_span = element % (span * channels), at = in_span % (run * channels);
  const int64_t number = element / (span * channels) * runs_of_span() + in_span / (run * channels);
  return {number, at, std::min(run * channels, span * channels - in_span + at)};
}

void end_run(const PlaneRuns& runs, const CombineLoops& loops, int64_t size, const PlaneRuns::Place& place,
             unsigned char* lanes, unsigned char* sums) {
  halve(loops, size, runs.channels, place.length / runs.channels, lanes);
  std::memcpy(sums + place.run * runs.channels * size, lanes, static_cast<size_t>(runs.channels * size));
}

void add_to_runs(const PlaneRuns& runs, const CombineLoops& loops, int64_t size, int64_t begin, int64_t count,
                 const unsigned char* x, unsigned char* lanes, unsigned char* sums) {
  const int64_t all = runs.lanes();
  while (count > 0) {
    const PlaneRuns::Place place = runs.place(begin);
    const int64_t taken = std::min(count, place.length - place.at);
    if (place.at == 0) loops.neutral(lanes, std::min(all, place.length));
    for (int64_t done = 0, lane = place.at % all; done < taken; lane = 0) {
      const int64_t next = std::min(taken - done, all - lane);
      loops.combine(lanes + lane * size, x + done * size, next);
      done += next;
    }
    if (place.at + taken == place.length) end_run(runs, loops, size, place, lanes, sums);
    begin += taken;
    count -= taken;
    x += taken * size;
  }
}

}  // namespace rosin::cpu
