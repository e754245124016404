// The forward call of sequences: see sequence.hpp.
#include "cpu/sequence.hpp"

#include "cpu/contraction.hpp"
#include "cpu/routine.hpp"

namespace rosin::cpu {
namespace {

/// A state that is kept at every step, or, where nobody reads it, at the last two.
class States {
 public:
  States(const SequenceBlock& block, float* kept, float* two) : block_(block), kept_(kept), two_(two) {}
  float* at(int64_t place) const {
    return kept_ ? block_.at(kept_, block_.out, place) : two_ + (place & 1) * block_.count();
  }

 private:
  const SequenceBlock& block_;
  float* kept_;
  float* two_;
};

/// One step of one block, as pointers to the block's columns.
struct Step {
  const float* share;             // (gates out), columns of the whole share
  const float *hidden, *cells;    // before it
  float *new_hidden, *new_cells;  // behind it
  float* gates;                   // those that are kept, one after the other
  float* other;                   // memory of one gate
};

// Operands: shares, W, h; c (lstm) or V (gruv3); lengths.
class SequenceCall final : public Call {
 public:
  explicit SequenceCall(const CallSpec& spec)
      : sizes_(spec.attributes.as<SequenceAttributes>(), spec.operands[0].shape), weight_(sizes_.out, sizes_.out),
        lengths_at_(static_cast<int>(spec.operands.size()) - 1) {
    const auto count = static_cast<size_t>(sizes_.out * sizes_.columns().step);
    weights_at_ = parts_.add(static_cast<size_t>(weight_.floats() * products()) * sizeof(float));
    chunk_bytes_ = (static_cast<size_t>(sizes_.kept_gates()) + 5) * count * sizeof(float);
    chunk_bytes_ = (chunk_bytes_ + 63) / 64 * 64;
    chunks_at_ = parts_.add(chunk_bytes_ * static_cast<size_t>(chunks()));
  }

  int64_t chunks() const override { return sizes_.columns().count(); }
  size_t scratch_bytes() const override { return parts_.total(); }
  size_t bytes() const override { return sizeof(*this); }
  bool may_fail() const override { return false; }

  void begin(const CallData& data) override {
    const auto* from = static_cast<const float*>(data.operand(1));
    const int64_t out = sizes_.out, rows = is_gruv3() ? 2 : products();
    for (int64_t gate = 0; gate < rows; ++gate) weight_.pack(from + gate * out, 1, rows * out, packed(data, gate));
    if (is_gruv3()) weight_.pack(static_cast<const float*>(data.operand(3)), 1, out, packed(data, 2));
  }

  void run(int64_t chunk, const CallData& data) override {
    const SequenceBlock block(sizes_, chunk);
    const int64_t count = block.count(), out = sizes_.out;
    auto* scratch = reinterpret_cast<float*>(static_cast<char*>(part_at(data, chunks_at_)) +
                                             static_cast<size_t>(chunk) * chunk_bytes_);
    const auto result = [&](int i) { return static_cast<float*>(data.results[i]); };
    const States hidden(block, result(0), scratch), cells(block, result(1), scratch + 2 * count);
    const auto* shares = static_cast<const float*>(data.operand(0));
    const auto* lengths = sizes_.how.lengths ? static_cast<const int64_t*>(data.operand(lengths_at_)) : nullptr;
    const auto start = [&](const States& states, int operand) {
      std::copy_n(block.at(static_cast<const float*>(data.operand(operand)), out, 0), count, states.at(sizes_.first()));
    };
    start(hidden, 2);
    if (sizes_.is_lstm()) start(cells, 3);
    for (int64_t i = 0; i < sizes_.steps; ++i) {
      const int64_t t = sizes_.step_at(i), before = sizes_.before(t), behind = sizes_.behind(t);
      float* gates = block.at(result(2), sizes_.kept_gates() * out, t);
      const Step step{.share = block.at(shares, sizes_.share_gates() * out, t),
                      .hidden = hidden.at(before),
                      .cells = cells.at(before),
                      .new_hidden = hidden.at(behind),
                      .new_cells = cells.at(behind),
                      .gates = gates ? gates : scratch + 5 * count,
                      .other = scratch + 4 * count};
      advance(step, block, data);
      if (lengths) stay(step, block, t, lengths + block.first);
    }
  }

 private:
  bool is_gruv3() const { return sizes_.how.cell == SequenceCell::gruv3; }
  int64_t products() const { return sizes_.share_gates(); }
  float* packed(const CallData& data, int64_t gate) const {
    return static_cast<float*>(part_at(data, weights_at_)) + gate * weight_.floats();
  }

  /// c += the weights of one gate times x.
  void multiply(const CallData& data, int64_t gate, const SequenceBlock& block, const float* x, float* c) const {
    weight_.multiply(packed(data, gate), x, sizes_.out, block.columns, c, sizes_.out);
  }
  void copy_share(const Step& step, const SequenceBlock& block, int64_t gate, float* to) const {
    copy_rows(step.share + gate * sizes_.out, sizes_.share_gates() * sizes_.out, to, sizes_.out, block.columns);
  }
  /// to = share + W h, of one gate.
  void add_up(const Step& step, const SequenceBlock& block, const CallData& data, int64_t gate, float* to) const {
    copy_share(step, block, gate, to);
    multiply(data, gate, block, step.hidden, to);
  }
  static void apply(StripLoop loop, float* x, int64_t count) {
    const void* in[] = {x};
    loop(x, in, count);
  }

  void advance(const Step& step, const SequenceBlock& block, const CallData& data) const {
    switch (sizes_.how.cell) {
      case SequenceCell::tanh:
      case SequenceCell::relu: return simple(step, block, data);
      case SequenceCell::lstm: return lstm(step, block, data);
      case SequenceCell::gru: return gru(step, block, data);
      case SequenceCell::gruv3: return gruv3(step, block, data);
    }
  }

  void simple(const Step& step, const SequenceBlock& block, const CallData& data) const {
    add_up(step, block, data, 0, step.new_hidden);
    apply(sizes_.how.cell == SequenceCell::relu ? loops_.relu : loops_.tanh, step.new_hidden, block.count());
  }

  void lstm(const Step& step, const SequenceBlock& block, const CallData& data) const {
    const int64_t count = block.count();
    float *input = step.gates, *forget = input + count, *made = forget + count, *output = made + count;
    for (int64_t gate = 0; gate < 4; ++gate) add_up(step, block, data, gate, step.gates + gate * count);
    apply(loops_.sigmoid, input, 2 * count);
    apply(loops_.tanh, made, count);
    apply(loops_.sigmoid, output, count);
    const float* of_cell[] = {input, forget, made, step.cells};
    loops_.lstm_cell(count, &step.new_cells, of_cell);
    const void* in[] = {step.new_cells};
    loops_.tanh(step.new_hidden, in, count);
    loops_.multiply(count, &step.new_hidden, &output);
  }

  void gru(const Step& step, const SequenceBlock& block, const CallData& data) const {
    const int64_t count = block.count();
    float *reset = step.gates, *update = reset + count, *product = update + count, *candidate = product + count;
    add_up(step, block, data, 0, reset);
    add_up(step, block, data, 1, update);
    std::fill_n(product, count, 0.0f);
    multiply(data, 2, block, step.hidden, product);
    apply(loops_.sigmoid, reset, 2 * count);
    copy_share(step, block, 2, candidate);
    const float* of_candidate[] = {reset, product};
    loops_.multiply_add(count, &candidate, of_candidate);
    finish_gru(step, count, update, candidate);
  }

  void gruv3(const Step& step, const SequenceBlock& block, const CallData& data) const {
    const int64_t count = block.count();
    float *reset = step.gates, *update = reset + count, *candidate = update + count, *kept = step.other;
    add_up(step, block, data, 0, reset);
    add_up(step, block, data, 1, update);
    apply(loops_.sigmoid, reset, 2 * count);
    std::copy_n(step.hidden, count, kept);
    loops_.multiply(count, &kept, &reset);
    copy_share(step, block, 2, candidate);
    multiply(data, 2, block, kept, candidate);
    finish_gru(step, count, update, candidate);
  }

  void finish_gru(const Step& step, int64_t count, const float* update, float* candidate) const {
    apply(loops_.tanh, candidate, count);
    float* made = step.new_hidden;
    const float* in[] = {update, candidate, step.hidden};
    loops_.mix(count, &made, in);
  }

  /// Sequences that have ended keep their state.
  void stay(const Step& step, const SequenceBlock& block, int64_t t, const int64_t* lengths) const {
    for (int64_t c = 0; c < block.columns; ++c) {
      if (t < lengths[c]) continue;
      std::copy_n(step.hidden + c * sizes_.out, sizes_.out, step.new_hidden + c * sizes_.out);
      if (sizes_.is_lstm()) std::copy_n(step.cells + c * sizes_.out, sizes_.out, step.new_cells + c * sizes_.out);
    }
  }

  SequenceSizes sizes_;
  Panels weight_;  // of one gate
  int lengths_at_;
  const GateLoops& loops_ = gate_loops();
  ScratchParts parts_;
  size_t weights_at_ = 0, chunks_at_ = 0, chunk_bytes_ = 0;
};

}  // namespace

std::unique_ptr<Call> prepare_sequence(const CallSpec& spec) { return std::make_unique<SequenceCall>(spec); }

}  // namespace rosin::cpu
