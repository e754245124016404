// How passes go over a strip: at once, row by row, run by run, unit by unit. Read first: fused_passes.cpp.
#include <algorithm>
#include <limits>

#include "cpu/fused.hpp"
#include "cpu/fused_state.hpp"

namespace rosin::cpu {

/// What a pass adds a strip to. The first one that is added to a group of lanes makes them neutral.
unsigned char* FusedKernel::sums_of(const Root& root, const Strip& strip, State& state) const {
  if (!root.planes) return results_of(root, strip, state.data.scratch);
  const PlaneRuns::Place& place = state.place;
  const bool kept = lane_groups_ > 1;
  unsigned char* const of_run =
      kept ? state.data.scratch + kept_lanes_ + static_cast<size_t>(place.run) * lanes_bytes_ : state.lanes;
  const int64_t group_elements = planes_.lanes() / lane_groups_;
  unsigned char* const lanes = of_run + root.lanes_at + place.at % planes_.lanes() * bytes_of(root.type);
  if (place.at < planes_.lanes() && place.at % group_elements == 0)
    root.loops.neutral(lanes, std::min(group_elements, place.length - place.at));
  return lanes;
}

void FusedKernel::run_pass(const Pass& pass, const Strip& strip, State& state) const {
  void** memory = state.arguments;
  for (const Pass::Output& output : pass.outputs) {
    void* to = output.root >= 0    ? sums_of(roots_[static_cast<size_t>(output.root)], strip, state)
               : output.store >= 0 ? this->output(static_cast<uint16_t>(output.store), strip, output.row, state.data)
                                   : state.slot(static_cast<uint16_t>(output.reg));
    if (output.reg >= 0) state.pointers[output.reg] = to;
    *memory++ = to;
  }
  for (const uint16_t input : pass.inputs) *memory++ = state.pointers[input];
  if (pass.row) run_loop(pass, 1, strip.rows, state);
  else if (pass.by_units) run_by_units(pass, strip, state);
  else if (!pass.by_rows) run_loop(pass, 1, strip.count, state);
  else if (kernel_->whole_rows && pass.lines.empty()) run_loop(pass, strip.rows, layout_->row, state);
  else run_by_runs(pass, strip, state);
}

/// Past the caches where all that is written so stands as that needs.
void FusedKernel::run_loop(const Pass& pass, int64_t rows, int64_t count, State& state) {
  constexpr uint64_t line = 64;
  const auto is_even = [&](size_t output) {
    const auto row = rows == 1 ? 0 : static_cast<uint64_t>(count) * pass.moves[output].element;
    return (reinterpret_cast<uintptr_t>(state.arguments[output]) | row) % line == 0;
  };
  const bool streams = pass.streaming && std::all_of(pass.streams.begin(), pass.streams.end(), is_even);
  (streams ? pass.streaming : pass.loop)->run(state.arguments, rows, count);
}

/// Where the lines of a load stand at an element, and how many of them from there on lie evenly apart.
struct FusedKernel::LinePlace {
  int64_t offset = 0, runs = 1;

  LinePlace(const Load& load, int64_t at) : offset(load.offset + at % load.sizes[0]) {
    int64_t run = at / load.sizes[0];
    runs = load.sizes[1] - run % load.sizes[1];
    for (int d = 1; d < load.dims; ++d) {
      offset += run % load.sizes[d] * load.strides[d];
      run /= load.sizes[d];
    }
  }
};

/// Tells the loop where its lines stand from an element on; how many runs may follow.
int64_t FusedKernel::place_lines(const Pass& pass, int64_t at, State& state) const {
  int64_t runs = std::numeric_limits<int64_t>::max();
  void** gap = state.arguments + pass.outputs.size() + pass.inputs.size();
  for (const Pass::Lines& lines : pass.lines) {
    const Load& load = loads_[lines.port];
    const LinePlace place(load, at);
    const auto size = static_cast<int64_t>(size_of(load.storage));
    state.arguments[pass.outputs.size() + lines.input] =
        static_cast<unsigned char*>(state.data.memory[load.root]) + place.offset * size;
    *gap++ = reinterpret_cast<void*>((load.strides[1] - run_) * size);
    runs = std::min(runs, place.runs);
  }
  return runs;
}

/// A strip may begin and end within a run.
void FusedKernel::run_by_runs(const Pass& pass, const Strip& strip, State& state) const {
  const int64_t end = strip.begin + strip.count;
  for (int64_t at = strip.begin; at < end;) {
    const int64_t most = place_lines(pass, at, state), rest = run_ - at % run_, count = std::min(rest, end - at);
    const int64_t runs = rest == run_ ? std::clamp<int64_t>((end - at) / run_, 1, most) : 1;
    run_loop(pass, runs, count, state);
    at += runs * count;
    move_arguments(pass, runs, count, runs, state);
  }
}

/// A strip begins with a unit. Those of a run go one by one, unless each is one.
void FusedKernel::run_by_units(const Pass& pass, const Strip& strip, State& state) const {
  const auto [unit, stretch] = units_;
  const int64_t end = strip.begin + strip.count;
  for (int64_t at = strip.begin; at < end;) {
    const int64_t left = std::min(stretch - at % stretch, end - at), count = std::min(unit, left);
    const int64_t reach = stretch % unit == 0 ? end - at : left, most = place_lines(pass, at, state);
    const int64_t together = run_ == 0 ? reach / unit : run_ == unit ? std::min(reach / unit, most) : 1;
    const int64_t rows = std::max<int64_t>(together, 1), next = at + rows * count;
    run_loop(pass, rows, count, state);
    move_arguments(pass, rows, count, run_ == 0 ? 0 : next / run_ - at / run_, state);
    at = next;
  }
}

/// Behind rows of so many elements, which were so many runs.
void FusedKernel::move_arguments(const Pass& pass, int64_t rows, int64_t count, int64_t runs, State& state) {
  for (size_t i = 0; i < pass.moves.size(); ++i) {
    const bool unit = i < pass.outputs.size() && pass.outputs[i].unit;
    const int64_t bytes = rows * count * pass.moves[i].element + (unit ? rows : runs) * pass.moves[i].run;
    state.arguments[i] = static_cast<unsigned char*>(state.arguments[i]) + bytes;
  }
}

}  // namespace rosin::cpu
