// The test cases of the ONNX project as Debian packages them (libonnx-testdata): a folder for each, with a model and
// the arrays that go in and must come out. ROSIN_ONNX_CASES names another folder.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/half.hpp>
#include <rosin/onnx.hpp>

#include "base/input_file.hpp"
#include "onnx/definition.hpp"

namespace rosin::testing {

namespace fs = std::filesystem;

inline fs::path onnx_cases() {
  const char* folder = std::getenv("ROSIN_ONNX_CASES");
  return folder ? folder : "/usr/share/libonnx-testdata/data";
}

inline Array tensor_in(const fs::path& path) {
  const std::vector<uint8_t> bytes = read_whole_file(path.string());
  return onnx::array_of(onnx::parse_tensor(bytes, path.string()), path.string());
}

/// What a value may differ by: as the project compares, and half types by two in the last place, as it depends on the
/// runtime which intermediate results are rounded. Sums of Float32 in another order are 2e-6 away.
inline double allowed(DType type, double wanted) {
  const double relative = 2e-6 + 1e-3 * std::abs(wanted);
  if ((type != Float16 && type != BFloat16) || wanted == 0 || !std::isfinite(wanted)) return relative;
  return std::max(relative, std::ldexp(2.0, std::ilogb(wanted) - (type == Float16 ? 10 : 7)));
}

/// Why two arrays are not the same; empty where they are.
inline std::string difference(const Array& got, const Array& wanted) {
  if (got.dtype() != wanted.dtype()) {
    return std::string("type ") + to_string(got.dtype()) + " instead of " + to_string(wanted.dtype());
  }
  if (got.shape() != wanted.shape()) return to_string(got.shape()) + " instead of " + to_string(wanted.shape());
  const std::vector<double> a = cast(got, Float64).to_vector<double>(), b = cast(wanted, Float64).to_vector<double>();
  for (size_t i = 0; i < a.size(); ++i) {
    const bool same = a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]));
    if (same || std::abs(a[i] - b[i]) <= allowed(got.dtype(), b[i])) continue;
    return "element " + std::to_string(i) + " is " + std::to_string(a[i]) + " instead of " + std::to_string(b[i]);
  }
  return "";
}

/// The cases have the bits of BFloat16 numbers as UInt16.
inline Array with_type(const Array& x, DType type) {
  if (type != BFloat16 || x.dtype() != UInt16) return x;
  std::vector<BFloat> values;
  for (int bits : x.to_vector<int32_t>()) {
    values.emplace_back();
    values.back().bits = static_cast<uint16_t>(bits);
  }
  return Array(std::span<const BFloat>(values), x.shape());
}

/// Of a case with random numbers only type and sizes are compared.
inline std::string difference(const Array& got, const Array& wanted, bool random) {
  if (!random) return difference(got, wanted);
  return got.dtype() == wanted.dtype() && got.shape() == wanted.shape() ? "" : "another type or size";
}

enum class CaseResult { right, wrong, foreign_type, no_op };

struct CaseReport {
  CaseResult result = CaseResult::right;
  std::string why;
  std::set<std::pair<std::string, int64_t>> ops;  // name and version
};

inline void collect_ops(const onnx::GraphDefinition& graph, int64_t opset, CaseReport& report) {
  for (const onnx::NodeDefinition& node : graph.nodes) {
    const std::string domain = node.domain.empty() ? "" : std::string(node.domain) + ".";
    report.ops.emplace(domain + std::string(node.op), opset);
    for (const onnx::AttributeDefinition& attribute : node.attributes) {
      if (attribute.graph) collect_ops(*attribute.graph, opset, report);
    }
  }
}

inline std::string run_sets(const onnx::Model& model, const fs::path& folder, bool random) {
  for (const fs::directory_entry& set : fs::directory_iterator(folder)) {
    if (!set.is_directory()) continue;
    std::vector<Array> inputs;
    for (size_t i = 0; fs::exists(set.path() / ("input_" + std::to_string(i) + ".pb")); ++i) {
      inputs.push_back(tensor_in(set.path() / ("input_" + std::to_string(i) + ".pb")));
    }
    std::vector<onnx::NamedInput> named;
    for (size_t i = 0; i < inputs.size() && i < model.inputs().size(); ++i) {
      named.push_back({model.inputs()[i].name, with_type(inputs[i], model.inputs()[i].type)});
    }
    const onnx::Results results = model(named);
    for (size_t i = 0; i < results.list.size(); ++i) {
      const fs::path path = set.path() / ("output_" + std::to_string(i) + ".pb");
      if (!fs::exists(path)) continue;
      const std::string why =
          difference(results.list[i].value, with_type(tensor_in(path), model.outputs()[i].type), random);
      if (!why.empty()) return results.list[i].name + ": " + why;
    }
  }
  return "";
}

/// Whether the bytes hold something that is no tensor of numbers among inputs, outputs and constants.
inline bool has_foreign_type(const onnx::GraphDefinition& graph) {
  const auto foreign = [](int64_t type) { return type == 8 || type > 16 || type == 0; };
  for (const auto* list : {&graph.inputs, &graph.outputs}) {
    for (const onnx::ValueDefinition& value : *list) {
      if (!value.is_tensor || foreign(value.type)) return true;
    }
  }
  for (const onnx::NodeDefinition& node : graph.nodes) {
    if (node.op.find("Sequence") != std::string_view::npos && node.op != "ReverseSequence") return true;
    if (node.op.starts_with("Optional")) return true;
    for (const onnx::AttributeDefinition& attribute : node.attributes) {
      if (attribute.tensor && foreign(attribute.tensor->type)) return true;
      if (node.op == "Cast" && attribute.name == "to" && foreign(attribute.integer)) return true;
    }
  }
  return false;
}

inline CaseReport run_case(const fs::path& folder) {
  CaseReport report;
  const std::string path = (folder / "model.onnx").string();
  const std::vector<uint8_t> bytes = read_whole_file(path);
  const onnx::ModelDefinition definition = onnx::parse_model(bytes, path);
  int64_t opset = 0;
  for (const auto& [domain, version] : definition.opsets) opset = domain.empty() ? version : opset;
  collect_ops(definition.graph, opset, report);
  try {
    if (has_foreign_type(definition.graph)) {
      report.result = CaseResult::foreign_type;
      return report;
    }
    const std::string name = folder.filename().string();
    const bool random =
        name.find("bernoulli") != std::string::npos || name.find("training_dropout") != std::string::npos;
    report.why = run_sets(onnx::load(path), folder, random);
    if (!report.why.empty()) report.result = CaseResult::wrong;
  } catch (const Error& error) {
    report.why = error.what();
    const bool no_op = report.why.find("every op must be one that rosin has") != std::string::npos ||
                       report.why.find("something that rosin does not have") != std::string::npos;
    report.result = no_op ? CaseResult::no_op : CaseResult::wrong;
  }
  return report;
}

}  // namespace rosin::testing
