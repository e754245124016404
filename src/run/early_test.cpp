// EarlyResults: who is told of what while a run goes on.
#include "run/early.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include <rosin/rosin.hpp>

#include "../tests/error_testing.hpp"
#include "graph/node.hpp"

namespace rosin {
namespace {

class Notes final : public EarlyResults::Listener {
 public:
  explicit Notes(const std::vector<Array>& wanted) : wanted_(wanted) {}
  void written(size_t i, const void* elements) noexcept override {
    order.push_back(i);
    values[i] = static_cast<const float*>(elements)[0];
    was_ready = was_ready || wanted_[i].node()->ready();
  }
  void failed() noexcept override { has_failed = true; }
  int32_t group(size_t i) const noexcept override { return static_cast<int32_t>(i); }

  std::vector<size_t> order;
  std::map<size_t, float> values;
  bool was_ready = false, has_failed = false;

 private:
  const std::vector<Array>& wanted_;
};

/// A product that needs the one before: each is a step of its own.
std::vector<Array> three_products() {
  const Array x = full({8, 8}, 0.5f);
  const Array first = matmul(x, x), second = matmul(first, x), third = matmul(second, x);
  return {third, first, second};
}

TEST(EarlyResults, AreToldInTheMiddleOfTheRun) {
  const std::vector<Array> wanted = three_products();
  Notes notes(wanted);
  {
    const EarlyResults early(wanted, notes);
    eval();
  }
  EXPECT_EQ(notes.order, (std::vector<size_t>{1, 2, 0}));
  EXPECT_FALSE(notes.was_ready);
  EXPECT_FALSE(notes.has_failed);
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_EQ(notes.values[i], wanted[i](0, 0).item<float>()) << i;
  const Array more = matmul(wanted[0], wanted[0]);
  eval(more);
  EXPECT_EQ(notes.order.size(), 3u) << "nobody listens any more";
}

TEST(EarlyResults, ThatNothingReadsComeRightBehindWhatTheyRead) {
  const Array x = full({8, 8}, 0.5f);
  const Array first = matmul(x, x), second = matmul(first, x), third = matmul(second, x);
  const std::vector<Array> wanted{sum(first, 1), cast(second, BFloat16), third};
  Notes notes(wanted);
  const EarlyResults early(wanted, notes);
  eval();
  EXPECT_EQ(notes.order, (std::vector<size_t>{0, 1, 2}));
}

TEST(EarlyResults, MayBeWantedTwice) {
  std::vector<Array> wanted = three_products();
  wanted.push_back(wanted[1]);
  Notes notes(wanted);
  const EarlyResults early(wanted, notes);
  eval();
  EXPECT_EQ(notes.order.size(), 4u);
  EXPECT_EQ(notes.values[1], notes.values[3]);
}

TEST(EarlyResults, OfARunThatFailsAreTakenBack) {
  std::vector<Array> wanted = three_products();
  wanted.push_back(gather(wanted[0], Array({100}, {1})));
  Notes notes(wanted);
  const EarlyResults early(wanted, notes);
  EXPECT_NE(error_of([] { eval(); }, ErrorKind::argument).find("gather"), std::string::npos);
  EXPECT_TRUE(notes.has_failed);
}

}  // namespace
}  // namespace rosin
