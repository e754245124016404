// Vendor calls that are recurrent layers: each cell beside its definition (backend_calls.h), gradients beside
// differences of that. Read first: call_rig.hpp.
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <optional>

#include "call_rig.hpp"
#include "checks.hpp"

namespace rosin::conformance {
namespace {

using Numbers = std::vector<float>;

constexpr int64_t features = 3, out = 4, steps = 3, batch = 2;

struct Cell {
  const char* name;
  int32_t cell;
  int64_t gates;

  bool is_lstm() const { return cell == ROSIN_CELL_LSTM; }
  int64_t parameters() const { return gates * out * (features + out + 1); }
};
constexpr Cell cells[] = {{"a layer with tanh", ROSIN_CELL_TANH, 1},
                          {"a layer with relu", ROSIN_CELL_RELU, 1},
                          {"an LSTM", ROSIN_CELL_LSTM, 4},
                          {"a GRU", ROSIN_CELL_GRU, 3}};

/// Contents of arrays, by role.
using Contents = std::map<int32_t, Numbers>;

std::vector<int64_t> sizes_of(const Cell& cell, int32_t role, uint64_t reserve) {
  switch (role) {
    case ROSIN_ROLE_INPUT:
    case ROSIN_ROLE_INPUT_GRADIENT: return {features, steps, batch};
    case ROSIN_ROLE_OUTPUT:
    case ROSIN_ROLE_OUTPUT_GRADIENT: return {out, steps, batch};
    case ROSIN_ROLE_WEIGHTS:
    case ROSIN_ROLE_WEIGHTS_GRADIENT: return {cell.parameters()};
    case ROSIN_ROLE_RESERVE: return {static_cast<int64_t>(reserve)};
    default: return {out, batch};
  }
}

size_t count_of(const std::vector<int64_t>& sizes) {
  size_t count = 1;
  for (const int64_t size : sizes) count *= static_cast<size_t>(size);
  return count;
}

/// Between -1 and 1.
Numbers numbers(size_t count, int which) {
  Numbers all;
  for (size_t i = 0; i < count; ++i) all.push_back(std::sin(1.7f * static_cast<float>(i) + static_cast<float>(which)));
  return all;
}

/// A call, and what it points to.
struct Described {
  std::vector<int32_t> roles;
  std::vector<rosin_call_array> arrays;
  rosin_attribute attribute{};
  rosin_call_description what{};

  Described(const Cell& cell, int32_t kind, std::vector<int32_t> of, uint64_t reserve) : roles(std::move(of)) {
    for (const int32_t role : roles) {
      rosin_call_array array{role, role == ROSIN_ROLE_RESERVE ? ROSIN_UINT8 : ROSIN_FLOAT32, 0, {}, {}};
      int64_t stride = 1;
      for (const int64_t size : sizes_of(cell, role, reserve)) {
        array.sizes[array.rank] = size;
        array.strides[array.rank++] = stride;
        stride *= size;
      }
      arrays.push_back(array);
    }
    attribute = {ROSIN_ATTRIBUTE_CELL, cell.cell, 0};
    what.size = sizeof what;
    what.kind = kind;
    what.array_count = static_cast<uint32_t>(arrays.size());
    what.arrays = arrays.data();
    what.attribute_count = 1;
    what.attributes = &attribute;
    what.unrounded = 1;
  }
};

std::vector<int32_t> operands_of(const Cell& cell) {
  std::vector<int32_t> roles{ROSIN_ROLE_INPUT, ROSIN_ROLE_WEIGHTS, ROSIN_ROLE_FIRST_STATE};
  if (cell.is_lstm()) roles.push_back(ROSIN_ROLE_FIRST_CELL);
  return roles;
}
std::vector<int32_t> with(std::vector<int32_t> roles, std::initializer_list<int32_t> more) {
  roles.insert(roles.end(), more);
  return roles;
}
std::vector<int32_t> layer_of(const Cell& cell) {
  std::vector<int32_t> roles = with(operands_of(cell), {ROSIN_ROLE_OUTPUT, ROSIN_ROLE_LAST_STATE});
  if (cell.is_lstm()) roles.push_back(ROSIN_ROLE_LAST_CELL);
  return with(std::move(roles), {ROSIN_ROLE_RESERVE});
}
std::vector<int32_t> gradient_of(const Cell& cell) {
  std::vector<int32_t> roles = with(
      operands_of(cell), {ROSIN_ROLE_OUTPUT, ROSIN_ROLE_RESERVE, ROSIN_ROLE_OUTPUT_GRADIENT, ROSIN_ROLE_INPUT_GRADIENT,
                          ROSIN_ROLE_WEIGHTS_GRADIENT, ROSIN_ROLE_FIRST_STATE_GRADIENT});
  if (cell.is_lstm()) roles.push_back(ROSIN_ROLE_FIRST_CELL_GRADIENT);
  return roles;
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// What is defined of one sequence's step: s and u of each gate.
using Sums = std::array<std::pair<double, double>, 4>;

/// The state behind a step; c is changed.
double stepped(int32_t cell, const Sums& gate, double h, double& c) {
  const auto both = [&](size_t g) { return gate[g].first + gate[g].second; };
  if (cell == ROSIN_CELL_TANH) return std::tanh(both(0));
  if (cell == ROSIN_CELL_RELU) return std::max(both(0), 0.0);
  if (cell == ROSIN_CELL_LSTM) {
    c = sigmoid(both(1)) * c + sigmoid(both(0)) * std::tanh(both(2));
    return sigmoid(both(3)) * std::tanh(c);
  }
  const double n = std::tanh(gate[2].first + sigmoid(both(0)) * gate[2].second);
  return n + sigmoid(both(1)) * (h - n);
}

struct States {
  std::vector<double> outputs, h, c;
};

using Doubles = std::map<int32_t, std::vector<double>>;

States defined(const Cell& cell, Doubles in) {
  const std::vector<double>&x = in[ROSIN_ROLE_INPUT], &w = in[ROSIN_ROLE_WEIGHTS];
  States made{std::vector<double>(out * steps * batch), in[ROSIN_ROLE_FIRST_STATE], in[ROSIN_ROLE_FIRST_CELL]};
  made.c.resize(made.h.size());
  const auto at = [](int64_t i) { return static_cast<size_t>(i); };
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t t = 0; t < steps; ++t) {
      const std::vector<double> before(made.h.begin() + b * out, made.h.begin() + (b + 1) * out);
      for (int64_t row = 0; row < out; ++row) {
        Sums sums{};
        for (int64_t g = 0; g < cell.gates; ++g) {
          const int64_t line = g * out + row, states = cell.gates * out * features,
                        biases = states + cell.gates * out * out;
          auto& [s, u] = sums[at(g)];
          s = w[at(biases + line)];
          for (int64_t k = 0; k < features; ++k)
            s += w[at(line * features + k)] * x[at((b * steps + t) * features + k)];
          for (int64_t k = 0; k < out; ++k) u += w[at(states + line * out + k)] * before[at(k)];
        }
        const size_t place = at(b * out + row);
        made.h[place] = stepped(cell.cell, sums, before[at(row)], made.c[place]);
        made.outputs[at((b * steps + t) * out + row)] = made.h[place];
      }
    }
  }
  return made;
}

/// The sum of the outputs, each times a number.
double weighed(const Cell& cell, const Doubles& in, const Numbers& weights) {
  const States made = defined(cell, in);
  double sum = 0;
  for (size_t i = 0; i < weights.size(); ++i) sum += made.outputs[i] * static_cast<double>(weights[i]);
  return sum;
}

/// A layer on the device, with its gradient; arrays by role.
class Layer {
 public:
  Layer(Rig& rig, const Cell& cell, uint64_t reserve)
      : rig_(rig), cell_(cell), layer_(cell, ROSIN_CALL_RECURRENT, layer_of(cell), reserve),
        gradient_(cell, ROSIN_CALL_RECURRENT_DATA, gradient_of(cell), reserve) {
    for (const Described* call : {&layer_, &gradient_}) {
      for (size_t i = 0; i < call->roles.size(); ++i) {
        const size_t count = count_of(sizes_of(cell, call->roles[i], reserve));
        std::unique_ptr<Operand>& made = arrays_[call->roles[i]];
        if (made) continue;
        made = std::make_unique<Operand>(rig, call->arrays[i].type, count, 1);
        if (call->roles[i] == ROSIN_ROLE_RESERVE) continue;
        made->values = numbers(count, call->roles[i]);
        made->put();
      }
    }
  }

  void run(bool gradient) {
    const Described& described = gradient ? gradient_ : layer_;
    rosin_call* call = nullptr;
    uint64_t workspace = 0;
    rig_.good(rig_.api.call_prepare(rig_.device, &described.what, &call, &workspace), "call_prepare");
    const std::unique_ptr<rosin_call, void (*)(rosin_call*)> owner(call, rig_.api.call_destroy);
    const Memory room(rig_, std::max<uint64_t>(workspace, 1));
    std::vector<rosin_place> places;
    for (const int32_t role : described.roles) places.push_back(arrays_[role]->at());
    rig_.good(rig_.api.call_run(rig_.stream, call, places.data(), room.at(), nullptr), "call_run");
    rig_.sync();
  }
  Numbers read(int32_t role) const { return arrays_.at(role)->read(); }
  const Numbers& given(int32_t role) const { return arrays_.at(role)->values; }

  void check_results() const {
    const States wanted = defined(cell_, operands());
    compare(ROSIN_ROLE_OUTPUT, wanted.outputs, ": an output");
    compare(ROSIN_ROLE_LAST_STATE, wanted.h, ": the last state");
    if (cell_.is_lstm()) compare(ROSIN_ROLE_LAST_CELL, wanted.c, ": the last cell");
  }

  /// Along a direction for each operand, all others kept.
  void check_slopes() const {
    constexpr double little = 1e-4;
    for (const auto& [role, slope] : slopes_of_operands()) {
      const Numbers along = numbers(given(role).size(), 40 + role), got = read(slope);
      double found = 0, amount = 0;
      for (size_t i = 0; i < along.size(); ++i) {
        found += static_cast<double>(along[i]) * static_cast<double>(got[i]);
        amount += std::fabs(static_cast<double>(got[i]));
      }
      const auto moved = [&](double by) {
        Doubles in = operands();
        for (size_t i = 0; i < along.size(); ++i) in[role][i] += by * static_cast<double>(along[i]);
        return weighed(cell_, in, given(ROSIN_ROLE_OUTPUT_GRADIENT));
      };
      expect_close(ROSIN_FLOAT32, found, (moved(little) - moved(-little)) / (2 * little),
                   std::string(cell_.name) + ": the slope along one direction", 10 * amount);
    }
  }

 private:
  std::map<int32_t, int32_t> slopes_of_operands() const {
    std::map<int32_t, int32_t> all{{ROSIN_ROLE_INPUT, ROSIN_ROLE_INPUT_GRADIENT},
                                   {ROSIN_ROLE_WEIGHTS, ROSIN_ROLE_WEIGHTS_GRADIENT},
                                   {ROSIN_ROLE_FIRST_STATE, ROSIN_ROLE_FIRST_STATE_GRADIENT}};
    if (cell_.is_lstm()) all[ROSIN_ROLE_FIRST_CELL] = ROSIN_ROLE_FIRST_CELL_GRADIENT;
    return all;
  }
  Doubles operands() const {
    Doubles all;
    for (const int32_t role : operands_of(cell_)) all[role].assign(given(role).begin(), given(role).end());
    return all;
  }
  void compare(int32_t role, const std::vector<double>& wanted, const char* what) const {
    const Numbers got = read(role);
    for (size_t i = 0; i < wanted.size(); ++i) {
      expect_close(ROSIN_FLOAT32, static_cast<double>(got[i]), wanted[i], std::string(cell_.name) + what, 10);
    }
  }

  Rig& rig_;
  const Cell& cell_;
  Described layer_, gradient_;
  std::map<int32_t, std::unique_ptr<Operand>> arrays_;
};

/// Bytes of the reserve of the cell's layer; nothing where the plug-in does not take it.
std::optional<uint64_t> reserve_of(Rig& rig, const Cell& cell) {
  if (!rig.api.call_prepare || !rig.api.call_reserve) return std::nullopt;
  const Described described(cell, ROSIN_CALL_RECURRENT, with(operands_of(cell), {ROSIN_ROLE_OUTPUT}), 0);
  if (!takes(rig, described.what)) return std::nullopt;
  uint64_t bytes = 0;
  rig.good(rig.api.call_reserve(rig.device, &described.what, &bytes), "call_reserve");
  return bytes;
}

void for_each_cell(Rig& rig, void (*f)(Rig&, const Cell&, uint64_t reserve)) {
  for (const Cell& cell : cells) {
    if (const auto reserve = reserve_of(rig, cell)) f(rig, cell, *reserve);
  }
}

void a_recurrent_layer_is_right(Rig& rig) {
  for_each_cell(rig, [](Rig& on, const Cell& cell, uint64_t reserve) {
    Layer layer(on, cell, reserve);
    layer.run(false);
    layer.check_results();
  });
}

void its_gradient_is_right(Rig& rig) {
  for_each_cell(rig, [](Rig& on, const Cell& cell, uint64_t reserve) {
    Layer layer(on, cell, reserve);
    layer.run(false);
    layer.run(true);
    layer.check_slopes();
  });
}

void its_gradient_leaves_the_reserve_alone(Rig& rig) {
  for_each_cell(rig, [](Rig& on, const Cell& cell, uint64_t reserve) {
    Layer layer(on, cell, reserve);
    layer.run(false);
    const Numbers before = layer.read(ROSIN_ROLE_RESERVE);
    layer.run(true);
    expect(layer.read(ROSIN_ROLE_RESERVE) == before, std::string(cell.name) + ": the gradient changes the reserve");
  });
}

void a_layer_that_does_not_fit_is_refused(Rig& rig) {
  for_each_cell(rig, [](Rig& on, const Cell& cell, uint64_t reserve) {
    Described described(cell, ROSIN_CALL_RECURRENT, layer_of(cell), reserve);
    described.arrays[1].sizes[0] += 1;
    rosin_call* call = nullptr;
    uint64_t workspace = 0;
    const rosin_status status = on.api.call_prepare(on.device, &described.what, &call, &workspace);
    expect(status == ROSIN_INVALID || status == ROSIN_UNSUPPORTED,
           std::string(cell.name) + ": call_prepare gives " + name_of(status) + " for too many weights");
  });
}

constexpr Check checks[] = {
    {"a recurrent layer is right or unsupported", a_recurrent_layer_is_right},
    {"the gradient of a recurrent layer is right", its_gradient_is_right},
    {"the gradient of a recurrent layer leaves the reserve alone", its_gradient_leaves_the_reserve_alone},
    {"a recurrent layer that does not fit is refused", a_layer_that_does_not_fit_is_refused},
};

}  // namespace

const Part recurrent_part = {"recurrent", checks};

}  // namespace rosin::conformance
