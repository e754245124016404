// Scatter and scatter_add along one dim, and the adjoint of take_along. A chunk owns a part of the result and takes all
// indices in their order: no two chunks write one element, and sums have one order.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "cpu/dispatch.hpp"
#include "graph/reducer.hpp"
#include "scalar/convert.hpp"

namespace rosin::cpu {
namespace {

// The float copies in which halves are added up: one for each element of the result.
template <class T> size_t sum_bytes(const Shape& result) {
  const size_t bytes = static_cast<size_t>(result.count()) * sizeof(float);
  return is_half<T> ? (bytes + 63) / 64 * 64 : 0;
}

// The memory that T is added up in: the result itself, or scratch for halves.
template <class T> Computed<T>* sums(const CallData& data) {
  if constexpr (is_half<T>) {
    return static_cast<float*>(data.scratch);
  } else {
    return static_cast<T*>(data.result);
  }
}

// Halves that were added up in float are rounded once. `at` is the first element of a row of `count`.
template <class T> void round_row(const CallData& data, int64_t at, int64_t count) {
  if constexpr (is_half<T>) {
    convert_elements(static_cast<T*>(data.result) + at, dtype_of<T>, static_cast<const float*>(data.scratch) + at,
                     Float32, count);
  }
}

/// How a scatter is cut. A large target of long rows is cut by its rows: what a chunk writes stays in the cache, and
/// the updates are sorted by chunks before, each chunk's in their order. Others are cut by the elements before the dim,
/// and each chunk goes through all indices.
class ScatterCut {
 public:
  ScatterCut(const Lines& target, int64_t indices)
      : target_(target), indices_(indices), blocks_(target, target.size + indices) {
    constexpr int64_t long_row = 16, large = 1 << 17;  // elements
    constexpr int64_t few_updates = 32, most_of_few = 32;
    const int64_t rows = target.size * target.outer;
    by_rows_ = target.inner >= long_row && rows * target.inner >= large && rows > 1;
    if (!by_rows_) return;
    // Few updates leave most rows as they are, and nothing is gained where a chunk stays in the cache.
    const bool few = indices * target.outer * few_updates <= rows;
    rows_ = few ? Pieces::of(rows, 1, (rows + most_of_few - 1) / most_of_few) : Pieces::of(rows, target.inner);
  }

  int64_t chunks() const { return by_rows_ ? rows_.count() : blocks_.count(); }
  size_t scratch_bytes() const {
    if (!by_rows_) return 0;
    return static_cast<size_t>(rows_.count() + 1) * sizeof(int64_t) +
           static_cast<size_t>(indices_ * target_.outer) * sizeof(Update);
  }

  /// Before the chunks: Error (argument) for an index that is outside.
  void begin(std::string_view op, const Integers& indices, void* scratch) const {
    if (!by_rows_) return;
    const Sorted sorted = sorted_in(scratch);
    std::fill_n(sorted.ends, rows_.count() + 1, int64_t{0});
    const auto each_update = [&](auto&& f) {
      for (int64_t outer = 0; outer < target_.outer; ++outer) {
        each_few_places(indices, op, 0, indices_, target_.size, [&](const int64_t* places, int64_t k, int64_t count) {
          for (int64_t i = 0; i < count; ++i) f({k + i, outer * target_.size + places[i]});
        });
      }
    };
    each_update([&](Update update) { ++sorted.ends[update.row / rows_.step + 1]; });
    for (int64_t chunk = 0; chunk < rows_.count(); ++chunk) sorted.ends[chunk + 1] += sorted.ends[chunk];
    each_update([&](Update update) { sorted.updates[sorted.ends[update.row / rows_.step]++] = update; });
  }

  /// Calls fresh(at, count) for the stretches of the target that a chunk owns, then add(to, from, count) for the
  /// updates there, in their order: so many elements, from one on of the target and of the updates.
  template <class Fresh, class Add>
  void each(int64_t chunk, std::string_view op, const Integers& indices, void* scratch, Fresh&& fresh,
            Add&& add) const {
    if (by_rows_) return each_row(chunk, scratch, fresh, add);
    blocks_.each(chunk, [&](int64_t outer, int64_t first, int64_t count) {
      const int64_t start = outer * target_.size * target_.inner + first;
      each_line(start, count, fresh);
      each_few_places(indices, op, 0, indices_, target_.size, [&](const int64_t* places, int64_t k, int64_t some) {
        int64_t from = (outer * indices_ + k) * target_.inner + first;
        for (int64_t i = 0; i < some; ++i, from += target_.inner) add(start + places[i] * target_.inner, from, count);
      });
    });
  }

  /// The stretches again.
  template <class F> void each_stretch(int64_t chunk, F&& f) const {
    if (by_rows_)
      return f(rows_.first(chunk) * target_.inner, (rows_.last(chunk) - rows_.first(chunk)) * target_.inner);
    blocks_.each(chunk, [&](int64_t outer, int64_t first, int64_t count) {
      each_line(outer * target_.size * target_.inner + first, count, f);
    });
  }

 private:
  /// f(at, count) for the same elements of each line; whole lines lie behind one another.
  template <class F> void each_line(int64_t start, int64_t count, F&& f) const {
    if (count == target_.inner) return f(start, target_.size * count);
    for (int64_t j = 0; j < target_.size; ++j) f(start + j * target_.inner, count);
  }

  struct Update {
    int64_t k, row;  // index, and the row of the target that it names
  };
  /// ends[c]: behind the last update of chunk c, where that of the chunk before ends it begins.
  struct Sorted {
    int64_t* ends;
    Update* updates;
  };
  Sorted sorted_in(void* scratch) const {
    auto* const ends = static_cast<int64_t*>(scratch);
    return {ends, reinterpret_cast<Update*>(ends + rows_.count() + 1)};
  }

  template <class Fresh, class Add> void each_row(int64_t chunk, void* scratch, Fresh&& fresh, Add&& add) const {
    const Sorted sorted = sorted_in(scratch);
    each_stretch(chunk, fresh);
    for (int64_t i = chunk == 0 ? 0 : sorted.ends[chunk - 1]; i < sorted.ends[chunk]; ++i) {
      const auto [k, row] = sorted.updates[i];
      add(row * target_.inner, (row / target_.size * indices_ + k) * target_.inner, target_.inner);
    }
  }

  Lines target_;
  int64_t indices_;
  LineBlocks blocks_;
  Pieces rows_;
  bool by_rows_ = false;
};

/// Whether all elements of the view are one. (Dims of size 1 may have any stride.)
bool is_fill(const CallArray& x) {
  int d = 0;
  return std::all_of(x.strides, x.strides + x.shape.rank(),
                     [&](int64_t stride) { return x.shape[d++] == 1 || stride == 0; });
}

// target (inner, n, outer), indices (m), updates (inner, m, outer). T only moves when `add` is false.
template <class T, bool add> class ScatterCall final : public Call {
 public:
  ScatterCall(const CallSpec& spec, int dim)
      : op_(spec.op->name), index_type_(spec.operands[1].type),
        cut_(lines_of(spec.operands[0].shape, dim), spec.operands[1].shape.count()), fills_(is_fill(spec.operands[0])),
        same_(is_fill(spec.operands[2]) ? lines_of(spec.operands[0].shape, dim).inner : 0),
        sum_bytes_(add ? sum_bytes<T>(spec.result.shape) : 0) {
    if constexpr (add && std::is_floating_point_v<Computed<T>>)
      combine_ = spec.op->reducer->body.of(scalar_type(spec.result.type)).combine;
  }

  int64_t chunks() const override { return cut_.chunks(); }
  size_t scratch_bytes() const override {
    return sum_bytes_ + cut_.scratch_bytes() + static_cast<size_t>(same_) * sizeof(T);
  }
  void begin(const CallData& data) override {
    cut_.begin(op_, indices(data), sorted(data));
    std::fill_n(same_row(data), same_, *static_cast<const T*>(data.operands[2]));
  }

  void run(int64_t chunk, const CallData& data) override {
    const T* updates = static_cast<const T*>(data.operands[2]);
    if constexpr (add) {
      Computed<T>* out = sums<T>(data);
      const T* const same = same_ > 0 ? same_row(data) : nullptr;
      const auto plus_update = [&](int64_t to, int64_t from, int64_t count) {
        const T* const added = same ? same : updates + from;
        if (count >= worth_a_call && combine_) return combine_row(out + to, added, count);
        for (int64_t i = 0; i < count; ++i) out[to + i] = plus(out[to + i], static_cast<Computed<T>>(added[i]));
      };
      cut_.each(chunk, op_, indices(data), sorted(data), beginning(out, data), plus_update);
      cut_.each_stretch(chunk, [&](int64_t at, int64_t count) { round_row<T>(data, at, count); });
    } else {
      T* out = static_cast<T*>(data.result);
      const auto write = [&](int64_t to, int64_t from, int64_t count) { std::copy_n(updates + from, count, out + to); };
      cut_.each(chunk, op_, indices(data), sorted(data), beginning(out, data), write);
    }
  }

 private:
  Integers indices(const CallData& data) const { return {data.operands[1], index_type_}; }
  void* sorted(const CallData& data) const { return static_cast<unsigned char*>(data.scratch) + sum_bytes_; }

  /// out[i] += x[i].
  void combine_row(Computed<T>* out, const T* x, int64_t count) const {
    if constexpr (is_half<T>) {
      constexpr int64_t strip = 512;
      float wide[strip];
      for (int64_t i = 0; i < count; i += strip) {
        const int64_t some = std::min(strip, count - i);
        convert_elements(wide, Float32, x + i, dtype_of<T>, some);
        combine_(out + i, wide, some);
      }
    } else {
      combine_(out, x, count);
    }
  }

  T* same_row(const CallData& data) const {
    return reinterpret_cast<T*>(static_cast<unsigned char*>(sorted(data)) + cut_.scratch_bytes());
  }

  /// Writes what stands in the target, unless that is the result's memory.
  template <class To> auto beginning(To* out, const CallData& data) const {
    return [out, target = static_cast<const T*>(data.operands[0]), fills = fills_](int64_t at, int64_t count) {
      if (static_cast<const void*>(out) == target && !fills) return;
      if (fills) std::fill_n(out + at, count, static_cast<To>(*target));
      else if constexpr (is_half<T>) convert_elements(out + at, dtype_of<To>, target + at, dtype_of<T>, count);
      else std::transform(target + at, target + at + count, out + at, [](T x) { return static_cast<To>(x); });
    };
  }

  std::string_view op_;
  DType index_type_;
  ScatterCut cut_;
  bool fills_;
  int64_t same_;  // elements of a row of the update, where one number is all of them: it stands in the scratch
  size_t sum_bytes_;
  static constexpr int64_t worth_a_call = 32;  // elements of a row
  CombineLoop combine_ = nullptr;
};

/// Tables of a chunk, and updates for each place that are worth them.
constexpr int64_t tables = 4, worth_tables = 8 * tables;

bool pays_tables(const CallSpec& spec) {
  const Shape& target = spec.operands[0].shape;
  return is_integer(spec.result.type) && size_of(spec.result.type) >= 4 && target.rank() == 1 &&
         spec.operands[1].shape.count() >= worth_tables * target.count();
}

// Integers of 32 or 64 bits that are added up in a vector much shorter than they are, in any order: each chunk has
// tables of its own, and neighbours among the updates different ones, so that no sum waits for the one before it at the
// same place.
template <class T> class TablesCall final : public Call {
 public:
  explicit TablesCall(const CallSpec& spec)
      : op_(spec.op->name), index_type_(spec.operands[1].type), size_(spec.operands[0].shape.count()),
        fills_(is_fill(spec.operands[0])), same_(is_fill(spec.operands[2])),
        updates_(Pieces::of(spec.operands[1].shape.count(), 1, std::max(least, worth_tables * size_))) {}

  int64_t chunks() const override { return updates_.count(); }
  size_t scratch_bytes() const override { return static_cast<size_t>(chunks() * tables * size_) * sizeof(T); }

  void run(int64_t chunk, const CallData& data) override {
    T* const sums = tables_of(chunk, data);
    std::fill_n(sums, tables * size_, T{});
    const T* updates = static_cast<const T*>(data.operands[2]);
    const auto add = [=, size = size_, same = same_](const int64_t* places, int64_t first, int64_t count) {
      const auto add_one = [=](int64_t table, int64_t i) {
        T& sum = sums[table * size + places[i]];
        sum = plus(sum, updates[same ? 0 : first + i]);
      };
      int64_t i = 0;
      for (; i + tables <= count; i += tables) {
        for (int64_t table = 0; table < tables; ++table) add_one(table, i + table);
      }
      for (; i < count; ++i) add_one(0, i);
    };
    const Integers indices(data.operands[1], index_type_);
    each_few_places(indices, op_, updates_.first(chunk), updates_.last(chunk), size_, add);
  }

  void finish(const CallData& data) override {
    const T* target = static_cast<const T*>(data.operands[0]);
    T* out = static_cast<T*>(data.result);
    for (int64_t i = 0; i < size_; ++i) out[i] = target[fills_ ? 0 : i];
    for (int64_t table = 0; table < chunks() * tables; ++table) {
      const T* const sums = tables_of(0, data) + table * size_;
      for (int64_t i = 0; i < size_; ++i) out[i] = plus(out[i], sums[i]);
    }
  }

 private:
  static constexpr int64_t least = 1 << 15;

  T* tables_of(int64_t chunk, const CallData& data) const {
    return static_cast<T*>(data.scratch) + chunk * tables * size_;
  }

  std::string_view op_;
  DType index_type_;
  int64_t size_;
  bool fills_, same_;  // one number is all of the target, or all updates
  Pieces updates_;
};

// The same with rows combined by a reducer, for types that it has loops for.
class CombineCall final : public Call {
 public:
  CombineCall(const CallSpec& spec, int dim)
      : op_(*spec.op), index_type_(spec.operands[1].type),
        cut_(lines_of(spec.operands[0].shape, dim), spec.operands[1].shape.count()),
        element_(static_cast<int64_t>(size_of(spec.result.type))),
        combine_(op_.reducer->body.of(scalar_type(spec.result.type)).combine) {
    if (!combine_) refuse_type(op_.name, spec.result.type);
  }

  int64_t chunks() const override { return cut_.chunks(); }
  size_t scratch_bytes() const override { return cut_.scratch_bytes(); }
  void begin(const CallData& data) override { cut_.begin(op_.name, indices(data), data.scratch); }

  void run(int64_t chunk, const CallData& data) override {
    const auto* target = static_cast<const char*>(data.operands[0]);
    const auto* updates = static_cast<const char*>(data.operands[2]);
    auto* out = static_cast<char*>(data.result);
    const auto copy = [&](int64_t at, int64_t count) {
      if (out != target)
        std::memcpy(out + at * element_, target + at * element_, static_cast<size_t>(count * element_));
    };
    const auto combine = [&](int64_t to, int64_t from, int64_t count) {
      combine_(out + to * element_, updates + from * element_, count);
    };
    cut_.each(chunk, op_.name, indices(data), data.scratch, copy, combine);
  }

 private:
  Integers indices(const CallData& data) const { return {data.operands[1], index_type_}; }

  const Op& op_;
  DType index_type_;
  ScatterCut cut_;
  int64_t element_;
  CombineLoop combine_;
};

// indices and updates (inner, m, outer) -> zeros (inner, n, outer) with the updates added. Where a block is all lines
// of an outer index, a chunk goes through its indices as they lie in memory.
template <class T> class AddAlongCall final : public Call {
 public:
  AddAlongCall(const CallSpec& spec, int dim)
      : op_(spec.op->name), index_type_(spec.operands[0].type), out_(lines_of(spec.result.shape, dim)),
        indices_(spec.operands[0].shape[dim]), blocks_(out_, out_.size + indices_),
        scratch_(sum_bytes<T>(spec.result.shape)) {}

  int64_t chunks() const override { return blocks_.count(); }
  size_t scratch_bytes() const override { return scratch_; }

  void run(int64_t chunk, const CallData& data) override {
    if (out_.inner <= LineBlocks::width) {
      return add_all_lines(blocks_.blocks.first(chunk), blocks_.blocks.last(chunk), data);
    }
    blocks_.each(chunk, [&](int64_t outer, int64_t first, int64_t count) { add_lines(outer, first, count, data); });
  }

 private:
  /// Of outer indices [first, last).
  void add_all_lines(int64_t first, int64_t last, const CallData& data) const {
    const T* updates = static_cast<const T*>(data.operands[1]);
    Computed<T>* const out = sums<T>(data);
    const int64_t elements = out_.size * out_.inner, some_updates = indices_ * out_.inner;
    std::fill_n(out + first * elements, (last - first) * elements, Computed<T>{});
    Computed<T>* lines = out + first * elements;
    int64_t end = (first + 1) * some_updates, line = 0;
    const auto add = [&](const int64_t* places, int64_t at, int64_t count) {
      for (int64_t i = 0; i < count; ++i) {
        if (at + i == end) {
          lines += elements;
          end += some_updates;
        }
        Computed<T>& sum = lines[places[i] * out_.inner + line];
        sum = plus(sum, static_cast<Computed<T>>(updates[at + i]));
        if (++line == out_.inner) line = 0;
      }
    };
    const Integers indices(data.operands[0], index_type_);
    each_few_places(indices, op_, first * some_updates, last * some_updates, out_.size, add);
    round_row<T>(data, first * elements, (last - first) * elements);
  }

  /// Of `count` lines from `first` on.
  void add_lines(int64_t outer, int64_t first, int64_t count, const CallData& data) const {
    const Integers indices(data.operands[0], index_type_);
    const T* updates = static_cast<const T*>(data.operands[1]);
    Computed<T>* const out = sums<T>(data);
    const int64_t start = outer * out_.size * out_.inner + first;
    for (int64_t j = 0; j < out_.size; ++j) std::fill_n(out + start + j * out_.inner, count, Computed<T>{});
    for (int64_t k = 0; k < indices_; ++k) {
      const int64_t from = (outer * indices_ + k) * out_.inner + first;
      const auto add = [&](const int64_t* places, int64_t at, int64_t some) {
        for (int64_t i = 0; i < some; ++i) {
          Computed<T>& sum = out[start + places[i] * out_.inner + at - from + i];
          sum = plus(sum, static_cast<Computed<T>>(updates[at + i]));
        }
      };
      each_few_places(indices, op_, from, from + count, out_.size, add);
    }
    for (int64_t j = 0; j < out_.size; ++j) round_row<T>(data, start + j * out_.inner, count);
  }

  std::string_view op_;
  DType index_type_;
  Lines out_;
  int64_t indices_;
  LineBlocks blocks_;
  size_t scratch_;
};

}  // namespace

std::unique_ptr<Call> prepare_scatter(const CallSpec& spec) {
  const int dim = static_cast<int>(spec.attributes.as<DimAttributes>().dim);
  const DType type = spec.result.type;
  switch (spec.op->scatter) {
    case Scatter::write:
      return with_bytes_of(type, [&]<class T>(std::type_identity<T>) -> std::unique_ptr<Call> {
        return std::make_unique<ScatterCall<T, false>>(spec, dim);
      });
    case Scatter::add:
      if (pays_tables(spec)) {
        if (size_of(type) == 4) return std::make_unique<TablesCall<uint32_t>>(spec);
        return std::make_unique<TablesCall<uint64_t>>(spec);
      }
      return with_number(spec.op->name, type, [&]<class T>(std::type_identity<T>) -> std::unique_ptr<Call> {
        return std::make_unique<ScatterCall<T, true>>(spec, dim);
      });
    case Scatter::combine: return std::make_unique<CombineCall>(spec, dim);
    case Scatter::add_along:
      return with_number(spec.op->name, type, [&]<class T>(std::type_identity<T>) -> std::unique_ptr<Call> {
        return std::make_unique<AddAlongCall<T>>(spec, dim);
      });
    case Scatter::none: break;
  }
  throw_unknown(*spec.op, "the CPU");
}

}  // namespace rosin::cpu
