// See body.hpp.
#include "kernels/body.hpp"

#include <algorithm>

#include <rosin/error.hpp>

#include "graph/gather_form.hpp"
#include "kernels/draws.hpp"
#include "kernels/lanes.hpp"
#include "scalar/convert.hpp"

namespace rosin::kernels {

using Do = Instr::Do;

Allowed allowed(const Instr& instr) { return allowed(instr.mode, instr.narrow); }

Allowed allowed(MathMode mode, bool narrow) {
  const bool quick = mode == MathMode::fast || (mode == MathMode::standard && narrow);
  return {.contraction = mode != MathMode::exact, .quick = quick};
}

Term apply_op(KernelWriter& writer, const Op& op, ScalarType type, Allowed allowed, std::span<const Term> operands) {
  ScalarCode code;
  code.quick = allowed.quick;
  op.body.code(type, code);
  writer.allow({.contraction = allowed.contraction && !code.rounds_each});
  const Term made = writer.apply(code, operands);
  writer.allow({});
  return made;
}

int operand_count(const Instr& instr) {
  if (instr.what == Do::load || instr.what == Do::scalar || instr.what == Do::draw) return 0;
  return instr.what == Do::apply ? instr.count : 1;
}

Term neutral(KernelWriter& writer, const Reducer& reducer, ScalarType type) {
  return writer.bits(type, reducer.body.neutral_bits(type));
}

Term combined(KernelWriter& writer, const Instr& instr, Term x, Term y) {
  writer.allow(allowed(instr));
  const Term made = writer.combine(instr.reducer->body, x, y);
  writer.allow({});
  return made;
}

KernelBody::KernelBody(KernelWriter& writer, const Layout& layout, int32_t kernel, const std::vector<size_t>& wanted,
                       const std::map<size_t, int32_t>& given, std::span<const int32_t> checks)
    : writer_(writer), layout_(layout), kernel_(layout.structure->kernels[static_cast<size_t>(kernel)]),
      sizes_(layout.kernels[static_cast<size_t>(kernel)]) {
  find_definitions();
  needed_.assign(kernel_.instrs.size(), 0);
  known_.resize(kernel_.instrs.size());
  loads_.resize(kernel_.loads.size());
  for (const auto& [instr, scratch] : given) given_[instr] = scratch;
  for (const size_t instr : wanted) need(instr);
  for (auto& [instr, buffer] : given_) {
    if (needed_[instr]) buffer = writer_.buffer(storage_of(shared_type(kernel_.instrs[instr].type)), {-1, buffer});
  }
  for (size_t i = 0; i < kernel_.instrs.size(); ++i) {
    const Instr& instr = kernel_.instrs[i];
    if (!needed_[i] || given_.count(i) > 0) continue;
    if (instr.what == Do::load) declare_load(instr.port);
    if (instr.what == Do::load && kernel_.loads[instr.port].check >= 0) declare_check(instr.port, checks);
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
  if (given_.count(instr) > 0) return;
  for (const size_t operand : definitions_[instr]) need(operand);
}

void KernelBody::declare_load(uint16_t number) {
  const Port& port = kernel_.loads[number];
  const PortLayout& moves = sizes_.loads[number];
  Load& load = loads_[number];
  const View& view = layout_.views[static_cast<size_t>(port.value)];
  const int32_t read = port.check < 0 ? port.value : view.root;  // which labels are classes is asked of these
  const DType type = layout_.structure->graph.values[static_cast<size_t>(read)].dtype;
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

void KernelBody::declare_check(uint16_t load, std::span<const int32_t> checks) {
  const int32_t node = kernel_.loads[load].check;
  const auto classes = layout_.attributes[static_cast<size_t>(node)].as<LabelAttributes>().classes;
  checks_.emplace(load, IndexCheck(writer_, checks, node, classes));
}

bool KernelBody::is_of_row(size_t instr) const {
  return kernel_.instrs[instr].row || kernel_.instrs[instr].what == Do::scalar;
}

Term& KernelBody::known(size_t instr) {
  if (is_of_row(instr)) return known_[instr];
  std::vector<Term>& values = of_lanes_[lane_];
  values.resize(kernel_.instrs.size());
  return values[instr];
}

Term KernelBody::element(size_t instr, const Spot& spot) {
  if (!known(instr).writer) {
    const Term made = compute(instr, spot, false);
    known(instr) = made;
  }
  return known(instr);
}

Term KernelBody::row(size_t instr, const Spot& spot) {
  if (known_[instr].writer) return known_[instr];
  return known_[instr] = compute(instr, spot, true);
}

size_t KernelBody::primitives() const {
  constexpr size_t of_draw = 400;
  size_t count = 0;
  for (size_t i = 0; i < kernel_.instrs.size(); ++i) {
    const Instr& instr = kernel_.instrs[i];
    if (!needed_[i]) continue;
    ScalarCode code;
    if (instr.what == Do::apply) instr.op->body.code(instr.type, code);
    count += instr.what == Do::draw ? of_draw : instr.what == Do::apply ? code.list.size() : 1;
  }
  return count;
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

int KernelBody::crossing_dim(size_t load) const {
  const PortLayout& moves = sizes_.loads[load];
  if (loads_[load].buffer < 0 || loads_[load].contiguous || sizes_.dims < 2 || moves.strides[0] < 2) return 0;
  for (int d = 1; d < sizes_.dims; ++d) {
    if (moves.strides[d] == 1) return d;
  }
  return 0;
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

/// What a load is in the lanes of a strip; nothing where they are to be loaded one by one.
std::vector<Term> KernelBody::strip_of(size_t number, const Spot& first, int lanes, int vector_bytes,
                                       bool within_line) {
  const Load& load = loads_[number];
  const Moves moves = moves_of(number);
  if (!moves.along_first && within_line) {
    return std::vector<Term>(static_cast<size_t>(lanes), writer_.load(load.buffer, place_of(load, first)));
  }
  if (lanes > 1 && moves.is_vector(lanes) && (moves.contiguous || within_line)) {
    return writer_.load_vector(load.buffer, place_of(load, first), lanes, vector_bytes);
  }
  return std::vector<Term>(static_cast<size_t>(lanes));
}

void KernelBody::add_strip(const std::vector<char>& loads, const Spot& first, int lanes, int vector_bytes,
                           bool within_line) {
  for (size_t i = 0; i < loads_.size(); ++i) {
    Load& load = loads_[i];
    if (!loads[i] || load.buffer < 0) continue;
    const bool kept = load.kept == Load::Kept::before;
    if (kept && !load.pairs) continue;
    const std::vector<Term> more =
        kept ? kept_pairs(load, first, lanes) : strip_of(i, first, lanes, vector_bytes, within_line);
    load.strip.insert(load.strip.end(), more.begin(), more.end());
    if (kept || !load.pairs) continue;
    keep_pairs(load, first, more);
    load.kept = Load::Kept::in_this_walk;
  }
}

bool KernelBody::has_pairs(size_t load, int lanes, bool within_line) const {
  const Moves moves = moves_of(load);
  return moves.type == DType::BFloat16 && moves.along_first && lanes > 1 && moves.is_vector(lanes) &&
         (moves.contiguous || within_line);
}

/// Neighbouring items have neighbouring words.
Term KernelBody::place_of_pair(const Spot& first, int lanes, int pair) const {
  return (first.kept * (lanes / 2) + pair) * items_of_group + writer_.item();
}

void KernelBody::keep_pairs(const Load& load, const Spot& first, std::span<const Term> strip) {
  const auto word_of = [&](Term x) { return writer_.apply(Primitive::reinterpret, ScalarType::int32, {x}); };
  for (size_t i = 0; i < strip.size(); i += 2) {
    const Term low = word_of(strip[i]), high = word_of(strip[i + 1]);
    const Term shifted = writer_.apply(Primitive::shift_right_zero, low.type, {low, like(low, 16)});
    const Term upper = writer_.apply(Primitive::bit_and, high.type, {high, like(high, -65536)});
    writer_.shared_store(load.kept_in, place_of_pair(first, static_cast<int>(strip.size()), static_cast<int>(i / 2)),
                         writer_.apply(Primitive::bit_or, low.type, {shifted, upper}));
  }
}

std::vector<Term> KernelBody::kept_pairs(const Load& load, const Spot& first, int lanes) const {
  const auto float_of = [&](Term word) { return writer_.apply(Primitive::reinterpret, ScalarType::float32, {word}); };
  std::vector<Term> strip;
  for (int pair = 0; pair < lanes / 2; ++pair) {
    const Term word = writer_.shared_load(load.kept_in, place_of_pair(first, lanes, pair));
    strip.push_back(float_of(writer_.apply(Primitive::shift_left, word.type, {word, like(word, 16)})));
    strip.push_back(float_of(writer_.apply(Primitive::bit_and, word.type, {word, like(word, -65536)})));
  }
  return strip;
}

void KernelBody::add_strip_if(Term inside, const std::vector<char>& loads, std::span<const Spot> spots,
                              int vector_bytes, bool within_line) {
  std::vector<size_t> wanted;
  std::vector<Term> values;
  for (size_t i = 0; i < loads_.size(); ++i) {
    if (!loads[i] || loads_[i].buffer < 0) continue;
    wanted.push_back(i);
    for (size_t lane = 0; lane < spots.size(); ++lane) {
      values.push_back(writer_.variable(writer_.bits(type_of_load(i), 0)));
    }
  }
  writer_.when(inside, [&] {
    size_t next = 0;
    for (const size_t i : wanted) {
      const auto lanes = static_cast<int>(spots.size());
      const std::vector<Term> strip = strip_of(i, spots[0], lanes, vector_bytes, within_line);
      for (size_t lane = 0; lane < spots.size(); ++lane) {
        writer_.assign(values[next++], strip[lane].writer ? strip[lane] : load_at(i, spots[lane]));
      }
    }
  });
  // As values, not variables: so products of them may be contracted as those of other loads are.
  size_t next = 0;
  for (const size_t i : wanted) {
    for (size_t lane = 0; lane < spots.size(); ++lane, ++next) {
      const Term none = writer_.bits(values[next].type, 0);
      loads_[i].strip.push_back(writer_.select(inside, values[next], none));
    }
  }
}

void KernelBody::go_to_lane(int lane) {
  of_lanes_.clear();
  lane_ = lane;
}

void KernelBody::leave_loop() {
  lane_ = -1;
  of_lanes_.clear();
  for (Load& load : loads_) load.strip.clear();
}

void KernelBody::leave() {
  leave_loop();
  for (Load& load : loads_) {
    if (load.kept == Load::Kept::in_this_walk) load.kept = Load::Kept::before;
  }
}

Term KernelBody::operand(size_t instr, int i, const Spot& spot, bool at_row) {
  const size_t from = definition(instr, i);
  return at_row ? row(from, spot) : element(from, spot);
}

Term KernelBody::compute(size_t i, const Spot& spot, bool at_row) {
  const Instr& instr = kernel_.instrs[i];
  switch (instr.what) {
    case Do::load: {
      const Term loaded = load(loads_[instr.port], spot);
      const auto check = checks_.find(instr.port);
      return check == checks_.end() ? loaded : is_class(check->second, loaded);
    }
    case Do::apply: return apply(i, spot, at_row);
    case Do::draw: return drawn_element(instr.type, draws_.at(i).key, draws_.at(i).counter, spot.linear);
    case Do::convert: return convert(instr, operand(i, 0, spot, at_row));
    case Do::expand: return expanded(definition(i, 0), spot);
    case Do::scalar:  // known from the start
    case Do::reduce:  // known once the row was walked over
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

/// The row's value at an element.
Term KernelBody::expanded(size_t value, const Spot& spot) {
  const auto found = given_.find(value);
  if (found == given_.end()) return row(value, spot);
  return writer_.convert(writer_.load(found->second, spot.row), kernel_.instrs[value].type);
}

Term KernelBody::load(Load& load, const Spot& spot) {
  if (load.kept == Load::Kept::before && !load.pairs) return writer_.shared_load(load.kept_in, spot.kept);
  const auto lane = static_cast<size_t>(std::max(lane_, 0));
  const bool stands = lane_ >= 0 && lane < load.strip.size() && load.strip[lane].writer;
  const Term value = stands ? load.strip[lane] : writer_.load(load.buffer, place_of(load, spot));
  if (load.kept_in >= 0 && !load.pairs) {
    writer_.shared_store(load.kept_in, spot.kept, value);
    load.kept = Load::Kept::in_this_walk;
  }
  return value;
}

/// Reports a label that is none.
Term KernelBody::is_class(const IndexCheck& check, Term label) {
  const Term index = writer_.convert(label, ScalarType::int64);
  const Term good = check.is_good(index);
  writer_.when(!good, [&] { check.report(index); });
  return good;
}

ScalarType KernelBody::type_of_load(size_t load) const { return scalar_type(moves_of(load).type); }

void KernelBody::visit(size_t instr, std::vector<char>& visited) const {
  if (visited[instr]) return;
  visited[instr] = 1;
  const Instr& at = kernel_.instrs[instr];
  if (at.row || at.what == Do::reduce) return;
  for (const size_t operand : definitions_[instr]) visit(operand, visited);
}

void KernelBody::find_loads(size_t instr, std::vector<char>& found) const {
  std::vector<char> visited(kernel_.instrs.size(), 0);
  visit(instr, visited);
  for (size_t i = 0; i < visited.size(); ++i) {
    const Instr& at = kernel_.instrs[i];
    if (visited[i] && at.what == Do::load && !at.row) found[at.port] = 1;
  }
}

std::vector<char> KernelBody::loads_of(const std::vector<size_t>& instrs) const {
  std::vector<char> found(loads_.size(), 0);
  for (const size_t instr : instrs) {
    if (!kernel_.instrs[instr].row || kernel_.instrs[instr].what == Do::reduce) find_loads(definition(instr, 0), found);
  }
  return found;
}

std::vector<size_t> KernelBody::row_values_of(const std::vector<size_t>& instrs) const {
  std::vector<char> visited(kernel_.instrs.size(), 0);
  for (const size_t instr : instrs) visit(definition(instr, 0), visited);
  std::vector<size_t> found;
  for (size_t i = 0; i < visited.size(); ++i) {
    if (!visited[i] || kernel_.instrs[i].what != Do::expand) continue;
    const size_t value = definition(i, 0);
    if (std::find(found.begin(), found.end(), value) == found.end()) found.push_back(value);
  }
  return found;
}

std::vector<char> KernelBody::stored_loads() const {
  std::vector<char> found;
  for (const Port& port : kernel_.loads) {
    const LaunchBuffer load{layout_.views[static_cast<size_t>(port.value)].root, -1};
    found.push_back(std::any_of(kernel_.stores.begin(), kernel_.stores.end(), [&](const Port& store) {
      return share_memory(layout_, load, {store.value, -1});
    }));
  }
  return found;
}

bool KernelBody::reads_stored(const std::vector<size_t>& instrs) const {
  const std::vector<char> loads = loads_of(instrs), stored = stored_loads();
  for (size_t i = 0; i < loads.size(); ++i) {
    if (loads[i] && stored[i]) return true;
  }
  return false;
}

std::vector<int> KernelBody::walks_of_loads(const std::vector<size_t>& stores, std::span<const int> joined) const {
  std::map<int, std::vector<char>> walks;  // by phase; the last has none
  const auto walk = [&](int phase) -> std::vector<char>& {
    return walks.try_emplace(phase, std::vector<char>(loads_.size(), 0)).first->second;
  };
  for (size_t i = 0; i < kernel_.instrs.size(); ++i) {
    if (kernel_.instrs[i].what != Do::reduce || !needed_[i]) continue;
    const bool before = std::find(joined.begin(), joined.end(), phases_[i]) != joined.end();
    find_loads(definition(i, 0), walk(before ? phases_[i] - 1 : phases_[i]));
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
  return apply_op(writer_, *instr.op, instr.type, allowed(instr), std::span<const Term>(in, instr.count));
}

}  // namespace rosin::kernels
