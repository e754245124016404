// The gradient call of sequences, from the last step to the first: see sequence.hpp.
#include "cpu/contraction.hpp"
#include "cpu/routine.hpp"
#include "cpu/sequence.hpp"

namespace rosin::cpu {
namespace {

/// Where the operands stand; -1: there is none.
struct Places {
  int weight = 0, hidden = 1, by_hidden = 2, gates = -1, cells = -1, by_cells = -1, candidate = -1, lengths = -1;

  explicit Places(const SequenceSizes& sizes) {
    int next = 3;
    if (sizes.kept_gates() > 0) gates = next++;
    if (sizes.is_lstm()) cells = next++;
    if (sizes.how.cell_slope) by_cells = next++;
    if (sizes.how.cell == SequenceCell::gruv3) candidate = next++;
    if (sizes.how.lengths) lengths = next++;
  }
};

/// One step of one block: the block's columns, contiguous but for the slopes of shares.
struct Step {
  const float* gates;                // as they were kept
  const float *hidden, *new_hidden;  // before and behind it
  const float *cells, *new_cells;
  float* by_shares;             // (gates out)
  float* second;                // of gru the slopes by W h, of gruv3 r h
  float *by_hidden, *by_cells;  // of the state behind it; then of that before
  float* other;                 // memory of one gate
  const int64_t* lengths;       // of the block, or null
  int64_t at;

  bool goes_on(int64_t column) const { return !lengths || at < lengths[column]; }
};

// Operands: Places. Results: slopes of shares, second, of h and c before the first step.
class SequenceGradientCall final : public Call {
 public:
  explicit SequenceGradientCall(const CallSpec& spec)
      : SequenceGradientCall(spec.attributes.as<SequenceAttributes>(), spec.operands) {}

  int64_t chunks() const override { return sizes_.columns().count(); }
  size_t scratch_bytes() const override { return parts_.total(); }
  size_t bytes() const override { return sizeof(*this); }
  bool may_fail() const override { return false; }

  void begin(const CallData& data) override {
    const int64_t out = sizes_.out, rows = product_gates() * out;
    weight_.pack(values(data, places_.weight), rows, 1, packed(data));
    if (is_gruv3()) candidate_.pack(values(data, places_.candidate), out, 1, packed(data) + weight_.floats());
  }

  void run(int64_t chunk, const CallData& data) override {
    const SequenceBlock block(sizes_, chunk);
    const int64_t count = block.count(), out = sizes_.out;
    float* scratch = reinterpret_cast<float*>(static_cast<char*>(part_at(data, chunks_at_)) +
                                              static_cast<size_t>(chunk) * chunk_bytes_);
    Step step{};
    step.by_hidden = scratch;
    step.by_cells = scratch + count;
    step.other = scratch + 2 * count;
    std::fill_n(scratch, 2 * count, 0.0f);
    if (places_.lengths >= 0) step.lengths = static_cast<const int64_t*>(data.operand(places_.lengths)) + block.first;
    for (int64_t i = sizes_.steps; i-- > 0;) {
      const int64_t t = sizes_.step_at(i);
      add_slopes(step, block, data, sizes_.behind(t));
      place(step, block, data, t, scratch + 3 * count);
      back(step, block, data);
    }
    add_slopes(step, block, data, sizes_.first());
    const auto give = [&](int result, const float* from) {
      auto* to = static_cast<float*>(data.results[result]);
      if (to) std::copy_n(from, count, block.at(to, out, 0));
    };
    give(2, step.by_hidden);
    if (sizes_.is_lstm()) give(3, step.by_cells);
  }

 private:
  SequenceGradientCall(const SequenceAttributes& how, const std::vector<CallArray>& operands)
      : sizes_(sizes_of(how, operands)), places_(sizes_), weight_(sizes_.out, product_gates() * sizes_.out),
        candidate_(is_gruv3() ? Panels(sizes_.out, sizes_.out) : Panels()) {
    const auto count = static_cast<size_t>(sizes_.out * sizes_.columns().step);
    weights_at_ = parts_.add(static_cast<size_t>(weight_.floats() + candidate_.floats()) * sizeof(float));
    chunk_bytes_ = (3 + 2 * static_cast<size_t>(sizes_.share_gates())) * count * sizeof(float);
    chunk_bytes_ = (chunk_bytes_ + 63) / 64 * 64;
    chunks_at_ = parts_.add(chunk_bytes_ * static_cast<size_t>(chunks()));
  }

  static SequenceSizes sizes_of(const SequenceAttributes& how, const std::vector<CallArray>& operands) {
    const Shape &weight = operands[0].shape, &hidden = operands[1].shape;
    const int64_t gates = weight[0] + (how.cell == SequenceCell::gruv3 ? weight[1] : 0);
    return {how, Shape{gates, hidden[1], hidden[2] - 1}};
  }
  bool is_gruv3() const { return sizes_.how.cell == SequenceCell::gruv3; }
  /// Of what W makes.
  int64_t product_gates() const { return is_gruv3() ? 2 : sizes_.share_gates(); }
  static const float* values(const CallData& data, int operand) {
    return operand < 0 ? nullptr : static_cast<const float*>(data.operand(operand));
  }
  float* packed(const CallData& data) const { return static_cast<float*>(part_at(data, weights_at_)); }

  /// What the loss has of the states at a place by itself.
  void add_slopes(const Step& step, const SequenceBlock& block, const CallData& data, int64_t place) const {
    const float* more = block.at(values(data, places_.by_hidden), sizes_.out, place);
    loops_.add(block.count(), &step.by_hidden, &more);
    if (!sizes_.how.cell_slope) return;
    more = block.at(values(data, places_.by_cells), sizes_.out, place);
    loops_.add(block.count(), &step.by_cells, &more);
  }

  /// Slopes that nobody reads, or are not kept, take `spare`.
  void place(Step& step, const SequenceBlock& block, const CallData& data, int64_t t, float* spare) const {
    const int64_t out = sizes_.out, rows = sizes_.share_gates() * out, before = sizes_.before(t);
    const auto state = [&](int operand, int64_t at) { return block.at(values(data, operand), out, at); };
    step.at = t;
    step.gates = block.at(values(data, places_.gates), sizes_.kept_gates() * out, t);
    step.hidden = state(places_.hidden, before);
    step.new_hidden = state(places_.hidden, sizes_.behind(t));
    step.cells = state(places_.cells, before);
    step.new_cells = state(places_.cells, sizes_.behind(t));
    step.by_shares = block.at(static_cast<float*>(data.results[0]), rows, t);
    step.second = block.at(static_cast<float*>(data.results[1]), is_gruv3() ? out : rows, t);
    if (!step.by_shares) step.by_shares = spare;
    if (!step.second) step.second = spare + rows * block.columns;
  }

  void back(const Step& step, const SequenceBlock& block, const CallData& data) const {
    switch (sizes_.how.cell) {
      case SequenceCell::tanh:
      case SequenceCell::relu: return simple(step, block, data);
      case SequenceCell::lstm: return lstm(step, block, data);
      case SequenceCell::gru: return gru(step, block, data);
      case SequenceCell::gruv3: return gruv3(step, block, data);
    }
  }

  /// The slope of h before the step += W' times slopes.
  void multiply(const Step& step, const SequenceBlock& block, const CallData& data, const float* slopes) const {
    weight_.multiply(packed(data), slopes, sizes_.share_gates() * sizes_.out, block.columns, step.by_hidden,
                     sizes_.out);
  }

  /// Calls f(column, slopes of its share, its place in the arrays of states) where the sequence goes on; elsewhere
  /// shares and what else is a factor of products have no slope, and those of states stay.
  template <class F> void each(const Step& step, const SequenceBlock& block, int64_t second_rows, F&& f) const {
    const int64_t out = sizes_.out, rows = sizes_.share_gates() * out;
    for (int64_t c = 0; c < block.columns; ++c) {
      if (step.goes_on(c)) {
        f(c, step.by_shares + c * rows, c * out);
      } else {
        std::fill_n(step.by_shares + c * rows, rows, 0.0f);
        std::fill_n(step.second + c * second_rows, second_rows, 0.0f);
      }
    }
  }

  void simple(const Step& step, const SequenceBlock& block, const CallData& data) const {
    const GateLoop loop = sizes_.how.cell == SequenceCell::relu ? loops_.relu_gradient : loops_.tanh_gradient;
    each(step, block, 0, [&](int64_t, float* slopes, int64_t at) {
      const float* in[] = {step.by_hidden + at, step.new_hidden + at};
      loop(sizes_.out, &slopes, in);
      std::fill_n(step.by_hidden + at, sizes_.out, 0.0f);
    });
    multiply(step, block, data, step.by_shares);
  }

  void lstm(const Step& step, const SequenceBlock& block, const CallData& data) const {
    const int64_t count = block.count(), out = sizes_.out;
    const void* cells[] = {step.new_cells};
    loops_.tanh(step.other, cells, count);
    each(step, block, 0, [&](int64_t, float* slopes, int64_t at) {
      float* made[] = {slopes, slopes + out, slopes + 2 * out, slopes + 3 * out, step.by_cells + at};
      const float* g = step.gates + at;
      const float* in[] = {
          g, g + count, g + 2 * count, g + 3 * count, step.cells + at, step.other + at, step.by_hidden + at};
      loops_.lstm_gradient(out, made, in);
      std::fill_n(step.by_hidden + at, out, 0.0f);
    });
    multiply(step, block, data, step.by_shares);
  }

  void gru(const Step& step, const SequenceBlock& block, const CallData& data) const {
    const int64_t count = block.count(), out = sizes_.out;
    each(step, block, 3 * out, [&](int64_t c, float* slopes, int64_t at) {
      float* products = step.second + c * 3 * out;
      float* made[] = {slopes, slopes + out, slopes + 2 * out, products + 2 * out, step.by_hidden + at};
      const float* g = step.gates + at;
      const float* in[] = {g, g + count, g + 2 * count, g + 3 * count, step.hidden + at};
      loops_.gru_gradient(out, made, in);
      std::copy_n(slopes, 2 * out, products);
    });
    multiply(step, block, data, step.second);
  }

  void gruv3(const Step& step, const SequenceBlock& block, const CallData& data) const {
    const int64_t count = block.count(), out = sizes_.out;
    const float *reset = step.gates, *update = reset + count, *made = update + count;
    std::copy_n(step.hidden, count, step.second);
    loops_.multiply(count, &step.second, &reset);
    each(step, block, out, [&](int64_t, float* slopes, int64_t at) {
      float* to[] = {slopes + out, slopes + 2 * out, step.by_hidden + at};
      const float* in[] = {update + at, made + at, step.hidden + at};
      loops_.gruv3_mix(out, to, in);
    });
    std::fill_n(step.other, count, 0.0f);
    candidate_.multiply(packed(data) + weight_.floats(), step.by_shares + 2 * out, 3 * out, block.columns, step.other,
                        out);
    each(step, block, out, [&](int64_t, float* slopes, int64_t at) {
      float* to[] = {slopes, step.by_hidden + at};
      const float* in[] = {reset + at, step.hidden + at, step.other + at};
      loops_.gruv3_gradient(out, to, in);
    });
    multiply(step, block, data, step.by_shares);
  }

  SequenceSizes sizes_;
  Places places_;
  Panels weight_, candidate_;  // W', V'
  const GateLoops& loops_ = gate_loops();
  ScratchParts parts_;
  size_t weights_at_ = 0, chunks_at_ = 0, chunk_bytes_ = 0;
};

}  // namespace

std::unique_ptr<Call> prepare_sequence_gradient(const CallSpec& spec) {
  return std::make_unique<SequenceGradientCall>(spec);
}

}  // namespace rosin::cpu
