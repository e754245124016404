// What sequences are made of: loops over gates, compiled for three instruction sets, and products of packed weights.
// See sequence.hpp.
#include "cpu/sequence.hpp"
#include "plan/describe.hpp"
#include "scalar/body.hpp"

namespace rosin::cpu {
namespace {

/// One loop. F has the numbers of its arrays, and what becomes of one element of each.
template <class F> struct Loops {
  [[gnu::always_inline]] static inline void run(int64_t count, float* const* out, const float* const* in) {
    float* to[F::outs];
    const float* from[F::ins];
    std::copy_n(out, F::outs, to);
    std::copy_n(in, F::ins, from);
    // Arrays are the same, element by element, or apart.
#ifndef __clang__
#pragma GCC ivdep
#endif
    for (int64_t k = 0; k < count; ++k) {
      float made[F::outs], given[F::ins];
      for (int i = 0; i < F::outs; ++i) made[i] = to[i][k];
      for (int i = 0; i < F::ins; ++i) given[i] = from[i][k];
      F::element(made, given);
      for (int i = 0; i < F::outs; ++i) to[i][k] = made[i];
    }
  }

  [[gnu::flatten]] static void baseline(int64_t count, float* const* out, const float* const* in) {
    run(count, out, in);
  }
#ifdef __x86_64__
  [[gnu::flatten, gnu::target("arch=x86-64-v3")]] static void wide(int64_t count, float* const* out,
                                                                   const float* const* in) {
    run(count, out, in);
  }
#endif
  static GateLoop choose() {
#ifdef __x86_64__
    if (best_instruction_set() != InstructionSet::baseline) return wide;
#endif
    return baseline;
  }
};

template <int o, int i> struct Arrays {
  static constexpr int outs = o, ins = i;
};

struct Add : Arrays<1, 1> {
  static void element(float* out, const float* in) { out[0] += in[0]; }
};
struct Multiply : Arrays<1, 1> {
  static void element(float* out, const float* in) { out[0] *= in[0]; }
};
struct MultiplyAdd : Arrays<1, 2> {
  static void element(float* out, const float* in) { out[0] += in[0] * in[1]; }
};
struct LstmCell : Arrays<1, 4> {
  static void element(float* out, const float* in) { out[0] = in[1] * in[3] + in[0] * in[2]; }
};
struct Mix : Arrays<1, 3> {
  static void element(float* out, const float* in) { out[0] = in[1] + in[0] * (in[2] - in[1]); }
};
struct TanhGradient : Arrays<1, 2> {
  static void element(float* out, const float* in) { out[0] = in[0] * (1 - in[1] * in[1]); }
};
struct ReluGradient : Arrays<1, 2> {
  static void element(float* out, const float* in) { out[0] = in[1] > 0 ? in[0] : 0; }
};

/// d sigmoid, where the value is s.
inline float by_sigmoid(float slope, float s) { return slope * (s * (1 - s)); }
inline float by_tanh(float slope, float t) { return slope * (1 - t * t); }

struct LstmGradient : Arrays<5, 7> {
  static void element(float* out, const float* in) {
    const float i = in[0], f = in[1], g = in[2], o = in[3], c = in[4], t = in[5], dh = in[6];
    const float dc = out[4] + by_tanh(dh * o, t);
    out[0] = by_sigmoid(dc * g, i);
    out[1] = by_sigmoid(dc * c, f);
    out[2] = by_tanh(dc * i, g);
    out[3] = by_sigmoid(dh * t, o);
    out[4] = dc * f;
  }
};
struct GruGradient : Arrays<5, 5> {
  static void element(float* out, const float* in) {
    const float r = in[0], z = in[1], product = in[2], n = in[3], h = in[4], dh = out[4];
    const float dn = by_tanh(dh * (1 - z), n);
    out[0] = by_sigmoid(dn * product, r);
    out[1] = by_sigmoid(dh * (h - n), z);
    out[2] = dn;
    out[3] = dn * r;
    out[4] = dh * z;
  }
};
struct Gruv3Mix : Arrays<3, 3> {
  static void element(float* out, const float* in) {
    const float z = in[0], n = in[1], h = in[2], dh = out[2];
    out[0] = by_sigmoid(dh * (h - n), z);
    out[1] = by_tanh(dh * (1 - z), n);
    out[2] = dh * z;
  }
};
struct Gruv3Gradient : Arrays<2, 3> {
  static void element(float* out, const float* in) {
    out[0] = by_sigmoid(in[2] * in[1], in[0]);
    out[1] += in[2] * in[0];
  }
};

StripLoop loop_of(plan::Activation activation) {
  return plan::op_of(activation).body.loops[static_cast<int>(ScalarType::float32)];
}

constexpr int64_t no_offset = 0;
constexpr int64_t inner_block = 256;  // of a product: a panel and a tile of b stay in the first cache

}  // namespace

const GateLoops& gate_loops() {
  static const GateLoops loops{.add = Loops<Add>::choose(),
                               .multiply = Loops<Multiply>::choose(),
                               .multiply_add = Loops<MultiplyAdd>::choose(),
                               .lstm_cell = Loops<LstmCell>::choose(),
                               .mix = Loops<Mix>::choose(),
                               .tanh_gradient = Loops<TanhGradient>::choose(),
                               .relu_gradient = Loops<ReluGradient>::choose(),
                               .lstm_gradient = Loops<LstmGradient>::choose(),
                               .gru_gradient = Loops<GruGradient>::choose(),
                               .gruv3_mix = Loops<Gruv3Mix>::choose(),
                               .gruv3_gradient = Loops<Gruv3Gradient>::choose(),
                               .sigmoid = loop_of(plan::Activation::sigmoid),
                               .tanh = loop_of(plan::Activation::tanh),
                               .relu = loop_of(plan::Activation::relu)};
  return loops;
}

void Panels::pack(const float* from, int64_t row_step, int64_t inner_step, float* to) const {
  for (int64_t row = 0; row < rows_; row += height_, to += height_ * inner_) {
    const int64_t rows = std::min(height_, rows_ - row);
    for (int64_t j = 0; j < inner_; ++j) {
      for (int64_t i = 0; i < rows; ++i) to[j * height_ + i] = from[(row + i) * row_step + j * inner_step];
    }
  }
}

void Panels::multiply(const float* packed, const float* b, int64_t b_column, int64_t columns, float* c,
                      int64_t c_column) const {
  engines::TileProduct<float> product;
  product.a_inner = height_;
  product.b_offsets = &no_offset;
  product.b_inner = 1;
  product.b_column = b_column;
  product.c_column = c_column;
  product.columns = columns;
  product.accumulate = true;
  for (int64_t row = 0; row < rows_; row += height_) {
    product.rows = std::min(height_, rows_ - row);
    product.c = c + row;
    for (int64_t j = 0; j < inner_; j += inner_block) {
      product.inner = std::min(inner_block, inner_ - j);
      product.a = packed + row * inner_ + j * height_;
      product.b = b + j;
      kernels_->of<float>().multiply(product);
    }
  }
}

}  // namespace rosin::cpu
