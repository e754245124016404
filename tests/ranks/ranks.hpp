// What the tests of ranks share: every test is run by every rank at the same time.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include <rosin/rosin.hpp>

namespace rosin::distributed {

class Ranks : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const char* const seconds = std::getenv("ROSIN_TEST_TIMEOUT");
    const InitializeOptions options{.timeout = seconds ? std::atof(seconds) : 120};
    if (takes_nccl()) initialize<NCCLBackend>(options);
    else initialize(options);
  }
  static bool takes_nccl() { return std::getenv("ROSIN_TEST_NCCL") != nullptr; }
  const Backend b = takes_nccl() ? Backend(get_distributed_backend<NCCLBackend>()) : get_distributed_backend();
  int rank = local_rank(b), n = total_workers(b);
};

/// "MPI backend": how it shows in rules.
inline std::string kind_of(const Backend& b) {
  const std::string text = to_string(b);
  return text.substr(0, text.find(':'));
}

inline std::vector<double> values(const Array& x) { return x.to_vector<double>(); }

/// Whether x has the same bits on every rank.
inline bool same_everywhere(const Backend& b, const Array& x) {
  const int64_t count = x.count();
  const std::vector<double> all = values(allgather(b, reshape(x, {count})));
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i] != all[i % static_cast<size_t>(count)]) return false;
  }
  return true;
}

/// That all arrays of two models, running statistics too, differ by so much at most.
template <class M, class Other> void expect_near(const M& got, const Other& wanted, double most) {
  const std::vector<NamedArray> one = rosin::state(got), other = rosin::state(wanted);
  ASSERT_EQ(one.size(), other.size());
  for (size_t i = 0; i < one.size(); ++i) {
    EXPECT_EQ(one[i].name, other[i].name);
    const double difference = maximum(abs(one[i].value - other[i].value)).item();
    EXPECT_LE(difference, most) << one[i].name;
  }
}

}  // namespace rosin::distributed
