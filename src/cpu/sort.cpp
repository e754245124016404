// Sorting along one dim. Elements become unsigned keys in the same order; equal ones are ordered by their places, so
// any way of sorting is stable and the result is unique: long lines are sorted by radix, the first few of many are
// selected.
#include <algorithm>
#include <array>
#include <bit>
#include <type_traits>
#include <utility>

#include "cpu/dispatch.hpp"
#include "scalar/convert.hpp"

namespace rosin::cpu {
namespace {

/// Of elements up to 32 bits: key and place in one number.
struct ShortItem {
  using Key = uint32_t;
  uint64_t bits;

  ShortItem() = default;
  ShortItem(Key key, int64_t place) : bits(uint64_t{key} << 32 | static_cast<uint64_t>(place)) {}
  Key key() const { return static_cast<Key>(bits >> 32); }
  int32_t place() const { return static_cast<int32_t>(bits & 0xffffffffu); }
  bool operator<(const ShortItem& other) const { return bits < other.bits; }
};

struct LongItem {
  using Key = uint64_t;
  Key number;
  int64_t at;

  LongItem() = default;
  LongItem(Key key, int64_t place) : number(key), at(place) {}
  Key key() const { return number; }
  int32_t place() const { return static_cast<int32_t>(at); }
  bool operator<(const LongItem& other) const {
    return number < other.number || (number == other.number && at < other.at);
  }
};

/// Unsigned numbers in the order of the elements. Both zeros are one number, and so are all NaN, above every other.
template <class Key, class T> Key ascending_key(T value) {
  if constexpr (std::is_floating_point_v<T>) {
    if (value != value) return ~Key{0};
    const Key bits = std::bit_cast<Key>(value == T{0} ? T{0} : value), sign = Key{1} << (sizeof(Key) * 8 - 1);
    return (bits & sign) != 0 ? ~bits : (bits | sign);
  } else if constexpr (std::is_signed_v<T>) {
    using Wide = std::make_signed_t<Key>;
    return static_cast<Key>(static_cast<Wide>(value)) ^ (Key{1} << (sizeof(Key) * 8 - 1));
  } else {
    return Key{value};
  }
}

/// The integer of such a number.
template <class T, class Key> T element_of(Key key) {
  return static_cast<T>(std::is_signed_v<T> ? key ^ (Key{1} << (sizeof(Key) * 8 - 1)) : key);
}

/// Sorts by the digits of the keys from the last one on, each time keeping the order there is: places ascend already.
template <class Item> void sort_by_radix(Item* items, Item* spare, int64_t count) {
  constexpr int digits = sizeof(typename Item::Key), bits = 8;
  constexpr size_t values = 1 << bits;
  std::array<std::array<int32_t, values>, digits> starts{};
  const auto digit = [](const Item& item, int d) { return static_cast<size_t>(item.key() >> (d * bits)) % values; };
  for (int64_t i = 0; i < count; ++i) {
    for (int d = 0; d < digits; ++d) ++starts[static_cast<size_t>(d)][digit(items[i], d)];
  }
  Item *from = items, *to = spare;
  for (int d = 0; d < digits; ++d) {
    auto& start = starts[static_cast<size_t>(d)];
    if (start[digit(from[0], d)] == count) continue;  // the same in all
    int32_t sum = 0;
    for (int32_t& first : start) sum += std::exchange(first, sum);
    for (int64_t i = 0; i < count; ++i) to[start[digit(from[i], d)]++] = from[i];
    std::swap(from, to);
  }
  if (from != items) std::copy_n(from, count, items);
}

// x (inner, n, outer) -> places (inner, k, outer) with k <= n, the first k of the sorted order; or the elements there,
// and the places.
template <class T> class SortCall final : public Call {
 public:
  SortCall(const CallSpec& spec, int dim, bool descending)
      : x_(lines_of(spec.operands[0].shape, dim)), wanted_(spec.result.shape[dim]), flip_(descending ? ~Key{0} : 0),
        type_(spec.operands[0].type), lines_(cut(x_)) {
    if (wanted_ <= x_.size / 4) kept_ = std::min(x_.size, 2 * wanted_ + spare_items(x_.size));
    else kept_ = wanted_ == x_.size && wanted_ >= worth_radix ? 2 * x_.size : x_.size;
    constexpr int64_t most_copied = 1 << 16;
    if (x_.inner > 1 && x_.size > 1) beside_ = std::min({int64_t{16}, x_.inner, most_copied / x_.size});
  }

  int64_t chunks() const override { return lines_.count(); }
  size_t scratch_bytes() const override { return static_cast<size_t>(lines_.count()) * chunk_bytes(); }

  void run(int64_t chunk, const CallData& data) override {
    const T* x = static_cast<const T*>(data.operands[0]);
    const Wanted wanted = data.results
                              ? Wanted{static_cast<T*>(data.results[0]), static_cast<int32_t*>(data.results[1])}
                              : Wanted{nullptr, static_cast<int32_t*>(data.result)};
    auto* const scratch = static_cast<unsigned char*>(data.scratch) + static_cast<size_t>(chunk) * chunk_bytes();
    Item* const items = reinterpret_cast<Item*>(scratch);
    T* const copies = reinterpret_cast<T*>(items + kept_);
    for (int64_t first = lines_.first(chunk), count = 0; first < lines_.last(chunk); first += count) {
      const int64_t outer = first / x_.inner, inner = first % x_.inner;
      const T* const from = x + outer * x_.size * x_.inner + inner;
      count = std::min({std::max<int64_t>(beside_, 1), x_.inner - inner, lines_.last(chunk) - first});
      if (beside_ > 0) copy_beside(from, count, copies);
      for (int64_t i = 0; i < count; ++i) {
        const Line line = beside_ > 0 ? Line{copies + i * x_.size, 1} : Line{from + i, x_.inner};
        order(items, line);
        write(wanted, items, line, outer * wanted_ * x_.inner + inner + i);
      }
    }
  }

 private:
  using Number = Computed<T>;
  using Item = std::conditional_t<sizeof(T) <= 4, ShortItem, LongItem>;
  using Key = typename Item::Key;

  struct Wanted {
    T* values;
    int32_t* places;
  };

  struct Line {
    const T* first;
    int64_t step;
    T operator[](int64_t i) const { return first[i * step]; }
  };

  static constexpr int64_t worth_radix = 256, block = 64, few = 16, part = 16;

  // Items that are looked at together for those wanted: the sooner the first time, the less of a short line is copied.
  static int64_t spare_items(int64_t size) { return std::clamp<int64_t>(size / 16, 32, 1024); }

  // At most 16 chunks, because each has its own scratch.
  static Pieces cut(const Lines& x) {
    const int64_t lines = x.inner * x.outer;
    Pieces pieces = Pieces::of(lines, x.size, 4096);
    pieces.step = std::max(pieces.step, (lines + 15) / 16);
    return pieces;
  }

  size_t chunk_bytes() const {
    const size_t bytes = static_cast<size_t>(kept_) * sizeof(Item) + static_cast<size_t>(beside_ * x_.size) * sizeof(T);
    return (bytes + 63) / 64 * 64;
  }

  // Lines beside each other share lines of the cache: some become lines that stand one after the other.
  void copy_beside(const T* from, int64_t count, T* to) const {
    for (int64_t j = 0; j < x_.size; ++j, from += x_.inner) {
      for (int64_t i = 0; i < count; ++i) to[i * x_.size + j] = from[i];
    }
  }

  void write(const Wanted& wanted, const Item* items, const Line& line, int64_t to) const {
    for (int64_t i = 0; wanted.values && i < wanted_; ++i) wanted.values[to + i * x_.inner] = value(items[i], line);
    for (int64_t i = 0; wanted.places && i < wanted_; ++i) wanted.places[to + i * x_.inner] = items[i].place();
  }

  Item item(Number value, int64_t place) const { return Item(ascending_key<Key>(value) ^ flip_, place); }

  // Of an integer the key tells it; those of a float's zeros and NaN do not.
  T value(const Item& item, const Line& line) const {
    if constexpr (std::is_integral_v<T>) return element_of<T>(item.key() ^ flip_);
    else return line[item.place()];
  }

  // Calls f(numbers, first place, count) block by block.
  template <class F> void each_block(const Line& line, F&& f) const {
    Number buffer[block];
    for (int64_t at = 0; at < x_.size; at += block) {
      const int64_t count = std::min(block, x_.size - at);
      const T* from = line.first + at * line.step;
      if constexpr (std::is_same_v<T, Number>) {
        if (line.step == 1) {
          f(from, at, count);
          continue;
        }
      } else if (line.step == 1) {
        convert_elements(buffer, DType::Float32, from, type_, count);
        f(static_cast<const Number*>(buffer), at, count);
        continue;
      }
      for (int64_t i = 0; i < count; ++i) buffer[i] = static_cast<Number>(from[i * line.step]);
      f(static_cast<const Number*>(buffer), at, count);
    }
  }

  // The first wanted items of the line come first, in order.
  void order(Item* items, const Line& line) const {
    if (wanted_ <= x_.size / 4) return select(items, line);
    each_block(line, [&](const Number* x, int64_t at, int64_t count) {
      for (int64_t i = 0; i < count; ++i) items[at + i] = item(x[i], at + i);
    });
    if (kept_ > x_.size) return sort_by_radix(items, items + x_.size, x_.size);
    if (wanted_ < x_.size) std::nth_element(items, items + wanted_, items + x_.size);
    std::sort(items, items + wanted_);
  }

  // Few of many: what comes after the last of those wanted so far is passed over.
  void select(Item* items, const Line& line) const {
    if (wanted_ <= few) return select_few(items, line);
    int64_t found = 0;
    bool full = false;
    Number last{};  // of those wanted
    each_block(line, [&](const Number* x, int64_t at, int64_t count) {
      if (full && !any_before(x, count, last)) return;
      for (int64_t i = 0; i < count; ++i) {
        items[found] = item(x[i], at + i);
        found += !full || items[found] < items[wanted_ - 1];
        if (found < kept_) continue;
        keep_wanted(items, found);
        full = true;
        last = static_cast<Number>(line[items[wanted_ - 1].place()]);
      }
    });
    if (found > wanted_) keep_wanted(items, found);
    std::sort(items, items + wanted_);
  }

  // So few that they stay in order: each new one moves those behind it.
  void select_few(Item* items, const Line& line) const {
    if (wanted_ == 0) return;
    int64_t found = 0;
    Number last{};
    each_block(line, [&](const Number* x, int64_t at, int64_t count) {
      if (found == wanted_ && !any_before(x, count, last)) return;
      for (int64_t i = 0; i < count; i += part) {
        if (found == wanted_ && i + part <= count && !any_before(x + i, part, last)) continue;
        for (int64_t j = i; j < std::min(i + part, count); ++j) insert(items, found, item(x[j], at + j));
        if (found == wanted_) last = static_cast<Number>(line[items[wanted_ - 1].place()]);
      }
    });
  }

  void insert(Item* items, int64_t& found, Item added) const {
    if (found == wanted_ && !(added < items[wanted_ - 1])) return;
    int64_t to = found == wanted_ ? wanted_ - 1 : found++;
    for (; to > 0 && added < items[to - 1]; --to) items[to] = items[to - 1];
    items[to] = added;
  }

  // The last one of those wanted stands at the end of them.
  void keep_wanted(Item* items, int64_t& found) const {
    std::nth_element(items, items + wanted_ - 1, items + found);
    found = wanted_;
  }

  // Whether some number may come before the last one: true for any NaN.
  bool any_before(const Number* x, int64_t count, Number last) const {
    int any = 0;
    if (flip_) {
      for (int64_t i = 0; i < count; ++i) any |= !(x[i] <= last);
    } else {
      for (int64_t i = 0; i < count; ++i) any |= !(x[i] >= last);
    }
    return any != 0;
  }

  Lines x_;
  int64_t wanted_;
  Key flip_;  // of descending order: all bits
  DType type_;
  Pieces lines_;
  int64_t kept_ = 0;    // items of a chunk
  int64_t beside_ = 0;  // lines of which it makes copies
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
