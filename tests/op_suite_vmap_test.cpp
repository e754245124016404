// The op suite under vmap: every op, with each of its inputs mapped and with all, against a loop over the observations;
// and the gradients. Read first: op_suite.hpp.
#include <gtest/gtest.h>

#include <map>

#include <rosin/vmap.hpp>

#include "op_suite.hpp"

namespace rosin::suite {
namespace {

constexpr int64_t observations = 3;
constexpr int cases_of_each = 4;

/// Ops that look at values to know their results' shapes, or compute on the host.
bool looks_at_values(const Error& error) {
  return std::string(error.what()).find("vmap: the function must not look at values") == 0;
}

/// x, x backwards along its last dim, x: side by side.
Array observed(const Array& x) {
  const Array other = x.rank() > 0 ? flip(x, -1) : x;
  return evaluated(stack({x, other, x}, -1));
}

/// The inputs with those of `mapped` in the place of theirs.
Arrays with(const Arrays& inputs, const Arrays& mapped, uint64_t which) {
  Arrays all = inputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (which >> i & 1) all[i] = mapped[i];
  }
  return all;
}

/// f for all observations of the inputs in `which`: by vmap, which takes one array, as two of a pair at most.
Arrays by_vmap(const Function& f, const Arrays& inputs, const Arrays& batches, uint64_t which) {
  detail::VmapCall call;
  Arrays one = inputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (which >> i & 1) one[i] = call.open(batches[i]);
  }
  return call.mapped(f(one));
}

Arrays by_loop(const Function& f, const Arrays& inputs, const Arrays& batches, uint64_t which) {
  std::vector<Arrays> parts;
  for (int64_t b = 0; b < observations; ++b) {
    Arrays one;
    for (const Array& x : batches) one.push_back(x.is_nothing() ? x : select(x, -1, b));
    parts.push_back(f(with(inputs, one, which)));
  }
  Arrays results;
  for (size_t k = 0; k < parts[0].size(); ++k) {
    Arrays same_result;
    for (const Arrays& part : parts) same_result.push_back(part[k]);
    results.push_back(same_result[0].is_nothing() ? Array() : stack(same_result, -1));
  }
  return results;
}

/// Numbers in the place of NaN and infinities, each with its own.
Array with_numbers(const Array& x) {
  if (!is_float(x.dtype())) return is_complex(x.dtype()) ? with_numbers(view_as_real(x)) : cast(x, Float64);
  return where(is_nan(x), 12345, clamp(x, -6e4, 6e4));
}

void expect_close(const Arrays& got, const Arrays& want, const std::string& where) {
  ASSERT_EQ(got.size(), want.size()) << where;
  for (size_t i = 0; i < got.size(); ++i) {
    if (bit_difference(got[i], want[i]).empty()) continue;
    const Array a = with_numbers(got[i]), b = with_numbers(want[i]);
    const double close = b.dtype() == Float64 ? 1e-9 : size_of(b.dtype()) >= 4 ? 1e-4 : 3e-2;
    EXPECT_TRUE(got[i].dtype() == want[i].dtype() && a.shape() == b.shape() &&
                allclose(a, b, {.rtol = close, .atol = close}))
        << where << ", result " << i << ": " << bit_difference(got[i], want[i]);
  }
}

/// Gradients by the mapped inputs of the sum of all results that are floats.
Arrays gradients(const Function& f, const Arrays& batches, const Arrays& cotangents) {
  return gradient([&](const Arrays& x) { return weighted(f(x), cotangents); }, batches);
}

void check(const OpEntry& row, const OracleCase& entry, const std::string& where, int& refused) {
  const Function f = [&](const Arrays& x) { return row.call(entry, x); };
  const Arrays inputs = inputs_of(entry);
  if (inputs.empty() || f(inputs).empty()) return;
  Arrays batches;
  for (const Array& x : inputs) batches.push_back(x.rank() < Shape::max_rank ? observed(x) : Array());
  const uint64_t all = (uint64_t{1} << inputs.size()) - 1;
  std::vector<uint64_t> choices = {all};
  for (size_t i = 0; i < inputs.size() && inputs.size() > 1; ++i) choices.push_back(uint64_t{1} << i);
  for (const uint64_t which : choices) {
    Arrays want;
    try {
      want = by_loop(f, inputs, batches, which);
      for (const Array& y : want) eval(y);
    } catch (const Error&) {
      continue;  // not defined for what the observations are
    }
    try {
      expect_close(by_vmap(f, inputs, batches, which), want, where + ", mapped " + std::to_string(which));
      if (entry.cotangents.empty()) continue;
      Arrays cotangents;
      for (const Array& g : cotangents_of(entry)) cotangents.push_back(g.is_nothing() ? g : observed(g));
      const auto compared = [&](auto way) {
        return gradients([&](const Arrays& x) { return way(f, inputs, x, which); }, batches, cotangents);
      };
      expect_close(compared(by_vmap), compared(by_loop), where + ", gradients, mapped " + std::to_string(which));
    } catch (const Error& error) {
      if (!looks_at_values(error)) throw;
      ++refused;
    }
  }
}

class OpSuiteVmap : public testing::TestWithParam<std::string> {};

TEST_P(OpSuiteVmap, IsALoopOverObservations) {
  if (compiles_there()) GTEST_SKIP() << "about recording, which is the same on the reference device";
  int refused = 0;
  std::map<std::string, int> seen;
  for_each_case(
      {GetParam()},
      [&](const OpEntry& row, const OracleCase& entry, const std::string& where) { check(row, entry, where, refused); },
      [&](const OpEntry& row, const OracleCase&, const std::string&) {
        return seen[std::string(row.name)]++ < cases_of_each;
      });
  RecordProperty("refused", refused);
}

INSTANTIATE_TEST_SUITE_P(Files, OpSuiteVmap, testing::ValuesIn(op_oracle_files()),
                         [](const auto& file) { return file.param.substr(0, file.param.find('.')); });

}  // namespace
}  // namespace rosin::suite
