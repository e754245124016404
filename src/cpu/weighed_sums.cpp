// Weighed sums along up to three neighbouring dims, one after the other, of arrays in logical order or of images in
// CWHN, whose channels then stand before all dims. A chunk has some of what stands behind these dims. Where nothing
// stands before the first of them, neighbours take what they need from the lanes of a register; where that does not
// hold it all, or little stands there, rows are turned, so that neighbours in memory are computed alike. Read first:
// graph/gather_form.hpp, engines/weighed_rows.hpp.
#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "base/strided_copy.hpp"
#include "cpu/dispatch.hpp"
#include "engines/tile_kernel.hpp"
#include "graph/gather_form.hpp"

namespace rosin::cpu {
namespace {

/// How many rows of `length` elements are turned together: lines of Float32, as many as a cache holds well.
constexpr int64_t rows_to_turn(int64_t length) {
  constexpr int64_t line = 16, most_lines = 8, elements = 1 << 13;
  return line * std::clamp<int64_t>(elements / (line * std::max<int64_t>(length, 1)), 1, most_lines);
}

/// Along one dim: `inner` elements stand side by side, `outer` times `from` rows of them become as many times `to`.
struct Pass {
  int64_t inner = 1, from = 1, to = 1, outer = 1;
  int64_t table = 0, taps = 1;  // where its table begins, entries for each row
};

/// Rows (length, rows) side by side: (rows, length), or the way back.
BlockCopy turning(int64_t length, int64_t rows, size_t width, bool back) {
  StridedCopy copy{.rank = 2, .sizes = {length, rows}, .target = {rows, 1}, .source = {1, length}};
  if (!back) return {copy, width, 1, 0};
  std::swap(copy.target, copy.source);
  return {copy, width, 0, 1};
}

/// The copies of so many rows around a pass.
struct Turning {
  BlockCopy there, back;
  Turning(const Pass& pass, int64_t rows, size_t width)
      : there(turning(pass.inner * pass.from, rows, width, false)),
        back(turning(pass.inner * pass.to, rows, width, true)) {}
};

template <class T> class WeighedCall final : public Call {
 public:
  explicit WeighedCall(const CallSpec& spec)
      : kernels_(engines::tile_kernels().of<T>()), lanes_(engines::tile_kernels().lanes<T>()) {
    const auto how = spec.attributes.as<WeighedAttributes>();
    const Shape &x = spec.operands[0].shape, &y = spec.result.shape;
    const auto begins = table_begins(how, y, x);
    const int first = static_cast<int>(how.dim), end = first + how.dims;
    const bool channels_first = !spec.operands[0].contiguous() || !spec.result.contiguous();
    const int64_t channels = channels_first ? x[x.rank() - 2] : 1;
    int64_t inner = lines_of(x, first).inner * channels, outer = 1;
    for (int d = first; d < end; ++d) outer *= x[d];
    in_ = inner * outer;
    for (int d = first; d < end; ++d) {
      outer /= std::max<int64_t>(x[d], 1);
      passes_[static_cast<size_t>(count_++)] = {
          inner, x[d], y[d], outer, begins[static_cast<size_t>(d - first)], how.taps_of(d - first)};
      inner *= y[d];
      most_ = std::max(most_, inner * outer);
    }
    out_ = inner;
    items_ = Pieces::of(lines_of(x, end - 1).outer / std::max<int64_t>(channels, 1), std::max(in_, most_), work);
    rows_ = {last().to, last().to};
    if (items_.step == 1 && last().inner >= least_inner) rows_ = Pieces::of(last().to, last().inner, work);
  }

  int64_t chunks() const override { return out_ == 0 ? 0 : items_.count() * rows_.count(); }

  void run(int64_t chunk, const CallData& data) override {
    const int64_t first_item = items_.first(chunk / rows_.count()), part = chunk % rows_.count();
    const int64_t items = items_.last(chunk / rows_.count()) - first_item;
    const Rows made{rows_.first(part), rows_.last(part)};
    if (count_ == 2 && passes_[0].inner == 1 && passes_[0].taps == 1 && passes_[1].taps == 1) {
      T* const to = static_cast<T*>(data.result) + first_item * out_ + made.first * last().inner;
      if (run_planes(items, made, static_cast<const T*>(data.operands[0]) + first_item * in_, to, data)) return;
    }
    const Rows read = rows_.count() == 1 ? Rows{0, last().from} : rows_read(made, data);
    const auto between = count_ > 1 ? std::make_unique_for_overwrite<T[]>(static_cast<size_t>(2 * items * most_))
                                    : std::unique_ptr<T[]>();
    const T* from = static_cast<const T*>(data.operands[0]) + first_item * in_ + read.first * (in_ / last().from);
    for (int i = 0; i + 1 < count_; ++i) {
      T* const to = between.get() + (i % 2) * items * most_;
      Pass pass = passes_[static_cast<size_t>(i)];
      pass.outer = pass.outer / last().from * read.count();
      run_pass(pass, items, from, to, data);
      from = to;
    }
    run_last(items, made, read, from, static_cast<T*>(data.result) + first_item * out_, data);
  }

 private:
  static constexpr int64_t work = 1 << 15;  // elements of a chunk
  static constexpr int64_t least_inner = 8;

  struct Rows {
    int64_t first, last;
    int64_t count() const { return last - first; }
  };

  const Pass& last() const { return passes_[static_cast<size_t>(count_ - 1)]; }

  /// Which rows the last pass reads for these of its result.
  Rows rows_read(const Rows& made, const CallData& data) const {
    const int32_t* const places = static_cast<const int32_t*>(data.operands[1]) + last().table;
    const auto [least, most] = std::minmax_element(places + made.first * last().taps, places + made.last * last().taps);
    return {*least, *most + 1};
  }

  /// Some rows of the result of some items, of rows that begin with the first one read.
  void run_last(int64_t items, const Rows& made, const Rows& read, const T* from, T* to, const CallData& data) const {
    if (rows_.count() == 1) return run_pass(last(), items, from, to, data);
    auto run = rows_of(last(), from, to + made.first * last().inner, data);
    run.first = read.first;
    run.rows = made.count();
    run.places += made.first * last().taps;
    run.weights += made.first * last().taps;
    kernels_.weigh_rows(run);
  }

  engines::WeighedRows<T> rows_of(const Pass& pass, const T* from, T* to, const CallData& data) const {
    return {.from = from,
            .first = 0,
            .to = to,
            .count = pass.inner,
            .rows = pass.to,
            .places = static_cast<const int32_t*>(data.operands[1]) + pass.table,
            .weights = static_cast<const T*>(data.operands[2]) + pass.table,
            .taps = pass.taps};
  }

  void run_pass(const Pass& pass, int64_t items, const T* from, T* to, const CallData& data) const {
    const int64_t outer = pass.outer * items, in = pass.inner * pass.from, out = pass.inner * pass.to;
    if (pass.inner == 1 && pass.taps == 1 && pass.to < pass.from) return take_each(pass, outer, from, to, data);
    if (pass.inner == 1 && outer > 1 && run_lines(pass, outer, from, to, data)) return;
    if (pass.inner < least_inner && outer > 1) return run_turned(pass, outer, from, to, data);
    for (int64_t i = 0; i < outer; ++i) kernels_.weigh_rows(rows_of(pass, from + i * in, to + i * out, data));
  }

  /// False, and nothing done, where a register does not hold all that as many neighbours take.
  bool run_lines(const Pass& pass, int64_t outer, const T* from, T* to, const CallData& data) const {
    engines::WeighedLines<T> run{.from = from, .to = to, .lines = outer, .in = pass.from, .out = pass.to};
    const auto taps = lane_taps(pass, run, data);
    if (!taps.empty()) kernels_.weigh_lines(run);
    return !taps.empty();
  }

  /// The same with one tap along both dims of planes, of which some rows are made: nothing stands between the passes.
  bool run_planes(int64_t items, const Rows& made, const T* from, T* to, const CallData& data) const {
    const Pass &along = passes_[0], &across = passes_[1];
    engines::WeighedLines<T> run{.from = from, .to = to, .lines = made.count(), .in = along.from, .out = along.to};
    const auto taps = lane_taps(along, run, data);
    if (taps.empty()) return false;
    const auto rows = rows_of(across, from, to, data);
    run.rows = rows.places + made.first;
    run.row_weights = rows.weights + made.first;
    run.planes = items;
    run.plane = in_;
    kernels_.weigh_lines(run);
    return true;
  }

  /// Fills in the taps of a run, which it keeps; none where a register does not hold all that its results take.
  std::vector<engines::LaneTap<T>> lane_taps(const Pass& pass, engines::WeighedLines<T>& run,
                                             const CallData& data) const {
    const auto rows = rows_of(pass, nullptr, nullptr, data);
    std::vector<engines::LaneTap<T>> taps(static_cast<size_t>((pass.to + lanes_ - 1) / lanes_ * pass.taps));
    for (size_t i = 0; i < taps.size(); ++i) {
      const auto group = static_cast<int64_t>(i) / pass.taps * lanes_, tap = static_cast<int64_t>(i) % pass.taps;
      if (!fill_lanes(rows, pass, run.begin_of(group, lanes_), tap, taps[i])) return {};
    }
    run.taps = taps.data();
    run.taps_each = pass.taps;
    return taps;
  }

  /// Of the results from `group` on, as many as there are lanes.
  bool fill_lanes(const engines::WeighedRows<T>& rows, const Pass& pass, int64_t group, int64_t tap,
                  engines::LaneTap<T>& made) const {
    const int64_t count = std::min(lanes_, pass.to - group);
    const auto entry = [&](int64_t i) { return (group + i) * pass.taps + tap; };
    int64_t least = std::max<int64_t>(0, pass.from - lanes_);
    for (int64_t i = 0; i < count; ++i) {
      if (rows.weights[entry(i)] != 0) least = std::min<int64_t>(least, rows.places[entry(i)]);
    }
    made.begin = static_cast<int32_t>(least);
    for (int64_t i = 0; i < lanes_; ++i) {
      const bool counts = i < count && rows.weights[entry(i)] != 0;
      const int64_t lane = counts ? rows.places[entry(i)] - least : -1;
      if (lane >= lanes_) return false;
      made.lanes[i] = static_cast<int32_t>(lane);
      made.weights[i] = counts ? rows.weights[entry(i)] : T(-0.0);
    }
    return true;
  }

  /// Of one element each, and of fewer than there are: turning would take longer.
  void take_each(const Pass& pass, int64_t outer, const T* from, T* to, const CallData& data) const {
    const auto rows = rows_of(pass, from, to, data);
    for (int64_t i = 0; i < outer; ++i, from += pass.from, to += pass.to) {
      for (int64_t j = 0; j < pass.to; ++j) {
        const T weight = rows.weights[j];
        to[j] = weight == 0 ? T(-0.0) : weight * from[rows.places[j]];
      }
    }
  }

  void run_turned(const Pass& pass, int64_t outer, const T* from, T* to, const CallData& data) const {
    const int64_t in = pass.inner * pass.from, out = pass.inner * pass.to;
    const int64_t turned_rows = rows_to_turn(in + out), rest = outer % turned_rows;
    const auto turned = std::make_unique_for_overwrite<T[]>(static_cast<size_t>((in + out) * turned_rows));
    T* const made = turned.get() + in * turned_rows;
    const auto run_rows = [&](const Turning& turning, int64_t rows, int64_t at) {
      turning.there.run_here(turned.get(), from + at * in);
      auto run = rows_of(pass, turned.get(), made, data);
      run.count *= rows;
      kernels_.weigh_rows(run);
      turning.back.run_here(to + at * out, made);
    };
    if (outer >= turned_rows) {
      const Turning whole(pass, turned_rows, sizeof(T));
      for (int64_t i = 0; i + turned_rows <= outer; i += turned_rows) run_rows(whole, turned_rows, i);
    }
    if (rest > 0) run_rows(Turning(pass, rest, sizeof(T)), rest, outer - rest);
  }

  const engines::TypedKernels<T>& kernels_;
  int64_t lanes_;  // of a register
  std::array<Pass, WeighedAttributes::most_dims> passes_{};
  int count_ = 0;
  int64_t in_ = 0, out_ = 0, most_ = 0;  // elements of an item before, behind and between the passes
  Pieces items_, rows_;                  // rows of the last pass, where items are large
};

}  // namespace

std::unique_ptr<Call> prepare_weighed_sums(const CallSpec& spec) {
  if (spec.result.type == Float64) return std::make_unique<WeighedCall<double>>(spec);
  if (spec.result.type == Float32) return std::make_unique<WeighedCall<float>>(spec);
  refuse_type(spec.op->name, spec.result.type);
}

}  // namespace rosin::cpu
