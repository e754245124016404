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

/// Element `at` of a word.
template <class Stored> float element_of(uint32_t word, int at) {
  if constexpr (sizeof(Stored) == 4) return std::bit_cast<float>(word & 0xffffe000u);
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

template <class Stored> float sum_of(const Operand& x, const Operand& y, float sum, int row, int column) {
  constexpr int each = 4 / sizeof(Stored);
  for (int k = 0; k < 8 * each; ++k) {
    const int half = k / (4 * each), owner = k / each % 4;
    const float a = element_of<Stored>(x.at<uint32_t>(row % 8 * 4 + owner, row / 8 + 2 * half), k % each);
    const float b = element_of<Stored>(y.at<uint32_t>(column * 4 + owner, half), k % each);
    sum = std::fma(a, b, sum);
  }
  return sum;
}

template <class Stored> void multiply(Frame& frame, const Step& step) {
  const Lanes lanes = frame.active();
  const size_t apart = frame.value_bytes(sizeof(uint32_t));
  for (int first = 0; first < frame.items; first += warp) {
    int reached = 0;
    for (int i = first; i < first + warp; ++i) reached += i >= lanes.first && i < lanes.last && lanes.has(i);
    if (reached == 0) continue;
    if (reached != warp) fault(frame, step, first, "some items of a warp do not multiply");
    const auto operand = [&](int n) -> Operand { return {frame.at<char>(step.operands[n]), apart, first}; };
    const Operand x = operand(0), y = operand(1), z = operand(2);
    for (int item = 0; item < warp; ++item) {
      for (int lane = 0; lane < 4; ++lane) {
        const int row = item / 4 + lane / 2 * 8, column = item % 4 * 2 + lane % 2;
        float* out = frame.at<float>(step.out + static_cast<size_t>(lane) * apart) + first + item;
        *out = sum_of<Stored>(x, y, z.at<float>(item, lane), row, column);
      }
    }
  }
}

}  // namespace

Run pack(int rosin_type) {
  if (rosin_type == ROSIN_FLOAT16) return &pack_pairs<Element<Half, float>>;
  if (rosin_type == ROSIN_BFLOAT16) return &pack_pairs<Element<Brain, float>>;
  return nullptr;
}

Run multiply_matrices(int rosin_type) {
  if (rosin_type == ROSIN_FLOAT16) return &multiply<Half>;
  if (rosin_type == ROSIN_BFLOAT16) return &multiply<Brain>;
  if (rosin_type == ROSIN_FLOAT32) return &multiply<float>;
  return nullptr;
}

}  // namespace rosin::reference
