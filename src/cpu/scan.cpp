// Running sums and products, linear recurrences, and the places of extrema: one pass along a dim, lines side by side.
#include "cpu/dispatch.hpp"

namespace rosin::cpu {
namespace {

// Where the elements of a block of lines stand.
struct Block {
  int64_t start, stride, size, count;

  Block(const Lines& lines, int64_t outer, int64_t first, int64_t block_lines)
      : start(outer * lines.size * lines.inner + first), stride(lines.inner), size(lines.size), count(block_lines) {}
  int64_t at(int64_t j, bool reversed) const { return start + (reversed ? size - 1 - j : j) * stride; }
};

// x (inner, n, outer) -> the same shape. Halves are added up in float and rounded at each element.
template <class T, Reducer reducer> class RunningCall final : public Call {
 public:
  RunningCall(const CallSpec& spec, int dim, bool reversed)
      : lines_(lines_of(spec.result.shape, dim)), blocks_(lines_, lines_.size), reversed_(reversed) {}

  int64_t chunks() const override { return blocks_.count(); }

  void run(int64_t chunk, const CallData& data) override {
    const T* x = static_cast<const T*>(data.operands[0]);
    T* out = static_cast<T*>(data.result);
    using Total = Computed<T>;
    blocks_.each(chunk, [&](int64_t outer, int64_t first, int64_t count) {
      const Block block(lines_, outer, first, count);
      Total totals[LineBlocks::width];
      std::fill_n(totals, count, reducer == Reducer::sum ? Total{0} : Total{1});
      for (int64_t j = 0; j < block.size; ++j) {
        const int64_t at = block.at(j, reversed_);
        for (int64_t i = 0; i < count; ++i) {
          const Total value = static_cast<Total>(x[at + i]);
          totals[i] = reducer == Reducer::sum ? plus(totals[i], value) : times(totals[i], value);
          out[at + i] = static_cast<T>(totals[i]);
        }
      }
    });
  }

 private:
  Lines lines_;
  LineBlocks blocks_;
  bool reversed_;
};

// h[j] = a[j] * h[j - 1] + b[j]; h[-1] = 0.
template <class T> class RecurrenceCall final : public Call {
 public:
  RecurrenceCall(const CallSpec& spec, int dim, bool reversed)
      : lines_(lines_of(spec.result.shape, dim)), blocks_(lines_, lines_.size), reversed_(reversed) {}

  int64_t chunks() const override { return blocks_.count(); }

  void run(int64_t chunk, const CallData& data) override {
    const T* a = static_cast<const T*>(data.operands[0]);
    const T* b = static_cast<const T*>(data.operands[1]);
    T* out = static_cast<T*>(data.result);
    using Total = Computed<T>;
    blocks_.each(chunk, [&](int64_t outer, int64_t first, int64_t count) {
      const Block block(lines_, outer, first, count);
      Total states[LineBlocks::width] = {};
      for (int64_t j = 0; j < block.size; ++j) {
        const int64_t at = block.at(j, reversed_);
        for (int64_t i = 0; i < count; ++i) {
          const Total b_here = static_cast<Total>(b[at + i]);
          states[i] = j == 0 ? b_here : plus(times(static_cast<Total>(a[at + i]), states[i]), b_here);
          out[at + i] = static_cast<T>(states[i]);
        }
      }
    });
  }

 private:
  Lines lines_;
  LineBlocks blocks_;
  bool reversed_;
};

// x (inner, n, outer) -> places (inner, 1, outer) of the first largest or smallest element; the first NaN wins.
template <class T, Reducer reducer> class PlaceCall final : public Call {
 public:
  PlaceCall(const CallSpec& spec, int dim)
      : lines_(lines_of(spec.operands[0].shape, dim)), blocks_(lines_, lines_.size) {}

  int64_t chunks() const override { return blocks_.count(); }

  void run(int64_t chunk, const CallData& data) override {
    const T* x = static_cast<const T*>(data.operands[0]);
    int32_t* out = static_cast<int32_t*>(data.result);
    blocks_.each(chunk, [&](int64_t outer, int64_t first, int64_t count) {
      const Block block(lines_, outer, first, count);
      if (lines_.inner == 1) {
        out[outer] = place_in_line(x + block.start, block.size);
      } else {
        place_in_block(x, block, out + outer * lines_.inner + first);
      }
    });
  }

 private:
  using Value = Computed<T>;

  static bool wins(Value value, Value best) {
    const bool beats = reducer == Reducer::argmax ? value > best : value < best;
    return beats || (is_nan(value) && !is_nan(best));
  }

  static int32_t place_in_line(const T* x, int64_t size) {
    Value best = static_cast<Value>(x[0]);
    int32_t place = 0;
    for (int64_t j = 1; j < size; ++j) {
      const auto value = static_cast<Value>(x[j]);
      if (!wins(value, best)) continue;
      best = value;
      place = static_cast<int32_t>(j);
    }
    return place;
  }

  static void place_in_block(const T* x, const Block& block, int32_t* out) {
    Value best[LineBlocks::width];
    int32_t places[LineBlocks::width] = {};
    for (int64_t i = 0; i < block.count; ++i) best[i] = static_cast<Value>(x[block.start + i]);
    for (int64_t j = 1; j < block.size; ++j) {
      for (int64_t i = 0; i < block.count; ++i) {
        const auto value = static_cast<Value>(x[block.start + j * block.stride + i]);
        const bool better = wins(value, best[i]);
        best[i] = better ? value : best[i];
        places[i] = better ? static_cast<int32_t>(j) : places[i];
      }
    }
    std::copy_n(places, block.count, out);
  }

  Lines lines_;
  LineBlocks blocks_;
};

}  // namespace

std::unique_ptr<Call> prepare_scan(const CallSpec& spec) {
  const auto attributes = spec.attributes.as<ScanAttributes>();
  const int dim = static_cast<int>(attributes.dim);
  const bool reversed = attributes.reversed != 0;
  const bool place = spec.op->reducer == Reducer::argmax || spec.op->reducer == Reducer::argmin;
  const DType type = place && spec.operands[0].type == DType::Bool ? DType::UInt8 : spec.operands[0].type;
  return with_number(spec.op->name, type, [&]<class T>(std::type_identity<T>) -> std::unique_ptr<Call> {
    switch (spec.op->reducer) {
      case Reducer::sum: return std::make_unique<RunningCall<T, Reducer::sum>>(spec, dim, reversed);
      case Reducer::product: return std::make_unique<RunningCall<T, Reducer::product>>(spec, dim, reversed);
      case Reducer::argmax: return std::make_unique<PlaceCall<T, Reducer::argmax>>(spec, dim);
      case Reducer::argmin: return std::make_unique<PlaceCall<T, Reducer::argmin>>(spec, dim);
      default: return std::make_unique<RecurrenceCall<T>>(spec, dim, reversed);
    }
  });
}

}  // namespace rosin::cpu
