// See graphs.hpp: one operation after the other, each element by itself.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "elements.hpp"
#include "graphs.hpp"
#include "machine.hpp"

namespace fake_metal {
namespace {

using Values = std::vector<double>;

fake::Element element_of(uint32_t type) {
  return type == float16 ? fake::Element::half : type == bfloat16 ? fake::Element::bfloat : fake::Element::single;
}

double rounded_to(uint32_t type, double value) {
  if (type == float16) return fake::as_half(value);
  return type == bfloat16 ? fake::as_bfloat(value) : static_cast<float>(value);
}

Sizes strides_of(const Sizes& sizes) {
  Sizes strides(sizes.size(), 1);
  for (size_t d = sizes.size(); d-- > 1;) strides[d - 1] = strides[d] * sizes[d];
  return strides;
}

/// f(index) for each element, the last dim fastest.
template <class F> void for_each(const Sizes& sizes, F&& f) {
  Sizes index(sizes.size());
  for (int64_t left = count_of(sizes); left > 0; --left) {
    f(index);
    for (size_t d = sizes.size(); d-- > 0 && ++index[d] == sizes[d];) index[d] = 0;
  }
}

int64_t at(const Sizes& sizes, const Sizes& index) {
  const Sizes strides = strides_of(sizes);
  return std::inner_product(index.begin(), index.end(), strides.begin(), int64_t{0});
}

/// Of an operand that is broadcast: its dims are the last of the index.
double broadcast(const Node& of, const Values& values, const Sizes& index) {
  Sizes own(index.end() - static_cast<ptrdiff_t>(of.sizes.size()), index.end());
  for (size_t d = 0; d < own.size(); ++d) own[d] = of.sizes[d] == 1 ? 0 : own[d];
  return values[static_cast<size_t>(at(of.sizes, own))];
}

class Computation {
 public:
  explicit Computation(const std::map<const Node*, uint64_t>& places)
      : places_(places), is_wrong_(fake::Machine::instance().options.wrong == "attention") {}

  const Values& of(const Node& node) {
    const auto found = done_.find(&node);
    if (found != done_.end()) return found->second;
    Values values;
    for (const auto& from : node.from) of(*from);
    compute(node, values);
    for (double& value : values) value = node.type == boolean ? value : rounded_to(node.type, value);
    return done_.emplace(&node, std::move(values)).first->second;
  }

 private:
  void compute(const Node& node, Values& values) {
    values.reserve(static_cast<size_t>(count_of(node.sizes)));
    switch (node.does) {
      case Does::input: return read(node, values);
      case Does::constant: return values.resize(static_cast<size_t>(count_of(node.sizes)), node.value);
      case Does::cast:
      case Does::reshape: values = of(*node.from[0]); return;
      case Does::multiply_matrices: return multiply(node, values);
      case Does::attention: return attend(node, values);
      case Does::convolution:
      case Does::convolution_data:
      case Does::convolution_weights: return convolve(node, values);
      default: for_each(node.sizes, [&](const Sizes& index) { values.push_back(element(node, index)); });
    }
  }

  void read(const Node& node, Values& values) const {
    const int64_t count = count_of(node.sizes);
    for (int64_t i = 0; i < count; ++i)
      values.push_back(fake::read_element(element_of(node.type), places_.at(&node), i));
  }

  double element(const Node& node, const Sizes& index) {
    const auto operand = [&](size_t i) { return broadcast(*node.from[i], of(*node.from[i]), index); };
    Sizes from = index;
    switch (node.does) {
      case Does::add: return static_cast<float>(operand(0)) + static_cast<float>(operand(1));
      case Does::less: return operand(0) < operand(1);
      case Does::select: return operand(0) != 0 ? operand(1) : operand(2);
      case Does::transpose:
        for (size_t d = 0; d < index.size(); ++d) from[static_cast<size_t>(node.dims[d])] = index[d];
        break;
      case Does::band_part: {
        const int64_t below = *(index.end() - 2) - index.back();
        const bool is_in = (node.dims[0] < 0 || below <= node.dims[0]) && (node.dims[1] < 0 || -below <= node.dims[1]);
        if (!is_in) return 0;
        break;
      }
      default:
        for (const int64_t d : node.dims) {
          const auto i = static_cast<size_t>(d);
          from[i] = node.sizes[i] - 1 - from[i];
        }
    }
    return of(*node.from[0])[static_cast<size_t>(at(node.from[0]->sizes, from))];
  }

  void multiply(const Node& node, Values& values) {
    const Node &x = *node.from[0], &y = *node.from[1];
    const Values &a = of(x), &b = of(y);
    const int64_t inner = x.sizes.back();
    for_each(node.sizes, [&](const Sizes& index) {
      Sizes left = index, right = index;
      float sum = 0;
      for (int64_t k = 0; k < inner; ++k) {
        left.back() = k;
        right[right.size() - 2] = k;
        sum += static_cast<float>(broadcast(x, a, left)) * static_cast<float>(broadcast(y, b, right));
      }
      values.push_back(sum);
    });
  }

  /// softmax(scale * queries * keys' + mask) * values, a query at a time.
  void attend(const Node& node, Values& values) {
    const Node &q = *node.from[0], &k = *node.from[1], &v = *node.from[2];
    const Node* mask = node.from.size() > 3 ? node.from[3].get() : nullptr;
    const int64_t keys = k.sizes[2], features = k.sizes[3];
    for_each({node.sizes[0], node.sizes[1], node.sizes[2]}, [&](const Sizes& query) {
      const auto row = [&](const Node& from, int64_t place) {
        return of(from).data() + at(from.sizes, {query[0], query[1], place, 0});
      };
      Values weights;
      for (int64_t s = 0; s < keys; ++s) {
        const double *left = row(q, query[2]), *right = row(k, s);
        double logit = node.value * std::inner_product(left, left + features, right, 0.0);
        if (mask) logit += broadcast(*mask, of(*mask), {query[0], query[1], query[2], s});
        weights.push_back(logit);
      }
      const double largest = *std::max_element(weights.begin(), weights.end());
      for (double& weight : weights) weight = std::exp(weight - largest);
      const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
      Values result(static_cast<size_t>(features), is_wrong_ ? 0.01 : 0);
      for (int64_t s = 0; s < keys; ++s) {
        const double weight = weights[static_cast<size_t>(s)] / sum;
        const double* value = row(v, s);
        for (double& one : result) one += weight * *value++;
      }
      values.insert(values.end(), result.begin(), result.end());
    });
  }

  /// x, w and y of the convolution y = x * w; which one is the result, the kind says.
  void convolve(const Node& node, Values& values) {
    const bool by_data = node.does == Does::convolution_data, by_weights = node.does == Does::convolution_weights;
    const Node& x = by_data ? node : by_weights ? *node.from[1] : *node.from[0];
    const Node &w = by_weights ? node : *node.from[1], &y = by_data || by_weights ? *node.from[0] : node;
    values.assign(static_cast<size_t>(count_of(node.sizes)), 0);
    const Sizes taps(w.sizes.begin() + 1, w.sizes.end());
    for_each(y.sizes, [&](const Sizes& out) {
      for_each(taps, [&](const Sizes& tap) {
        const Sizes weight{out[1], tap[0], tap[1], tap[2]};
        Sizes in{out[0], out[1] / (w.sizes[0] / node.window.groups) * w.sizes[1] + tap[0], 0, 0};
        for (size_t d = 2; d < 4; ++d) {
          const size_t along = 3 - d;  // x is the last dim
          in[d] =
              out[d] * node.window.stride[along] + tap[d - 1] * node.window.dilation[along] - node.window.low[along];
          if (in[d] < 0 || in[d] >= x.sizes[d]) return;
        }
        const auto i = static_cast<size_t>(at(x.sizes, in)), j = static_cast<size_t>(at(w.sizes, weight)),
                   k = static_cast<size_t>(at(y.sizes, out));
        if (by_data) values[i] += of(*node.from[0])[k] * of(*node.from[1])[j];
        else if (by_weights) values[j] += of(*node.from[0])[k] * of(*node.from[1])[i];
        else values[k] += of(*node.from[0])[i] * of(*node.from[1])[j];
      });
    });
  }

  const std::map<const Node*, uint64_t>& places_;
  const bool is_wrong_;  // attention
  std::map<const Node*, Values> done_;
};

}  // namespace

int64_t count_of(const Sizes& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, [](int64_t a, int64_t b) { return a * b; });
}

uint64_t bytes_of(uint32_t type) { return type == float32 ? 4 : type == boolean ? 1 : 2; }

Sizes common_sizes(const Sizes& a, const Sizes& b) {
  if (a.size() < b.size()) return common_sizes(b, a);
  Sizes all = a;
  const size_t before = a.size() - b.size();
  for (size_t d = 0; d < b.size(); ++d) {
    int64_t& size = all[before + d];
    if (size != b[d] && size != 1 && b[d] != 1) return {};
    size = std::max(size, b[d]);
  }
  return all;
}

void compute_graph(const Node& result, const std::map<const Node*, uint64_t>& places, uint64_t to) {
  Computation computation(places);
  const Values& values = computation.of(result);
  for (size_t i = 0; i < values.size(); ++i)
    fake::write_element(element_of(result.type), to, static_cast<int64_t>(i), values[i]);
}

}  // namespace fake_metal
