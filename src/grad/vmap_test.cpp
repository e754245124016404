// vmap against a loop over observations: functions as users write them. Every op: tests/op_suite_vmap_test.cpp.
#include <rosin/vmap.hpp>

#include <gtest/gtest.h>

#include <functional>

#include <rosin/activation.hpp>
#include <rosin/approx.hpp>
#include <rosin/attention.hpp>
#include <rosin/chain.hpp>
#include <rosin/compose.hpp>
#include <rosin/conv_layers.hpp>
#include <rosin/create.hpp>
#include <rosin/dense.hpp>
#include <rosin/derivatives.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/embedding.hpp>
#include <rosin/gradient_rules.hpp>
#include <rosin/index.hpp>
#include <rosin/loss.hpp>
#include <rosin/matmul.hpp>
#include <rosin/movement.hpp>
#include <rosin/normalise_layers.hpp>
#include <rosin/pool_layers.hpp>
#include <rosin/random.hpp>
#include <rosin/recurrent.hpp>
#include <rosin/reduce.hpp>
#include <rosin/sort.hpp>
#include <rosin/stats.hpp>

#include "../tests/error_testing.hpp"

namespace rosin {
namespace {

/// The same, one observation after another.
template <class F, class... X> Array looped(F f, const X&... x) {
  std::vector<Array> results;
  const int64_t n = std::get<0>(std::tie(x...)).size(-1);
  for (int64_t i = 0; i < n; ++i) results.push_back(f(select(x, -1, i)...));
  return stack(results, -1);
}

template <class F, class... X> void compare(const char* what, F f, const X&... x) {
  EXPECT_TRUE(allclose(vmap(f, x...), looped(f, x...), {.rtol = 1e-4, .atol = 1e-5})) << what;
}

TEST(Vmap, IsTheFunctionOfEachObservation) {
  seed(1);
  const Array x = randn({4, 3, 5}), y = randn({3, 5}), w = randn({2, 4});
  compare(
      "elementwise", [](const Array& a) { return exp(a) * 2 + a; }, x);
  compare(
      "broadcast",
      [](const Array& a, const Array& b) {
        return a * reshape(b, {1, 3}) - 1;
      },
      x, y);
  compare(
      "product", [&](const Array& a) { return matmul(w, a); }, x);
  compare(
      "both", [](const Array& a, const Array& b) { return matmul(a, b); }, x, y);
  compare(
      "turned", [](const Array& a) { return matmul(transpose(a), a); }, x);
  compare(
      "softmax", [](const Array& a) { return softmax(a, 1); }, x);
  compare(
      "rows", [](const Array& a) { return sort(a, 0)(slice(0, 2)) + cumsum(a, 0)(slice(1, 3)); }, x);
  compare(
      "constant",
      [](const Array& a) {
        return a * 0 + ones({4, 3});
      },
      x);
  EXPECT_EQ(vmap([](const Array&) { return arange(2); }, x).shape(), (Shape{2, 5}));
  EXPECT_EQ(vmap([](const Array& a) { return sum(a); }, zeros({4, 0})).shape(), Shape{0});
}

TEST(Vmap, IndicesMayBeMapped) {
  seed(2);
  const Array table = randn({3, 7}), tables = randn({3, 7, 4}), indices = randint(0, 7, {2, 4});
  compare(
      "shared table", [&](const Array& i) { return gather(table, i); }, indices);
  compare(
      "own table", [](const Array& t, const Array& i) { return gather(t, i); }, tables, indices);
  compare(
      "first dim", [](const Array& t, const Array& i) { return gather(t, i - 5, 0); }, tables, clamp(indices, 3, 5));
  compare(
      "added",
      [](const Array& t, const Array& i) {
        return scatter_add(t, i, ones({3, 2}));
      },
      tables, indices);
  compare(
      "written",
      [](const Array& t, const Array& i) {
        return scatter(t, i, ones({3, 2}) * 9);
      },
      tables, indices);
  compare(
      "largest",
      [&](const Array& i) {
        return scatter_max(table, i, ones({3, 2}));
      },
      indices);
  compare(
      "one-hot", [](const Array& i) { return cast(onehot(i, 7), Float32); }, indices);
  EXPECT_NE(error_of([&] {
              vmap([](const Array& t, const Array& i) { return gather(t, i); }, tables, indices + 1 + 6).to_vector();
            }),
            "no error");
}

TEST(Vmap, SeveralResultsShareWhatTheyAreMadeOf) {
  const Array x = randn({4, 5});
  const auto [a, b] = vmap([](const Array& v) { return std::pair(sum(v), v * 2); }, x);
  EXPECT_TRUE(allclose(a, reshape(sum(x, 0), {5})));
  EXPECT_TRUE(allclose(b, x * 2));
  const std::vector<Array> list = vmap([](const Array& v) { return std::vector<Array>{v, v + 1, Array()}; }, x);
  EXPECT_TRUE(same(list[0], x));
  EXPECT_TRUE(list[2].is_nothing());
  const auto three = vmap([](const Array& v) { return std::tuple(v, v, sum(v)); }, x);
  EXPECT_EQ(std::get<2>(three).shape(), Shape{5});
}

// The gradients of each observation, which Opacus and per-sample clipping need.
TEST(Vmap, GivesTheGradientsOfEachObservation) {
  seed(3);
  const Chain model(Conv({3, 3}, 1, 2, relu), MaxPool(2), flatten, Dense(8, 3));
  const Array images = randn({6, 6, 1, 4}), labels = randint(0, 3, {4});
  const auto by_weight = [&](size_t which) {
    return [&, which](const Array& image, const Array& label) {
      const auto loss = [&](const Chain& m) {
        return logitcrossentropy(m(unsqueeze(image, -1)), onehot(reshape(label, {1}), 3));
      };
      const Chain g = gradient(loss, model);
      return which == 0 ? g[0].get_if<Conv>()->weight : g[-1].get_if<Dense>()->weight;
    };
  };
  compare("kernels", by_weight(0), images, labels);
  compare("weights", by_weight(1), images, labels);
}

// Of a bias, which all columns of an observation share, and of what else broadcasts over its last dims.
TEST(Vmap, GivesTheGradientsOfWhatBroadcastsOverLastDims) {
  seed(5);
  const Array cubes = randn({3, 5, 7, 4}), b = randn({3}), matrix = randn({3, 5}), middle = randn({1, 5});
  for (const Array& shared : {b, matrix, middle}) {
    const auto slope = [&](const Array& x) {
      return gradient([&](const Array& added) { return sum(square(x + added)); }, shared);
    };
    compare(to_string(shared.shape()).c_str(), slope, cubes);
  }
  const Chain model(Dense(3, 6, tanh), Dense(6, 2));
  const auto by_bias = [&](const Array& x) {
    const Chain g = gradient([&](const Chain& m) { return sum(square(m(x))); }, model);
    return concat({g[0].get_if<Dense>()->bias, g[1].get_if<Dense>()->bias}, 0);
  };
  compare("biases", by_bias, randn({3, 6, 4}));
  compare(
      "sums",
      [](const Array& x) {
        return sum_to(x, {3, 5});
      },
      cubes);
  compare(
      "sums over the middle",
      [](const Array& x) {
        return sum_to(x, {3, 1});
      },
      cubes);
}

TEST(Vmap, StandsInAndAroundDerivatives) {
  seed(4);
  const Array x = randn({3, 5}), v = randn({3, 5}), w = randn({3, 3});
  const auto f = [&](const Array& a) { return tanh(matmul(w, a)) * sum(a); };
  compare(
      "jvp", [&](const Array& a, const Array& d) { return jvp(f, a, d).tangent; }, x, v);
  compare(
      "jacobian", [&](const Array& a) { return jacobian(f, a); }, x);
  compare(
      "hessian", [&](const Array& a) { return hessian([&](const Array& b) { return sum(f(b)); }, a); }, x);
  const auto loss = [&](const Array& a) { return sum(square(vmap(f, a)) * v); };
  const auto plain = [&](const Array& a) { return sum(square(looped(f, a)) * v); };
  EXPECT_TRUE(allclose(gradient(loss, x), gradient(plain, x), {.rtol = 1e-4, .atol = 1e-5}));
  EXPECT_TRUE(allclose(jvp([&](const Array& a) { return vmap(f, a); }, x, v).tangent,
                       jvp([&](const Array& a) { return looped(f, a); }, x, v).tangent, {.rtol = 1e-4, .atol = 1e-5}));
  const auto by_w =
      gradient([&](const Array& m) { return sum(vmap([&](const Array& a) { return sin(matmul(m, a)); }, x) * v); }, w);
  EXPECT_TRUE(allclose(by_w, gradient([&](const Array& m) { return sum(sin(matmul(m, x)) * v); }, w),
                       {.rtol = 1e-4, .atol = 1e-5}));
  const Array outer = vmap([&](const Array& a) { return vmap([&](const Array& b) { return sum(a * sin(b)); }, x); }, v);
  EXPECT_TRUE(allclose(outer, matmul(transpose(sin(x)), v), {.rtol = 1e-4, .atol = 1e-5}));
}

TEST(Vmap, TakesLayers) {
  seed(5);
  const Array x = randn({4, 6, 3}), images = randn({5, 5, 2, 2, 3});
  const LSTM lstm(4, 3);
  compare(
      "LSTM", [&](const Array& a) { return lstm(unsqueeze(a, -1)); }, x);
  const Conv grouped({3, 3}, 2, 4, {.stride = 2, .pad = 1, .groups = 2});
  compare("Conv", grouped, images);
  const ConvTranspose back({2, 2}, 2, 3, {.stride = 2});
  compare("ConvTranspose", back, images);
  compare(
      "pool", [](const Array& a) { return meanpool(a, 2) + maxpool(a, 2); }, images);
  const Array kernels = randn({2, 2, 1, 4, 3});
  compare(
      "own kernels", [](const Array& a, const Array& w) { return conv(a, w, {.groups = 2}); }, images, kernels);
  compare(
      "kernels alone", [&](const Array& w) { return conv(select(images, -1, 0), w, {.groups = 2}); }, kernels);
  compare(
      "kernels back", [&](const Array& a, const Array& w) { return conv_transpose(a, w, {.stride = 2}); }, images,
      randn({2, 2, 3, 2, 3}));
  BatchNorm norm(2);
  withgradient([&](const BatchNorm& n) { return sum(vmap(n, images)); }, norm);
  EXPECT_EQ(norm.mean.value().to_vector(), (std::vector<float>{0, 0}));
}

/// What evaluating f's result takes.
struct Work {
  int64_t kernels, calls, read_bytes, written_bytes;
  bool operator==(const Work&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Work& work) {
  return out << work.kernels << " kernels, " << work.calls << " calls, " << work.read_bytes << " bytes read, "
             << work.written_bytes << " written";
}
template <class F> Work work_of(F&& f) {
  eval();
  const Stats before = stats();
  eval(f());
  const Stats after = stats();
  return {after.kernels - before.kernels, after.calls - before.calls, after.read_bytes - before.read_bytes,
          after.written_bytes - before.written_bytes};
}

/// With vmap, jvp and gradients a function takes the kernels, calls and bytes that it takes written out.
TEST(Vmap, FusesAsByHand) {
  const Array w = randn({6, 8}), b = randn({6}), x = randn({8, 50}), v = randn({8, 50}), y = randn({6, 50});
  const auto layer = [&](const Array& one) { return tanh(matmul(w, one) + b); };
  EXPECT_EQ(work_of([&] { return vmap(layer, x); }), work_of([&] { return layer(x); }));
  const auto norm = [](const Array& one) { return one / sqrt(sum(square(one)) + 1e-5); };
  EXPECT_EQ(work_of([&] { return vmap(norm, x); }), work_of([&] { return x / sqrt(sum(square(x), 0) + 1e-5); }));
  const auto loss = [&](const Array& a, const Array& c) { return sum(square(layer(a) - c)); };
  const auto slope = [&](const Array& a, const Array& c) {
    return gradient([&](const Array& at) { return loss(at, c); }, a);
  };
  EXPECT_EQ(work_of([&] { return vmap(slope, x, y); }), work_of([&] { return slope(x, y); }));
  const auto wave = [](const Array& at) { return sin(at * at) * exp(at); };
  const auto along = [&](const Array& at) { return (2 * at * cos(at * at) * exp(at) + sin(at * at) * exp(at)); };
  EXPECT_EQ(work_of([&] { return jvp(wave, x, v).tangent; }), work_of([&] { return along(x) * v; }));
  EXPECT_EQ(
      work_of([&] { return vmap([&](const Array& a, const Array& c) { return jvp(wave, a, c).tangent; }, x, v); }),
      work_of([&] { return along(x) * v; }));
  const auto product = [&](const Array& at) { return jvp(layer, at, v).tangent; };
  EXPECT_EQ(work_of([&] { return product(x); }), work_of([&] { return (1 - square(layer(x))) * matmul(w, v); }));
}

TEST(Vmap, TakesAttention) {
  seed(6);
  const Array q = randn({8, 5, 2, 3}), k = randn({4, 7, 2, 3}), v = randn({6, 7, 2, 3});
  const Array bias = randn({7, 5, 4, 1, 3}), mask = randn({7, 1, 1, 2, 3}) > -1;
  const auto attended = [](const Array& a, const Array& b, const Array& c, AttentionOptions options) {
    options.heads = 4;
    options.kv_heads = 2;
    return dot_product_attention(a, b, c, options).out;
  };
  compare(
      "all", [&](const Array& a, const Array& b, const Array& c) { return attended(a, b, c, {.causal = true}); }, q, k,
      v);
  compare(
      "queries", [&](const Array& a) { return attended(a, select(k, -1, 1), select(v, -1, 1), {}); }, q);
  compare(
      "bias and mask",
      [&](const Array& a, const Array& added, const Array& seen) {
        return attended(a, select(k, -1, 1), select(v, -1, 1), {.bias = added, .mask = seen});
      },
      q, bias, mask);
  compare(
      "a bias for all",
      [&](const Array& a) {
        return attended(a, select(k, -1, 1), select(v, -1, 1),
                        {.bias = select(bias, -1, 0), .mask = select(mask, -1, 0)});
      },
      q);
  const Array one = randn({8, 5, 3});  // a sequence of its own
  compare(
      "a sequence", [](const Array& a) { return dot_product_attention(a, a, a, {.heads = 2, .causal = true}).out; },
      one);
  compare(
      "gradients",
      [&](const Array& a, const Array& b, const Array& c, const Array& added) {
        const auto [da, db, dc] =
            gradient([&](const Array& x, const Array& y,
                         const Array& z) { return sum(square(attended(x, y, z, {.bias = added}))); },
                     a, b, c);
        return concat({reshape(da, {-1}), reshape(db, {-1}), reshape(dc, {-1})}, 0);
      },
      q, k, v, bias);
}

/// Neither forward nor back.
TEST(Vmap, KeepsNoLogitsOfAttention) {
  const Array x = randn({16, 1024, 3});
  const auto slope = [](const Array& a) {
    return gradient([](const Array& y) { return sum(square(dot_product_attention(y, y, y).out)); }, a);
  };
  EXPECT_LT(work_of([&] { return vmap(slope, x); }).written_bytes, 1024 * 1024 * 4);
}

TEST(Vmap, RefusesWhatItCannotDo) {
  const Array x = randn({3, 5});
  EXPECT_EQ(
      error_of([&] { vmap([](const Array& a) { return a.item(0) > 0 ? a : -a; }, x); }, ErrorKind::argument),
      "vmap: the function must not look at values, which are those of many observations, nor move arrays to another "
      "device; got one that does, or records more than 20000 ops; use where(condition, a, b)");
  int looks = 0;
  const auto halved = [&](const Array& a) {
    Array b = a;
    while (sum(b).item() < 1 && ++looks < 3) b = b * 2.0;  // which there would be no end of
    return b;
  };
  EXPECT_THROW(vmap(halved, x), Error);
  EXPECT_THROW(vmap([&](const Array& a) { return vmap(halved, reshape(a, {1, 3})); }, x), Error);
  EXPECT_EQ(looks, 0) << "the first look is refused";
  EXPECT_DOUBLE_EQ(sum(x * 0.0 + 2.0).item(), 30) << "afterwards all may be read";
  EXPECT_EQ(error_of(
                [&] {
                  vmap(add, x, ones({3, 4}));
                },
                ErrorKind::shape),
            "vmap: the arrays must have a last dim, of one size; got (3, 4) beside 5 observations; capture what is the "
            "same for all");
  EXPECT_EQ(error_of([&] { vmap(exp, Array(1.0)); }, ErrorKind::shape),
            "vmap: the arrays must have a last dim, of one size; got (); capture what is the same for all");
  const auto own = [](const Array& a) { return custom_gradient(round(a), {a}, [](const Array& dy) { return dy; }); };
  EXPECT_TRUE(allclose(
      vmap([&](const Array& a) { return gradient([&](const Array& b) { return sum(own(b)); }, a); }, x), ones({3, 5})));
  EXPECT_NE(error_of([&] { gradient([&](const Array& a) { return sum(vmap(own, a)); }, x); }).find("custom_gradient"),
            std::string::npos);
}

}  // namespace
}  // namespace rosin
