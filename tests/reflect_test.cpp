// The walk finds the fields of every kind of class: aggregates, listed and counted members, containers, pointers.
// Compiled with g++ and with clang.
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include <rosin/functor.hpp>
#include <rosin/log.hpp>
#include <rosin/model.hpp>

namespace {

using namespace rosin;

Array number(double value) { return Array({static_cast<float>(value)}, Shape{1}); }

/// Paths of all arrays, buffers marked, places that are not trained in brackets.
class Paths : public ModelVisitor {
 public:
  void array(const Array&, const ModelPath& path) override {
    text += (text.empty() ? "" : " ") + (path.trainable() ? path.text() : "(" + path.text() + ")");
  }
  void buffer(const Buffer&, const ModelPath& path) override { text += (text.empty() ? "~" : " ~") + path.text(); }
  std::string text;
};

template <class M> std::string paths_of(const M& model) {
  Paths paths;
  visit(model, paths);
  return paths.text;
}

/// The same places when the model is walked to be changed.
class EditedPaths : public ModelEditor {
 public:
  void array(Array&, const ModelPath& path) override { text += (text.empty() ? "" : " ") + path.file_text(); }
  std::string text;
};

struct Affine {
  Array weight = number(1);
  Array bias = number(2);
};

struct Counted {
  Counted(double w, double b) : weight(number(w)), bias(number(b)) {}
  Array weight, bias;
  static constexpr int rosin_fields = 2;
};

class Listed {
 public:
  Listed() : actor_(number(1)), critic_(number(2)) {}

 private:
  Array actor_, critic_;

 public:
  static constexpr auto rosin_fields = rosin::fields<&Listed::critic_, &Listed::actor_>{};
  static constexpr auto rosin_trainable = rosin::fields<&Listed::actor_>{};
};

struct Foreign {
  explicit Foreign(int) : a(number(1)), b(number(2)) {}
  Array a, b;
};

struct Unknown {
  explicit Unknown(int) : a(number(1)) {}
  Array a;
};

}  // namespace

template <> struct rosin::functor<Foreign> : rosin::fields<&Foreign::b> {};

namespace {

TEST(Reflect, AggregatesNeedNothing) { EXPECT_EQ(paths_of(Affine{}), "weight bias"); }

TEST(Reflect, LocalStructsWork) {
  struct Local {
    Affine first;
    Affine second;
    Array operator()(const Array& x) const { return x; }
  };
  EXPECT_EQ(paths_of(Local{}), "first.weight first.bias second.weight second.bias");
}

template <class T, int n> struct Block {
  T left;
  std::array<T, n> more;
};

TEST(Reflect, TemplatesWork) {
  EXPECT_EQ(paths_of(Block<Affine, 2>{}),
            "left.weight left.bias more[0].weight more[0].bias more[1].weight more[1].bias");
}

TEST(Reflect, CountedClassesWithConstructorsWork) { EXPECT_EQ(paths_of(Counted(1, 2)), "weight bias"); }

TEST(Reflect, ListedPrivateMembersAreWalkedInTheOrderOfTheList) { EXPECT_EQ(paths_of(Listed{}), "(critic_) actor_"); }

TEST(Reflect, ForeignClassesAreAdaptedByAFunctor) { EXPECT_EQ(paths_of(Foreign(0)), "b"); }

struct Frozen {
  Affine encoder;
  Affine head;
  static constexpr auto rosin_trainable = rosin::fields<&Frozen::head>{};
};

TEST(Reflect, FieldsOutsideTheTrainableListAreNotTrained) {
  EXPECT_EQ(paths_of(Frozen{}), "(encoder.weight) (encoder.bias) head.weight head.bias");
}

struct Empty {};
struct WithEmptyBase : Empty {
  Array x, y;
};

TEST(Reflect, EmptyBasesAndEmptyClassesAreNoFields) {
  EXPECT_EQ(paths_of(Empty{}), "");
  EXPECT_EQ(paths_of(WithEmptyBase{}), "x y");
}

struct NoDefault {
  explicit NoDefault(double v) : a(number(v)) {}
  Array a;
  static constexpr int rosin_fields = 1;
};
struct HoldsNoDefault {
  int size;
  NoDefault inside;
  Array last;
};

TEST(Reflect, MembersWithoutDefaultConstructorWork) {
  EXPECT_EQ(paths_of(HoldsNoDefault{1, NoDefault(1), number(1)}), "inside.a last");
}

struct ThirtyTwo {
  Array a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15;
  Array a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31;
};

TEST(Reflect, ThirtyTwoFieldsAreWalked) {
  std::string expected;
  for (int i = 0; i < 32; ++i) expected += (i > 0 ? " a" : "a") + std::to_string(i);
  EXPECT_EQ(paths_of(ThirtyTwo{}), expected);
}

struct Containers {
  std::vector<Affine> list{Affine{}, Affine{}};
  std::optional<Affine> absent;
  std::optional<Affine> present{Affine{}};
  std::variant<Array, Affine, int> choice{Affine{}};
  std::tuple<Array, Affine> both;
  std::pair<Affine, int> pair;
  std::map<std::string, Affine> named{{"key", Affine{}}};
  std::map<int, Array> numbered{{7, number(1)}};
  std::shared_ptr<Affine> shared = std::make_shared<Affine>();
  std::unique_ptr<Affine> owned = std::make_unique<Affine>();
  std::unique_ptr<Affine> null;
};

TEST(Reflect, ContainersAndPointersAreWalkedThrough) {
  const std::string expected =
      "list[0].weight list[0].bias list[1].weight list[1].bias present.weight present.bias choice.weight choice.bias "
      "both[0] both[1].weight both[1].bias pair[0].weight pair[0].bias named.key.weight named.key.bias numbered[7] "
      "shared.weight shared.bias owned.weight owned.bias";
  Containers model;
  EXPECT_EQ(paths_of(model), expected);
  EditedPaths edited;
  visit(model, edited);
  EXPECT_EQ(edited.text,
            "list.0.weight list.0.bias list.1.weight list.1.bias present.weight present.bias choice.weight choice.bias "
            "both.0 both.1.weight both.1.bias pair.0.weight pair.0.bias named.key.weight named.key.bias numbered.7 "
            "shared.weight shared.bias owned.weight owned.bias");
}

enum class Kind { small, large };

struct Leaves {
  int heads = 8;
  double rate = 0.1;
  bool on = true;
  Kind kind = Kind::small;
  std::string name = "n";
  const char* literal = "l";
  std::vector<int> sizes{1, 2};
  float (*function)(float) = nullptr;
  std::function<int(int)> callable;
  Array x;
};

TEST(Reflect, NumbersEnumsStringsAndFunctionsAreLeavesWithoutWarning) {
  forget_said();
  std::string said;
  set_log_sink([](const LogMessage& message, void* data) { static_cast<std::string*>(data)->append(message.text); },
               &said);
  auto lambda = [captured = 3](int i) { return i + captured; };
  const std::tuple<Leaves, decltype(lambda)> model{{}, lambda};
  EXPECT_EQ(paths_of(model), "[0].x");
  set_log_sink(nullptr);
  EXPECT_EQ(said, "");
}

TEST(Reflect, BuffersAreToldApartAndNeverTrained) {
  struct Norm {
    Array scale;
    Buffer mean;
  };
  EXPECT_EQ(paths_of(Norm{}), "scale ~mean");
}

TEST(Reflect, OtherClassesAreLeavesWithOneWarningForEach) {
  forget_said();
  std::vector<std::string> said;
  set_log_sink(
      [](const LogMessage& message, void* data) {
        static_cast<std::vector<std::string>*>(data)->push_back(std::string(message.id) + ": " +
                                                                std::string(message.text));
      },
      &said);
  struct Model {
    Affine first;
    std::vector<Unknown> rest;
  };
  const Model model{{}, {Unknown(1), Unknown(2)}};
  EXPECT_EQ(paths_of(model), "first.weight first.bias");
  set_log_sink(nullptr);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(
      said[0],
      "unwalked-class: the walk does not know the fields of the class Unknown at rest[0]; what it holds is not moved, "
      "trained or saved; state them in the class: static constexpr auto rosin_fields = "
      "rosin::fields<&Unknown::member>{}; or static constexpr bool rosin_leaf = true; where it holds no arrays");
}

class Erased {
 public:
  Array inside = number(1);
  Erased() {}
  void rosin_visit(ModelVisitor& visitor, const ModelPath& path) const { visit(inside, visitor, path.field("inside")); }
  void rosin_visit(ModelEditor& editor, const ModelPath& path) { visit(inside, editor, path.field("inside")); }
};

TEST(Reflect, AClassMayWalkItself) {
  struct Model {
    std::vector<Erased> layers{Erased(), Erased()};
  };
  EXPECT_EQ(paths_of(Model{}), "layers[0].inside layers[1].inside");
}

TEST(Reflect, TypeNamesAreShort) {
  EXPECT_EQ(reflect::type_name<Affine>, "Affine");
  EXPECT_EQ((reflect::type_name<Block<Affine, 2>>), "Block");
  auto lambda = [](int) {};
  EXPECT_EQ(reflect::type_name<decltype(lambda)>, "lambda");
  struct Local {
    struct Inner {};
  };
  EXPECT_EQ(reflect::type_name<Local::Inner>, "Inner");
}

TEST(Reflect, PathsHashTheSameWhereTheyAreTheSame) {
  const ModelPath root, a = root.field("layers"), b = a.item(3), again = root.field("layers");
  EXPECT_EQ(b.hash(), again.item(3).hash());
  EXPECT_NE(b.hash(), a.item(4).hash());
  EXPECT_NE(root.field("ab").hash(), root.field("ba").hash());
}

TEST(Reflect, StreamsAreNoModels) {
  static_assert(!Walkable<std::string> && !Walkable<int> && !Walkable<Unknown> && !Walkable<float (*)(float)>);
  static_assert(Walkable<Array> && Walkable<Affine> && Walkable<std::vector<Affine>> && Walkable<Erased> &&
                Walkable<Foreign>);
}

// --- functor_of (sem 7, rows 51 to 54).

TEST(Functor, GivesNamedFieldsAndRebuilds) {
  const Affine model;
  auto [fields, rebuild] = functor_of(model);
  EXPECT_EQ(std::get<0>(fields).name, "weight");
  EXPECT_EQ(std::get<1>(fields).name, "bias");
  EXPECT_TRUE(same(std::get<1>(fields).value, model.bias));
  const Array other = number(5);
  const Affine built = rebuild(std::tuple{other, model.bias});
  EXPECT_TRUE(same(built.weight, other));
  EXPECT_TRUE(same(built.bias, model.bias));
  EXPECT_TRUE(same(rebuild(fields).weight, model.weight));
}

TEST(Functor, KeepsWhatIsNotListed) {
  const Foreign model(0);
  auto [fields, rebuild] = functor_of(model);
  EXPECT_EQ(std::tuple_size_v<decltype(fields)>, 1u);
  const Array other = number(5);
  const Foreign built = rebuild(std::tuple{other});
  EXPECT_TRUE(same(built.a, model.a));
  EXPECT_TRUE(same(built.b, other));
}

}  // namespace
