// See body.hpp.
#include "kernels/body.hpp"

#include <algorithm>

#include <rosin/error.hpp>

#include "kernels/draws.hpp"

namespace rosin::kernels {

using Do = Instr::Do;

Allowed allowed(const Instr& instr) {
  const bool quick = instr.mode == MathMode::fast || (instr.mode == MathMode::standard && instr.narrow);
  return {.contraction = instr.mode != MathMode::exact, .quick = quick};
}

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

KernelBody::Moves KernelBody::moves_of(size_t load) const {
  const Port& port = kernel_.loads[load];
  const PortLayout& moves = sizes_.loads[load];
  const DType type = layout_.structure->graph.values[static_cast<size_t>(port.value)].dtype;
  int64_t all = moves.offset | 16;
  for (int d = 1; d < sizes_.dims && !loads_[load].contiguous; ++d) all |= moves.strides[d];
  const int64_t along = sizes_.dims > 0 ? moves.strides[0] : 0;
  return {type, loads_[load].contiguous, along != 0 || loads_[load].contiguous, along == 1, all & -all};
}

void KernelBody::load_strip(const Spot& first, int lanes, int vector_bytes) {
  for (size_t i = 0; i < loads_.size(); ++i) {
    Load& load = loads_[i];
    if (load.buffer < 0) continue;
    const Moves moves = moves_of(i);
    const Term at = place_of(load, first);
    if (!moves.along_first) load.strip.assign(static_cast<size_t>(lanes), writer_.load(load.buffer, at));
    else if (moves.is_vector(lanes)) load.strip = writer_.load_vector(load.buffer, at, lanes, vector_bytes);
  }
}

void KernelBody::go_to_lane(int lane) {
  leave();
  lane_ = lane;
}

void KernelBody::leave() {
  lane_ = -1;
  for (Load& load : loads_) {
    if (load.kept == Load::Kept::in_this_walk) load.kept = Load::Kept::before;
  }
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

Term KernelBody::load(Load& load, const Spot& spot) {
  if (lane_ >= 0 && !load.strip.empty()) return load.strip[static_cast<size_t>(lane_)];
  if (load.kept == Load::Kept::before) return writer_.shared_load(load.kept_in, spot.kept);
  const Term value = writer_.load(load.buffer, place_of(load, spot));
  if (load.kept_in >= 0) {
    writer_.shared_store(load.kept_in, spot.kept, value);
    load.kept = Load::Kept::in_this_walk;
  }
  return value;
}

ScalarType KernelBody::type_of_load(size_t load) const { return scalar_type(moves_of(load).type); }

void KernelBody::find_loads(size_t instr, std::vector<char>& found) const {
  const Instr& at = kernel_.instrs[instr];
  if (at.row || at.what == Do::reduce) return;
  if (at.what == Do::load) found[at.port] = 1;
  for (const size_t operand : definitions_[instr]) find_loads(operand, found);
}

std::vector<int> KernelBody::walks_of_loads(const std::vector<size_t>& stores) const {
  std::map<int, std::vector<char>> walks;  // by phase; the last has none
  const auto walk = [&](int phase) -> std::vector<char>& {
    return walks.try_emplace(phase, std::vector<char>(loads_.size(), 0)).first->second;
  };
  for (size_t i = 0; i < kernel_.instrs.size(); ++i) {
    if (kernel_.instrs[i].what == Do::reduce && needed_[i]) find_loads(definition(i, 0), walk(phases_[i]));
  }
  for (const size_t store : stores) {
    if (!kernel_.instrs[store].row) find_loads(definition(store, 0), walk(-1));
  }
  std::vector<int> counts(loads_.size(), 0);
  for (const auto& [phase, found] : walks) {
    for (size_t i = 0; i < counts.size(); ++i) counts[i] += found[i];
  }
  return counts;
}

Term KernelBody::place_of(const Load& load, const Spot& spot) {
  Term at = load.offset;
  const auto add = [&](Term more) { at = at.writer ? at + more : more; };
  if (load.contiguous) {
    add(spot.linear);
  } else {
    for (size_t d = 0; d < load.strides.size(); ++d) {
      if (load.strides[d].writer) add(spot.coordinates[d] * load.strides[d]);
    }
  }
  return at.writer ? at : writer_.index(0);
}

Term KernelBody::apply(size_t i, const Spot& spot, bool at_row) {
  const Instr& instr = kernel_.instrs[i];
  Term in[Node::max_positions];
  for (int k = 0; k < instr.count; ++k) in[k] = operand(i, k, spot, at_row);
  ScalarCode code;
  code.quick = allowed(instr).quick;
  instr.op->body.code(instr.type, code);
  writer_.allow({.contraction = allowed(instr).contraction && !code.rounds_each});
  const Term made = writer_.apply(code, std::span<const Term>(in, instr.count));
  writer_.allow({});
  return made;
}

}  // namespace rosin::kernels
