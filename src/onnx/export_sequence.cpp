// All steps of a recurrent layer in ops of the format: the op Scan, whose body makes a step. Read beside it:
// ops/sequence.hpp, which says what each cell computes.
#include <numeric>

#include "onnx/export_scan.hpp"
#include "onnx/exports.hpp"

namespace rosin::onnx {
namespace {

using Names = std::vector<std::string>;

/// Writes a step: what its cell makes of states and the share.
class StepWriting {
 public:
  explicit StepWriting(const NodeWriting& node) : node_(node), out_(node.operand(1).sizes[1].rest) {}

  Names made(SequenceCell cell, const Names& in) const {
    switch (cell) {
      case SequenceCell::lstm: return lstm(in[0], in[1], in[2]);
      case SequenceCell::gru: return {gru(in[0], parts(in[1], 3), parts(product(in[0], 1), 3))};
      case SequenceCell::gruv3: return {gruv3(in[0], parts(in[1], 3), parts(product(in[0], 1), 2))};
      case SequenceCell::tanh: return {one("Tanh", sum(in[1], product(in[0], 1)))};
      case SequenceCell::relu: return {one("Relu", sum(in[1], product(in[0], 1)))};
    }
    return {};
  }
  /// The states before the step where a sequence has ended.
  Names kept(const std::string& place, const Names& before, Names made) const {
    const std::string lengths = node_.in(node_.operands() - 1);
    const std::string goes_on = node_.add("Unsqueeze", {node_.add("Less", {place, lengths}), node_.file.integers({1})});
    for (size_t i = 0; i < made.size(); ++i) made[i] = node_.add("Where", {goes_on, made[i], before[i]});
    return made;
  }

 private:
  std::string one(std::string_view op, const std::string& x) const { return node_.add(op, {x}); }
  std::string sum(const std::string& a, const std::string& b) const { return node_.add("Add", {a, b}); }
  std::string times(const std::string& a, const std::string& b) const { return node_.add("Mul", {a, b}); }
  std::string gate(const std::string& x) const { return one("Sigmoid", x); }
  std::string product(const std::string& h, int weight) const { return node_.add("MatMul", {h, node_.in(weight)}); }
  Names parts(const std::string& x, size_t count) const {
    return node_.file.add_several("Split", {x, node_.file.integers(std::vector<int64_t>(count, out_))}, count,
                                  {integer_attribute("axis", 1)});
  }

  Names lstm(const std::string& h, const std::string& c, const std::string& share) const {
    const Names z = parts(sum(share, product(h, 1)), 4);
    const std::string cell = sum(times(gate(z[1]), c), times(gate(z[0]), one("Tanh", z[2])));
    return {times(gate(z[3]), one("Tanh", cell)), cell};
  }
  /// n + z*(h - n).
  std::string between(const std::string& h, const std::string& z, const std::string& n) const {
    return sum(n, times(z, node_.add("Sub", {h, n})));
  }
  std::string gru(const std::string& h, const Names& share, const Names& own) const {
    const std::string r = gate(sum(share[0], own[0])), z = gate(sum(share[1], own[1]));
    return between(h, z, one("Tanh", sum(share[2], times(r, own[2]))));
  }
  std::string gruv3(const std::string& h, const Names& share, const Names& own) const {
    const std::string r = gate(sum(share[0], own[0])), z = gate(sum(share[1], own[1]));
    return between(h, z, one("Tanh", sum(share[2], product(times(r, h), 3))));
  }

  const NodeWriting& node_;
  int64_t out_;
};

size_t states_of(const SequenceAttributes& how) { return how.cell == SequenceCell::lstm ? 2 : 1; }

}  // namespace

/// The states behind all steps; those of cells stand beside them.
std::string sequence_out(NodeWriting& node) {
  const auto how = node.attributes<SequenceAttributes>();
  const size_t count = states_of(how);
  Names before, along{node.in(0)};
  for (size_t i = 0; i < count; ++i) before.push_back(node.in(static_cast<int>(2 + i)));
  if (how.lengths != 0) {
    if (!node.operand(0).sizes[2].is_fixed()) node.refuse("steps that follow from the batch size");
    std::vector<int64_t> places(static_cast<size_t>(node.operand(0).sizes[2].rest));
    std::iota(places.begin(), places.end(), 0);
    along.push_back(node.file.integers(places));
  }
  const StepWriting writing(node);
  return scanned(node.file, before, along, 0, how.reversed != 0, [&](const Names& in) {
    Names made = writing.made(how.cell, in);
    return how.lengths != 0 ? writing.kept(in.back(), in, std::move(made)) : made;
  })[count];
}

/// With the state before the first step.
std::string sequence_part_out(NodeWriting& node) {
  const NodeWriting whole = node.at_operand(0);
  const auto how = whole.attributes<SequenceAttributes>();
  const auto which = static_cast<size_t>(node.attributes<PartAttributes>().number);
  if (which >= states_of(how)) node.refuse("gates of a sequence");
  const std::string behind = node.file.results_of(node.in(0))[states_of(how) + which];
  const std::string first = node.add("Unsqueeze", {whole.in(static_cast<int>(2 + which)), node.file.integers({0})});
  const Names both = how.reversed != 0 ? Names{behind, first} : Names{first, behind};
  return node.add("Concat", both, {integer_attribute("axis", 0)});
}

}  // namespace rosin::onnx
