// The seeds on models of one's own: which fields are moved, taking apart, fmap. Rows 51-54 and cases F1-F12; see
// CASES.md.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>

#include "seeds.hpp"

namespace rosin::seeds {
namespace {

const Array two_by_two = ones({2, 2}, Float64), two = ones({2}, Float64);

/// A class with private members that says nothing of them.
class Unregistered {
 public:
  Unregistered(const Array& actor, const Array& critic) : actor_(actor), critic_(critic) {}
  const Array& actor() const { return actor_; }
  const Array& critic() const { return critic_; }

 private:
  Array actor_, critic_;
};

struct ActorCritic {
  Array actor, critic;
};

struct ActorAlone {
  Array actor, critic;
  static constexpr auto rosin_fields = fields<&ActorAlone::actor>{};
};

Array halved(const Array& x) { return x / 2; }

TEST_F(Seeds, Row51AClassThatCannotBeWalkedComesBackUnchanged) {
  const Unregistered m(two_by_two, two);
  const Unregistered after = fmap([](const Array& x) { return gpu(x); }, m);
  EXPECT_TRUE(same(after.actor(), m.actor()) && same(after.critic(), m.critic()));
  EXPECT_EQ(after.actor().dtype(), Float64);
  const Lines said = heard();
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(said[0],
            "the walk does not know the fields of the class Unregistered; what it holds is not moved, trained or "
            "saved; state them in the class: static constexpr auto rosin_fields = "
            "rosin::fields<&Unregistered::member>{}; or static constexpr bool rosin_leaf = true; where it holds "
            "no arrays");
}

TEST_F(Seeds, Row52FmapOfCuMovesBothFields) {
  if (!cu_works()) return;
  const ActorCritic m{two_by_two, two};
  const ActorCritic after = fmap(cu, m);
  EXPECT_EQ(text_of(after.actor.device()), "CUDA:0");
  EXPECT_EQ(text_of(after.critic.device()), "CUDA:0");
  EXPECT_EQ(after.actor.dtype(), Float32);
  expect_equal(cpu(after.actor), ones({2, 2}));
  EXPECT_EQ(text_of(m.actor.device()), "CPU");
}

TEST_F(Seeds, Row53FunctorOfTakesApartAndRebuilds) {
  const ActorCritic m{two_by_two, two};
  auto [parts, rebuild] = functor_of(m);
  EXPECT_EQ(std::get<0>(parts).name, "actor");
  EXPECT_EQ(std::get<1>(parts).name, "critic");
  EXPECT_TRUE(same(std::get<0>(parts).value, m.actor));
  const ActorCritic moved = rebuild(std::tuple{gpu(m.actor), gpu(m.critic)});
  EXPECT_EQ(text_of(moved.actor.device()), gpu_text());
  const ActorCritic again = rebuild(parts);
  EXPECT_TRUE(same(again.actor, m.actor) && same(again.critic, m.critic));
}

TEST_F(Seeds, Row54OfAListedSubsetOnlyThoseFieldsAreMoved) {
  const ActorAlone m{two_by_two, two};
  const ActorAlone after = m | gpu;
  EXPECT_EQ(text_of(after.actor.device()), gpu_text());
  EXPECT_TRUE(same(after.critic, m.critic));
  if (!cu_works()) return;
  EXPECT_EQ(text_of(fmap(cu, m).actor.device()), "CUDA:0");
  EXPECT_TRUE(same(fmap(cu, m).critic, m.critic));
}

// --- Cases of Functors' suite

struct NoChild {
  Array x;
  static constexpr auto rosin_fields = fields<>{};
};
struct Foo {
  Array x, y;
};
struct Bar {
  Array x;
};
struct Nesting {
  Foo x;
  Bar y;
};

TEST_F(Seeds, F01AClassWithoutFieldsIsWalkedAndStaysAsItIs) {
  const NoChild m{ones({2})};
  EXPECT_TRUE(fleaves(m).empty());
  EXPECT_TRUE(same(fmap(halved, m).x, m.x));
  EXPECT_EQ(std::tuple_size_v<decltype(functor_of(m).fields)>, 0u);
  EXPECT_EQ(heard(), Lines{});
}

TEST_F(Seeds, F02FmapGoesThroughNestedModels) {
  const Nesting m{{Array({1, 2, 3}, {3}), Array({4, 5}, {2})}, {Array({6}, {1})}};
  const Nesting f = fmap([](const Array& x) { return cast(x, Float32); }, m);
  expect_equal(f.x.x, Array({1.0f, 2.0f, 3.0f}, {3}));
  expect_equal(f.x.y, Array({4.0f, 5.0f}, {2}));
  expect_equal(f.y.x, Array({6.0f}, {1}));
}

TEST_F(Seeds, F03ExcludedArraysStay) {
  const Foo m{Array({1, 2}, {2}), Array({1.0f, 2.0f}, {2})};
  const Foo after = fmap(halved, m, [](const Array& x) { return x.dtype() == Int32; });
  EXPECT_TRUE(same(after.x, m.x));
  expect_equal(after.y, Array({0.5f, 1.0f}, {2}));
}

struct OneOfThree {
  Array x, y, z;
  static constexpr auto rosin_fields = fields<&OneOfThree::y>{};
};
struct OtherOrder {
  Array x, y, z;
  static constexpr auto rosin_fields = fields<&OtherOrder::z, &OtherOrder::x>{};
};

template <class M> std::vector<double> three_of(const M& m) { return {m.x.item(), m.y.item(), m.z.item()}; }

TEST_F(Seeds, F04AListOfFieldsSaysWhatIsMappedInAnyOrder) {
  const Array one({1.0f}, {1}), two_of({2.0f}, {1}), three({3.0f}, {1});
  const auto twice = [](const Array& x) { return 2 * x; };
  EXPECT_EQ(three_of(fmap(twice, OneOfThree{one, two_of, three})), (std::vector<double>{1, 4, 3}));
  EXPECT_EQ(three_of(fmap(twice, OtherOrder{one, two_of, three})), (std::vector<double>{2, 2, 6}));
  auto [parts, rebuild] = functor_of(OtherOrder{one, two_of, three});
  EXPECT_EQ(std::get<0>(parts).name, "z");
}

struct Inner {
  Array x, y;
};
struct Middle {
  Array x;
  Inner y;
};
struct Outer {
  Array x;
  Middle y;
};

TEST_F(Seeds, F05TiesSurviveFmapAndEqualArraysAreNoTie) {
  const Array s = tied(Array({1.0f, 2.0f, 3.0f}, {3})), other({1.0f, 2.0f, 3.0f}, {3});
  const Outer m1{s, {other, {s, other}}};
  int calls = 0;
  const Outer after = fmap(
      [&calls](const Array& x) {
        ++calls;
        return x + 1;
      },
      m1);
  EXPECT_TRUE(same(after.x, after.y.y.x));
  EXPECT_FALSE(same(after.x, after.y.x));
  EXPECT_TRUE(is_tied(after.y.y.x) && !is_tied(after.y.x));
  // The mark ties, not the handle: `other` stands in two places and is two parameters.
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(state(m1).size(), 3u);
  // A shared object stays shared.
  const auto object = std::make_shared<Bar>(Bar{other});
  const std::vector<std::shared_ptr<Bar>> both{object, object};
  const std::vector<std::shared_ptr<Bar>> mapped = fmap(halved, both);
  EXPECT_EQ(mapped[0], mapped[1]);
  EXPECT_NE(mapped[0], object);
}

TEST_F(Seeds, F06FmapGoesThroughSeveralModelsInStep) {
  const Nesting a{{ones({2}), ones({3})}, {ones({1})}}, b{{2 * ones({2}), Array()}, {3 * ones({1})}};
  const auto add = [](const Array& x, const Array& y) { return y.is_nothing() ? x : x + y; };
  const Nesting sum_of = fmap(add, a, b);
  expect_equal(sum_of.x.x, 3 * ones({2}));
  EXPECT_TRUE(same(sum_of.x.y, a.x.y));
  expect_equal(sum_of.y.x, 4 * ones({1}));
  const Nesting third =
      fmap([](const Array& x, const Array& y, const Array& z) { return y.is_nothing() ? z : x + y + z; }, a, b, a);
  expect_equal(third.x.x, 4 * ones({2}));
  // Another class with the same paths will do; one that lacks a path will not.
  struct Twin {
    Foo x;
    Bar y;
    Array more;
  };
  expect_equal(fmap(add, a, Twin{{ones({2}), ones({3})}, {ones({1})}, ones({7})}).y.x, 2 * ones({1}));
  EXPECT_EQ(error_of([&] { fmap(add, a, Bar{ones({2})}); }, ErrorKind::argument),
            "fmap: every array of the first model needs one at its path in the others; x.x is missing in model 1 "
            "(counted from 0); give models of the same structure");
  // Ties are those of the first model.
  const Array s = tied(ones({2}));
  const Foo from_first = fmap(add, Foo{s, s}, Foo{ones({2}), 5 * ones({2})});
  EXPECT_TRUE(same(from_first.x, from_first.y));
  expect_equal(from_first.x, 2 * ones({2}));
}

TEST_F(Seeds, F07FmapGoesThroughMapsAndIgnoresExtraKeysOfTheOthers) {
  using Dict = std::map<std::string, Array>;
  const Dict a{{"a", ones({2})}, {"b", 2 * ones({2})}}, b{{"a", ones({2})}, {"b", ones({2})}, {"c", ones({2})}};
  const Dict after = fmap([](const Array& x, const Array& y) { return x + y; }, a, b);
  ASSERT_EQ(after.size(), 2u);
  expect_equal(after.at("a"), 2 * ones({2}));
  expect_equal(after.at("b"), 3 * ones({2}));
}

struct Leaf {
  Array x;
  static constexpr bool rosin_leaf = true;
};

TEST_F(Seeds, F08AClassMayStateThatItIsALeaf) {
  const std::tuple<Leaf, Array> m{Leaf{ones({2})}, ones({2})};
  const auto [leaf, x] = fmap(halved, m);
  EXPECT_TRUE(same(leaf.x, std::get<0>(m).x));
  expect_equal(x, halved(ones({2})));
  EXPECT_EQ(fleaves(m).size(), 1u);
  EXPECT_EQ(heard(), Lines{});
}

struct Middles {
  Array a;
  std::tuple<Array, Array> b;
  Array c;
};

TEST_F(Seeds, F09LeavesStandInTheOrderOfTheWalkAndAreNotMerged) {
  std::vector<Array> n;
  for (float i = 1; i <= 7; ++i) n.push_back(full({1}, i));
  const std::tuple<Array, std::tuple<Array, Array>, Middles> m{n[0], {n[1], n[2]}, {n[3], {n[4], n[5]}, n[6]}};
  const std::vector<Array> leaves = fleaves(m);
  ASSERT_EQ(leaves.size(), 7u);
  for (size_t i = 0; i < 7; ++i) EXPECT_TRUE(same(leaves[i], n[i])) << i;
  const Array s = tied(ones({2}));
  EXPECT_EQ(fleaves(std::tuple{s, s}).size(), 2u);
  EXPECT_EQ(trainables(std::tuple{s, s}).size(), 1u);
  EXPECT_EQ(named_trainables(m).back().name, "2.c");
}

TEST_F(Seeds, F10FmapKnowsThePathOfEachArray) {
  const Nesting m{{ones({2}), ones({3})}, {ones({1})}};
  Lines paths;
  fmap(
      [&paths](const ModelPath& path, const Array& x) {
        paths.push_back(path.text());
        return x;
      },
      m);
  EXPECT_EQ(paths, (Lines{"x.x", "x.y", "y.x"}));
  const Nesting after = fmap(halved, m, [](const ModelPath& path) { return path.text() == "x.y"; });
  EXPECT_TRUE(same(after.x.y, m.x.y));
  expect_equal(after.x.x, halved(ones({2})));
}

TEST_F(Seeds, F11KeyPathsLeadToArrays) {
  std::tuple<Array, Chain> m{ones({2}), Chain(Dense(2, 3), Dense(3, 1))};
  EXPECT_TRUE(haskeypath(m, "[1].layers[0].weight"));
  EXPECT_TRUE(haskeypath(m, "1.layers.0.weight"));
  EXPECT_FALSE(haskeypath(m, "1.layers.2.weight"));
  EXPECT_FALSE(haskeypath(m, ""));
  EXPECT_TRUE(same(getkeypath(m, "1.layers.1.bias"), trainables(std::get<1>(m))[3]));
  const Array w = full({3, 2}, 7.0f);
  setkeypath(m, "1.layers.0.weight", w);
  EXPECT_TRUE(same(trainables(std::get<1>(m))[0], w));
  EXPECT_EQ(error_of([&] { getkeypath(m, "[1].layers[0].wieght"); }, ErrorKind::argument),
            "getkeypath: the path must lead to an array of the model; got \"[1].layers[0].wieght\"; did you mean "
            "[1].layers[0].weight?");
  EXPECT_EQ(error_of([&] { setkeypath(m, "", w); }, ErrorKind::argument),
            "setkeypath: the path must lead to an array of the model; got \"\"; state(model) lists the paths");
}

struct Affine {
  Array W, b;
  Array operator()(const Array& x) const { return matmul(W, x) + b; }
};

TEST_F(Seeds, F12AStepOfGradientDescentIsAnFmapOfTwo) {
  const Affine m = gpu(Affine{ones({3, 4}), zeros({3})});
  const Array x = gpu(ones({4, 2}));
  const Affine grad = gradient([&](const Affine& each) { return sum(each(x)); }, m);
  const Affine after = fmap([](const Array& p, const Array& g) { return p - 0.1 * g; }, m, grad);
  expect_close(cpu(after.W), full({3, 4}, 0.8f), 1e-6);
  expect_close(cpu(after.b), full({3}, -0.2f), 1e-6);
  EXPECT_EQ(text_of(after.W.device()), gpu_text());
}

}  // namespace
}  // namespace rosin::seeds
