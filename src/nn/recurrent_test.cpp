// Recurrent layers against PyTorch (tests/oracles/recurrent.txt), Flux's own tests and finite differences.
#include <rosin/recurrent.hpp>

#include <gtest/gtest.h>

#include <rosin/activation.hpp>
#include <rosin/approx.hpp>
#include <rosin/chain.hpp>
#include <rosin/dense.hpp>
#include <rosin/io.hpp>
#include <rosin/move.hpp>

#include "../tests/layer_testing.hpp"
#include "../tests/op_oracles.hpp"

namespace rosin {
namespace {

using layer_testing::expect_near;
using oracles::OracleCase;
using Inputs = std::vector<Array>;

SequenceOptions options_of(const OracleCase& entry) {
  const std::vector<int64_t> lengths = entry.integers("lengths");
  SequenceOptions options;
  if (!lengths.empty()) options.lengths = Array(lengths, {static_cast<int64_t>(lengths.size())});
  options.reverse = entry.has("reverse");
  return options;
}

template <class Cell> void set_weights(Cell& cell, const Inputs& in) {
  cell.input_weight = in[1];
  cell.recurrent_weight = in[2];
  cell.bias = in[3];
}

Inputs rnn(const OracleCase& entry, const Inputs& in) {
  RNN layer;
  set_weights(layer.cell, in);
  layer.cell.act = entry.has("act") ? UnaryFunction{relu} : UnaryFunction{tanh};
  const auto [out, state] = layer(in[0], in[4], options_of(entry));
  return {out, state};
}

Inputs lstm(const OracleCase& entry, const Inputs& in) {
  LSTM layer;
  set_weights(layer.cell, in);
  const auto [out, state] = layer(in[0], {in[4], in[5]}, options_of(entry));
  return {out, state.hidden, state.cell};
}

Inputs gru(const OracleCase& entry, const Inputs& in) {
  GRU layer;
  set_weights(layer.cell, in);
  const auto [out, state] = layer(in[0], in[4], options_of(entry));
  return {out, state};
}

Inputs gruv3(const OracleCase& entry, const Inputs& in) {
  GRUv3 layer;
  set_weights(layer.cell, in);
  layer.cell.candidate_weight = in[5];
  const auto [out, state] = layer(in[0], in[4], options_of(entry));
  return {out, state};
}

TEST(Recurrent, AgreesWithPyTorch) {
  oracles::run_oracles("recurrent.txt", {{"rnn", rnn}, {"lstm", lstm}, {"gru", gru}, {"gruv3", gruv3}});
}

/// What every layer must do, whatever its cell. Source: Flux's test/layers/recurrent.jl.
template <class L> void check_layer(const L& layer, const std::string& name, int64_t parameters) {
  SCOPED_TRACE(name);
  const Array x = randn({2, 4, 3});
  const auto [out, state] = layer(x, layer.cell.initial_state());
  EXPECT_EQ(out.shape(), (Shape{3, 4, 3}));
  EXPECT_TRUE(allclose(layer(x), out));
  const auto stepwise = Recurrence(layer.cell)(x, layer.cell.initial_state());
  EXPECT_TRUE(allclose(stepwise.out, out)) << "step by step";
  EXPECT_EQ(layer(randn({2, 4})).shape(), (Shape{3, 4}));
  EXPECT_EQ(layer.cell(randn({2})).out.shape(), (Shape{3}));
  EXPECT_EQ(layer.cell(randn({2, 5})).out.shape(), (Shape{3, 5}));
  EXPECT_EQ(layer(zeros({2, 4, 0})).shape(), (Shape{3, 4, 0})) << "an empty batch";
  EXPECT_EQ(parameter_count(layer), parameters);
  EXPECT_EQ(to_string(layer).substr(0, name.size()), name);
  layer_testing::check_layer_gradient(layer, x, name);
  layer_testing::check_layer_gradient(Recurrence(layer.cell), x, "Recurrence of " + name);
}

TEST(Recurrent, LayersAreTheirCellsOverSequences) {
  check_layer(RNN(2, 3), "RNN(2 => 3, tanh)", 6 + 9 + 3);
  check_layer(LSTM(2, 3), "LSTM(2 => 3)", 4 * (6 + 9 + 3));
  check_layer(GRU(2, 3), "GRU(2 => 3)", 3 * (6 + 9 + 3));
  check_layer(GRUv3(2, 3), "GRUv3(2 => 3)", 3 * (6 + 9 + 3));
  EXPECT_EQ(parameter_count(RNN(2, 3, {.bias = false})), 15);
  EXPECT_EQ(to_string(RNNCell(2, 3, relu)).substr(0, 20), "RNNCell(2 => 3, relu");
}

TEST(Recurrent, AStateGoesOnWhereAnEarlierCallEnded) {
  const LSTM layer(2, 3);
  const Array x = randn({2, 6, 4});
  const auto [whole, last] = layer(x, layer.cell.initial_state());
  const auto first = layer(slice(x, 1, 0, 2), layer.cell.initial_state());
  const auto second = layer(slice(x, 1, 2, 6), first.state);
  EXPECT_TRUE(allclose(concat({first.out, second.out}, 1), whole));
  EXPECT_TRUE(allclose(second.state.hidden, last.hidden));
  EXPECT_TRUE(allclose(second.state.cell, last.cell));
}

TEST(Recurrent, LengthsMakeABatchOfSequencesAlone) {
  const GRU layer(2, 3);
  const Array x = randn({2, 5, 3}), lengths({2, 5, 0}, {3});
  const auto [out, state] = layer(x, layer.cell.initial_state(), {.lengths = lengths});
  const auto alone = layer(slice(select(x, 2, 0), 1, 0, 2), layer.cell.initial_state());
  EXPECT_TRUE(allclose(slice(select(out, 2, 0), 1, 0, 2), alone.out));
  EXPECT_TRUE(allclose(select(state, 1, 0), alone.state));
  EXPECT_EQ(sum(abs(slice(select(out, 2, 0), 1, 2, 5))).item(), 0);
  EXPECT_EQ(sum(abs(select(state, 1, 2))).item(), 0) << "nothing was read";
}

TEST(Recurrent, LengthsMayStayOnTheHost) {
  const Device there = some_device();
  const GRU layer(2, 3), moved = layer | there;
  const Array x = randn({2, 5, 3}), lengths({2, 5, 0}, {3});
  EXPECT_TRUE(allclose(moved(x | there, {.lengths = lengths}) | cpu_device(), layer(x, {.lengths = lengths})));
  const auto [out, state] = moved(x | there, moved.cell.initial_state(), {.lengths = lengths});
  EXPECT_TRUE(allclose(state | cpu_device(), layer(x, layer.cell.initial_state(), {.lengths = lengths}).state));
}

TEST(Recurrent, BidirectionalReadsFromBothEnds) {
  const Bidirectional<LSTM> both(LSTM(2, 3), LSTM(2, 3));
  const Array x = randn({2, 5, 3}), y = both(x);
  EXPECT_EQ(y.shape(), (Shape{6, 5, 3}));
  EXPECT_TRUE(allclose(slice(y, 0, 0, 3), both.forward(x)));
  EXPECT_TRUE(allclose(slice(y, 0, 3, 6), flip(both.backward(flip(x, 1)), 1)));
  layer_testing::check_layer_gradient(both, randn({2, 3, 2}), "Bidirectional");
  const Array lengths({2, 5, 4}, {3});
  const Array first = slice(select(x, 2, 0), 1, 0, 2);
  EXPECT_TRUE(allclose(slice(select(both(x, {.lengths = lengths}), 2, 0), 1, 0, 2), both(first)));
}

TEST(Recurrent, StacksInChainsAndSavesAndPrints) {
  const Chain model(LSTM(4, 8), GRU(8, 5), Dense(5, 2));
  EXPECT_EQ(model(randn({4, 7, 3})).shape(), (Shape{2, 7, 3}));
  EXPECT_EQ(to_string(model),
            "Chain(\n"
            "  LSTM(4 => 8),                         # 416 parameters\n"
            "  GRU(8 => 5),                          # 210 parameters\n"
            "  Dense(5 => 2),                        # 12 parameters\n"
            ")                   # Total: 8 arrays, 638 parameters, 2.492 KiB.");
  const std::string path = testing::TempDir() + "/recurrent.safetensors";
  save(path, model);
  Chain loaded(LSTM(4, 8), GRU(8, 5), Dense(5, 2));
  load(path, loaded);
  const Array x = randn({4, 7, 3});
  EXPECT_TRUE(allclose(loaded(x), model(x)));
  const Chain halves = f16(model);
  EXPECT_EQ(halves(cast(x, Float16)).dtype(), Float16);
}

TEST(Recurrent, RefusesWhatDoesNotFit) {
  const LSTM layer(2, 3);
  EXPECT_EQ(error_of([&] {
              layer(ones({4, 5, 1}));
            }),
            "layer LSTM(2 => 3) expects size(input, 0) == 2, but got 4×5×1 Array{Float32}; sequences are (features, "
            "steps, batch)");
  EXPECT_EQ(error_of([&] { layer(ones({2})); }),
            "layer LSTM(2 => 3) expects (features, steps) or (features, steps, batch), with a step at least, but got "
            "2-element Array{Float32}; unsqueeze(x, 1) makes one step of (features, batch)");
  EXPECT_EQ(error_of([&] {
              layer(ones({2, 5, 4}), {ones({3, 3}), ones({3})});
            }),
            "layer LSTM(2 => 3) expects a state (3) or (3, 4), but got 3×3 Array{Float32}; it has the features first, "
            "then the batch of the input");
  EXPECT_EQ(error_of([&] {
              layer(ones({2, 5, 4}), {.lengths = ones({4})});
            }),
            "layer LSTM(2 => 3) expects as many lengths, integers, as there are sequences in the batch, but got "
            "4-element Array{Float32}; x is (features, steps, batch), lengths (batch)");
  EXPECT_EQ(error_of([&] {
              layer.cell(ones({2, 5, 4}));
            }),
            "layer LSTMCell(2 => 3) expects (features) or (features, batch), but got 2×5×4 Array{Float32}; layers take "
            "whole sequences");
}

}  // namespace
}  // namespace rosin
