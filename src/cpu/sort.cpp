// Sorting along one dim. Equal elements are ordered by their places, so any sort is stable and the result is unique.
#include "cpu/dispatch.hpp"

namespace rosin::cpu {
namespace {

template <class T> struct Entry {
  T key;
  int32_t place;
};

// NaN counts as larger than every number.
template <class T> bool below(T a, T b) { return a < b || (is_nan(b) && !is_nan(a)); }

// x (inner, n, outer) -> places (inner, k, outer) with k <= n, the first k of the sorted order; or the elements there,
// and the places.
template <class T> class SortCall final : public Call {
 public:
  SortCall(const CallSpec& spec, int dim, bool descending)
      : x_(lines_of(spec.operands[0].shape, dim)), wanted_(spec.result.shape[dim]), descending_(descending),
        lines_(cut(x_)) {}

  int64_t chunks() const override { return lines_.count(); }
  size_t scratch_bytes() const override { return static_cast<size_t>(lines_.count() * x_.size) * sizeof(Item); }

  void run(int64_t chunk, const CallData& data) override {
    const T* x = static_cast<const T*>(data.operands[0]);
    const Wanted wanted = data.results
                              ? Wanted{static_cast<T*>(data.results[0]), static_cast<int32_t*>(data.results[1])}
                              : Wanted{nullptr, static_cast<int32_t*>(data.result)};
    Item* items = static_cast<Item*>(data.scratch) + chunk * x_.size;
    for (int64_t line = lines_.first(chunk); line < lines_.last(chunk); ++line) {
      const int64_t outer = line / x_.inner, inner = line % x_.inner;
      const T* from = x + outer * x_.size * x_.inner + inner;
      for (int64_t i = 0; i < x_.size; ++i) {
        items[i] = {static_cast<Computed<T>>(from[i * x_.inner]), static_cast<int32_t>(i)};
      }
      order(items);
      const int64_t to = outer * wanted_ * x_.inner + inner;
      for (int64_t i = 0; wanted.values && i < wanted_; ++i) {
        wanted.values[to + i * x_.inner] = from[items[i].place * x_.inner];
      }
      for (int64_t i = 0; wanted.places && i < wanted_; ++i) wanted.places[to + i * x_.inner] = items[i].place;
    }
  }

 private:
  using Item = Entry<Computed<T>>;

  struct Wanted {
    T* values;
    int32_t* places;
  };

  // At most 16 chunks, because each has its own scratch.
  static Pieces cut(const Lines& x) {
    const int64_t lines = x.inner * x.outer;
    Pieces pieces = Pieces::of(lines, x.size, 4096);
    pieces.step = std::max(pieces.step, (lines + 15) / 16);
    return pieces;
  }

  template <class Before> void order_by(Item* items, Before before) const {
    if (wanted_ < x_.size) std::nth_element(items, items + wanted_, items + x_.size, before);
    std::sort(items, items + wanted_, before);
  }

  void order(Item* items) const {
    if (descending_) {
      order_by(items, [](const Item& a, const Item& b) {
        return below(b.key, a.key) || (!below(a.key, b.key) && a.place < b.place);
      });
    } else {
      order_by(items, [](const Item& a, const Item& b) {
        return below(a.key, b.key) || (!below(b.key, a.key) && a.place < b.place);
      });
    }
  }

  Lines x_;
  int64_t wanted_;
  bool descending_;
  Pieces lines_;
};

}  // namespace

std::unique_ptr<Call> prepare_sort(const CallSpec& spec) {
  const auto attributes = spec.attributes.as<SortAttributes>();
  const int dim = static_cast<int>(attributes.dim);
  const DType type = spec.operands[0].type == DType::Bool ? DType::UInt8 : spec.operands[0].type;
  return with_number(spec.op->name, type, [&]<class T>(std::type_identity<T>) -> std::unique_ptr<Call> {
    return std::make_unique<SortCall<T>>(spec, dim, attributes.descending != 0);
  });
}

}  // namespace rosin::cpu
