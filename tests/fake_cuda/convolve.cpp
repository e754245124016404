// See convolve.hpp.
#include "convolve.hpp"

#include <algorithm>
#include <cmath>

namespace fake_dnn {

fake::Element element_of(dnn::Type type) {
  switch (type) {
    case dnn::Type::float64: return fake::Element::wide;
    case dnn::Type::float16: return fake::Element::half;
    case dnn::Type::bfloat16: return fake::Element::bfloat;
    default: return fake::Element::single;
  }
}

namespace {

using Index = std::vector<int64_t>;

int64_t place(const Tensor& tensor, const Index& index) {
  int64_t at = 0;
  for (size_t d = 0; d < index.size(); ++d) at += tensor.sizes[d] == 1 ? 0 : index[d] * tensor.strides[d];
  return at;
}

/// f(index) for each element.
template <class F> void for_each(const Index& sizes, F&& f) {
  Index index(sizes.size());
  for (;;) {
    f(index);
    size_t d = sizes.size();
    while (d > 0 && ++index[d - 1] == sizes[d - 1]) index[--d] = 0;
    if (d == 0) return;
  }
}

double read(const Convolution& c, const Tensor& tensor, const Index& index) {
  const double value = fake::read_element(element_of(tensor.type), tensor.address, place(tensor, index));
  return c.tf32 && tensor.type == dnn::Type::float32 ? fake::as_tf32(value) : value;
}

/// The element of x that y's and w's meet in; false where that is padding.
bool meeting(const Convolution& c, const Index& y, const Index& w, Index& x) {
  const int64_t outs_of_group = c.y.sizes[1] / (c.x.sizes[1] / c.w.sizes[1]);
  x = y;
  x[1] = w[0] / outs_of_group * c.w.sizes[1] + w[1];
  for (size_t d = 2; d < x.size(); ++d) {
    const size_t s = d - 2;
    const int64_t step = c.flipped ? c.w.sizes[d] - 1 - w[d] : w[d];
    x[d] = y[d] * c.stride[s] + step * c.dilation[s] - c.pad_low[s];
    if (x[d] < 0 || x[d] >= c.x.sizes[d]) return false;
  }
  return true;
}

double finished(const Convolution& c, const Tensor& result, const Index& index, double sum) {
  if (c.beta != 0) sum += c.beta * read(c, result, index);
  if (c.has_bias) {
    Index channel(index.size());
    channel[1] = index[1];
    sum = static_cast<float>(sum) + fake::read_element(element_of(c.bias.type), c.bias.address, place(c.bias, channel));
  }
  if (c.relu && (sum < 0 || (sum != sum && !c.relu_keeps_nan))) sum = 0;
  return sum;
}

}  // namespace

uint64_t Tensor::reach() const {
  int64_t last = 0;
  for (size_t d = 0; d < sizes.size(); ++d) last += (sizes[d] - 1) * strides[d];
  return (static_cast<uint64_t>(last) + 1) * fake::bytes_of(element_of(type));
}

std::vector<Tensor*> Convolution::stored() {
  std::vector<Tensor*> all{&x, &w, &y};
  if (has_bias) all.insert(all.begin(), &bias);
  Tensor* const result = kind == dnn::Kind::backward_data ? &x : kind == dnn::Kind::backward_weights ? &w : &y;
  std::erase(all, result);
  all.push_back(result);
  return all;
}

void compute(const Convolution& given) {
  Convolution c = given;
  const Tensor& result = *c.stored().back();
  std::vector<double> sums(result.reach() / fake::bytes_of(element_of(result.type)));
  const Index taps(c.w.sizes.begin() + 1, c.w.sizes.end());
  Index w(c.w.sizes.size()), x;
  for_each(c.y.sizes, [&](const Index& y) {
    w[0] = y[1];
    for_each(taps, [&](const Index& tap) {
      std::copy(tap.begin(), tap.end(), w.begin() + 1);
      if (!meeting(c, y, w, x)) return;
      switch (c.kind) {
        case dnn::Kind::backward_data:
          sums[static_cast<size_t>(place(c.x, x))] += read(c, c.y, y) * read(c, c.w, w);
          break;
        case dnn::Kind::backward_weights:
          sums[static_cast<size_t>(place(c.w, w))] += read(c, c.x, x) * read(c, c.y, y);
          break;
        default: sums[static_cast<size_t>(place(c.y, y))] += read(c, c.x, x) * read(c, c.w, w);
      }
    });
  });
  for_each(result.sizes, [&](const Index& index) {
    const int64_t at = place(result, index);
    const double value = finished(c, result, index, c.alpha * sums[static_cast<size_t>(at)]);
    fake::write_element(element_of(result.type), result.address, at, value);
  });
}

}  // namespace fake_dnn
