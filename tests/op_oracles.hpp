// For tests of ops: runs the cases of an oracle file through public functions and compares values and gradients.
// Read first: oracles/README.md, oracle_reader.hpp.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <rosin/array.hpp>
#include <rosin/complex.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/grad.hpp>
#include <rosin/pool.hpp>
#include <rosin/reduce.hpp>

#include "oracle_reader.hpp"
#include "test_device.hpp"

namespace rosin::oracles {

/// How a case is computed: from its attributes and inputs to its outputs.
using OracleCall = std::function<std::vector<Array>(const OracleCase&, const std::vector<Array>&)>;
using OracleCalls = std::map<std::string, OracleCall>;
inline DType dtype_named(const std::string& name) {
  for (int i = 0; i < dtype_count; ++i) {
    if (name == to_string(static_cast<DType>(i))) return static_cast<DType>(i);
  }
  throw std::runtime_error("no element type " + name);
}

inline Shape shape_of(const OracleArray& array) { return Shape(std::span<const int64_t>(array.shape)); }

/// On the test device.
inline Array to_array(const OracleArray& array) {
  const DType type = dtype_named(array.dtype);
  if (is_complex(type)) {
    std::vector<int64_t> sizes{2};
    for (const int64_t size : shape_of(array)) sizes.push_back(size);
    const Array parts(array.values, Shape(std::span<const int64_t>(sizes)));
    const Array made = view_as_complex(type == ComplexF64 ? parts : cast(parts, Float32));
    eval(made);
    return there(made);
  }
  const Array exact = is_float(type) ? Array(array.values, shape_of(array)) : Array(array.integers, shape_of(array));
  Array converted = cast(exact, type);
  eval(converted);
  return there(converted);
}

inline std::vector<double> values_of(const Array& array) {
  if (is_float(array.dtype())) return array.to_vector<double>();
  if (is_complex(array.dtype())) return view_as_real(array).to_vector<double>();
  std::vector<double> values;
  if (array.dtype() == UInt64) {
    for (const uint64_t value : array.to_vector<uint64_t>()) values.push_back(static_cast<double>(value));
    return values;
  }
  for (const int64_t value : array.to_vector<int64_t>()) values.push_back(static_cast<double>(value));
  return values;
}

inline void compare(const Array& got, const OracleArray& want, const OracleTolerance& tolerance) {
  ASSERT_FALSE(got.is_nothing()) << want.role;
  ASSERT_EQ(got.shape(), shape_of(want)) << want.role << ": " << to_string(got.shape());
  ASSERT_STREQ(to_string(got.dtype()), want.dtype.c_str()) << want.role;
  if (tolerance.exact && is_integer(got.dtype())) {
    EXPECT_EQ(cast(got, Int64).to_vector<int64_t>(), want.integers) << want.role;
    return;
  }
  const std::vector<double> values = values_of(got);
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_TRUE(matches(tolerance, want.dtype, want.values[i], values[i]))
        << want.role << " element " << i << ": want " << want.values[i] << ", got " << values[i];
  }
}

inline void check_values(const OracleCase& entry, const OracleCall& call) {
  std::vector<Array> inputs;
  for (const OracleArray& input : entry.inputs) inputs.push_back(to_array(input));
  const std::vector<Array> outputs = call(entry, inputs);
  ASSERT_EQ(outputs.size(), entry.outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) compare(outputs[i], entry.outputs[i], entry.tolerance);
}

inline void check_gradients(const OracleCase& entry, const OracleCall& call) {
  if (entry.cotangents.empty()) return;
  std::vector<Array> inputs, cotangents;
  for (const OracleArray& input : entry.inputs) inputs.push_back(to_array(input));
  for (const OracleArray& cotangent : entry.cotangents) cotangents.push_back(to_array(cotangent));
  const auto loss = [&](const std::vector<Array>& x) {
    Array total;
    size_t i = 0;
    for (const Array& output : call(entry, x)) {
      const Array part = sum(output * cotangents[i++]);
      total = total.is_nothing() ? part : total + part;
      if (i == cotangents.size()) break;
    }
    return total;
  };
  const std::vector<Array> got = gradient(loss, inputs);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const OracleArray* want = entry.gradient_of(i);
    if (want != nullptr) compare(got[i], *want, entry.gradient_tolerance);
  }
}

/// Runs all cases of the file whose op has a call. Every call must have met a case.
inline void run_oracles(const std::string& file, const OracleCalls& calls) {
  std::set<std::string> met;
  for (const OracleCase& entry : read_oracles(oracle_path(file))) {
    const auto found = calls.find(entry.op);
    if (found == calls.end()) continue;
    met.insert(entry.op);
    SCOPED_TRACE(file + ":" + std::to_string(entry.line) + " " + entry.op + " " + entry.dtype);
    try {
      check_values(entry, found->second);
      check_gradients(entry, found->second);
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }
  EXPECT_EQ(met.size(), calls.size());
}

/// Attributes of a case.
inline int dim_of(const OracleCase& entry) { return static_cast<int>(entry.number("dim", 0)); }
inline std::vector<int> ints(const OracleCase& entry, const std::string& key) {
  std::vector<int> result;
  for (const int64_t value : entry.integers(key)) result.push_back(static_cast<int>(value));
  return result;
}
inline Extents extents_of(const OracleCase& entry, const std::string& key) {
  return Extents(std::span<const int64_t>(entry.integers(key)));
}
inline bool is_set(const OracleCase& entry, const std::string& key) { return entry.number(key, 0) != 0; }
inline Dims dims_of(const OracleCase& entry) { return Dims(std::span<const int>(ints(entry, "dims"))); }

/// Functions of one array over all dims, over some (attribute dims), and along one (dim; the first of dims).
using OfAll = Array (*)(const Array&);
using OverDims = Array (*)(const Array&, Dims);
using AlongDim = Array (*)(const Array&, int);

inline OracleCall reduction(OfAll all_dims, OverDims some) {
  return [=](const OracleCase& e, const std::vector<Array>& x) {
    return std::vector<Array>{e.has("dims") ? some(x[0], dims_of(e)) : all_dims(x[0])};
  };
}
inline OracleCall running(AlongDim along) {
  return [=](const OracleCase& e, const std::vector<Array>& x) { return std::vector<Array>{along(x[0], dim_of(e))}; };
}
inline OracleCall place(OfAll everywhere, AlongDim along) {
  return [=](const OracleCase& e, const std::vector<Array>& x) {
    return std::vector<Array>{e.has("dims")  ? along(x[0], ints(e, "dims")[0])
                              : e.has("dim") ? along(x[0], dim_of(e))
                                             : everywhere(x[0])};
  };
}

}  // namespace rosin::oracles
