// Products of the stand-in of cuBLASLt and of hipBLASLt, one element after the other. See cublaslt.hpp.
#include <cmath>

#include "cublaslt.hpp"
#include "elements.hpp"

namespace fake_blas {
namespace {

using namespace fake;

Element element_of(blas::Type type) {
  switch (type) {
    case blas::Type::float64: return Element::wide;
    case blas::Type::float16: return Element::half;
    case blas::Type::bfloat16: return Element::bfloat;
    default: return Element::single;
  }
}

int64_t place(const Layout& layout, int64_t row, int64_t column, int64_t batch) {
  return row + column * layout.leading + batch * layout.stride;
}

double read(const Layout& layout, uint64_t start, int64_t row, int64_t column, int64_t batch) {
  return read_element(element_of(layout.type), start, place(layout, row, column, batch));
}

void write(const Layout& layout, uint64_t start, int64_t row, int64_t column, int64_t batch, double value) {
  write_element(element_of(layout.type), start, place(layout, row, column, batch), value);
}

/// An operand as the units that multiply take it.
double taken(blas::Compute compute, double value) {
  switch (compute) {
    case blas::Compute::fast_tf32: return as_tf32(value);
    case blas::Compute::fast_float16: return as_half(value);
    case blas::Compute::fast_bfloat16: return as_bfloat(value);
    default: return value;
  }
}

/// Of one element, in the type that sums are kept in.
template <class Sum> Sum dot(const Product& p, int64_t row, int64_t column, int64_t batch) {
  const Operation& operation = p.operation;
  const auto inner = static_cast<int64_t>(operation.transpose_a ? p.a.rows : p.a.columns);
  Sum sum = 0;
  for (int64_t l = 0; l < inner; ++l) {
    const double x = operation.transpose_a ? read(p.a, p.a_at, l, row, batch) : read(p.a, p.a_at, row, l, batch);
    const double y = operation.transpose_b ? read(p.b, p.b_at, column, l, batch) : read(p.b, p.b_at, l, column, batch);
    sum += static_cast<Sum>(taken(operation.compute, x)) * static_cast<Sum>(taken(operation.compute, y));
  }
  return sum;
}

double gelu(double x) { return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }

double gelu_slope(double x) {
  const double root = std::sqrt(2 / M_PI), t = std::tanh(root * (x + 0.044715 * x * x * x));
  return (1 + t) / 2 + x / 2 * (1 - t * t) * root * (1 + 3 * 0.044715 * x * x);
}

/// The bits of relu, and gelu's values, of one element.
class Auxiliary {
 public:
  Auxiliary(const Product& p, int64_t row, int64_t column, int64_t batch)
      : operation_(p.operation), layout_(p.d),
        at_(row + column * operation_.auxiliary_leading + batch * operation_.auxiliary_stride) {}

  bool bit() const { return byte() >> (at_ % 8) & 1; }
  void set_bit(bool on) const {
    const auto mask = static_cast<uint8_t>(1u << (at_ % 8));
    byte() = static_cast<uint8_t>(on ? byte() | mask : byte() & ~mask);
  }
  double value() const { return read(layout_, operation_.auxiliary, at_, 0, 0); }
  void set_value(double value) const { write(layout_, operation_.auxiliary, at_, 0, 0, value); }

 private:
  uint8_t& byte() const { return reinterpret_cast<uint8_t*>(operation_.auxiliary)[at_ / 8]; }

  const Operation& operation_;
  const Layout& layout_;
  int64_t at_;
};

/// What the activation makes of an element.
double activated(const Product& p, double value, const Auxiliary& auxiliary) {
  const uint32_t epilogue = p.operation.epilogue;
  const bool stores = (epilogue & blas::auxiliary) != 0;
  if (epilogue & blas::relu) {
    if (stores) auxiliary.set_bit(value > 0);
    return value < 0 || (value != value && !p.relu_keeps_nan) ? 0 : value;
  }
  if (epilogue & blas::gelu) {
    if (stores) auxiliary.set_value(value);
    return gelu(value);
  }
  if (epilogue & blas::relu_gradient) return auxiliary.bit() ? value : 0;
  if (epilogue & blas::gelu_gradient) return value * gelu_slope(auxiliary.value());
  return value;
}

/// Sums along rows: of the result, or of A.
template <class Sum> void store_sums(const Product& p, const std::vector<Sum>& of_result) {
  Layout vector = p.d;
  for (int64_t row = 0; row < static_cast<int64_t>(p.d.rows); ++row) {
    Sum sum = of_result[static_cast<size_t>(row)];
    if (p.operation.epilogue & blas::sums_of_left) {
      sum = 0;
      const bool turned = p.operation.transpose_a;
      const auto inner = static_cast<int64_t>(turned ? p.a.rows : p.a.columns);
      for (int64_t l = 0; l < inner; ++l) {
        sum += static_cast<Sum>(turned ? read(p.a, p.a_at, l, row, 0) : read(p.a, p.a_at, row, l, 0));
      }
    }
    write(vector, p.operation.bias, row, 0, 0, sum);
  }
}

template <class Sum> void compute_in(const Product& p) {
  const uint32_t epilogue = p.operation.epilogue;
  Layout bias = p.d;
  bias.stride = 0;
  std::vector<Sum> sums(p.d.rows);
  for (int64_t batch = 0; batch < p.d.batch; ++batch) {
    for (int64_t column = 0; column < static_cast<int64_t>(p.d.columns); ++column) {
      for (int64_t row = 0; row < static_cast<int64_t>(p.d.rows); ++row) {
        Sum value = static_cast<Sum>(p.alpha) * dot<Sum>(p, row, column, batch);
        if (p.beta != 0) value += static_cast<Sum>(p.beta) * static_cast<Sum>(read(p.c, p.c_at, row, column, batch));
        if (epilogue & blas::bias) value += static_cast<Sum>(read(bias, p.operation.bias, row, 0, 0));
        value = static_cast<Sum>(activated(p, value, Auxiliary(p, row, column, batch)));
        sums[static_cast<size_t>(row)] += value;
        write(p.d, p.d_at, row, column, batch, value);
      }
    }
  }
  if (epilogue & (blas::sums_of_result | blas::sums_of_left)) store_sums(p, sums);
}

}  // namespace

uint64_t Layout::element_bytes() const { return bytes_of(element_of(type)); }

uint64_t Layout::reach() const {
  const int64_t last =
      static_cast<int64_t>(rows) - 1 + (static_cast<int64_t>(columns) - 1) * leading + (batch - 1) * stride;
  return (static_cast<uint64_t>(last) + 1) * element_bytes();
}

void compute(const Product& product) {
  if (product.operation.scale == blas::Type::float64) compute_in<double>(product);
  else compute_in<float>(product);
}

}  // namespace fake_blas
