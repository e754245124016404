// The plain definition of matmul, convolution and pooling: what every other engine must agree with, and what answers
// for types and shapes that nobody else takes. Loops only; read plain_matmul.cpp, plain_conv.cpp, pooling.cpp.
#pragma once

#include <cstdint>
#include <memory>

#include <rosin/half.hpp>

#include "engines/vendor.hpp"

namespace rosin::engines {

/// The type sums are kept in: float for the halves, unsigned for integers (they wrap), else the type itself.
template <class T> struct Sum {
  using type = T;
};
template <> struct Sum<BFloat> {
  using type = float;
};
template <> struct Sum<Half> {
  using type = float;
};
template <> struct Sum<int8_t> {
  using type = uint32_t;
};
template <> struct Sum<uint8_t> {
  using type = uint32_t;
};
template <> struct Sum<int16_t> {
  using type = uint32_t;
};
template <> struct Sum<uint16_t> {
  using type = uint32_t;
};
template <> struct Sum<int32_t> {
  using type = uint32_t;
};
template <> struct Sum<int64_t> {
  using type = uint64_t;
};

/// Items [first_item, last_item) and columns [first_column, last_column) of the product; `bias` may be null.
template <class T>
void plain_matmul(const MatmulSpec& spec, int64_t first_item, int64_t last_item, int64_t first_column,
                  int64_t last_column, const T* a, const T* b, const T* bias, T* c);

/// Images [first, last) of the batch; x and y are (channels, w, h, d, batch), w is logical (see ConvSpec).
template <class T>
void plain_conv_forward(const ConvSpec& spec, int64_t first, int64_t last, const T* x, const T* w, const T* bias, T* y);
template <class T>
void plain_conv_backward_data(const ConvSpec& spec, int64_t first, int64_t last, const T* dy, const T* w, T* dx);
/// Output channels [first, last) of the weights' gradient.
template <class T>
void plain_conv_backward_weights(const ConvSpec& spec, int64_t first, int64_t last, const T* x, const T* dy, T* dw);

std::unique_ptr<VendorCall> prepare_plain_matmul(const MatmulSpec& spec);
std::unique_ptr<VendorCall> prepare_plain_conv(const ConvSpec& spec);

}  // namespace rosin::engines
