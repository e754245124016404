// Maps, lists, ties, copies and loading. Cases F2, F5 and others are those of Functors.jl, with ties made on purpose.
#include <rosin/model.hpp>

#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <tuple>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/index.hpp>
#include <rosin/log.hpp>
#include <rosin/reduce.hpp>
#include <rosin/stats.hpp>

#include "../tests/error_testing.hpp"

namespace rosin {
namespace {

Array vector_of(std::vector<float> values) { return Array(values, {static_cast<int64_t>(values.size())}); }
Array doubled(const Array& x) {
  std::vector<float> values = x.to_vector<float>();
  for (float& value : values) value *= 2;
  return Array(values, x.shape());
}
float first(const Array& x) { return x.to_vector<float>()[0]; }

struct Layer {
  Array weight = vector_of({1, 2});
  Array bias = vector_of({3});
};
struct Pair {
  Layer a, b;
};

TEST(EvalOfModels, ComputesAllArraysAlsoThoseThatAnotherThreadRecorded) {
  Pair model;
  model.a.bias = Array();
  std::vector<Array> list;
  std::thread([&] {
    model = fmap([](const Array& x) { return exp(x); }, model);
    list = {exp(model.b.weight)};
  }).join();
  const Array loss = sum(model.b.weight);
  const std::tuple gradients(fmap([](const Array& x) { return x * 2.0f; }, model), exp(loss));
  eval(loss, model, gradients, list);
  const int64_t evaluations = stats().evaluations;
  EXPECT_FLOAT_EQ(first(std::get<0>(gradients).b.weight), 2 * std::exp(1.0f));
  EXPECT_FLOAT_EQ(first(list[0]), std::exp(std::exp(1.0f)));
  EXPECT_FLOAT_EQ(first(std::get<1>(gradients)), std::exp(std::exp(1.0f) + std::exp(2.0f)));
  EXPECT_TRUE(model.a.bias.is_nothing());
  EXPECT_EQ(stats().evaluations, evaluations) << "something was left";
}

TEST(EvalOfModels, ThrowsWhatAnArrayOfItThrows) {
  Layer layer;
  layer.bias = gather(layer.weight, Array(std::vector<int32_t>{7}, {1}));
  EXPECT_THROW(eval(layer), Error);
}

TEST(Fmap, MapsEveryArrayAndLeavesTheModelAsItIs) {
  const Pair model;
  const Pair mapped = fmap(doubled, model);
  EXPECT_EQ(mapped.a.weight.to_vector<float>(), (std::vector<float>{2, 4}));
  EXPECT_EQ(first(mapped.b.bias), 6);
  EXPECT_EQ(first(model.a.weight), 1);
}

TEST(Fmap, GivesPathsAndLeavesOutWhatIsExcluded) {
  const Pair model;
  std::string paths;
  const Pair mapped = fmap(
      [&](const ModelPath& path, const Array& x) {
        paths += path.text() + " ";
        return doubled(x);
      },
      model, [](const ModelPath& path) { return path.text() == "b.bias"; });
  EXPECT_EQ(paths, "a.weight a.bias b.weight ");
  EXPECT_TRUE(same(mapped.b.bias, model.b.bias));
}

TEST(Fmap, NamesMayHaveLettersBeyondAscii) {
  struct Sized {
    Array gr\u00f6\u00dfe = vector_of({1});
  };
  std::string paths;
  const auto note = [&](const ModelPath& path, const Array& x) {
    paths += path.text();
    return x;
  };
  fmap(note, Sized{});
  EXPECT_EQ(paths, "gr\u00f6\u00dfe");
}

TEST(Fmap, NothingStaysNothing) {
  Layer model;
  model.bias = Array();
  EXPECT_TRUE(fmap(doubled, model).bias.is_nothing());
}

struct Foo {
  Array x;
  std::vector<Foo> y;
};

TEST(Fmap, TiesMadeOnPurposeSurviveAndEqualHandlesAreNone) {
  const Array s = tied(vector_of({1}));
  const Array equal = vector_of({1});
  const Foo model{s, {Foo{equal, {Foo{s, {Foo{equal, {}}}}}}}};
  int calls = 0;
  const Foo mapped = fmap(
      [&](const Array& x) {
        ++calls;
        return doubled(x);
      },
      model);
  EXPECT_EQ(calls, 3);
  EXPECT_TRUE(same(mapped.x, mapped.y[0].y[0].x));
  EXPECT_TRUE(is_tied(mapped.x));
  EXPECT_FALSE(same(mapped.y[0].x, mapped.y[0].y[0].y[0].x));
  EXPECT_FALSE(same(mapped.x, mapped.y[0].x));
}

TEST(Fmap, AClassThatCannotBeWalkedComesBackUnchangedWithAWarning) {
  struct ActorCritic {
    explicit ActorCritic(int) : actor(vector_of({1})) {}
    Array actor;
  };
  forget_said();
  int said = 0;
  set_log_sink([](const LogMessage&, void* data) { ++*static_cast<int*>(data); }, &said);
  const ActorCritic model(1);
  EXPECT_TRUE(same(fmap(doubled, model).actor, model.actor));
  set_log_sink(nullptr);
  EXPECT_EQ(said, 1);
}

TEST(Lists, TrainablesLeaveOutIntegersBuffersAndSecondTies) {
  struct Model {
    Layer layer;
    Array indices = Array({1, 2}, {2});
    Buffer mean{vector_of({1})};
    Array again;
  };
  Model model;
  model.again = tied(model.layer.weight);
  EXPECT_EQ(trainables(model).size(), 2u);
  EXPECT_EQ(fleaves(model).size(), 5u);
  EXPECT_EQ(parameter_count(model), 3);
  const std::vector<NamedArray> named = state(model);
  ASSERT_EQ(named.size(), 4u);
  EXPECT_EQ(named[0].name, "layer.weight");
  EXPECT_EQ(named[2].name, "indices");
  EXPECT_EQ(named[3].name, "mean");
}

TEST(Lists, PathsInStateAreThoseOfFiles) {
  const std::vector<Layer> model(2);
  EXPECT_EQ(named_trainables(model)[3].name, "1.bias");
}

TEST(Places, GoThroughModelsInStepAndReplaceArrays) {
  Pair model;
  model.b.weight = tied(model.a.weight);
  std::vector<detail::ArrayPlace<Array*>> places;
  std::vector<detail::ArrayPlace<const Array*>> others;
  const Pair gradient = fmap(doubled, model);
  detail::list_arrays(model, places);
  detail::list_arrays(gradient, others);
  ASSERT_EQ(places.size(), 4u);
  ASSERT_EQ(others.size(), 4u);
  EXPECT_EQ(places[2].first, 0);
  EXPECT_EQ(places[3].first, 3);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(places[i].path, others[i].path);
    *places[i].array = *others[i].array;
  }
  EXPECT_EQ(first(model.b.bias), 6);
  EXPECT_EQ(detail::path_at(model, 2), "b.weight");
}

struct Owner {
  std::unique_ptr<Layer> owned = std::make_unique<Layer>();
  std::vector<std::unique_ptr<Layer>> list;
  std::optional<std::unique_ptr<Layer>> maybe;
  std::variant<int, std::unique_ptr<Layer>> choice = std::make_unique<Layer>();
  std::map<std::string, std::unique_ptr<Layer>> named;
  std::array<std::unique_ptr<Layer>, 2> pair;
  std::tuple<std::unique_ptr<Layer>, int> both;
};

TEST(CopyOf, CopiesModelsWithUniquePointers) {
  Owner model;
  model.list.push_back(std::make_unique<Layer>());
  model.maybe = std::make_unique<Layer>();
  model.named["a"] = std::make_unique<Layer>();
  model.pair[1] = std::make_unique<Layer>();
  std::get<0>(model.both) = std::make_unique<Layer>();
  const Owner mapped = fmap(doubled, model);
  EXPECT_EQ(first(mapped.owned->weight), 2);
  EXPECT_EQ(first(mapped.list[0]->weight), 2);
  EXPECT_EQ(first((*mapped.maybe)->weight), 2);
  EXPECT_EQ(first(std::get<1>(mapped.choice)->weight), 2);
  EXPECT_EQ(first(mapped.named.at("a")->weight), 2);
  EXPECT_EQ(mapped.pair[0], nullptr);
  EXPECT_EQ(first(mapped.pair[1]->weight), 2);
  EXPECT_EQ(first(std::get<0>(mapped.both)->weight), 2);
  EXPECT_EQ(first(model.owned->weight), 1);
}

TEST(CopyOf, SharedObjectsAreCopiedOnceAndStayShared) {
  struct Twice {
    std::shared_ptr<Layer> a = std::make_shared<Layer>();
    std::shared_ptr<Layer> b;
  };
  Twice model;
  model.b = model.a;
  const Twice mapped = fmap(doubled, model);
  EXPECT_NE(mapped.a, model.a);
  EXPECT_EQ(mapped.a, mapped.b);
  EXPECT_EQ(first(mapped.a->weight), 2);
  EXPECT_EQ(first(model.a->weight), 1);
  EXPECT_EQ(parameter_count(model), 3);
}

TEST(Clone, SharesNoArrayAndKeepsTies) {
  Pair model;
  model.b.weight = tied(model.a.weight);
  const Pair copy = clone(model);
  EXPECT_FALSE(same(copy.a.weight, model.a.weight));
  EXPECT_TRUE(same(copy.a.weight, copy.b.weight));
  EXPECT_EQ(copy.a.weight.to_vector<float>(), model.a.weight.to_vector<float>());
  EXPECT_FALSE(same(clone(model.a.bias), model.a.bias));
}

TEST(Precision, ConvertsFloatsOnly) {
  struct Model {
    Layer layer;
    Array indices = Array({1, 2}, {2});
    Buffer mean{vector_of({1})};
  };
  const Model model, wide = f64(model);
  EXPECT_EQ(wide.layer.weight.dtype(), Float64);
  EXPECT_EQ(wide.mean.value().dtype(), Float64);
  EXPECT_EQ(wide.indices.dtype(), Int32);
  EXPECT_TRUE(same(f32(model).layer.weight, model.layer.weight));
}

TEST(Precision, KeepsRunningStatisticsInFloat32) {
  struct Model {
    Layer layer;
    Buffer mean{vector_of({1})};
  };
  const Model model;
  for (const Model& half : {f16(model), bf16(model), f16(f64(model)), bf16(f16(model))}) {
    EXPECT_EQ(size_of(half.layer.weight.dtype()), 2u);
    EXPECT_EQ(half.mean.value().dtype(), Float32);
  }
  EXPECT_TRUE(same(f16(model).mean.value(), model.mean.value()));
}

// --- loadmodel

TEST(LoadModel, CopiesByPathAndKeepsTypes) {
  Layer dst = f64(Layer{});
  Layer source;
  source.weight = vector_of({7, 8});
  loadmodel(dst, source);
  EXPECT_EQ(dst.weight.dtype(), Float64);
  EXPECT_EQ(dst.weight.to_vector<float>(), (std::vector<float>{7, 8}));
}

TEST(LoadModel, AbsentBiasesStayAbsentAndAbsentSourcesGiveZero) {
  Layer without, with;
  without.bias = Array();
  loadmodel(with, without);
  EXPECT_EQ(first(with.bias), 0);
  Layer other;
  loadmodel(without, other);
  EXPECT_TRUE(without.bias.is_nothing());
}

TEST(LoadModel, NamesWhatDoesNotMatch) {
  Layer dst;
  EXPECT_EQ(error_of([&] {
              loadmodel(dst, {{"weights", vector_of({1, 2})}, {"bias", vector_of({1})}});
            }),
            "loadmodel: every array needs an entry in the source; weight is missing there; the nearest of its names is "
            "weights; rename it, load into what was saved (a state: of the same rule), or load with {.strict = false}");
  EXPECT_EQ(error_of([&] {
              loadmodel(dst, {{"weight", vector_of({1, 2})}, {"bias", vector_of({1})}, {"more", vector_of({1})}});
            }),
            "loadmodel: every entry of the source must have its place; more is in the source only; load into what was "
            "saved (a state: of the same rule), or with {.strict = false}");
  EXPECT_EQ(
      error_of([&] {
        loadmodel(dst, {{"weight", vector_of({1})}, {"bias", vector_of({1})}});
      }),
      "loadmodel: sizes must match; weight is (2) and the source has (1); build the model with the sizes it was saved "
      "with");
}

TEST(LoadModel, ChangesNothingWhenSomethingDoesNotMatch) {
  Layer dst;
  const Array before = dst.weight;
  EXPECT_THROW(loadmodel(dst, {{"weight", vector_of({9, 9})}, {"bias", vector_of({1, 2})}}), Error);
  EXPECT_TRUE(same(dst.weight, before));
}

TEST(LoadModel, TiedPlacesNeedEqualSources) {
  Pair dst;
  dst.b.weight = tied(dst.a.weight);
  const Pair source;
  loadmodel(dst, source);
  EXPECT_TRUE(same(dst.a.weight, dst.b.weight));
  EXPECT_TRUE(is_tied(dst.a.weight));
  EXPECT_FALSE(is_tied(source.a.weight));
  loadmodel(dst, state(dst));
  EXPECT_TRUE(same(dst.a.weight, dst.b.weight));
  Pair different;
  different.b.weight = vector_of({5, 6});
  EXPECT_EQ(error_of([&] { loadmodel(dst, different); }),
            "loadmodel: b.weight is tied to a.weight, but the source has different values for them; untie them or load "
            "another "
            "source");
}

TEST(LoadModel, ComparesTiedIntegersExactly) {
  struct Counts {
    Array a, b;
  };
  const auto counts = []<class T>(T value) { return Array(std::span<const T>(&value, 1), Shape{1}); };
  const auto load_two = [&](const Array& a, const Array& b) {
    Counts dst{zeros({1}, a.dtype()), Array()};
    dst.b = tied(dst.a);
    loadmodel(dst, {{"a", a}, {"b", b}});
    return dst.b;
  };
  constexpr int64_t large = (int64_t{1} << 53) + 1;  // no double has this value
  constexpr uint64_t largest = UINT64_MAX;
  EXPECT_EQ(load_two(counts(large), counts(large)).item<int64_t>(), large);
  EXPECT_THROW(load_two(counts(large), counts(large - 1)), Error);
  EXPECT_EQ(load_two(counts(largest), counts(largest)).item<uint64_t>(), largest);
  EXPECT_THROW(load_two(counts(largest), counts(largest - 1)), Error);
}

TEST(Modes, AreSetInEveryLayerThatHasOne) {
  struct Drop {
    LayerMode mode = LayerMode::automatic;
  };
  struct Model {
    Drop a;
    std::vector<Drop> rest{Drop{}};
  };
  Model model;
  testmode(model);
  EXPECT_EQ(model.rest[0].mode, LayerMode::test);
  trainmode(model);
  EXPECT_EQ(model.a.mode, LayerMode::train);
  automode(model);
  EXPECT_EQ(model.a.mode, LayerMode::automatic);
}

}  // namespace
}  // namespace rosin
