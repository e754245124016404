// See body.hpp.
#include "kernels/body.hpp"

#include <algorithm>

#include <rosin/error.hpp>

#include "kernels/draws.hpp"

namespace rosin::kernels {

using Do = Instr::Do;

int operand_count(const Instr& instr) {
  if (instr.what == Do::load || instr.what == Do::scalar || instr.what == Do::draw) return 0;
  return instr.what == Do::apply ? instr.count : 1;
}

KernelBody::KernelBody(KernelWriter& writer, const Layout& layout, int32_t kernel, const std::vector<size_t>& wanted)
    : writer_(writer), layout_(layout), kernel_(layout.structure->kernels[static_cast<size_t>(kernel)]),
      sizes_(layout.kernels[static_cast<size_t>(kernel)]) {
  find_definitions();
  needed_.assign(kernel_.instrs.size(), 0);
  known_.resize(kernel_.instrs.size());
  loads_.resize(kernel_.loads.size());
  for (const size_t instr : wanted) need(instr);
  for (size_t i = 0; i < kernel_.instrs.size(); ++i) {
    const Instr& instr = kernel_.instrs[i];
    if (!needed_[i]) continue;
    if (instr.what == Do::load) declare_load(instr.port);
    if (instr.what == Do::draw)
      draws_[i] = {scalar(instr.port, ScalarType::int64), scalar(instr.port + 1, ScalarType::int64)};
    if (instr.what == Do::scalar) known_[i] = scalar(instr.port, instr.type);
  }
}

Term KernelBody::scalar(int number, ScalarType type) {
  const Port& port = kernel_.scalars[static_cast<size_t>(number)];
  return writer_.scalar(type, scalar_index(port.value, port.operand));
}

/// Registers are shared by values: what a register holds is what the last instr before wrote.
void KernelBody::find_definitions() {
  std::vector<size_t> holder(kernel_.registers, 0);
  for (size_t i = 0; i < kernel_.instrs.size(); ++i) {
    const Instr& instr = kernel_.instrs[i];
    std::vector<size_t>& from = definitions_.emplace_back();
    int phase = 0;
    for (int k = 0; k < operand_count(instr); ++k) {
      from.push_back(holder[instr.in[k]]);
      phase = std::max(phase, phases_[from.back()]);
    }
    phases_.push_back(phase + (instr.what == Do::reduce ? 1 : 0));
    if (instr.what != Do::store && instr.what != Do::root) holder[instr.dst] = i;
  }
}

void KernelBody::need(size_t instr) {
  if (needed_[instr]) return;
  needed_[instr] = 1;
  for (const size_t operand : definitions_[instr]) need(operand);
}

void KernelBody::declare_load(uint16_t number) {
  const Port& port = kernel_.loads[number];
  const PortLayout& moves = sizes_.loads[number];
  Load& load = loads_[number];
  const View& view = layout_.views[static_cast<size_t>(port.value)];
  const DType type = layout_.structure->graph.values[static_cast<size_t>(port.value)].dtype;
  load.buffer = writer_.buffer(type, {view.root, -1});
  if (moves.offset != 0) load.offset = writer_.number(moves.offset);
  int64_t stride = 1;
  load.contiguous = true;
  const int first = port.row ? kernel_.row_dims : 0;
  for (int d = first; d < sizes_.dims; ++d) {
    load.contiguous = load.contiguous && moves.strides[d] == stride;
    stride *= sizes_.sizes[d];
  }
  if (load.contiguous) return;
  for (int d = first; d < sizes_.dims; ++d) {
    load.strides.push_back(moves.strides[d] != 0 ? writer_.number(moves.strides[d]) : Term{});
  }
}

Term KernelBody::element(size_t instr, const Spot& spot) {
  if (known_[instr].writer) return known_[instr];
  return known_[instr] = compute(instr, spot, false);
}

Term KernelBody::row(size_t instr, const Spot& spot) {
  if (known_[instr].writer) return known_[instr];
  return known_[instr] = compute(instr, spot, true);
}

void KernelBody::leave() {
  for (size_t i = 0; i < known_.size(); ++i) {
    if (!kernel_.instrs[i].row && kernel_.instrs[i].what != Do::scalar) known_[i] = Term{};
  }
}

Term KernelBody::operand(size_t instr, int i, const Spot& spot, bool at_row) {
  const size_t from = definition(instr, i);
  return at_row ? row(from, spot) : element(from, spot);
}

Term KernelBody::compute(size_t i, const Spot& spot, bool at_row) {
  const Instr& instr = kernel_.instrs[i];
  switch (instr.what) {
    case Do::load: return load(loads_[instr.port], spot);
    case Do::apply: return apply(i, spot, at_row);
    case Do::draw: return drawn_element(instr.type, draws_.at(i).key, draws_.at(i).counter, spot.linear);
    case Do::convert: return convert(instr, operand(i, 0, spot, at_row));
    case Do::expand: return operand(i, 0, spot, at_row);  // the row's value
    case Do::scalar:                                      // known from the start
    case Do::reduce:                                      // known once the row was walked over
    case Do::store:
    case Do::root: break;
  }
  throw Error(ErrorKind::internal, "kernels: a value is asked for before it is known; report it");
}

/// Floats saturate at the bounds of narrow integers too; integers keep their low bits.
Term KernelBody::convert(const Instr& instr, Term x) {
  const bool real = x.type == ScalarType::float32 || x.type == ScalarType::float64;
  Term made = writer_.convert(x, instr.type);
  const int bits = 8 * static_cast<int>(size_of(instr.storage));
  if (real && is_integer(instr.storage) && bits < 32) {
    const bool is_signed = instr.storage == DType::Int8 || instr.storage == DType::Int16;
    const int64_t highest = (int64_t{1} << (is_signed ? bits - 1 : bits)) - 1;
    made = min(max(made, like(made, is_signed ? -highest - 1 : 0)), like(made, highest));
  }
  return writer_.round(made, instr.storage);
}

Term KernelBody::load(const Load& load, const Spot& spot) {
  Term at = load.offset;
  const auto add = [&](Term more) { at = at.writer ? at + more : more; };
  if (load.contiguous) {
    add(spot.linear);
  } else {
    for (size_t d = 0; d < load.strides.size(); ++d) {
      if (load.strides[d].writer) add(spot.coordinates[d] * load.strides[d]);
    }
  }
  if (!at.writer) at = writer_.index(0);
  return writer_.load(load.buffer, at);
}

Term KernelBody::apply(size_t i, const Spot& spot, bool at_row) {
  const Instr& instr = kernel_.instrs[i];
  Term in[Node::max_positions];
  for (int k = 0; k < instr.count; ++k) in[k] = operand(i, k, spot, at_row);
  ScalarCode code;
  instr.op->body.code(instr.type, code);
  return writer_.apply(code, std::span<const Term>(in, instr.count));
}

}  // namespace rosin::kernels
