// Small matrices that the items of a warp have together, and pairs of 16-bit floats; rosin/backend.h says which item
// has which elements.
#include "interpret.hpp"
#include "steps.hpp"
#include "types.hpp"

namespace rosin::reference {
namespace {

template <class E> void pack_pairs(Frame& frame, const Step& step) {
  const Lanes lanes = frame.active();
  uint32_t* __restrict out = frame.at<uint32_t>(step.out);
  const float *x = frame.at<float>(step.operands[0]), *y = frame.at<float>(step.operands[1]);
  for (int i = lanes.first; i < lanes.last; ++i) {
    out[i] = uint32_t{E::narrowed(x[i]).bits} | uint32_t{E::narrowed(y[i]).bits} << 16;
  }
}

struct Layout8;

/// Element `at` of a word; of Float32, matrices of 8 columns have the upper bits alone.
template <class Stored, class Layout> float element_of(uint32_t word, int at) {
  constexpr bool whole = !std::is_same_v<Layout, Layout8>;
  if constexpr (sizeof(Stored) == 4) return std::bit_cast<float>(whole ? word : word & 0xffffe000u);
  else return widen(Stored{static_cast<uint16_t>(word >> 16 * at)});
}

/// The vectors of a warp whose first item is `first`.
struct Operand {
  const char* lanes;
  size_t apart;
  int first;

  template <class T> T at(int item, int lane) const {
    return reinterpret_cast<const T*>(lanes + static_cast<size_t>(lane) * apart)[first + item];
  }
};

/// How the items of a warp have the matrices, as rosin/backend.h says.
struct Layout8 {
  static constexpr int items = 32, sums = 4;
  struct Owner {
    int item, lane;
  };
  static constexpr Owner left(int row, int word) { return {row % 8 * 4 + word % 4, row / 8 + word / 4 * 2}; }
  static constexpr Owner right(int word, int column) { return {column * 4 + word % 4, word / 4}; }
  static constexpr int row(int item, int lane) { return item / 4 + lane / 2 * 8; }
  static constexpr int column(int item, int lane) { return item % 4 * 2 + lane % 2; }
};

/// Items with words of one row, 8 / words of them; u and v of the page.
template <int warp_items, int words, int u, int v> struct SquareLayout {
  static constexpr int items = warp_items, sums = 256 / items;
  using Owner = Layout8::Owner;
  static constexpr Owner left(int row, int word) { return {word / words * 16 + row, word % words}; }
  static constexpr Owner right(int word, int column) { return left(column, word); }
  static constexpr int row(int item, int lane) { return u * lane + v * (item / 16); }
  static constexpr int column(int item, int) { return item % 16; }
};
using Mfma = SquareLayout<64, 2, 1, 4>;
using Wmma11 = SquareLayout<32, 8, 2, 1>;
using Wmma12 = SquareLayout<32, 4, 1, 8>;

template <class Stored, class Layout> float sum_of(const Operand& x, const Operand& y, float sum, int row, int column) {
  constexpr int each = 4 / sizeof(Stored);
  for (int word = 0; word < 8; ++word) {
    const auto left = Layout::left(row, word), right = Layout::right(word, column);
    const auto a = x.at<uint32_t>(left.item, left.lane), b = y.at<uint32_t>(right.item, right.lane);
    for (int k = 0; k < each; ++k)
      sum = std::fma(element_of<Stored, Layout>(a, k), element_of<Stored, Layout>(b, k), sum);
  }
  return sum;
}

template <class Stored, class Layout> void multiply(Frame& frame, const Step& step) {
  const Lanes lanes = frame.active();
  const size_t apart = frame.value_bytes(sizeof(uint32_t));
  for (int first = 0; first < frame.items; first += Layout::items) {
    int reached = 0;
    for (int i = first; i < first + Layout::items; ++i) reached += i >= lanes.first && i < lanes.last && lanes.has(i);
    if (reached == 0) continue;
    if (reached != Layout::items) fault(frame, step, first, "some items of a warp do not multiply");
    const auto operand = [&](int n) -> Operand { return {frame.at<char>(step.operands[n]), apart, first}; };
    const Operand x = operand(0), y = operand(1), z = operand(2);
    for (int item = 0; item < Layout::items; ++item) {
      for (int lane = 0; lane < Layout::sums; ++lane) {
        const int row = Layout::row(item, lane), column = Layout::column(item, lane);
        float* out = frame.at<float>(step.out + static_cast<size_t>(lane) * apart) + first + item;
        *out = sum_of<Stored, Layout>(x, y, z.at<float>(item, lane), row, column);
      }
    }
  }
}

template <class Layout> Run multiply_by(int rosin_type) {
  if (rosin_type == ROSIN_FLOAT16) return &multiply<Half, Layout>;
  if (rosin_type == ROSIN_BFLOAT16) return &multiply<Brain, Layout>;
  if (rosin_type == ROSIN_FLOAT32) return &multiply<float, Layout>;
  return nullptr;
}

}  // namespace

Run pack(int rosin_type) {
  if (rosin_type == ROSIN_FLOAT16) return &pack_pairs<Element<Half, float>>;
  if (rosin_type == ROSIN_BFLOAT16) return &pack_pairs<Element<Brain, float>>;
  return nullptr;
}

Run multiply_matrices(int rosin_type, const int (&lanes)[3]) {
  const auto is = [&](int x, int y, int z) { return lanes[0] == x && lanes[1] == y && lanes[2] == z; };
  if (is(4, 2, 4)) return multiply_by<Layout8>(rosin_type);
  if (is(2, 2, 4)) return multiply_by<Mfma>(rosin_type);
  if (is(8, 8, 8)) return multiply_by<Wmma11>(rosin_type);
  if (is(4, 4, 8)) return multiply_by<Wmma12>(rosin_type);
  return nullptr;
}

}  // namespace rosin::reference
