// One kernel of each class that training needs, for those who read its machine code: see kernel_classes.hpp.
#include <rosin/rosin.hpp>

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernel_classes.hpp"

namespace gpu_check {
namespace {

using namespace rosin;
using Arrays = std::vector<Array>;

/// Zeros that come from the host, so that no kernel makes them. It keeps them: no result takes over their memory.
struct Source {
  Device device;
  std::shared_ptr<Arrays> kept = std::make_shared<Arrays>();

  Array operator()(const Shape& shape, DType type) const {
    return keep(cast(Array(std::vector<float>(static_cast<size_t>(shape.count())), shape), type));
  }
  Array labels(int64_t count) const {
    return keep(Array(std::vector<int32_t>(static_cast<size_t>(count)), Shape{count}));
  }
  Array sequences(DType type = BFloat16) const { return (*this)({768, 1024, 4}, type); }
  Array keep(const Array& made) const {
    kept->push_back(made | device);
    return kept->back();
  }
};

struct Parameters {
  std::vector<Array> all;
};

/// Gradients of sum(f(x...) * dy) alone: the sum itself is never computed.
template <class F, class... X> Arrays slopes(const Array& dy, F f, const X&... x) {
  const auto grads = gradient([&](const X&... at) { return sum(cast(f(at...) * dy, Float32)); }, x...);
  if constexpr (sizeof...(X) == 1) return {grads};
  else return std::apply([](const auto&... each) { return Arrays{each...}; }, grads);
}

Array normalised(const Array& x, const Array& scale, const Array& bias) { return normalise(x, 0) * scale + bias; }

/// GPT-2's, of 12 heads over 1024 places.
Array attended(const Array& q, const Array& k, const Array& v) {
  return dot_product_attention(q, k, v, {.heads = 12, .causal = true}).out;
}

/// A step of an optimiser on parameters of several sizes.
template <class Rule> void sweep(const Source& make, const Rule& rule, DType type) {
  Parameters model, slope;
  for (const int64_t count : {1 << 16, 768, 1 << 14, 3072}) {
    model.all.push_back(make({count}, type));
    slope.all.push_back(make({count}, type));
  }
  auto state = setup(rule, model);
  const auto grad = gradient(
      [&](const Parameters& m) {
        Array total = 0.0f;
        for (size_t i = 0; i < m.all.size(); ++i) total = total + sum(cast(m.all[i] * slope.all[i], Float32));
        return total;
      },
      model);
  update(state, model, grad);
}

using Run = std::function<Arrays(const Source&)>;
struct Class {
  std::string name;
  Run run;
};

constexpr DType half = BFloat16;
constexpr int64_t features = 4096, rows = 512, many = 1 << 20;

std::vector<Class> elementwise_classes() {
  return {
      {"add_f32", [](const Source& make) -> Arrays { return {make({many}, Float32) + make({many}, Float32)}; }},
      {"add_bf16", [](const Source& make) -> Arrays { return {make({many}, half) + make({many}, half)}; }},
      {"bias_f32",
       [](const Source& make) -> Arrays {
         return {make({features, rows}, Float32) + make({features}, Float32)};
       }},
      {"bias_bf16",
       [](const Source& make) -> Arrays {
         return {make({features, rows}, half) + make({features}, half)};
       }},
      {"gelu_bf16", [](const Source& make) -> Arrays { return {gelu(make({many}, half))}; }},
      {"transpose_f32",
       [](const Source& make) -> Arrays {
         return {abs(permute(make({1024, 1024}, Float32), {1, 0}))};
       }},
      {"transpose_bf16",
       [](const Source& make) -> Arrays {
         return {abs(permute(make({1024, 1024}, half), {1, 0}))};
       }},
      {"adam_f32", [](const Source& make) -> Arrays { return sweep(make, Adam{}, Float32), Arrays{}; }},
      {"adamw_bf16", [](const Source& make) -> Arrays { return sweep(make, MixedPrecision{AdamW{}}, half), Arrays{}; }},
  };
}

std::vector<Class> reducing_classes() {
  return {
      {"layernorm_bf16",
       [](const Source& make) -> Arrays {
         return {normalised(make({features, rows}, half), make({features}, half), make({features}, half))};
       }},
      {"layernorm_gradient_bf16",
       [](const Source& make) {
         return slopes(make({features, 4 * rows}, half), normalised, make({features, 4 * rows}, half),
                       make({features}, half), make({features}, half));
       }},
      {"rmsnorm_gradient_bf16",
       [](const Source& make) {
         const auto f = [](const Array& x, const Array& scale) {
           const Array wide = cast(x, Float32);
           return cast(wide * rsqrt(mean(square(wide), 0) + 1e-5), half) * scale;
         };
         return slopes(make({features, 4 * rows}, half), f, make({features, 4 * rows}, half), make({features}, half));
       }},
      {"softmax_bf16",
       [](const Source& make) -> Arrays {
         return {softmax(make({1024, rows}, half))};
       }},
      {"softmax_gradient_bf16",
       [](const Source& make) {
         const auto f = [](const Array& x) { return softmax(x); };
         return slopes(make({1024, rows}, half), f, make({1024, rows}, half));
       }},
      {"labels_bf16",
       [](const Source& make) -> Arrays {
         const Array labels = make.labels(256);
         return {gradient([&](const Array& x) { return labelcrossentropy(cast(x, Float32), labels); },
                          make({50304, 256}, half))};
       }},
      {"columns_bf16",
       [](const Source& make) -> Arrays {
         return {sum(make({768, features}, half), 1)};
       }},
      {"sum_f32", [](const Source& make) -> Arrays { return {sum(make({4 * many}, Float32))}; }},
      {"channels_f32",
       [](const Source& make) -> Arrays {
         return {sum(make({28, 28, 64, 32}, Float32), {0, 1, 3})};
       }},
  };
}

std::vector<Class> other_classes() {
  return {
      {"maxpool_gradient_bf16",
       [](const Source& make) {
         const auto f = [](const Array& x) { return maxpool(x, {3, 3}, {2, 2}, {1, 1}); };
         return slopes(make({28, 28, 64, 16}, half), f, make({56, 56, 64, 16}, half));
       }},
      {"maxpool_apart_gradient_f32",
       [](const Source& make) {
         const auto f = [](const Array& x) { return maxpool(x, {2, 2}); };
         return slopes(make({12, 12, 6, 256}, Float32), f, make({24, 24, 6, 256}, Float32));
       }},
      {"gather_bf16",
       [](const Source& make) -> Arrays {
         return {gather(make({768, features}, half), make.labels(2048))};
       }},
      {"scatter_add_bf16",
       [](const Source& make) -> Arrays {
         return {scatter_add(make({768, features}, half), make.labels(2048), make({768, 2048}, half))};
       }},
      {"scatter_places_bf16",
       [](const Source& make) -> Arrays {
         return {scatter_add(make({768, 96}, half), make.labels(16384), make({768, 16384}, half))};
       }},
      {"sort_f32", [](const Source& make) -> Arrays { return {sort(make({many}, Float32))}; }},
      {"matmul_bf16",
       [](const Source& make) -> Arrays {
         return {matmul(make({4096, 4096}, half), make({4096, 4096}, half))};
       }},
      {"matmul_turned_bf16",
       [](const Source& make) -> Arrays {
         return {matmul(transpose(make({4096, 4096}, half)), transpose(make({4096, 4096}, half)))};
       }},
      {"matmul_tf32",
       [](const Source& make) -> Arrays {
         return with(MathMode::fast, [&]() -> Arrays {
           return {matmul(make({4096, 4096}, Float32), make({4096, 4096}, Float32))};
         });
       }},
      {"attention_bf16",
       [](const Source& make) -> Arrays { return {attended(make.sequences(), make.sequences(), make.sequences())}; }},
      {"attention_gradient_bf16",
       [](const Source& make) {
         return slopes(make.sequences(), attended, make.sequences(), make.sequences(), make.sequences());
       }},
      {"attention_f32",
       [](const Source& make) -> Arrays {
         return {attended(make.sequences(Float32), make.sequences(Float32), make.sequences(Float32))};
       }},
  };
}

std::vector<Class> convolution_classes() {
  return {
      {"conv_bf16",
       [](const Source& make) -> Arrays {
         return {conv(make({28, 28, 64, 16}, half), make({3, 3, 64, 64}, half))};
       }},
      {"conv_f32",
       [](const Source& make) -> Arrays {
         return {crosscor(make({12, 12, 6, 2048}, Float32), make({5, 5, 6, 16}, Float32))};
       }},
      {"conv_data_f32",
       [](const Source& make) -> Arrays {
         const Array w = make({5, 5, 6, 16}, Float32), slopes = make({8, 8, 16, 2048}, Float32);
         return {
             gradient([&](const Array& x) { return sum(crosscor(x, w) * slopes); }, make({12, 12, 6, 2048}, Float32))};
       }},
      {"conv_weights_f32",
       [](const Source& make) -> Arrays {
         const Array x = make({12, 12, 6, 2048}, Float32), slopes = make({8, 8, 16, 2048}, Float32);
         return {gradient([&](const Array& w) { return sum(crosscor(x, w) * slopes); }, make({5, 5, 6, 16}, Float32))};
       }},
  };
}

const std::vector<Class>& classes() {
  static const std::vector<Class> all = [] {
    std::vector<Class> found;
    for (const auto& part : {elementwise_classes(), reducing_classes(), other_classes(), convolution_classes()}) {
      found.insert(found.end(), part.begin(), part.end());
    }
    return found;
  }();
  return all;
}

}  // namespace

std::vector<std::string> kernel_class_names() {
  std::vector<std::string> names;
  for (const Class& one : classes()) names.push_back(one.name);
  return names;
}

void run_kernel_class(const Device& device, const std::string& name) {
  for (const Class& one : classes()) {
    if (one.name != name) continue;
    const Source make{device};
    const Arrays kept = one.run(make);
    eval();
    synchronize(device);
    return;
  }
  throw std::invalid_argument("there is no class of kernels called " + name);
}

}  // namespace gpu_check
