// Single kernels and their like. Read first: workloads.hpp; the peers' side: peer_torch.py, peer_jax.py.
#include <rosin/rosin.hpp>

#include <cmath>
#include <functional>

#include "workloads.hpp"

namespace gpu_check {
namespace {

using namespace rosin;

using Arrays = std::vector<Array>;

/// A function of arrays on the device, evaluated in each step.
class Function : public Session {
 public:
  explicit Function(std::function<Arrays()> compute) : compute_(std::move(compute)) {}
  void step() override {
    last_ = compute_();
    eval();
  }
  double value() override { return mean(abs(cast(last_[0], Float32))).item(); }

 private:
  std::function<Arrays()> compute_;
  Arrays last_;
};

template <class F> std::unique_ptr<Session> function(F compute) { return std::make_unique<Function>(compute); }

Array half(Numbers& numbers, const Shape& shape, double scale, const Device& device) {
  return cast(numbers.uniform(shape, scale), BFloat16) | device;
}

/// x * rsqrt(mean(x^2) + eps) * scale, the mean in Float32.
Array rms_normalised(const Array& x, const Array& scale) {
  const Array wide = cast(x, Float32);
  return cast(wide * rsqrt(mean(square(wide), 0) + 1e-5), x.dtype()) * scale;
}

/// Gradients of sum(f(x, scale, bias) * dy) alone: the sum itself is never computed.
template <class F> std::unique_ptr<Session> backward(const Sizes& sizes, const Device& device, F f) {
  Numbers numbers;
  const int64_t features = sizes["features"], rows = sizes["rows"];
  const Array x = half(numbers, {features, rows}, 1, device), dy = half(numbers, {features, rows}, 1, device);
  const Array scale = half(numbers, {features}, 1, device), bias = half(numbers, {features}, 1, device);
  return function([=]() -> Arrays {
    const auto grads =
        gradient([&](const Array& a, const Array& b, const Array& c) { return sum(cast(f(a, b, c) * dy, Float32)); }, x,
                 scale, bias);
    const auto& [dx, dscale, dbias] = grads;
    Arrays all = {dx, dscale};
    if (!dbias.is_nothing()) all.push_back(dbias);
    return all;
  });
}

std::unique_ptr<Session> layernorm_backward(const Sizes& sizes, const Device& device) {
  return backward(sizes, device,
                  [](const Array& x, const Array& scale, const Array& bias) { return normalise(x, 0) * scale + bias; });
}

std::unique_ptr<Session> rmsnorm_backward(const Sizes& sizes, const Device& device) {
  return backward(sizes, device,
                  [](const Array& x, const Array& scale, const Array&) { return rms_normalised(x, scale); });
}

std::unique_ptr<Session> rmsnorm(const Sizes& sizes, const Device& device) {
  Numbers numbers;
  const Array x = half(numbers, {sizes["features"], sizes["rows"]}, 1, device);
  const Array scale = half(numbers, {sizes["features"]}, 1, device);
  return function([=]() -> Arrays { return {rms_normalised(x, scale)}; });
}

/// Causal attention, forward and backward, of heads beside each other: (size of a head * heads, time, batch).
std::unique_ptr<Session> attention(const Sizes& sizes, const Device& device) {
  Numbers numbers;
  const int64_t heads = sizes["heads"];
  const Shape shape = {sizes["head"] * heads, sizes["time"], sizes["batch"]};
  const Array q = half(numbers, shape, 1, device), k = half(numbers, shape, 1, device);
  const Array v = half(numbers, shape, 1, device), dy = half(numbers, shape, 1, device);
  return function([=]() -> Arrays {
    const auto loss = [&](const Array& a, const Array& b, const Array& c) {
      return sum(cast(dot_product_attention(a, b, c, {.heads = heads, .causal = true}).out * dy, Float32));
    };
    const auto [dq, dk, dv] = gradient(loss, q, k, v);
    return {dq, dk, dv};
  });
}

struct Parameters {
  std::vector<Array> all;
};

/// Adam alone, on parameters of the same gradient in each step.
class AdamSteps : public Session {
 public:
  AdamSteps(const Sizes& sizes, const Device& device) {
    Numbers numbers;
    const int64_t each = sizes["elements"] / sizes["arrays"];
    for (int64_t i = 0; i < sizes["arrays"]; ++i) {
      model_.all.push_back(numbers.uniform({each}, 1) | device);
      gradients_.push_back(numbers.uniform({each}, 1) | device);
    }
    state_ = setup(Adam{.eta = 1e-3}, model_);
    grad_ = gradient([&](const Parameters& m) { return weighted(m); }, model_);
  }
  void step() override { update(state_, model_, grad_); }
  double value() override { return mean(abs(model_.all[0])).item(); }

 private:
  Array weighted(const Parameters& m) const {
    Array total = 0.0f;
    for (size_t i = 0; i < m.all.size(); ++i) total = total + sum(m.all[i] * gradients_[i]);
    return total;
  }

  Parameters model_;
  std::vector<Array> gradients_;
  State state_;
  decltype(gradient(std::declval<Array (*)(const Parameters&)>(), std::declval<Parameters&>())) grad_;
};

/// gelu(x + b) in ten ops.
std::unique_ptr<Session> chain(const Sizes& sizes, const Device& device) {
  Numbers numbers;
  const Array x = numbers.uniform({sizes["elements"]}, 1) | device,
              b = numbers.uniform({sizes["elements"]}, 1) | device;
  return function([=]() -> Arrays {
    const Array z = x + b;
    return {(tanh((z * z * z * 0.044715f + z) * 0.7978845608f) + 1.0f) * z * 0.5f};
  });
}

/// Ops on a few numbers, one after the other.
std::unique_ptr<Session> tiny(const Sizes& sizes, const Device& device) {
  Numbers numbers;
  const Array x = numbers.uniform({8}, 1) | device, scale = numbers.uniform({8}, 1) | device;
  const Array shift = numbers.uniform({8}, 1) | device;
  const int64_t ops = sizes["ops"];
  return function([=]() -> Arrays {
    Array y = x;
    for (int64_t i = 0; i < ops; ++i) y = i % 2 == 0 ? y * scale : y + shift;
    return {y};
  });
}

std::unique_ptr<Session> product(const Sizes& sizes, const Device& device) {
  Numbers numbers;
  const int64_t n = sizes["size"];
  const Array a = half(numbers, {n, n}, 1, device), b = half(numbers, {n, n}, 1, device);
  return function([=]() -> Arrays { return {matmul(a, b)}; });
}

}  // namespace

std::unique_ptr<Session> make_kernel(const std::string& kind, const Sizes& sizes, const Device& device) {
  if (kind == "layernorm_backward") return layernorm_backward(sizes, device);
  if (kind == "rmsnorm_backward") return rmsnorm_backward(sizes, device);
  if (kind == "rmsnorm") return rmsnorm(sizes, device);
  if (kind == "attention") return attention(sizes, device);
  if (kind == "adam") return std::make_unique<AdamSteps>(sizes, device);
  if (kind == "chain") return chain(sizes, device);
  if (kind == "tiny") return tiny(sizes, device);
  if (kind == "product") return product(sizes, device);
  return nullptr;
}

}  // namespace gpu_check
