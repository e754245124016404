// Recurrent cells and layers: see rosin/recurrent.hpp. A layer multiplies the input of all steps with its weights at
// once; what is left for each step is the product with the state and the gates. Where there is an op for all steps
// (ops/sequence.hpp) or for the whole layer (ops/recurrent_call.hpp), the layer records that, else step after step.
#include <rosin/recurrent.hpp>

#include <optional>

#include <rosin/activation.hpp>
#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/matmul.hpp>
#include <rosin/movement.hpp>

#include "graph/context.hpp"
#include "graph/node.hpp"
#include "graph/transfer.hpp"
#include "model/locate.hpp"
#include "nn/layer_parts.hpp"
#include "ops/autocast_casts.hpp"
#include "ops/recurrent_call.hpp"
#include "ops/sequence.hpp"

namespace rosin {
namespace {

std::string sizes_text(std::string_view name, const Array& input_weight, const Array& recurrent_weight) {
  if (input_weight.is_nothing()) return std::string(name) + "(";
  return std::string(name) + "(" + std::to_string(input_weight.size(1)) + " => " +
         std::to_string(recurrent_weight.size(1));
}

/// Beside the weight.
Array zero_state(const Array& recurrent_weight) {
  const DeviceScope scope(*recurrent_weight.node());
  return zeros({recurrent_weight.size(1)}, recurrent_weight.dtype());
}

/// The rows of one gate out of those of all.
Array gate(const Array& gates, int64_t which, int64_t out) { return slice(gates, 0, which * out, (which + 1) * out); }

Array with_bias(const Array& x, const Array& bias) { return bias.is_nothing() ? x : x + beside(bias, x); }

// What a step makes of its share of the input (Wi x + b) and the state.

Array advanced(const RNNCell& cell, const Array& share, const Array& h) {
  return cell.act(share + matmul(cell.recurrent_weight, h));
}

LSTMState advanced(const LSTMCell& cell, const Array& share, const LSTMState& state) {
  const int64_t out = cell.recurrent_weight.size(1);
  const Array gates = share + matmul(cell.recurrent_weight, state.hidden);
  const Array input = sigmoid(gate(gates, 0, out)), forget = sigmoid(gate(gates, 1, out));
  const Array c = forget * state.cell + input * tanh(gate(gates, 2, out));
  return {sigmoid(gate(gates, 3, out)) * tanh(c), c};
}

/// Reset and update gate, of both shares.
std::pair<Array, Array> reset_and_update(const Array& share, const Array& recurrent, int64_t out) {
  const Array both = sigmoid(slice(share, 0, 0, 2 * out) + slice(recurrent, 0, 0, 2 * out));
  return {gate(both, 0, out), gate(both, 1, out)};
}

/// (1 - z) candidate + z h, with one product.
Array mixed(const Array& z, const Array& candidate, const Array& h) { return candidate + z * (h - candidate); }

Array advanced(const GRUCell& cell, const Array& share, const Array& h) {
  const int64_t out = cell.recurrent_weight.size(1);
  const Array recurrent = matmul(cell.recurrent_weight, h);
  const auto [r, z] = reset_and_update(share, recurrent, out);
  return mixed(z, tanh(gate(share, 2, out) + r * with_bias(gate(recurrent, 2, out), cell.reset_bias)), h);
}

Array advanced(const GRUv3Cell& cell, const Array& share, const Array& h) {
  const int64_t out = cell.recurrent_weight.size(1);
  const auto [r, z] = reset_and_update(share, matmul(cell.recurrent_weight, h), out);
  return mixed(z, tanh(gate(share, 2, out) + matmul(cell.candidate_weight, r * h)), h);
}

const Array& output_of(const Array& state) { return state; }
const Array& output_of(const LSTMState& state) { return state.hidden; }

/// new where the sequence goes on, old where it has ended.
Array chosen(const Array& going, const Array& made, const Array& before) { return where(going, made, before); }
LSTMState chosen(const Array& going, const LSTMState& made, const LSTMState& before) {
  return {where(going, made.hidden, before.hidden), where(going, made.cell, before.cell)};
}

void check_features(const std::string& layer, const Array& weight, const Array& x, std::string_view form) {
  if (x.rank() > 0 && x.size(0) == weight.size(1)) return;
  refuse_input(layer, "expects size(input, 0) == " + std::to_string(weight.size(1)), x, form);
}

/// A state of a layer that gives `out` features must be (out) or (out, batch).
void check_state(const std::string& layer, const Array& state, int64_t out, int64_t batch) {
  const bool fits = state.rank() >= 1 && state.rank() <= 2 && state.size(0) == out;
  if (fits && (state.rank() == 1 || batch < 0 || state.size(1) == batch || state.size(1) == 1)) return;
  const std::string columns = batch < 0 ? "" : " or (" + std::to_string(out) + ", " + std::to_string(batch) + ")";
  refuse_input(layer, "expects a state (" + std::to_string(out) + ")" + columns, state,
               "it has the features first, then the batch of the input");
}
void check_state(const std::string& layer, const LSTMState& state, int64_t out, int64_t batch) {
  check_state(layer, state.hidden, out, batch);
  check_state(layer, state.cell, out, batch);
}

/// One step of any cell.
template <class Cell>
RecurrentResult<typename Cell::State> step(const Cell& cell, const Array& x, const typename Cell::State& state) {
  return located(cell, [&] {
    const std::string text = x.rank() <= 2 ? "" : cell.rosin_show();
    if (x.rank() > 2) refuse_input(text, "expects (features) or (features, batch)", x, "layers take whole sequences");
    check_features(cell.rosin_show(), cell.input_weight, x, "arrays are (features, batch), with the features first");
    check_state(cell.rosin_show(), state, cell.recurrent_weight.size(1), x.rank() == 2 ? x.size(1) : -1);
    const Array share = with_bias(matmul(cell.input_weight, matched_input(x, cell.input_weight, cell)), cell.bias);
    typename Cell::State made = advanced(cell, share, state);
    return RecurrentResult<typename Cell::State>{output_of(made), made};
  });
}

/// The shares of all steps, (gates, batch, steps) or (gates, steps): a step's lie side by side.
template <class Cell> Array shares_of(const Cell& cell, const Array& x) {
  const Array& weight = cell.input_weight;
  if (x.rank() == 2) return with_bias(matmul(weight, x), cell.bias);
  const int64_t steps = x.size(1), batch = x.size(2);
  const Array columns = reshape(permute(x, {0, 2, 1}), {x.size(0), batch * steps});
  return reshape(with_bias(matmul(weight, columns), cell.bias), {weight.size(0), batch, steps});
}

/// Lengths may stand on the host, where collating them has left them.
SequenceOptions with_lengths_beside(const Array& x, SequenceOptions options) {
  if (!options.lengths.is_nothing()) options.lengths = transferred(options.lengths, x.node()->device);
  return options;
}

/// Which sequences go on in each step: (1, batch, steps) Bool, or nothing where all do.
Array going_on(const std::string& layer, const Array& x, const Array& lengths) {
  if (lengths.is_nothing()) return {};
  if (x.rank() != 3 || lengths.rank() != 1 || lengths.size(0) != x.size(2) || is_float(lengths.dtype())) {
    refuse_input(layer, "expects as many lengths, integers, as there are sequences in the batch", lengths,
                 "x is (features, steps, batch), lengths (batch)");
  }
  const Array places = reshape(cast(arange(x.size(1)), Int64), {1, 1, x.size(1)});
  return lt(places, reshape(cast(lengths, Int64), {1, x.size(2), 1}));
}

// All steps in one op.

std::optional<SequenceCell> kind_of(const RNNCell& cell) {
  if (cell.act.function() == UnaryFunction{tanh}) return SequenceCell::tanh;
  if (cell.act.function() == UnaryFunction{relu}) return SequenceCell::relu;
  return std::nullopt;
}
std::optional<SequenceCell> kind_of(const LSTMCell&) { return SequenceCell::lstm; }
std::optional<SequenceCell> kind_of(const GRUCell& cell) {
  if (cell.reset_bias.is_nothing()) return SequenceCell::gru;
  return std::nullopt;
}
std::optional<SequenceCell> kind_of(const GRUv3Cell&) { return SequenceCell::gruv3; }

template <class Cell> void set_operands(const Cell&, const Array& state, int64_t batch, SequenceOperands& operands) {
  operands.hidden = state_of_batch(state, batch);
}
void set_operands(const LSTMCell&, const LSTMState& state, int64_t batch, SequenceOperands& operands) {
  operands.hidden = state_of_batch(state.hidden, batch);
  operands.cells = state_of_batch(state.cell, batch);
}
void set_operands(const GRUv3Cell& cell, const Array& state, int64_t batch, SequenceOperands& operands) {
  operands.hidden = state_of_batch(state, batch);
  operands.candidate_weight = cell.candidate_weight;
}

/// The state at a place among all of them; (out) where there was no batch.
Array state_at(const Array& states, int64_t at, bool batched) {
  const Array state = select(states, 2, at);
  return batched ? state : reshape(state, {state.size(0)});
}
void take_state(const SequenceStates& states, int64_t at, bool batched, Array& state) {
  state = state_at(states.hidden, at, batched);
}
void take_state(const SequenceStates& states, int64_t at, bool batched, LSTMState& state) {
  state = {state_at(states.hidden, at, batched), state_at(states.cells, at, batched)};
}

/// What the layer gives, in one op, where there is one; `going` as of going_on.
template <class Cell>
std::optional<RecurrentResult<typename Cell::State>> at_once(const Cell& cell, const Array& given,
                                                             const typename Cell::State& first, const Array& going,
                                                             const SequenceOptions& options) {
  const std::optional<SequenceCell> kind = kind_of(cell);
  if (!kind) return std::nullopt;
  const bool batched = given.rank() == 3;
  const Array shares = batched ? given : reshape(given, {given.size(0), 1, given.size(1)});
  const int64_t steps = shares.size(2), after = options.reverse ? 0 : 1;
  SequenceOperands operands{.cell = *kind, .shares = shares, .recurrent_weight = cell.recurrent_weight};
  operands.reversed = options.reverse;
  if (!going.is_nothing()) operands.lengths = cast(options.lengths, Int64);
  set_operands(cell, first, shares.size(1), operands);
  if (!takes_sequence(operands)) return std::nullopt;
  const SequenceStates states = sequence(operands);
  RecurrentResult<typename Cell::State> result;
  const Array outs = slice(states.hidden, 2, after, after + steps);
  result.out = permute(going.is_nothing() ? outs : where(going, outs, zeros_like(outs)), {0, 2, 1});
  if (!batched) result.out = reshape(result.out, {result.out.size(0), steps});
  take_state(states, options.reverse ? 0 : steps, batched, result.state);
  return result;
}

void set_states(const Array& state, RecurrentOperands& operands) { operands.hidden = state; }
void set_states(const LSTMState& state, RecurrentOperands& operands) {
  operands.hidden = state.hidden;
  operands.cells = state.cell;
}
void take_last(const RecurrentStates& made, const Shape& form, Array& state) { state = reshape(made.hidden, form); }
void take_last(const RecurrentStates& made, const Shape& form, LSTMState& state) {
  state = {reshape(made.hidden, form), reshape(made.cells, form)};
}

/// What the layer gives, where a device's library computes it.
template <class Cell>
std::optional<RecurrentResult<typename Cell::State>> by_library(const Cell& cell, const Array& given,
                                                                const typename Cell::State& first,
                                                                const SequenceOptions& options) {
  const std::optional<SequenceCell> kind = kind_of(cell);
  if (given.node()->device == 0 || !kind || !options.lengths.is_nothing()) return std::nullopt;
  const bool batched = given.rank() == 3;
  RecurrentOperands operands{.cell = *kind,
                             .x = batched ? given : reshape(given, {given.size(0), given.size(1), 1}),
                             .weights = {cell.input_weight, cell.recurrent_weight, cell.bias},
                             .reversed = options.reverse};
  set_states(first, operands);
  if (!takes_recurrent(operands)) return std::nullopt;
  const RecurrentStates made = recurrent(operands);
  const int64_t out = made.outputs.size(0);
  RecurrentResult<typename Cell::State> result;
  result.out = batched ? made.outputs : reshape(made.outputs, {out, given.size(1)});
  take_last(made, batched ? Shape{out, given.size(2)} : Shape{out}, result.state);
  return result;
}

/// A cell over all steps.
template <class Layer>
RecurrentResult<typename Layer::State> over_steps(const Layer& layer, const Array& given,
                                                  const typename Layer::State& first, const SequenceOptions& how) {
  return located(layer, [&] {
    const auto& cell = layer.cell;
    const std::string text = layer.rosin_show();
    const int64_t steps = detail::steps_of(text, given), out = cell.recurrent_weight.size(1);
    check_features(text, cell.input_weight, given, "sequences are (features, steps, batch)");
    check_state(text, first, out, given.rank() == 3 ? given.size(2) : -1);
    const Array x = matched_input(given, cell.input_weight, layer);
    const SequenceOptions options = with_lengths_beside(x, how);
    if (auto made = by_library(cell, x, first, options)) return std::move(*made);
    const Array shares = shares_of(cell, x), going = going_on(text, x, options.lengths);
    if (auto made = at_once(cell, shares, first, going, options)) return std::move(*made);
    typename Layer::State state = first;
    Arrays outs(static_cast<size_t>(steps));
    for (int64_t i = 0; i < steps; ++i) {
      const int64_t t = options.reverse ? steps - 1 - i : i;
      typename Layer::State made = advanced(cell, select(shares, -1, t), state);
      Array result = output_of(made);
      if (!going.is_nothing()) {
        const Array here = select(going, -1, t);
        result = where(here, result, zeros_like(result));
        made = chosen(here, made, state);
      }
      outs[static_cast<size_t>(t)] = std::move(result);
      state = std::move(made);
    }
    return RecurrentResult<typename Layer::State>{stack(outs, 1), std::move(state)};
  });
}

}  // namespace

namespace detail {

int64_t steps_of(std::string_view layer, const Array& x) {
  if ((x.rank() == 2 || x.rank() == 3) && x.size(1) > 0) return x.size(1);
  refuse_input(std::string(layer), "expects (features, steps) or (features, steps, batch), with a step at least", x,
               "unsqueeze(x, 1) makes one step of (features, batch)");
}

}  // namespace detail

RNNCell::RNNCell(int64_t in, int64_t out, Activation activation, const RecurrentOptions& options)
    : input_weight(options.init_kernel({out, in})), recurrent_weight(options.init_recurrent_kernel({out, out})),
      bias(bias_for("RNNCell", options.bias, input_weight, {out})), act(std::move(activation)) {}

RecurrentResult<Array> RNNCell::operator()(const Array& x, const Array& state) const { return step(*this, x, state); }
Array RNNCell::initial_state() const { return zero_state(recurrent_weight); }
std::string RNNCell::rosin_show() const {
  return sizes_text("RNNCell", input_weight, recurrent_weight) + activation_text(act) + ")";
}

LSTMCell::LSTMCell(int64_t in, int64_t out, const RecurrentOptions& options)
    : input_weight(options.init_kernel({4 * out, in})), recurrent_weight(options.init_recurrent_kernel({4 * out, out})),
      bias(bias_for("LSTMCell", options.bias, input_weight, {4 * out})) {}

RecurrentResult<LSTMState> LSTMCell::operator()(const Array& x, const LSTMState& state) const {
  return step(*this, x, state);
}
LSTMState LSTMCell::initial_state() const { return {zero_state(recurrent_weight), zero_state(recurrent_weight)}; }
std::string LSTMCell::rosin_show() const { return sizes_text("LSTMCell", input_weight, recurrent_weight) + ")"; }

GRUCell::GRUCell(int64_t in, int64_t out, const RecurrentOptions& options)
    : input_weight(options.init_kernel({3 * out, in})), recurrent_weight(options.init_recurrent_kernel({3 * out, out})),
      bias(bias_for("GRUCell", options.bias, input_weight, {3 * out})) {}

RecurrentResult<Array> GRUCell::operator()(const Array& x, const Array& state) const { return step(*this, x, state); }
Array GRUCell::initial_state() const { return zero_state(recurrent_weight); }
std::string GRUCell::rosin_show() const { return sizes_text("GRUCell", input_weight, recurrent_weight) + ")"; }

GRUv3Cell::GRUv3Cell(int64_t in, int64_t out, const RecurrentOptions& options)
    : input_weight(options.init_kernel({3 * out, in})), recurrent_weight(options.init_recurrent_kernel({2 * out, out})),
      bias(bias_for("GRUv3Cell", options.bias, input_weight, {3 * out})),
      candidate_weight(options.init_recurrent_kernel({out, out})) {}

RecurrentResult<Array> GRUv3Cell::operator()(const Array& x, const Array& state) const { return step(*this, x, state); }
Array GRUv3Cell::initial_state() const { return zero_state(recurrent_weight); }
std::string GRUv3Cell::rosin_show() const { return sizes_text("GRUv3Cell", input_weight, recurrent_weight) + ")"; }

Array RNN::operator()(const Array& x, const SequenceOptions& options) const {
  return operator()(x, cell.initial_state(), options).out;
}
RecurrentResult<Array> RNN::operator()(const Array& x, const Array& state, const SequenceOptions& options) const {
  return over_steps(*this, x, state, options);
}
std::string RNN::rosin_show() const {
  return sizes_text("RNN", cell.input_weight, cell.recurrent_weight) + activation_text(cell.act) + ")";
}

Array LSTM::operator()(const Array& x, const SequenceOptions& options) const {
  return operator()(x, cell.initial_state(), options).out;
}
RecurrentResult<LSTMState> LSTM::operator()(const Array& x, const LSTMState& state,
                                            const SequenceOptions& options) const {
  return over_steps(*this, x, state, options);
}
std::string LSTM::rosin_show() const { return sizes_text("LSTM", cell.input_weight, cell.recurrent_weight) + ")"; }

Array GRU::operator()(const Array& x, const SequenceOptions& options) const {
  return operator()(x, cell.initial_state(), options).out;
}
RecurrentResult<Array> GRU::operator()(const Array& x, const Array& state, const SequenceOptions& options) const {
  return over_steps(*this, x, state, options);
}
std::string GRU::rosin_show() const { return sizes_text("GRU", cell.input_weight, cell.recurrent_weight) + ")"; }

Array GRUv3::operator()(const Array& x, const SequenceOptions& options) const {
  return operator()(x, cell.initial_state(), options).out;
}
RecurrentResult<Array> GRUv3::operator()(const Array& x, const Array& state, const SequenceOptions& options) const {
  return over_steps(*this, x, state, options);
}
std::string GRUv3::rosin_show() const { return sizes_text("GRUv3", cell.input_weight, cell.recurrent_weight) + ")"; }

}  // namespace rosin
