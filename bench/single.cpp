// Single ops and layers, by name, as single.py asks for them: a line `NAME SECONDS` is answered by the milliseconds of
// a run, repeated for about as long. `NAME` alone runs forward, `NAME+` computes the gradients of all inputs too.
// Read first: single.py (what PyTorch does for each name).
#include <rosin/rosin.hpp>

#include <chrono>
#include <functional>
#include <iostream>
#include <map>
#include <string>
#include <vector>

namespace {

using rosin::Array;
using rosin::Shape;
using Inputs = std::vector<Array>;

struct Case {
  std::vector<Shape> shapes;  // of the inputs, each of numbers from -1 to 1
  std::function<Array(const Inputs&)> make;
  rosin::DType type = rosin::Float32;
};

Case unary(const std::function<Array(const Array&)>& f) {
  return {{{1 << 20}}, [f](const Inputs& in) { return f(in[0]); }};
}

Case product(int64_t m, int64_t k, int64_t n) {
  return {{{m, k}, {k, n}}, [](const Inputs& in) { return rosin::matmul(in[0], in[1]); }};
}

Case dense(int64_t in, int64_t out, int64_t batch) {
  return {{{in, batch}, {out, in}, {out}}, [](const Inputs& i) { return rosin::Dense(i[1], i[2], rosin::relu)(i[0]); }};
}

Case convolution(const Shape& x, const Shape& w, const rosin::ConvOptions& options = {}) {
  return {{x, w}, [options](const Inputs& in) { return rosin::crosscor(in[0], in[1], options); }};
}

template <class Layer> Case normalisation(const Shape& x, const Layer& layer, int64_t channels) {
  return {{x, {channels}, {channels}}, [layer](const Inputs& in) {
            Layer with = layer;
            with.scale = in[1];
            with.bias = in[2];
            return with(in[0]);
          }};
}

Case with(const Shape& x, const std::function<Array(const Array&)>& f) {
  return {{x}, [f](const Inputs& in) { return f(in[0]); }};
}

const Shape large{112, 112, 64, 8}, middle{56, 56, 64, 8}, small{28, 28, 128, 8}, tiny{14, 14, 256, 8};
const Shape matrix{1000, 1000};

std::map<std::string, Case> elementwise() {
  return {
      {"add", {{{1 << 20}, {1 << 20}}, [](const Inputs& in) { return in[0] + in[1]; }}},
      {"divide", {{{1 << 20}, {1 << 20}}, [](const Inputs& in) { return in[0] / in[1]; }}},
      {"abs", unary([](const Array& x) { return rosin::abs(x); })},
      {"atan", unary([](const Array& x) { return rosin::atan(x); })},
      {"cos", unary([](const Array& x) { return rosin::cos(x); })},
      {"erf", unary([](const Array& x) { return rosin::erf(x); })},
      {"exp", unary([](const Array& x) { return rosin::exp(x); })},
      {"expm1", unary([](const Array& x) { return rosin::expm1(x); })},
      {"gelu", unary([](const Array& x) { return rosin::gelu(x); })},
      {"log of 2 + x", with({1 << 20}, [](const Array& x) { return rosin::log(2 + x); })},
      {"log1p of 2 + x", with({1 << 20}, [](const Array& x) { return rosin::log1p(2 + x); })},
      {"relu", unary([](const Array& x) { return rosin::relu(x); })},
      {"sigmoid", unary([](const Array& x) { return rosin::sigmoid(x); })},
      {"sin", unary([](const Array& x) { return rosin::sin(x); })},
      {"softplus", unary([](const Array& x) { return rosin::softplus(x); })},
      {"sqrt of 2 + x", with({1 << 20}, [](const Array& x) { return rosin::sqrt(2 + x); })},
      {"swish", unary([](const Array& x) { return rosin::swish(x); })},
      {"tan", unary([](const Array& x) { return rosin::tan(x); })},
      {"tanh", unary([](const Array& x) { return rosin::tanh(x); })},
      {"x of 2 + x by 1.7", with({1 << 20}, [](const Array& x) { return rosin::pow(2 + x, 1.7); })},
      {"clamp", with({1 << 20}, [](const Array& x) { return rosin::clamp(x, -0.5, 0.5); })},
      {"where", {{{1 << 20}, {1 << 20}}, [](const Inputs& in) { return rosin::where(in[0] > in[1], in[0], in[1]); }}},
      {"add of a row", {{matrix, {1, 1000}}, [](const Inputs& in) { return in[0] + in[1]; }}},
      {"add of a column", {{matrix, {1000}}, [](const Inputs& in) { return in[0] + in[1]; }}},
  };
}

std::map<std::string, Case> reductions() {
  return {
      {"sum", with(matrix, [](const Array& x) { return rosin::sum(x); })},
      {"sum of columns", with(matrix, [](const Array& x) { return rosin::sum(x, 0); })},
      {"sum of rows", with(matrix, [](const Array& x) { return rosin::sum(x, 1); })},
      {"mean of columns", with(matrix, [](const Array& x) { return rosin::mean(x, 0); })},
      {"largest of columns", with(matrix, [](const Array& x) { return rosin::maximum(x, 0); })},
      {"product of columns", with(matrix, [](const Array& x) { return rosin::prod(x, 0); })},
      {"variance of columns", with(matrix, [](const Array& x) { return rosin::var(x, 0); })},
      {"norm", with(matrix, [](const Array& x) { return rosin::norm(x); })},
      {"norm of columns", with(matrix, [](const Array& x) { return rosin::norm(x, 0); })},
      {"logsumexp of columns", with(matrix, [](const Array& x) { return rosin::logsumexp(x, 0); })},
      {"softmax of columns", with(matrix, [](const Array& x) { return rosin::softmax(x, 0); })},
      {"softmax of rows", with(matrix, [](const Array& x) { return rosin::softmax(x, 1); })},
      {"logsoftmax of columns", with(matrix, [](const Array& x) { return rosin::logsoftmax(x, 0); })},
      {"cumsum of columns", with(matrix, [](const Array& x) { return rosin::cumsum(x, 0); })},
      {"cumsum of rows", with(matrix, [](const Array& x) { return rosin::cumsum(x, 1); })},
      {"cumprod of columns", with(matrix, [](const Array& x) { return rosin::cumprod(x, 0); })},
      {"sort of columns", with(matrix, [](const Array& x) { return rosin::sort(x, 0); })},
  };
}

std::map<std::string, Case> movements() {
  return {
      {"transpose", with(matrix, [](const Array& x) { return rosin::transpose(x); })},
      {"flip", with(matrix, [](const Array& x) { return rosin::flip(x, 0); })},
      {"repeat", with({100, 1000},
                      [](const Array& x) {
                        return rosin::tile(x, {10, 1});
                      })},
      {"join columns",
       {{matrix, matrix},
        [](const Inputs& in) {
          return rosin::concat({in[0], in[1]}, 0);
        }}},
      {"join rows",
       {{matrix, matrix},
        [](const Inputs& in) {
          return rosin::concat({in[0], in[1]}, 1);
        }}},
      {"heads in front", with({64, 8, 128, 16},
                              [](const Array& x) {
                                return rosin::permute(x, {0, 2, 1, 3});
                              })},
  };
}

std::map<std::string, Case> products() {
  return {
      {"product 64", product(64, 64, 64)},
      {"product 128", product(128, 128, 128)},
      {"product 256", product(256, 256, 256)},
      {"product 512", product(512, 512, 512)},
      {"product 1024", product(1024, 1024, 1024)},
      {"product 100 by 100 by 100", product(100, 100, 100)},
      {"product 1000 by 1000 by 1", product(1000, 1000, 1)},
      {"product 512 by 512 by 16", product(512, 512, 16)},
      {"product 512 by 512 by 32", product(512, 512, 32)},
      {"product 1000 by 64 by 1000", product(1000, 64, 1000)},
      {"batched product 64",
       {{{64, 64, 96}, {64, 64, 96}}, [](const Inputs& in) { return rosin::matmul(in[0], in[1]); }}},
      {"batched product 128 by 32 by 128",
       {{{128, 32, 48}, {32, 128, 48}}, [](const Inputs& in) { return rosin::matmul(in[0], in[1]); }}},
      {"dense 784 to 256", dense(784, 256, 128)},
      {"dense 512 to 512", dense(512, 512, 512)},
      {"dense 256 to 10", dense(256, 10, 128)},
      {"dense 768 to 3072", dense(768, 3072, 128)},
  };
}

std::map<std::string, Case> convolutions() {
  const rosin::ConvOptions padded{.pad = 1}, halved{.stride = 2, .pad = 1};
  return {
      {"conv 7x7 of 3", convolution({224, 224, 3, 4}, {7, 7, 3, 64}, {.stride = 2, .pad = 3})},
      {"conv 3x3 of 3", convolution({32, 32, 3, 64}, {3, 3, 3, 32}, padded)},
      {"conv 5x5 of 1", convolution({28, 28, 1, 128}, {5, 5, 1, 6})},
      {"conv 3x3 of 56", convolution(middle, {3, 3, 64, 64}, padded)},
      {"conv 3x3 of 28", convolution(small, {3, 3, 128, 128}, padded)},
      {"conv 3x3 of 14", convolution(tiny, {3, 3, 256, 256}, padded)},
      {"conv 3x3 of 28 halved", convolution(small, {3, 3, 128, 256}, halved)},
      {"conv 1x1 of 56", convolution(middle, {1, 1, 64, 256})},
      {"conv 1x1 of 14", convolution(tiny, {1, 1, 256, 512})},
      {"conv depthwise 3x3 of 56", convolution(middle, {3, 3, 1, 64}, {.pad = 1, .groups = 64})},
      {"conv depthwise 7x7 of 14", convolution(tiny, {7, 7, 1, 256}, {.pad = 3, .groups = 256})},
      {"conv of 8 groups", convolution(small, {3, 3, 16, 128}, {.pad = 1, .groups = 8})},
      {"conv dilated", convolution(small, {3, 3, 128, 128}, {.pad = 2, .dilation = 2})},
      {"conv of sequences", convolution({1000, 64, 8}, {9, 64, 64}, {.pad = 4})},
      {"transposed conv 4x4",
       {{small, {4, 4, 64, 128}},
        [](const Inputs& in) { return rosin::conv_transpose(in[0], in[1], {.stride = 2, .pad = 1}); }}},
  };
}

std::map<std::string, Case> pools() {
  return {
      {"maxpool 2x2 of 112", with(large,
                                  [](const Array& x) {
                                    return rosin::maxpool(x, {2, 2});
                                  })},
      {"maxpool 3x3 of 112 halved", with(large,
                                         [](const Array& x) {
                                           return rosin::maxpool(x, {3, 3}, 2, 1);
                                         })},
      {"maxpool 3x3 of 28", with(small,
                                 [](const Array& x) {
                                   return rosin::maxpool(x, {3, 3}, 1, 1);
                                 })},
      {"meanpool 2x2 of 56", with(middle,
                                  [](const Array& x) {
                                    return rosin::meanpool(x, {2, 2});
                                  })},
      {"meanpool of all", with(small,
                               [](const Array& x) {
                                 return rosin::adaptive_meanpool(x, {1, 1});
                               })},
      {"upsample nearest",
       with(small, [](const Array& x) { return rosin::Upsample(rosin::UpsampleMode::nearest, {.scale = 2})(x); })},
      {"upsample bilinear",
       with(small, [](const Array& x) { return rosin::Upsample(rosin::UpsampleMode::bilinear, {.scale = 2})(x); })},
  };
}

std::map<std::string, Case> normalisations() {
  return {
      {"batchnorm of 56", normalisation(middle, rosin::BatchNorm(64), 64)},
      {"batchnorm of 14", normalisation(tiny, rosin::BatchNorm(256), 256)},
      {"batchnorm of features", normalisation({256, 1024}, rosin::BatchNorm(256), 256)},
      {"groupnorm of 56", normalisation(middle, rosin::GroupNorm(64, 8), 64)},
      {"groupnorm of 14", normalisation(tiny, rosin::GroupNorm(256, 32), 256)},
      {"instancenorm of 56", normalisation(middle, rosin::InstanceNorm(64, {.affine = true}), 64)},
      {"layernorm of 768", normalisation({768, 1024}, rosin::LayerNorm(768), 768)},
      {"layernorm of 128", normalisation({128, 4096}, rosin::LayerNorm(128), 128)},
  };
}

std::map<std::string, Case> sequences() {
  const auto attend = [](bool causal) {
    return [causal](const Inputs& in) {
      return rosin::dot_product_attention(in[0], in[1], in[2], {.heads = 8, .causal = causal}).out;
    };
  };
  const std::vector<Shape> texts(3, Shape{512, 256, 4});
  return {
      {"attention", {texts, attend(false)}},
      {"attention causal", {texts, attend(true)}},
      {"loss of labels 1000",
       {{{1000, 512}},
        [labels = rosin::cast(rosin::floor(rosin::rand({512}) * 1000), rosin::Int32)](const Inputs& in) {
          return rosin::labelcrossentropy(in[0], labels);
        }}},
      {"loss of squares", {{matrix, matrix}, [](const Inputs& in) { return rosin::mse(in[0], in[1]); }}},
      {"embedding",
       {{{128, 5000}},
        [words = rosin::cast(rosin::floor(rosin::rand({4096}) * 5000), rosin::Int32)](const Inputs& in) {
          return rosin::gather(in[0], words);
        }}},
  };
}

std::map<std::string, Case> rarer() {
  const auto labels = rosin::cast(rosin::floor(rosin::rand({64, 64, 8}) * 21), rosin::Int32);
  const auto places = rosin::cast(rosin::floor(rosin::rand({4096}) * 5000), rosin::Int32);
  return {
      {"largest 10 of columns", with(matrix, [](const Array& x) { return rosin::topk(x, 10).values; })},
      {"lower triangle", with(matrix, [](const Array& x) { return rosin::tril(x); })},
      {"glu", with({2000, 1000}, [](const Array& x) { return rosin::glu(x); })},
      {"pad of zeros", with(small,
                            [](const Array& x) {
                              return rosin::pad(x, {{1, 1}, {1, 1}, {0, 0}, {0, 0}});
                            })},
      {"pad of reflections", with(small,
                                  [](const Array& x) {
                                    return rosin::pad(x, {{3, 3}, {3, 3}, {0, 0}, {0, 0}}, rosin::PadMode::reflect);
                                  })},
      {"softmax of channels", with(middle, [](const Array& x) { return rosin::softmax(x, 2); })},
      {"pixel shuffle", with(small, [](const Array& x) { return rosin::pixel_shuffle(x, 2); })},
      {"windows 3x3", with({28, 28, 32, 8},
                           [](const Array& x) {
                             return rosin::unfold(x, {3, 3});
                           })},
      {"image at points", {{small, {2, 28, 28, 8}}, [](const Inputs& in) { return rosin::grid_sample(in[0], in[1]); }}},
      {"rmsnorm of 768",
       {{{768, 1024}, {768}},
        [](const Inputs& in) {
          rosin::RMSNorm layer(768);
          layer.scale = in[1];
          return layer(in[0]);
        }}},
      {"loss of pixels",
       {{{64, 64, 21, 8}},
        [labels](const Inputs& in) { return rosin::labelcrossentropy(in[0], labels, {.dims = 2}); }}},
      {"loss of Huber", {{matrix, matrix}, [](const Inputs& in) { return rosin::huber_loss(in[0], in[1]); }}},
      {"scatter of sums",
       {{{128, 5000}, {128, 4096}}, [places](const Inputs& in) { return rosin::scatter_add(in[0], places, in[1]); }}},
      {"conv 3x3x3", convolution({16, 16, 16, 32, 2}, {3, 3, 3, 32, 32}, {.pad = 1})},
      {"maxpool 2x2x2", with({16, 16, 16, 32, 4},
                             [](const Array& x) {
                               return rosin::maxpool(x, {2, 2, 2});
                             })},
      {"transposed conv 2x2",
       {{small, {2, 2, 64, 128}}, [](const Inputs& in) { return rosin::conv_transpose(in[0], in[1], {.stride = 2}); }}},
  };
}

/// Some of the cases in another type, whose name comes first.
std::map<std::string, Case> in_types(const std::map<std::string, Case>& all) {
  const std::pair<rosin::DType, std::vector<const char*>> kinds[] = {
      {rosin::BFloat16,
       {"add", "gelu", "sum of columns", "softmax of columns", "product 512", "dense 768 to 3072", "conv 3x3 of 28",
        "conv 1x1 of 56", "conv depthwise 3x3 of 56", "maxpool 2x2 of 112", "batchnorm of 56", "layernorm of 768",
        "attention", "embedding", "transpose"}},
      {rosin::Float64, {"add", "exp", "sum of columns", "product 512", "conv 3x3 of 28", "layernorm of 768"}}};
  std::map<std::string, Case> made;
  for (const auto& [type, names] : kinds) {
    for (const char* name : names) {
      Case one = all.at(name);
      one.type = type;
      made.emplace((type == rosin::BFloat16 ? "bfloat16: " : "float64: ") + std::string(name), one);
    }
  }
  return made;
}

/// Every case by its name.
std::map<std::string, Case> cases() {
  std::map<std::string, Case> all;
  for (auto part : {elementwise(), reductions(), movements(), products(), convolutions(), pools(), normalisations(),
                    sequences(), rarer()}) {
    all.merge(part);
  }
  all.merge(in_types(all));
  return all;
}

/// A case that can be run: its inputs are made.
struct Ready {
  Inputs inputs;
  Case what;
  Array direction;  // what the result is multiplied by where gradients are wanted

  explicit Ready(Case made) : what(std::move(made)) {
    for (const Shape& shape : what.shapes) inputs.push_back(rosin::cast(2 * rosin::rand(shape) - 1, what.type));
    direction = rosin::cast(rosin::rand(what.make(inputs).shape()), what.type);
    rosin::eval();
  }

  void run(bool with_gradients) const {
    const auto loss = [&](const Inputs& in) { return rosin::sum(what.make(in) * direction); };
    if (with_gradients) {
      const Inputs gradients = rosin::gradient(loss, inputs);
      rosin::eval();
    } else {
      rosin::eval(what.make(inputs));
    }
  }
};

/// Milliseconds of a run, the least of repeats that take as long together.
double measure(const Ready& ready, bool with_gradients, double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto elapsed = [](Clock::time_point since) {
    return std::chrono::duration<double>(Clock::now() - since).count();
  };
  double best = 1e9;
  const auto start = Clock::now();
  do {
    const auto begin = Clock::now();
    ready.run(with_gradients);
    best = std::min(best, elapsed(begin));
  } while (elapsed(start) < seconds);
  return 1e3 * best;
}

}  // namespace

int main() try {
  const auto all = cases();
  for (const auto& [name, ignored] : all) std::cout << name << '\t';
  std::cout << std::endl;
  std::map<std::string, Ready> ready;
  for (std::string line; std::getline(std::cin, line);) {
    const size_t tab = line.find('\t');
    std::string name = line.substr(0, tab);
    const bool with_gradients = name.ends_with('+');
    if (with_gradients) name.pop_back();
    if (!ready.contains(name)) {
      ready.clear();
      ready.emplace(name, Ready(all.at(name)));
    }
    std::cout << measure(ready.at(name), with_gradients, std::stod(line.substr(tab + 1))) << std::endl;
  }
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
