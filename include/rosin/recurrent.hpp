// Recurrent layers. Cells make one step: x is (in, batch) or (in), a state (out, batch) or (out). Layers go through
// sequences: x is (in, steps, batch) or (in, steps). States that are not given are zeros.
// Read first: dense.hpp. Source: Flux, 0.16 (RNN, LSTM, GRU and kin are stateless there too).
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <utility>

#include <rosin/activation_value.hpp>
#include <rosin/array.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/init.hpp>
#include <rosin/layer.hpp>
#include <rosin/movement.hpp>

namespace rosin {

/// `bias`: true (zeros), false (none), or the array itself.
struct RecurrentOptions {
  Array bias = true;
  Init init_kernel = glorot_uniform;
  Init init_recurrent_kernel = glorot_uniform;
};

/// What a step or a sequence gives: `auto [out, state] = cell(x, state)`. `out` of a sequence has that of every step,
/// `state` is the one after the last.
template <class S> struct RecurrentResult {
  Array out;
  S state;
};

/// How a sequence is gone through. Beyond the length of its sequence an output is 0 and the state stays (as of packed
/// sequences in PyTorch); in `reverse` the last step comes first, and outputs stay at the place of their input.
struct SequenceOptions {
  // (batch) integers, on any device; or nothing: all steps. Those outside of [0, steps] count as the nearer end.
  Array lengths = {};
  bool reverse = false;
};

/// h' = act(Wi x + Wh h + b); the output is h'. Source: Flux.RNNCell; Elman (1990).
struct ROSIN_API RNNCell {
  Array input_weight;      // (out, in), Flux's Wi
  Array recurrent_weight;  // (out, out), Flux's Wh
  Array bias;              // (out), or nothing
  Activation act;          // Flux's σ
  static constexpr int rosin_fields = 4;
  using State = Array;  // (out, batch) or (out)

  RNNCell() = default;
  RNNCell(int64_t in, int64_t out, Activation activation = UnaryFunction{tanh}, const RecurrentOptions& options = {});
  RNNCell(int64_t in, int64_t out, const RecurrentOptions& options) : RNNCell(in, out, UnaryFunction{tanh}, options) {}

  /// One step. Error (shape): x does not have `in` features, or the state not the form of the result.
  RecurrentResult<State> operator()(const Array& x, const State& state) const;
  RecurrentResult<State> operator()(const Array& x) const { return operator()(x, initial_state()); }
  State initial_state() const;
  std::string rosin_show() const;
};

/// Hidden and cell state.
struct LSTMState {
  Array hidden;  // (out, batch) or (out)
  Array cell;    // the same
};

/// c' = σ(f) c + σ(i) tanh(g), h' = σ(o) tanh(c'), where (i, f, g, o) = Wi x + Wh h + b; the output is h'.
/// Source: Flux.LSTMCell; Hochreiter, Schmidhuber (1997).
struct ROSIN_API LSTMCell {
  Array input_weight;      // (4 out, in): rows of the input, forget, cell and output gate
  Array recurrent_weight;  // (4 out, out)
  Array bias;              // (4 out), or nothing
  static constexpr int rosin_fields = 3;
  using State = LSTMState;

  LSTMCell() = default;
  LSTMCell(int64_t in, int64_t out, const RecurrentOptions& options = {});

  RecurrentResult<State> operator()(const Array& x, const State& state) const;
  RecurrentResult<State> operator()(const Array& x) const { return operator()(x, initial_state()); }
  State initial_state() const;
  std::string rosin_show() const;
};

/// h' = (1 - z) h̃ + z h, h̃ = tanh(Wi₃ x + r (Wh₃ h) + b₃), r = σ(Wi₁ x + Wh₁ h + b₁), z = σ(Wi₂ x + Wh₂ h + b₂);
/// the output is h'. Source: Flux.GRUCell; Chung et al. (2014), and cuDNN's form of r. PyTorch's GRU has one bias more,
/// r (Wh₃ h + c): with cell.reset_bias = zeros({out}) it is that one (whose steps are computed one by one).
struct ROSIN_API GRUCell {
  Array input_weight;      // (3 out, in): rows of r, z, h̃
  Array recurrent_weight;  // (3 out, out)
  Array bias;              // (3 out), or nothing
  Array reset_bias;        // (out), c, or nothing
  static constexpr int rosin_fields = 4;
  using State = Array;

  GRUCell() = default;
  GRUCell(int64_t in, int64_t out, const RecurrentOptions& options = {});

  RecurrentResult<State> operator()(const Array& x, const State& state) const;
  RecurrentResult<State> operator()(const Array& x) const { return operator()(x, initial_state()); }
  State initial_state() const;
  std::string rosin_show() const;
};

/// The GRU whose reset gate acts before the product: h̃ = tanh(Wi₃ x + W (r h) + b₃), W being `candidate_weight`.
/// Source: Flux.GRUv3Cell; Cho et al. (2014), version 3.
struct ROSIN_API GRUv3Cell {
  Array input_weight;      // (3 out, in): rows of r, z, h̃
  Array recurrent_weight;  // (2 out, out): rows of r, z
  Array bias;              // (3 out), or nothing
  Array candidate_weight;  // (out, out), Flux's Wh_h̃
  static constexpr int rosin_fields = 4;
  using State = Array;

  GRUv3Cell() = default;
  GRUv3Cell(int64_t in, int64_t out, const RecurrentOptions& options = {});

  RecurrentResult<State> operator()(const Array& x, const State& state) const;
  RecurrentResult<State> operator()(const Array& x) const { return operator()(x, initial_state()); }
  State initial_state() const;
  std::string rosin_show() const;
};

/// A cell over sequences: x (in, steps, batch) -> (out, steps, batch). Source: Flux.RNN.
struct ROSIN_API RNN {
  RNNCell cell;
  static constexpr int rosin_fields = 1;
  using State = Array;

  RNN() = default;
  RNN(int64_t in, int64_t out, Activation activation = UnaryFunction{tanh}, const RecurrentOptions& options = {})
      : RNN(RNNCell(in, out, std::move(activation), options)) {}
  RNN(int64_t in, int64_t out, const RecurrentOptions& options) : RNN(RNNCell(in, out, options)) {}
  explicit RNN(RNNCell c) : cell(std::move(c)) {}

  /// The outputs of all steps. Error (shape): x is not (in, steps) or (in, steps, batch); lengths are not (batch).
  Array operator()(const Array& x, const SequenceOptions& options = {}) const;
  /// From a state; gives the last one too.
  RecurrentResult<State> operator()(const Array& x, const State& state, const SequenceOptions& options = {}) const;
  std::string rosin_show() const;
};

/// Source: Flux.LSTM.
struct ROSIN_API LSTM {
  LSTMCell cell;
  static constexpr int rosin_fields = 1;
  using State = LSTMState;

  LSTM() = default;
  LSTM(int64_t in, int64_t out, const RecurrentOptions& options = {}) : LSTM(LSTMCell(in, out, options)) {}
  explicit LSTM(LSTMCell c) : cell(std::move(c)) {}

  Array operator()(const Array& x, const SequenceOptions& options = {}) const;
  RecurrentResult<State> operator()(const Array& x, const State& state, const SequenceOptions& options = {}) const;
  std::string rosin_show() const;
};

/// Source: Flux.GRU.
struct ROSIN_API GRU {
  GRUCell cell;
  static constexpr int rosin_fields = 1;
  using State = Array;

  GRU() = default;
  GRU(int64_t in, int64_t out, const RecurrentOptions& options = {}) : GRU(GRUCell(in, out, options)) {}
  explicit GRU(GRUCell c) : cell(std::move(c)) {}

  Array operator()(const Array& x, const SequenceOptions& options = {}) const;
  RecurrentResult<State> operator()(const Array& x, const State& state, const SequenceOptions& options = {}) const;
  std::string rosin_show() const;
};

/// Source: Flux.GRUv3.
struct ROSIN_API GRUv3 {
  GRUv3Cell cell;
  static constexpr int rosin_fields = 1;
  using State = Array;

  GRUv3() = default;
  GRUv3(int64_t in, int64_t out, const RecurrentOptions& options = {}) : GRUv3(GRUv3Cell(in, out, options)) {}
  explicit GRUv3(GRUv3Cell c) : cell(std::move(c)) {}

  Array operator()(const Array& x, const SequenceOptions& options = {}) const;
  RecurrentResult<State> operator()(const Array& x, const State& state, const SequenceOptions& options = {}) const;
  std::string rosin_show() const;
};

/// A cell of one's own: a class with a type `State`, `initial_state()`, and a call that gives out and state.
template <class C>
concept RecurrentCell = requires(const C& cell, const Array& x, const typename C::State& state) {
  { cell.initial_state() } -> std::convertible_to<typename C::State>;
  { cell(x, state) } -> std::convertible_to<RecurrentResult<typename C::State>>;
};

/// Any cell over sequences, one step after the other. Source: Flux.Recurrence.
template <RecurrentCell C> struct Recurrence {
  C cell;
  static constexpr int rosin_fields = 1;
  using State = typename C::State;

  Recurrence() = default;
  explicit Recurrence(C c) : cell(std::move(c)) {}

  /// x is (in, steps, batch) or (in, steps) -> (out, steps, batch) or (out, steps).
  /// Error (shape): x has another rank, or no steps.
  Array operator()(const Array& x) const { return operator()(x, cell.initial_state()).out; }
  RecurrentResult<State> operator()(const Array& x, State state) const;
};

/// Two layers over the same sequences, the second from the end to the beginning: their outputs one below the other.
/// Source: torch.nn.LSTM, `bidirectional`; Schuster, Paliwal (1997).
template <class L> struct Bidirectional {
  L forward;
  L backward;
  static constexpr int rosin_fields = 2;

  Bidirectional() = default;
  Bidirectional(L first, L second) : forward(std::move(first)), backward(std::move(second)) {}

  /// x is (in, steps, batch) or (in, steps) -> (2 out, steps, batch) or (2 out, steps).
  Array operator()(const Array& x, const SequenceOptions& options = {}) const {
    return concat({forward(x, options), backward(x, SequenceOptions{options.lengths, !options.reverse})}, 0);
  }
};

namespace detail {

/// The number of steps of x (in, steps, batch) or (in, steps). Error (shape): another rank, or none.
ROSIN_API int64_t steps_of(std::string_view layer, const Array& x);

}  // namespace detail

template <RecurrentCell C>
RecurrentResult<typename C::State> Recurrence<C>::operator()(const Array& x, State state) const {
  Arrays outs;
  for (int64_t t = 0, steps = detail::steps_of("Recurrence", x); t < steps; ++t) {
    RecurrentResult<State> made = cell(select(x, 1, t), state);
    outs.push_back(std::move(made.out));
    state = std::move(made.state);
  }
  return {stack(outs, 1), std::move(state)};
}

}  // namespace rosin
