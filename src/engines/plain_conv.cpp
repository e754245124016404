// The plain definition of convolution and its two gradients: images (channels, w, h, d, batch), one sum per element.
// Read after conv_shape.hpp.
#include <algorithm>
#include <string>
#include <type_traits>
#include <vector>

#include <rosin/error.hpp>

#include "engines/conv_shape.hpp"
#include "engines/cuts.hpp"
#include "engines/plain.hpp"

namespace rosin::engines {

namespace {

template <class T> class PlainConv final : public VendorCall {
 public:
  explicit PlainConv(const ConvSpec& spec) : spec_(spec) {
    const ConvShape s(spec);
    length_ = spec.kind == ConvKind::backward_weights ? spec.out_channels : spec.batch;
    const int64_t all = s.batch * s.out.count() * s.kernel.count() * s.in_channels * s.out_channels * s.groups;
    step_ = images_per_chunk(length_, all / std::max<int64_t>(1, length_), 1);
    chunks_ = (length_ + step_ - 1) / step_;
  }
  const char* engine() const noexcept override { return "plain"; }
  std::optional<MatmulPart> part_of(int64_t chunk) const override {
    if (spec_.kind != ConvKind::forward) return std::nullopt;
    return images_part(spec_, chunk * step_, std::min(length_, (chunk + 1) * step_));
  }
  void run_chunk(int64_t chunk, const VendorBuffers& buffers, void*) const override {
    const int64_t first = chunk * step_, last = std::min(length_, first + step_);
    const T* x = static_cast<const T*>(buffers.first);
    const T* w = static_cast<const T*>(buffers.second);
    T* result = static_cast<T*>(buffers.result);
    if (spec_.kind == ConvKind::backward_weights) {
      plain_conv_backward_weights(spec_, first, last, x, w, result);
    } else if (spec_.kind == ConvKind::backward_data) {
      plain_conv_backward_data(spec_, first, last, x, w, result);
    } else {
      plain_conv_forward(spec_, first, last, x, w, static_cast<const T*>(buffers.third), result);
    }
  }

 private:
  ConvSpec spec_;
  int64_t length_ = 0, step_ = 1;
};

}  // namespace

template <class T>
void plain_conv_forward(const ConvSpec& spec, int64_t first, int64_t last, const T* x, const T* w, const T* bias,
                        T* y) {
  using S = typename Sum<T>::type;
  const ConvShape s(spec);
  const int64_t taps = s.kernel.count();
  for (int64_t n = first; n < last; ++n) {
    each_output(s, [&](Extent at, int64_t pixel) {
      for (int64_t out = 0; out < spec.out_channels; ++out) {
        const int64_t g = out / s.out_channels;
        S sum = S(0);
        each_tap(s, at, spec.flipped, [&](int64_t tap, int64_t place) {
          const T* from = x + (n * s.in.count() + place) * spec.in_channels + g * s.in_channels;
          for (int64_t in = 0; in < s.in_channels; ++in) {
            sum += static_cast<S>(from[in]) * static_cast<S>(w[(out * s.in_channels + in) * taps + tap]);
          }
        });
        if (spec.epilogue.bias) sum += static_cast<S>(bias[out]);
        if constexpr (!std::is_integral_v<T>) {
          if (spec.epilogue.activation == Activation::relu && sum < S(0)) sum = S(0);
        }
        y[(n * s.out.count() + pixel) * spec.out_channels + out] = static_cast<T>(sum);
      }
    });
  }
}

template <class T>
void plain_conv_backward_data(const ConvSpec& spec, int64_t first, int64_t last, const T* dy, const T* w, T* dx) {
  using S = typename Sum<T>::type;
  const ConvShape s(spec);
  const int64_t taps = s.kernel.count(), image = s.in.count() * spec.in_channels;
  std::vector<S> sums(static_cast<size_t>(image));
  for (int64_t n = first; n < last; ++n) {
    std::fill(sums.begin(), sums.end(), S(0));
    each_output(s, [&](Extent at, int64_t pixel) {
      const T* from = dy + (n * s.out.count() + pixel) * spec.out_channels;
      each_tap(s, at, spec.flipped, [&](int64_t tap, int64_t place) {
        for (int64_t out = 0; out < spec.out_channels; ++out) {
          S* to = sums.data() + place * spec.in_channels + out / s.out_channels * s.in_channels;
          for (int64_t in = 0; in < s.in_channels; ++in) {
            to[in] += static_cast<S>(from[out]) * static_cast<S>(w[(out * s.in_channels + in) * taps + tap]);
          }
        }
      });
    });
    for (int64_t i = 0; i < image; ++i) dx[n * image + i] = static_cast<T>(sums[static_cast<size_t>(i)]);
  }
}

template <class T>
void plain_conv_backward_weights(const ConvSpec& spec, int64_t first, int64_t last, const T* x, const T* dy, T* dw) {
  using S = typename Sum<T>::type;
  const ConvShape s(spec);
  const int64_t taps = s.kernel.count(), filter = s.in_channels * taps;
  std::vector<S> sums(static_cast<size_t>(filter));
  for (int64_t out = first; out < last; ++out) {
    std::fill(sums.begin(), sums.end(), S(0));
    for (int64_t n = 0; n < s.batch; ++n) {
      each_output(s, [&](Extent at, int64_t pixel) {
        const S factor = static_cast<S>(dy[(n * s.out.count() + pixel) * spec.out_channels + out]);
        each_tap(s, at, spec.flipped, [&](int64_t tap, int64_t place) {
          const T* from = x + (n * s.in.count() + place) * spec.in_channels + out / s.out_channels * s.in_channels;
          for (int64_t in = 0; in < s.in_channels; ++in) {
            sums[static_cast<size_t>(in * taps + tap)] += factor * static_cast<S>(from[in]);
          }
        });
      });
    }
    for (int64_t i = 0; i < filter; ++i) dw[out * filter + i] = static_cast<T>(sums[static_cast<size_t>(i)]);
  }
}

template void plain_conv_forward<double>(const ConvSpec&, int64_t, int64_t, const double*, const double*, const double*,
                                         double*);
template void plain_conv_backward_data<double>(const ConvSpec&, int64_t, int64_t, const double*, const double*,
                                               double*);
template void plain_conv_backward_weights<double>(const ConvSpec&, int64_t, int64_t, const double*, const double*,
                                                  double*);

std::unique_ptr<VendorCall> prepare_plain_conv(const ConvSpec& spec) {
  if (spec.type == DType::Float64) return std::make_unique<PlainConv<double>>(spec);
  if (spec.type == DType::Float32) return std::make_unique<PlainConv<float>>(spec);
  if (spec.type == DType::BFloat16) return std::make_unique<PlainConv<BFloat>>(spec);
  if (spec.type == DType::Float16) return std::make_unique<PlainConv<Half>>(spec);
  if (spec.type == DType::Int64) return std::make_unique<PlainConv<int64_t>>(spec);
  if (spec.type == DType::UInt64) return std::make_unique<PlainConv<uint64_t>>(spec);
  throw Error(ErrorKind::dtype, std::string("conv: images are floats, Int64 or UInt64; got ") + to_string(spec.type) +
                                    "; convert them, for example with f32(x)");
}

}  // namespace rosin::engines
