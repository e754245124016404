// Single ops, by name: what peers measure one by one. Each is a row of the table below. Read first: common.hpp.
#include "common.hpp"

#include <functional>

namespace {

using rosin::Array;

/// What an op is run on: the arrays by name, as integers too.
struct Data {
  const bench::Inputs& inputs;

  const Array& operator[](const char* name) const { return inputs[name]; }
  Array as(const char* name, rosin::DType type, double factor = 1) const {
    const Array made = rosin::cast(factor * inputs[name], type);
    rosin::eval(made);
    return made;
  }
  Array indices() const { return as("indices", rosin::Int32); }
};

using Make = std::function<Array()>;

Make softmax_gradient(const Data& data) {
  return [x = data["x"], y = data["y"]] {
    return rosin::gradient([&](const Array& a) { return rosin::sum(rosin::softmax(a, 0) * y); }, x);
  };
}

Make layernorm_gradient(const Data& data) {
  rosin::LayerNorm layer(data["scale"].size(0));
  layer.scale = data["scale"];
  layer.bias = data["shift"];
  return [layer, x = data["x"], y = data["y"], kept = std::pair<Array, rosin::LayerNorm>()]() mutable {
    const auto loss = [&](const Array& a, const rosin::LayerNorm& l) { return rosin::sum(l(a) * y); };
    auto [by_x, by_layer] = rosin::gradient(loss, x, layer);
    kept = {by_x, by_layer};  // all of them are wanted
    return kept.first;
  };
}

Make gather_gradient(const Data& data) {
  return [x = data["x"], indices = data.indices(), w = data["w"]] {
    return rosin::gradient([&](const Array& a) { return rosin::sum(rosin::gather(a, indices) * w); }, x);
  };
}

Make epoch(const Data& data) {
  rosin::DataLoader loader(data["x"], {.batchsize = data.inputs.sizes.at("size"), .shuffle = true});
  return [loader]() mutable {
    Array last;
    for (const Array& batch : loader) last = batch;
    return last;
  };
}

/// The op of that name, ready to be run again and again. Error (std::out_of_range): there is none.
Make make(const bench::Inputs& inputs) {
  const Data data{inputs};
  const Array &x = data["x"], &y = data["y"], &z = data["z"];
  const std::map<std::string, std::function<Make()>> ops{
      {"softmax_gradient", [&] { return softmax_gradient(data); }},
      {"layernorm_gradient", [&] { return layernorm_gradient(data); }},
      {"axpb", [&] { return [=] { return 2 * x + 1; }; }},
      {"multiply_add", [&] { return [=] { return x * y + z; }; }},
      {"half_add",
       [&] {
         const Array a = data.as("x", rosin::Float16), b = data.as("y", rosin::Float16);
         return [=] { return a + b; };
       }},
      {"half_softmax", [&] { return [a = data.as("x", rosin::Float16)] { return rosin::softmax(a, 0); }; }},
      {"tanh", [&] { return [=] { return rosin::tanh(x); }; }},
      {"gelu", [&] { return [=] { return rosin::gelu(x); }; }},
      {"sum_within", [&] { return [=] { return rosin::sum(x, 0); }; }},
      {"sum_across", [&] { return [=] { return rosin::sum(x, 1); }; }},
      {"logsumexp", [&] { return [=] { return rosin::logsumexp(x, 0); }; }},
      {"argmax", [&] { return [=] { return rosin::argmax(x, 0); }; }},
      {"cumsum", [&] { return [=] { return rosin::cumsum(x, 0); }; }},
      {"cumsum_across", [&] { return [=] { return rosin::cumsum(x, 1); }; }},
      {"transposed", [&] { return [=] { return rosin::transpose(x); }; }},
      {"sorted", [&] { return [=] { return rosin::sort(x); }; }},
      {"top", [&] { return [=] { return rosin::topk(x, 10).values; }; }},
      {"int_matmul",
       [&] {
         const Array a = data.as("x", rosin::Int32, 1000), b = data.as("y", rosin::Int32, 1000);
         return [=] { return rosin::matmul(b, a); };  // row-major a b
       }},
      {"gathered", [&] { return [=, i = data.indices()] { return rosin::gather(x, i); }; }},
      {"gather_gradient", [&] { return gather_gradient(data); }},
      {"normal", [&] { return [shape = x.shape()] { return rosin::randn(shape); }; }},
      {"uniform", [&] { return [shape = x.shape()] { return rosin::rand(shape); }; }},
      {"epoch", [&] { return epoch(data); }},
  };
  return ops.at(inputs.op)();
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run(argc, argv, [](const bench::Options& options, const bench::Inputs& inputs) {
    return bench::forward(options, make(inputs));
  });
}
