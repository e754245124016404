// Reading the environment; see options.hpp.
#include "options.hpp"

#include <charconv>
#include <cstdlib>
#include <numeric>
#include <string_view>

#include "failure.hpp"

namespace rosin::reference {
namespace {

constexpr Role roles[] = {
    {"reference", "Reference device", "reference", "ROSIN_REFERENCE", {nullptr, nullptr}, ROSIN_DEVICE_OTHER},
    {"CUDA",
     "NVIDIA Reference GPU",
     "sm_reference",
     "ROSIN_REFERENCE_CUDA",
     {"CUDA_VISIBLE_DEVICES", nullptr},
     ROSIN_DEVICE_GPU},
    {"AMDGPU",
     "AMD Reference GPU",
     "gfx_reference",
     "ROSIN_REFERENCE_AMDGPU",
     {"ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"},
     ROSIN_DEVICE_GPU},
};

constexpr const Role& role_called(std::string_view name) {
  const Role* found = roles;
  for (const Role& candidate : roles)
    if (candidate.name == name) found = &candidate;
  return *found;
}

/// Cuts the text before the next comma off `rest`.
std::string_view cut(std::string_view& rest) {
  const size_t comma = rest.find(',');
  const std::string_view piece = rest.substr(0, comma);
  rest = comma == rest.npos ? std::string_view{} : rest.substr(comma + 1);
  return piece;
}

bool parse(std::string_view text, int64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size();
}

class Reader {
 public:
  Reader(const char* variable, std::string_view text) : variable_(variable), text_(text) {}

  void read(Options& options) {
    for (std::string_view rest = text_; !rest.empty();) {
      piece_ = cut(rest);
      const size_t equals = piece_.find('=');
      if (equals == piece_.npos) refuse("write NAME=VALUE");
      take(piece_.substr(0, equals), piece_.substr(equals + 1), options);
    }
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw Failure(ROSIN_INVALID,
                  std::string(variable_) + "=\"" + std::string(text_) + "\": \"" + std::string(piece_) + "\": " + why);
  }

  int64_t number(std::string_view text, int64_t most) const {
    int64_t value = 0;
    if (!parse(text, value) || value < 0 || value > most) refuse("write a number from 0 to " + std::to_string(most));
    return value;
  }

  uint64_t bytes(std::string_view text) const {
    constexpr std::string_view units = "KMG";
    const size_t unit = text.empty() ? units.npos : units.find(text.back());
    if (unit == units.npos) return static_cast<uint64_t>(number(text, int64_t{1} << 40));
    return static_cast<uint64_t>(number(text.substr(0, text.size() - 1), 1 << 20)) << (10 * (unit + 1));
  }

  int32_t kind(std::string_view text) const {
    if (text == "gpu") return ROSIN_DEVICE_GPU;
    if (text == "cpu") return ROSIN_DEVICE_CPU;
    if (text == "other") return ROSIN_DEVICE_OTHER;
    refuse("write gpu, cpu or other");
  }

  std::string step_of_graphs(std::string_view text) const {
    for (const char* step : {"create", "add", "call", "finish", "update", "launch"}) {
      if (text == step) return step;
    }
    refuse("write create, add, call, finish, update or launch");
  }

  void take(std::string_view name, std::string_view value, Options& options) const {
    constexpr int64_t many = int64_t{1} << 40;
    if (name == "devices") options.devices = static_cast<int32_t>(number(value, 64));
    else if (name == "memory") options.memory = bytes(value);
    else if (name == "fp64") options.float64 = number(value, 1) != 0;
    else if (name == "functional") options.functional = number(value, 1) != 0;
    else if (name == "vendor") options.vendor = number(value, 2);
    else if (name == "vendor_rows") options.vendor_rows = number(value, many);
    else if (name == "vendor_epilogues") options.vendor_epilogues = number(value, many);
    else if (name == "delay") options.delay = number(value, 60000);
    else if (name == "fault") options.fault = number(value, many);
    else if (name == "hold") options.hold = number(value, many);
    else if (name == "alloc_fail") options.alloc_fail = number(value, many);
    else if (name == "graph_fail") options.graph_fail = number(value, many);
    else if (name == "no_graph") options.no_graph = step_of_graphs(value);
    else if (name == "cut_edge") options.cut_edge = number(value, many);
    else if (name == "keep") options.keep = number(value, 1) != 0;
    else if (name == "first_page") options.first_page = number(value, 1) != 0;
    else if (name == "kind") options.kind = kind(value);
    else
      refuse(
          "write devices, memory, fp64, functional, vendor, vendor_rows, vendor_epilogues, delay, fault, hold, "
          "alloc_fail, graph_fail, no_graph, cut_edge, keep, first_page or kind");
  }

  const char* variable_;
  std::string_view text_;
  std::string_view piece_;
};

/// As the vendors do it: the list ends before the first number that is none of the devices'.
void select(const char* variable, Options& options) {
  const char* text = std::getenv(variable);
  if (!text) return;
  std::vector<int32_t> chosen;
  int64_t number = 0;
  for (std::string_view rest = text; !rest.empty();) {
    if (!parse(cut(rest), number) || number < 0 || number >= static_cast<int64_t>(options.visible.size())) break;
    chosen.push_back(options.visible[static_cast<size_t>(number)]);
  }
  if (chosen.empty() && options.hidden_by.empty()) {
    options.hidden_by = std::string(variable) + "='" + text + "' hides every device";
  }
  options.visible = chosen;
}

}  // namespace

const Role role = role_called(ROSIN_ROLE);

Options read_options() {
  Options options;
  options.kind = role.kind;
  const char* variable = std::getenv(role.variable) ? role.variable : "ROSIN_REFERENCE";
  if (const char* text = std::getenv(variable)) Reader(variable, text).read(options);
  if (!options.functional) {
    throw Failure(ROSIN_UNSUPPORTED, std::string(role.name) + ": switched off by functional=0 in " + variable);
  }
  options.visible.resize(static_cast<size_t>(options.devices));
  std::iota(options.visible.begin(), options.visible.end(), 0);
  for (const char* visible : role.visible)
    if (visible) select(visible, options);
  return options;
}

}  // namespace rosin::reference
