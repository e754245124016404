// The table of what is computed. Each row is a function of the inputs; it runs where they are.
#include "checks.hpp"

#include <rosin/rosin.hpp>

namespace gpu_check {
namespace {

using namespace rosin;

using Arrays = std::vector<Array>;

constexpr double exact = 0, near = 2e-5, summed = 1e-4;

Array uniform_between(const Shape& shape, double low, double high) { return uniform(shape, low, high); }

/// Functions of one array: a row each, on the array that suits them.
using Function = Array (*)(const Array&);
template <Function f> Arrays of_x(const Inputs& in) { return {f(in.x)}; }
template <Function f> Arrays of_positive(const Inputs& in) { return {f(in.positive)}; }
template <Function f> Arrays of_unit(const Inputs& in) { return {f(in.unit)}; }

void add_elementwise(std::vector<Check>& rows) {
  rows.insert(rows.end(), {
                              {"neg", exact, of_x<neg>, true},
                              {"abs", exact, of_x<abs>, true},
                              {"sign", exact, of_x<sign>, true},
                              {"floor", exact, of_x<floor>, true},
                              {"ceil", exact, of_x<ceil>, true},
                              {"trunc", exact, of_x<trunc>, true},
                              {"round", exact, of_x<round>, true},
                              {"square", near, of_x<square>, true},
                              {"reciprocal", near, of_positive<reciprocal>, true},
                              {"sqrt", near, of_positive<sqrt>, true},
                              {"rsqrt", near, of_positive<rsqrt>, true},
                              {"cbrt", near, of_x<cbrt>, true},
                              {"exp", near, of_x<exp>, true},
                              {"exp2", near, of_x<exp2>, true},
                              {"expm1", near, of_x<expm1>, true},
                              {"log", near, of_positive<log>, true},
                              {"log2", near, of_positive<log2>, true},
                              {"log1p", near, of_positive<log1p>, true},
                              {"sin", near, of_x<sin>, true},
                              {"cos", near, of_x<cos>, true},
                              {"tan", near, of_unit<tan>, true},
                              {"asin", near, of_unit<asin>, true},
                              {"acos", near, of_unit<acos>, true},
                              {"atan", near, of_x<atan>, true},
                              {"sinh", near, of_x<sinh>, true},
                              {"cosh", near, of_x<cosh>, true},
                              {"tanh", near, of_x<tanh>, true},
                              {"erf", near, of_x<erf>, true},
                              {"lgamma", near, of_positive<lgamma>, false},
                              {"digamma", summed, of_positive<digamma>, false},
                              {"trigamma", summed, of_positive<trigamma>, false},
                          });
}

void add_activations(std::vector<Check>& rows) {
  rows.insert(rows.end(), {
                              {"sigmoid", near, of_x<sigmoid>, true},
                              {"hardsigmoid", near, of_x<hardsigmoid>, true},
                              {"logsigmoid", near, of_x<logsigmoid>, true},
                              {"hardtanh", exact, of_x<hardtanh>, true},
                              {"relu", exact, of_x<relu>, true},
                              {"leakyrelu", near, of_x<leakyrelu>, true},
                              {"relu6", exact, of_x<relu6>, true},
                              {"elu", near, of_x<elu>, true},
                              {"gelu", near, of_x<gelu>, true},
                              {"gelu_erf", near, of_x<gelu_erf>, true},
                              {"swish", near, of_x<swish>, true},
                              {"hardswish", near, of_x<hardswish>, true},
                              {"selu", near, of_x<selu>, true},
                              {"celu", near, of_x<celu>, true},
                              {"softsign", near, of_x<softsign>, true},
                              {"softplus", near, of_x<softplus>, true},
                              {"logcosh", near, of_x<logcosh>, false},
                              {"mish", near, of_x<mish>, true},
                              {"tanhshrink", near, of_x<tanhshrink>, false},
                              {"softshrink", near, of_x<softshrink>, true},
                          });
}

void add_arithmetic(std::vector<Check>& rows) {
  using In = const Inputs&;
  rows.insert(rows.end(), {
                              {"+ - *", near,
                               [](In in) -> Arrays {
                                 return {in.x + in.y, in.x - in.y, in.x * in.y};
                               },
                               true},
                              {"/", near,
                               [](In in) -> Arrays {
                                 return {in.x / in.positive, 2 / in.positive};
                               },
                               true},
                              {"pow", near,
                               [](In in) -> Arrays {
                                 return {pow(in.positive, in.x), pow(in.x, 3)};
                               },
                               true},
                              {"atan2", near, [](In in) -> Arrays { return {atan2(in.x, in.y)}; }, true},
                              {"max min", exact,
                               [](In in) -> Arrays {
                                 return {max(in.x, in.y), min(in.x, in.y)};
                               },
                               true},
                              {"clamp", exact, [](In in) -> Arrays { return {clamp(in.x, -0.5, 0.75)}; }, true},
                              {"compare", exact,
                               [](In in) -> Arrays {
                                 return {in.x < in.y, in.x >= in.y, in.whole == 7, in.whole != in.whole};
                               },
                               true},
                              {"logic", exact,
                               [](In in) -> Arrays {
                                 return {(in.x < 0) & (in.y < 0), (in.x < 0) | (in.y < 0), !(in.x < 0)};
                               },
                               true},
                              {"where", exact, [](In in) -> Arrays { return {where(in.x < in.y, in.x, 0)}; }, true},
                              {"broadcast", near,
                               [](In in) -> Arrays {
                                 return {in.row * in.column + in.x, in.x - in.row};
                               },
                               true},
                              {"integers", exact,
                               [](In in) -> Arrays {
                                 return {in.whole * 1'000'003 + 17, mod(in.whole, 7), abs(in.whole)};
                               },
                               false},
                              {"cast", exact,
                               [](In in) -> Arrays {
                                 return {cast(in.x, Int32), cast(in.whole, Float32), cast(in.x, Float16)};
                               },
                               false},
                              {"a long chain", near,
                               [](In in) -> Arrays {
                                 Array z = in.x;
                                 for (int i = 0; i < 12; ++i) z = tanh(z * in.y + in.row) - in.column / 4;
                                 return {z};
                               },
                               false},
                          });
}

void add_reductions(std::vector<Check>& rows) {
  using In = const Inputs&;
  rows.insert(rows.end(), {
                              {"sum", summed,
                               [](In in) -> Arrays {
                                 return {sum(in.x), sum(in.x, 0), sum(in.x, 1), sum(in.cube, {0, 2})};
                               },
                               true},
                              {"mean", summed,
                               [](In in) -> Arrays {
                                 return {mean(in.x), mean(in.x, 0), mean(in.cube, 1)};
                               },
                               true},
                              {"prod", summed,
                               [](In in) -> Arrays {
                                 return {prod(in.unit, 0), prod(in.positive, 1)};
                               },
                               false},
                              {"maximum minimum", exact,
                               [](In in) -> Arrays {
                                 return {maximum(in.x), minimum(in.x, 0), maximum(in.cube, 2), maximum(in.whole, 1)};
                               },
                               true},
                              {"argmax argmin", exact,
                               [](In in) -> Arrays {
                                 return {argmax(in.x, 0), argmin(in.x, 1)};
                               },
                               true},
                              {"any all", exact,
                               [](In in) -> Arrays {
                                 return {any(in.x > 1.5, 0), all(in.x > -1.5, 1)};
                               },
                               true},
                              {"var stddev", summed,
                               [](In in) -> Arrays {
                                 return {var(in.x, 0), stddev(in.x, 1), stddev(in.x)};
                               },
                               false},
                              {"norm", summed,
                               [](In in) -> Arrays {
                                 return {norm(in.x), norm(in.x, 0)};
                               },
                               false},
                          });
}

void add_rows(std::vector<Check>& rows) {
  using In = const Inputs&;
  rows.insert(rows.end(), {
                              {"logsumexp", summed,
                               [](In in) -> Arrays {
                                 return {logsumexp(in.x, 0), logsumexp(in.x)};
                               },
                               true},
                              {"softmax", near,
                               [](In in) -> Arrays {
                                 return {softmax(in.x), softmax(in.x, 1)};
                               },
                               true},
                              {"logsoftmax", summed,
                               [](In in) -> Arrays {
                                 return {logsoftmax(in.x), logsoftmax(in.cube, 2)};
                               },
                               true},
                              {"normalise", summed, [](In in) -> Arrays { return {normalise(in.x)}; }, false},
                              {"cumsum cumprod", summed,
                               [](In in) -> Arrays {
                                 return {cumsum(in.x, 0), cumsum(in.x, 1), cumprod(in.unit, 0)};
                               },
                               false},
                              {"sum of integers", exact,
                               [](In in) -> Arrays {
                                 return {sum(in.whole), sum(in.whole, 0)};
                               },
                               false},
                          });
}

void add_movement(std::vector<Check>& rows) {
  using In = const Inputs&;
  rows.insert(rows.end(), {
                              {"transpose permute", exact,
                               [](In in) -> Arrays {
                                 return {transpose(in.x) + 1, permute(in.cube, {2, 0, 1}) * 2};
                               },
                               true},
                              {"reshape", exact,
                               [](In in) -> Arrays {
                                 return {reshape(transpose(in.x), {37, 19}), flatten(in.cube)};
                               },
                               true},
                              {"slice flip", exact,
                               [](In in) -> Arrays {
                                 return {slice(in.x, 0, 3, 30, 4) + 1, flip(in.x, 1) - in.x, select(in.cube, 1, 2)};
                               },
                               true},
                              {"pad", exact,
                               [](In in) -> Arrays {
                                 return {pad(in.x, 0, 2, 3), pad(in.cube, {{1, 0}, {0, 2}, {1, 1}}, 7)};
                               },
                               true},
                              {"concat stack", exact,
                               [](In in) -> Arrays {
                                 return {concat({in.x, in.y, in.unit}, 1), stack({in.x, in.y}, 0)};
                               },
                               true},
                              {"repeat tile", exact,
                               [](In in) -> Arrays {
                                 return {repeat(in.cube, 3, 1), tile(in.cube, 2, 0)};
                               },
                               true},
                              {"tril triu", exact,
                               [](In in) -> Arrays {
                                 return {tril(in.x), triu(in.x, 2)};
                               },
                               true},
                          });
}

void add_places(std::vector<Check>& rows) {
  using In = const Inputs&;
  rows.insert(rows.end(),
              {
                  {"gather", exact,
                   [](In in) -> Arrays {
                     return {gather(in.x, in.places), gather(in.cube, mod(in.places, 5), 0)};
                   },
                   true},
                  {"scatter_add", summed,
                   [](In in) -> Arrays { return {scatter_add(in.x, in.places, slice(in.y, 1, 0, 11))}; }, false},
                  {"onehot onecold", exact,
                   [](In in) -> Arrays {
                     return {onehot(in.places, 19), onecold(in.labels)};
                   },
                   false},
                  {"sort argsort", exact,
                   [](In in) -> Arrays {
                     return {sort(in.x, 0), sort(in.x, 1, true), argsort(in.x, 0), sort(in.whole, 0)};
                   },
                   true},
                  {"topk", exact,
                   [](In in) -> Arrays {
                     return {topk(in.x, 5, 0).values, topk(in.x, 3, 1).indices};
                   },
                   true},
              });
}

void add_products(std::vector<Check>& rows) {
  using In = const Inputs&;
  rows.insert(rows.end(), {
                              {"matmul", summed,
                               [](In in) -> Arrays {
                                 return {matmul(in.left, in.right), matmul(transpose(in.right), transpose(in.left)),
                                         matmul(in.left, select(in.right, 1, 4))};
                               },
                               true},
                              {"batched matmul", summed,
                               [](In in) -> Arrays {
                                 return {matmul(permute(in.cube, {1, 0, 2}), in.cube)};
                               },
                               true},
                              {"conv", summed,
                               [](In in) -> Arrays {
                                 return {conv(in.images, in.filters),
                                         crosscor(in.images, in.filters, {.stride = 2, .pad = 1}),
                                         conv(in.images, in.filters, {.dilation = 2})};
                               },
                               true},
                              {"conv_transpose", summed,
                               [](In in) -> Arrays {
                                 return {conv_transpose(in.images, permute(in.filters, {0, 1, 3, 2}), {.stride = 2})};
                               },
                               false},
                              {"maxpool meanpool", near,
                               [](In in) -> Arrays {
                                 return {maxpool(in.images, 2), meanpool(in.images, 3, 2, 1),
                                         global_meanpool(in.images), adaptive_maxpool(in.images, {4, 5})};
                               },
                               true},
                              {"losses", summed,
                               [](In in) -> Arrays {
                                 const Array logits = slice(in.x, 0, 0, 10);
                                 return {logitcrossentropy(logits, in.labels),
                                         mse(in.x, in.y),
                                         mae(in.x, in.y),
                                         huber_loss(in.x, in.y),
                                         crossentropy(softmax(logits), in.labels),
                                         logitbinarycrossentropy(logits, in.labels)};
                               },
                               false},
                          });
}

void add_gradients(std::vector<Check>& rows) {
  using In = const Inputs&;
  rows.insert(
      rows.end(),
      {
          {"gradient of a chain", summed,
           [](In in) -> Arrays {
             return {gradient([&](const Array& x) { return sum(tanh(x * in.y) * sigmoid(x + in.row)); }, in.x)};
           },
           false},
          {"gradient of matmul", summed,
           [](In in) -> Arrays {
             return {gradient([&](const Array& w) { return sum(square(matmul(w, in.right))); }, in.left)};
           },
           false},
          {"gradient of conv and maxpool", summed,
           [](In in) -> Arrays {
             return {gradient([&](const Array& w) { return sum(square(maxpool(relu(conv(in.images, w)), 2))); },
                              in.filters),
                     gradient([&](const Array& x) { return sum(square(conv(x, in.filters))); }, in.images)};
           },
           false},
          {"gradient of gather and softmax", summed,
           [](In in) -> Arrays {
             return {gradient([&](const Array& x) { return sum(square(softmax(gather(x, in.places)))); }, in.x)};
           },
           false},
          {"gradient of a gradient", summed,
           [](In in) -> Arrays {
             const auto slope = [&](const Array& x) {
               return sum(square(gradient([&](const Array& z) { return sum(tanh(z) * in.y); }, x)));
             };
             return {gradient(slope, in.x)};
           },
           false},
      });
}

void add_random(std::vector<Check>& rows) {
  using In = const Inputs&;
  rows.insert(rows.end(), {
                              {"random numbers", near,
                               [](In in) -> Arrays {
                                 Rng rng(42);
                                 return {dropout(rng, in.x, 0.3), dropout(rng, in.cube, 0.5)};
                               },
                               false},
                          });
}

}  // namespace

Inputs make_inputs() {
  seed(20);
  const Shape shape{37, 19};
  Inputs in{.x = uniform_between(shape, -2, 2),
            .y = uniform_between(shape, -2, 2),
            .positive = uniform_between(shape, 0.1, 3),
            .unit = uniform_between(shape, -0.95, 0.95),
            .row = uniform_between({37, 1}, -2, 2),
            .column = uniform_between({1, 19}, -2, 2),
            .cube = uniform_between({5, 6, 7}, -2, 2),
            .whole = cast(randint(-50, 51, shape), Int32),
            .places = randint(0, 19, {11}),
            .images = uniform_between({13, 12, 4, 3}, -2, 2),
            .filters = uniform_between({3, 3, 4, 6}, -1, 1),
            .left = uniform_between({45, 70}, -1, 1),
            .right = uniform_between({70, 33}, -1, 1),
            .labels = onehot(randint(0, 10, {19}), 10)};
  eval();
  return in;
}

const std::vector<Check>& all_checks() {
  static const std::vector<Check> rows = [] {
    std::vector<Check> made;
    for (auto add : {add_elementwise, add_activations, add_arithmetic, add_reductions, add_rows, add_movement,
                     add_places, add_products, add_gradients, add_random})
      add(made);
    return made;
  }();
  return rows;
}

}  // namespace gpu_check
