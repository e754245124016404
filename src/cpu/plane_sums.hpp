// Reductions of images in CWHN over whole planes (all spatial dims, perhaps the batch too, never the channels), with
// the bits that the same reduction has of images in logical order: a run of pixels of one channel is added in sixteen
// lanes, and the sums of runs are combined as sum_order.hpp says. In CWHN all channels' runs are added side by side.
// Read after sum_order.hpp and scalar/combine.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cpu/sum_order.hpp"
#include "scalar/combine.hpp"

namespace rosin::cpu {

/// Images (channels, pixels, images) in memory, and the runs of their planes.
struct PlaneRuns {
  int64_t channels = 1, pixels = 1, images = 1;
  int64_t run = 1;   // pixels; the last run of a span may be shorter
  int64_t span = 1;  // pixels: runs start anew at its multiples; it divides the plane
  /// Elements that are added to the lanes together, whole pixels of a run, where that is worth a loop; else 0.
  int64_t strip = 0;

  PlaneRuns() = default;
  /// `sizes`: logical, spatial dims first; `images` 1 where the last of them is the channels.
  PlaneRuns(std::span<const int64_t> sizes, int64_t channels, int64_t images);

  int64_t runs_of_span() const { return (span + run - 1) / run; }
  int64_t runs() const { return images * (pixels / span) * runs_of_span(); }
  int64_t elements() const { return channels * pixels * images; }
  /// Elements in memory, in about `target` of them, that hold whole runs.
  SumOrder cut(int64_t target) const;
  /// Elements of the lanes of all channels.
  int64_t lanes() const { return 16 * channels; }
  /// A run's element: of which run, where in it, and the elements that the run has.
  struct Place {
    int64_t run = 0, at = 0, length = 0;
  };
  Place place(int64_t element) const;
  /// Its beginning.
  Place place_of_run(int64_t number) const {
    return place(number / runs_of_span() * span * channels + number % runs_of_span() * run * channels);
  }
};

/// Where a run ends: its lanes become its sums, those of run r at r * channels of `sums`.
void end_run(const PlaneRuns& runs, const CombineLoops& loops, int64_t size, const PlaneRuns::Place& place,
             unsigned char* lanes, unsigned char* sums);

/// Adds elements [begin, begin + count) of the images to the lanes, and writes each run's sums, one for each channel,
/// when it ends: sums of run r at r * channels. `size`: bytes of an element.
void add_to_runs(const PlaneRuns& runs, const CombineLoops& loops, int64_t size, int64_t begin, int64_t count,
                 const unsigned char* x, unsigned char* lanes, unsigned char* sums);

/// Combines the sums of runs into the parts of the logical order. part(p): the partial results; channel c of image n
/// belongs to result c + n * image_stride.
template <class Part>
void combine_runs(const PlaneRuns& runs, const SumOrder& order, const CombineLoops& loops, int64_t size,
                  int64_t image_stride, const unsigned char* sums, Part part) {
  for (int64_t r = 0; r < runs.runs(); ++r) {
    const int64_t runs_of_plane = runs.pixels / runs.span * runs.runs_of_span();
    const int64_t image = r / runs_of_plane, in_plane = r % runs_of_plane;
    const int64_t pixel = in_plane / runs.runs_of_span() * runs.span + in_plane % runs.runs_of_span() * runs.run;
    for (int64_t c = 0; c < runs.channels;) {
      const int64_t place = (image * runs.channels + c) * runs.pixels + pixel, p = order.part_of(place);
      const int64_t planes = (order.end(p) - place + runs.pixels - 1) / runs.pixels;
      const int64_t last = std::min(runs.channels, c + planes);
      loops.combine(part(p) + (c + image * image_stride) * size, sums + (r * runs.channels + c) * size, last - c);
      c = last;
    }
  }
}

}  // namespace rosin::cpu
