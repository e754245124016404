// Gradient calls of which part runs on other threads: followed nowhere, so refused.
#include <gtest/gtest.h>

#include <future>
#include <string>
#include <vector>

#include <rosin/elementwise.hpp>
#include <rosin/grad.hpp>
#include <rosin/reduce.hpp>

#include "../tests/error_testing.hpp"

namespace rosin {
namespace {

using Values = std::vector<float>;

Array data() {
  Array x({1.f, 2.f, 3.f}, {3});
  eval(x);
  return x;
}
template <class F> Array elsewhere(F f) { return std::async(std::launch::async, f).get(); }

constexpr const char* text =
    "gradient: the thread of the call must record all that the loss depends on; another thread has computed mul (3) "
    "from the call's arrays, so its part of the gradient is unknown; compute it on this thread, or give the other "
    "thread stop_gradient(x)";

TEST(GradientOfManyThreads, IsRefusedWhereAnotherThreadEvaluatedAPart) {
  const auto square = [](const Array& v) {
    return elsewhere([&] {
      Array s = v * v;
      eval(s);
      return s;
    });
  };
  const auto part = [&](const Array& v) { return sum(v + square(v)); };
  const auto whole = [&](const Array& v) { return sum(square(v)); };
  EXPECT_EQ(error_of([&] { gradient(part, data()); }, ErrorKind::argument), text);
  EXPECT_EQ(error_of([&] { gradient(whole, data()); }, ErrorKind::argument), text);
}

TEST(GradientOfManyThreads, IsRefusedWhereAnotherThreadOnlyRecordedAPart) {
  const auto f = [](const Array& v) { return sum(elsewhere([&] { return v * v; })); };
  EXPECT_EQ(error_of([&] { gradient(f, data()); }, ErrorKind::argument), text);
  const auto loss = [](const Array& v) { return elsewhere([&] { return sum(v * 2); }); };
  EXPECT_NE(error_of([&] { gradient(loss, data()); }, ErrorKind::argument).find("another thread"), std::string::npos);
}

TEST(GradientOfManyThreads, IsRefusedWhereAnotherThreadTookAGradientOfAPart) {
  const auto f = [](const Array& v) {
    return sum(elsewhere([&] { return gradient([](const Array& u) { return sum(u * u * u); }, v); }));
  };
  EXPECT_NE(error_of([&] { gradient(f, data()); }, ErrorKind::argument).find("another thread"), std::string::npos);
}

TEST(GradientOfManyThreads, ConstantsMayComeFromThem) {
  const Array x = data();
  const auto made_there = [&](const Array& v) { return sum(v * elsewhere([&] { return x * x; })); };
  EXPECT_EQ(gradient(made_there, x).to_vector(), (Values{1, 4, 9}));
  const auto stopped_before = [](const Array& v) {
    const Array constant = stop_gradient(v);
    return sum(v * elsewhere([&] { return constant * constant; }));
  };
  EXPECT_EQ(gradient(stopped_before, x).to_vector(), (Values{1, 4, 9}));
  const auto stopped_after = [](const Array& v) { return sum(v * stop_gradient(elsewhere([&] { return v * v; }))); };
  EXPECT_EQ(gradient(stopped_after, x).to_vector(), (Values{1, 4, 9}));
}

TEST(GradientOfManyThreads, WatchingThemChangesNothing) {
  const auto watched = [](const Array& v) {
    const Array y = v * v;
    const double seen = elsewhere([&] { return sum(y); }).item();
    EXPECT_EQ(seen, 14);
    return sum(y);
  };
  EXPECT_EQ(gradient(watched, data()).to_vector(), (Values{2, 4, 6}));
}

TEST(GradientOfManyThreads, AnEarlierCallIsForgotten) {
  const auto whole = [](const Array& v) { return sum(elsewhere([&] { return v * v; })); };
  error_of([&] { gradient(whole, data()); });
  const Array x = data();
  const Array there = elsewhere([&] { return x * 3; });
  EXPECT_EQ(gradient([&](const Array& v) { return sum(v * there); }, x).to_vector(), (Values{3, 6, 9}));
}

}  // namespace
}  // namespace rosin
