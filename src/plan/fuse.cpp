// Fusion: every elementwise node and reduction joins a kernel whose strips have its sizes, when that makes no cycle.
// Decisions use only what a structure knows: which dims are 1 and which values meet in one op. (Two operands of an
// elementwise op with the same wide dims have the same sizes, whatever these are.)
#include <algorithm>
#include <bit>

#include "graph/kinds.hpp"
#include "plan/describe.hpp"
#include "plan/fuse.hpp"

namespace rosin::plan {

namespace {
constexpr size_t member_limit = 400;
}  // namespace

Fuser::Fuser(Structure& structure, const Target& target)
    : s_(structure), target_(target), unit_of_(structure.graph.values.size(), -1),
      level_(structure.graph.values.size(), Level::none), channels_first_(structure.graph.values.size(), -1),
      wanted_at_(structure.graph.values.size(), 0), loaded_by_(structure.graph.values.size(), -1) {}

int32_t Fuser::plain(int32_t value) const {
  while (v(value).op && v(value).op->kind == Kind::argument) value = v(value).in[0];
  return value;
}

int32_t Fuser::without_broadcast(int32_t value) const {
  for (value = plain(value); v(value).op && v(value).op->movement == Movement::broadcast;)
    value = plain(v(value).in[0]);
  return value;
}

bool Fuser::is_constant(int32_t value) const {
  const Value& made = v(value);
  if (!made.op || made.op->kind != Kind::elementwise || !made.op->body.code || made.wide != 0) return false;
  for (int i = 0; i < made.operands; ++i) {
    if (made.in[i] >= 0 && !v(made.in[i]).is_scalar() && !is_constant(made.in[i])) return false;
  }
  return true;
}

int32_t Fuser::storage(int32_t value) const {
  for (;;) {
    const Home home = s_.homes[static_cast<size_t>(value)];
    if (home != Home::alias && home != Home::view) return value;
    value = s_.base[static_cast<size_t>(value)];
  }
}

int32_t Fuser::unit_of(int32_t value) const { return unit_of_[static_cast<size_t>(storage(value))]; }

void Fuser::run() {
  s_.homes.assign(s_.graph.values.size(), Home::none);
  s_.base.assign(s_.graph.values.size(), -1);
  s_.contiguous.assign(s_.graph.values.size(), -1);
  for (size_t i = static_cast<size_t>(s_.graph.nodes); i < s_.graph.values.size(); ++i) {
    s_.homes[i] = s_.graph.values[i].is_scalar() ? Home::scalar : Home::leaf;
  }
  count_readers();
  find_calls_that_sum();
  for (int32_t node = 0; node < s_.graph.nodes; ++node) {
    if (unit_of_[static_cast<size_t>(node)] < 0) place(node);  // (a call may have been placed for sums of its operand)
  }
  for (int32_t node = 0; node < s_.graph.nodes; ++node) {
    if (v(node).held) contiguous(node);
  }
  for (int32_t unit = 0; unit < units.count(); ++unit) {
    if (only_sums(unit)) join_reader(unit);
  }
}

/// Whether the node reads its operands in any order: beside what is in logical order anyway, also in that.
bool Fuser::reads_any_order(int32_t node) const {
  const Kind kind = v(node).op->kind;
  bool beside = false;
  for (int i = 0; kind == Kind::elementwise && i < v(node).operands; ++i) {
    const Value* const operand = v(node).in[i] < 0 ? nullptr : &v(v(node).in[i]);
    beside = beside || (operand && operand->op && operand->op->movement == Movement::reshape);
  }
  return kind == Kind::window || beside;
}

void Fuser::count_readers() {
  for (auto* counts : {&readers_, &flattened_, &strided_}) counts->assign(s_.graph.values.size(), 0);
  for (int32_t node = 0; node < s_.graph.nodes; ++node) {
    for (int i = 0; i < v(node).operands; ++i) {
      if (v(node).in[i] < 0) continue;
      const auto operand = static_cast<size_t>(v(node).in[i]);
      ++readers_[operand];
      flattened_[operand] += v(node).op->movement == Movement::reshape ? 1 : 0;
      strided_[operand] += reads_any_order(node) ? 1 : 0;
    }
  }
}

void Fuser::place(int32_t node) {
  placing_ = node;
  const Op& op = *v(node).op;
  switch (info(op.kind).placing) {
    case Placing::alias: return look_at(node, v(node).in[0], Home::alias);
    case Placing::element:
      if (!join_call(node)) join_elementwise(node);
      return;
    case Placing::drawn: return begin_kernel(node);
    case Placing::combined:
      if (!join_sums(node)) join_reduction(node);
      return;
    case Placing::look: return place_movement(node);
    case Placing::call: return add_call(node);
    case Placing::result: return place_part(node);
    case Placing::never: break;
  }
  throw_unknown(op, "plans");
}

/// A look at the operand where strides can say the movement, else a call.
void Fuser::place_movement(int32_t node) {
  const int32_t operand = v(node).in[0];
  switch (v(node).op->movement) {
    case Movement::parts:
      if (!is_complex(v(node).dtype)) return look_at(node, operand, Home::view);
      [[fallthrough]];
    case Movement::reshape: return look_at(node, contiguous(operand), Home::alias);
    case Movement::broadcast:
    case Movement::permute:
    case Movement::slice: return look_at(node, operand, Home::view);
    case Movement::concat:
      if (!stands_where_made(node)) add_call(node);
      return;
    case Movement::pad: return add_call(node);
    case Movement::none: break;
  }
  throw_unknown(*v(node).op, "plans");
}

/// The node looks at another value's memory. A look at a scalar needs that scalar in memory.
void Fuser::look_at(int32_t node, int32_t operand, Home home) {
  if (s_.homes[static_cast<size_t>(storage(operand))] == Home::scalar) operand = copied(operand);
  s_.homes[static_cast<size_t>(node)] = home;
  s_.base[static_cast<size_t>(node)] = operand;
}

/// The value itself when its memory is contiguous, else a copy that is.
int32_t Fuser::contiguous(int32_t value) {
  bool strided = false;
  for (int32_t u = value;
       s_.homes[static_cast<size_t>(u)] == Home::alias || s_.homes[static_cast<size_t>(u)] == Home::view;
       u = s_.base[static_cast<size_t>(u)]) {
    strided = strided || s_.homes[static_cast<size_t>(u)] == Home::view;
  }
  if (!strided && !v(storage(value)).channels_first) return value;
  return is_complex(v(value).dtype) ? copied_by_parts(value) : copied(value);
}

/// Whether CWHN and the logical order of the value's dims differ in memory.
bool Fuser::orders_differ(int32_t value) const {
  const Value& image = v(value);
  if (image.rank < 3) return false;
  const uint8_t channels = static_cast<uint8_t>(1u << (image.rank - 2));
  return (image.wide & channels) != 0 && (image.wide & (channels - 1)) != 0;
}

/// The value in CWHN: itself, or a copy.
int32_t Fuser::channels_first(int32_t value) {
  if (!orders_differ(value)) return contiguous(value);
  return s_.homes[static_cast<size_t>(value)] == Home::own && v(value).channels_first ? value : copied(value, true);
}

/// A value that is no node.
int32_t Fuser::append(Value value, Home home, int32_t base) {
  value.heir = -1;
  s_.graph.values.push_back(value);
  s_.homes.push_back(home);
  s_.base.push_back(base);
  s_.contiguous.push_back(-1);
  unit_of_.push_back(-1);
  level_.push_back(Level::none);
  channels_first_.push_back(-1);
  wanted_at_.push_back(placing_);
  loaded_by_.push_back(-1);
  return static_cast<int32_t>(s_.graph.values.size()) - 1;
}

Value Fuser::look_of(int32_t value, Look look) const {
  Value made = v(value);
  made.op = nullptr;
  made.held = false;
  made.operands = 0;
  made.look = look;
  return made;
}

/// A look at a matrix with its first two dims exchanged.
int32_t Fuser::transposed(int32_t value) {
  Value look = look_of(value, Look::transposed);
  look.wide = static_cast<uint8_t>((look.wide & ~3) | (look.wide & 1) << 1 | (look.wide >> 1 & 1));
  return append(look, Home::view, value);
}

/// A contiguous copy of a complex value: kernels know real numbers only.
int32_t Fuser::copied_by_parts(int32_t value) {
  if (const int32_t known = s_.contiguous[static_cast<size_t>(value)]; known >= 0) return known;
  Value parts = look_of(value, Look::parts);
  parts.dtype = part_type(parts.dtype);
  parts.rank = static_cast<uint8_t>(parts.rank + 1);
  parts.wide = static_cast<uint8_t>(parts.wide << 1 | 1);
  const Value whole = look_of(value, Look::whole);
  const int32_t copy = copied(append(parts, Home::view, value));
  const int32_t made = append(whole, Home::alias, copy);
  return s_.contiguous[static_cast<size_t>(value)] = made;
}

/// A kernel that copies the value (strided, or a scalar) into memory of its own.
int32_t Fuser::copied(int32_t value, bool channels_first) {
  int32_t& known = (channels_first ? channels_first_ : s_.contiguous)[static_cast<size_t>(value)];
  if (known >= 0) return known;
  Value copy = look_of(value, Look::none);
  copy.channels_first = channels_first;
  copy.operands = 1;
  copy.in[0] = value;
  known = static_cast<int32_t>(s_.graph.values.size());
  const int32_t made = append(copy, Home::own, value);  // from here on `known` refers to nothing
  const int32_t unit = units.add(false);
  units[unit].domain = made;
  units[unit].wide = copy.wide;
  add_member(unit, made, Level::full);
  return made;
}

void Fuser::add_member(int32_t unit, int32_t value, Level level) {
  units[unit].members.push_back(value);
  unit_of_[static_cast<size_t>(value)] = unit;
  level_[static_cast<size_t>(value)] = level;
  s_.homes[static_cast<size_t>(value)] = Home::own;  // `none` later when nobody outside reads it
  const bool elementwise = v(value).op && v(value).op->kind == Kind::elementwise;
  for (int i = 0; i < v(value).operands; ++i) {
    if (v(value).in[i] < 0) continue;
    const int32_t operand = elementwise ? without_broadcast(v(value).in[i]) : plain(v(value).in[i]);
    const int32_t other = unit_of(operand);
    if (other == unit) continue;
    if (other >= 0) units.add_dependency(unit, other);
    if (v(operand).wide == units[unit].wide) {
      add_unique(units[unit].full_loads, operand);
      loaded_by_[static_cast<size_t>(operand)] = unit;
    } else if (level == Level::row && v(operand).wide == units[unit].row_wide()) {
      units[unit].row_loads.push_back(operand);
    }
  }
}

/// The node's call as far as a structure knows it: without sizes.
std::optional<CallDescription> Fuser::call_of(int32_t node) const {
  constexpr int64_t unknown[Shape::max_rank] = {};
  const auto array = [&](const Value& value) {
    return CallArray{value.dtype, Shape(std::span(unknown, value.rank)), {}};
  };
  std::vector<CallArray> operands;
  for (int i = 0; i < v(node).operands; ++i) operands.push_back(array(v(v(node).in[i])));
  std::optional<CallDescription> call = describe(*v(node).op, v(node).attributes, operands, array(v(node)));
  if (call) call->take(v(node).mode);
  return call;
}

/// Operands that may be one element for all. Texts load updates that stand one after another in strips.
bool Fuser::may_be_fill(int32_t node, int i) const {
  const Op& op = *v(node).op;
  return takes_fill(op, i) || (i == 2 && op.scatter == Scatter::add && target_.form() != Target::Form::text);
}

/// Whether the value looks at one element, broadcast.
bool Fuser::is_fill(int32_t value) const {
  const Value& look = v(value);
  return look.op && look.op->movement == Movement::broadcast && v(look.in[0]).wide == 0;
}

/// Operand i of a call, in memory as the call takes it.
int32_t Fuser::call_operand(int32_t node, int i, Order order) {
  int32_t operand = plain(v(node).in[i]);
  if (order == Order::channels_first) return channels_first(operand);
  if (v(node).op->contraction == Contraction::matmul && v(node).attributes.as<MatmulAttributes>().transposed[i] != 0)
    operand = transposed(operand);
  if (is_fill(operand) && may_be_fill(node, i)) return operand;
  return order == Order::strided ? operand : contiguous(operand);
}

void Fuser::add_call(int32_t node) {
  const int32_t unit = units.add(true);
  units[unit].members.push_back(node);
  const std::optional<CallDescription> call = call_of(node);
  units[unit].taken = call && target_.takes(*call);
  const Order usual = info(v(node).op->kind).strided ? Order::strided : Order::contiguous;
  const bool logical = call && stays_logical(node, *call);
  const bool sums = v(node).op->kind == Kind::gather && keeps_order(node) && meets_channels_first(node);
  const bool joins = joins_channels_first(node);
  const auto order = [&](int i) {
    if (joins) return Order::channels_first;
    if (sums && (i == 0 || i == v(node).operands)) return Order::channels_first;
    const Order wished = call ? target_.order(*call, static_cast<size_t>(i)) : usual;
    return logical && wished == Order::channels_first ? Order::contiguous : wished;
  };
  // Pools that read images as they are write theirs in the same way, unless these are flattened next; so do sums.
  const Order result = order(v(node).operands);
  const bool follows =
      result == Order::strided && v(node).op->kind == Kind::window && meets_channels_first(node) && !is_flattened(node);
  v(node).channels_first = (result == Order::channels_first || follows) && orders_differ(node);
  for (int i = 0; i < v(node).operands; ++i) {
    const int32_t operand = call_operand(node, i, order(i));  // may add values: references into their list end
    v(node).in[i] = operand;
    if (unit_of(operand) >= 0) units.add_dependency(unit, unit_of(operand));
  }
  unit_of_[static_cast<size_t>(node)] = unit;
  level_[static_cast<size_t>(node)] = Level::late;
  const int results = v(node).op->results;
  if (results == 1) s_.homes[static_cast<size_t>(node)] = Home::own;
  else units[unit].results.assign(static_cast<size_t>(results), -1);
}

/// Whether images of which one stands in CWHN are put together in that order. (Texts index concats in logical order.)
bool Fuser::joins_channels_first(int32_t node) const {
  return v(node).op->movement == Movement::concat && target_.form() != Target::Form::text && orders_differ(node) &&
         !is_flattened(node) && meets_channels_first_partly(node);
}

/// One of several results stands where its call writes it. (Who recorded it twice looks at the first.)
void Fuser::place_part(int32_t node) {
  const int32_t unit = unit_of_[static_cast<size_t>(v(node).in[0])];
  int32_t& result = units[unit].results[static_cast<size_t>(v(node).attributes.as<PartAttributes>().number)];
  if (result >= 0) {
    ++readers_[static_cast<size_t>(result)];
    return look_at(node, result, s_.homes[static_cast<size_t>(result)] == Home::own ? Home::alias : Home::view);
  }
  result = node;
  unit_of_[static_cast<size_t>(node)] = unit;
  level_[static_cast<size_t>(node)] = Level::late;
  s_.homes[static_cast<size_t>(node)] = Home::own;
}

/// A concat of results of one call that nobody else reads: where the call writes them with any strides, it writes them
/// into the concat's memory, which takes no step then.
bool Fuser::stands_where_made(int32_t node) {
  int32_t unit = -1;
  for (int i = 0; i < v(node).operands; ++i) {
    const int32_t part = v(node).in[i];
    if (part < 0 || v(part).op == nullptr || v(part).op->kind != Kind::part) return false;
    const auto at = static_cast<size_t>(part);
    if (s_.homes[at] != Home::own || v(part).held || readers_[at] != 1 || (i > 0 && unit_of_[at] != unit)) return false;
    unit = unit_of_[at];
  }
  const std::optional<CallDescription> call = unit >= 0 ? call_of(units[unit].members.front()) : std::nullopt;
  if (!call || !target_.writes_strided(*call)) return false;
  for (int i = 0; i < v(node).operands; ++i) look_at(v(node).in[i], node, Home::view);
  unit_of_[static_cast<size_t>(node)] = unit;
  level_[static_cast<size_t>(node)] = Level::late;
  s_.homes[static_cast<size_t>(node)] = Home::own;
  return true;
}

bool Fuser::known(int32_t unit, int32_t value, Level level) const {
  if (unit_of_[static_cast<size_t>(value)] == unit) return level_[static_cast<size_t>(value)] == level;
  return contains(level == Level::full ? units[unit].full_loads : units[unit].row_loads, value);
}

/// Whether the node meets results of the kernel's rows, which would have to be stored for another kernel, with a value
/// that is as large as what the kernel reads: another kernel has both, or reads both.
bool Fuser::reads_row_of(int32_t unit, int32_t node) const {
  bool row = false, as_large = false;
  for (int i = 0; i < v(node).operands; ++i) {
    if (v(node).in[i] < 0) continue;
    const int32_t operand = without_broadcast(v(node).in[i]), maker = unit_of_[static_cast<size_t>(operand)];
    const Level level = level_[static_cast<size_t>(operand)];
    row = row || (maker == unit && level == Level::row);
    if (maker < 0 || units[maker].call || level != Level::full) continue;
    as_large = as_large || std::any_of(units[unit].full_loads.begin(), units[unit].full_loads.end(), [&](int32_t load) {
                 const auto at = static_cast<size_t>(load);
                 const bool is_made = unit_of_[at] == maker && level_[at] == Level::full;
                 return is_made || contains(units[maker].full_loads, load);
               });
  }
  return row && as_large;
}

/// Whether a leaf of the node's size has an heir, whose memory that shall be: no store of rows takes over memory.
bool Fuser::reads_predecessor(int32_t node) const {
  for (int i = 0; i < v(node).operands; ++i) {
    if (v(node).in[i] < 0) continue;
    const Value& leaf = v(storage(v(node).in[i]));
    if (leaf.heir >= 0 && leaf.wide == v(node).wide) return true;
  }
  return false;
}

/// The level at which an elementwise node fits into a kernel, by sizes alone.
Level Fuser::level_in(int32_t unit, int32_t node) const {
  const Unit& kernel = units[unit];
  const uint8_t wide = v(node).wide;
  const auto any_known = [&](Level level) {
    for (int i = 0; i < v(node).operands; ++i) {
      if (v(node).in[i] < 0) continue;
      const int32_t operand = without_broadcast(v(node).in[i]);
      if (v(operand).wide == wide && known(unit, operand, level)) return true;
    }
    return false;
  };
  const bool same_order = v(node).channels_first == v(kernel.domain).channels_first;
  const bool fits = same_order && wide == kernel.wide;
  if (fits && (wide == 0 || any_known(Level::full) || reads_row_of(unit, node))) return Level::full;
  if (v(node).channels_first) return Level::none;  // rows are written in logical order
  if (reads_predecessor(node)) return Level::none;
  const bool row = kernel.row_dims > 0 && wide == kernel.row_wide() && !v(node).channels_first;
  if (row && (wide == 0 || any_known(Level::row))) return Level::row;
  return Level::none;
}

/// Whether the node may join: none of its operands comes from a kernel that depends on this one.
bool Fuser::legal(int32_t unit, int32_t node) const {
  const Unit& kernel = units[unit];
  if (kernel.call || kernel.members.size() > member_limit || kernel.full_loads.size() > load_limit) return false;
  for (int i = 0; i < v(node).operands; ++i) {
    if (v(node).in[i] < 0) continue;
    const int32_t operand = without_broadcast(v(node).in[i]);
    const int32_t other = unit_of(operand);
    if (other < 0) continue;
    if (other == unit) {
      // Inside one kernel a value can only be used as it stands in the registers.
      if (operand != storage(operand) || level_[static_cast<size_t>(operand)] == Level::late) return false;
    } else if (units.depends(other, unit)) {
      return false;
    }
  }
  return true;
}

/// Whether a kernel already waits for all that the node reads, or for all that other kernels wait for which compute
/// that, but for kernels of fewer elements. A kernel that only shares a load with the node does not wait for more on
/// its account: that would keep values alive longer (and undo what checkpoint() is for).
bool Fuser::needs_nothing_new(int32_t unit, int32_t node) const {
  const auto is_small = [&](int32_t u) {
    return !units[u].call && std::popcount(units[u].wide) < std::popcount(units[unit].wide);
  };
  for (int i = 0; i < v(node).operands; ++i) {
    if (v(node).in[i] < 0) continue;
    const int32_t operand = without_broadcast(v(node).in[i]), other = unit_of(operand);
    if (other < 0 || other == unit || is_constant(operand)) continue;
    if (units.depends(unit, other)) continue;
    if (units[other].call || !units.follows_all_before(unit, other, is_small)) return false;
  }
  return true;
}

/// Whether some read the node in logical order, as reshapes do, and all others in any.
bool Fuser::is_flattened(int32_t node) const {
  const auto at = static_cast<size_t>(node);
  return flattened_[at] > 0 && flattened_[at] + strided_[at] == readers_[at];
}

/// Whether an operand of the node's own size stands in CWHN: then so does the node.
bool Fuser::meets_channels_first(int32_t node) const {
  for (int i = 0; i < v(node).operands; ++i) {
    if (v(node).in[i] < 0) continue;
    const int32_t operand = without_broadcast(v(node).in[i]);
    if (v(operand).channels_first && v(operand).wide == v(node).wide && v(operand).rank == v(node).rank) return true;
  }
  return false;
}

/// The same of an operand that may be shorter, as those of a concat are.
bool Fuser::meets_channels_first_partly(int32_t node) const {
  return std::any_of(v(node).in.begin(), v(node).in.begin() + v(node).operands,
                     [&](int32_t operand) { return operand >= 0 && v(plain(operand)).channels_first; });
}

void Fuser::join_elementwise(int32_t node) {
  v(node).channels_first = meets_channels_first(node);
  int32_t chosen = -1;
  Level level = Level::none;
  for (int i = 0; i < v(node).operands; ++i) {
    if (v(node).in[i] < 0) continue;
    const int32_t operand = without_broadcast(v(node).in[i]);
    const int32_t maker = unit_of_[static_cast<size_t>(operand)];
    for (int32_t unit : {maker, loaded_by_[static_cast<size_t>(operand)]}) {
      if (unit < 0 || unit == chosen || !units.alive(unit) || !legal(unit, node)) continue;
      if (unit != maker && !needs_nothing_new(unit, node)) continue;
      const Level fits = level_in(unit, node);
      if (fits == Level::none) continue;
      if (chosen < 0) {
        chosen = unit;
        level = fits;
      } else if (level == Level::full && fits == Level::full) {
        try_merge(chosen, unit);
      }
    }
  }
  if (chosen < 0) begin_kernel(node);
  else add_member(chosen, node, level);
}

/// A kernel of the node alone, which what reads it may join.
void Fuser::begin_kernel(int32_t node) {
  const int32_t unit = units.add(false);
  units[unit].domain = node;
  units[unit].wide = v(node).wide;
  add_member(unit, node, Level::full);
}

void Fuser::try_merge(int32_t into, int32_t from) {
  const Unit &a = units[into], &b = units[from];
  if (v(a.domain).channels_first != v(b.domain).channels_first) return;
  if (a.wide != b.wide || units.depends(into, from) || units.depends(from, into)) return;
  if (a.row_dims > 0 && b.row_dims > 0 && a.row_dims != b.row_dims) return;
  if (a.members.size() + b.members.size() > member_limit || a.full_loads.size() + b.full_loads.size() > load_limit)
    return;
  for (int32_t member : b.members) unit_of_[static_cast<size_t>(member)] = into;
  for (int32_t load : b.full_loads) loaded_by_[static_cast<size_t>(load)] = into;
  units.merge(into, from);
}

/// Whether a kernel does nothing but combine the elements of values that others compute or hold.
bool Fuser::only_sums(int32_t unit) const {
  if (!units.alive(unit) || units[unit].call) return false;
  const std::vector<int32_t>& members = units[unit].members;
  return std::all_of(members.begin(), members.end(),
                     [&](int32_t member) { return level_[static_cast<size_t>(member)] == Level::late; });
}

/// Its sums are made by a kernel that reads the same values anyway, if there is one.
void Fuser::join_reader(int32_t sums) {
  const std::vector<int32_t>& loads = units[sums].full_loads;
  for (int32_t unit = 0; unit < units.count(); ++unit) {
    if (unit == sums || !units.alive(unit) || units[unit].call) continue;
    const auto is_read = [&](int32_t load) { return contains(units[unit].full_loads, load); };
    if (!loads.empty() && std::all_of(loads.begin(), loads.end(), is_read)) try_merge(unit, sums);
    if (!units.alive(sums)) return;
  }
}

/// Whether a reduction of the image is over all spatial dims and not over the channels: over whole planes.
bool Fuser::over_planes(int32_t image, uint8_t reduced) const {
  const uint8_t channels = static_cast<uint8_t>(1u << (v(image).rank - 2));
  const uint8_t spatial = static_cast<uint8_t>(v(image).wide & (channels - 1));
  return (reduced & spatial) == spatial && (reduced & channels) == 0;
}

/// A result may not depend on the order of its operand in memory. Over whole planes of images in CWHN kernels know how
/// to combine elements as if the order were logical; for other dims it is made so.
void Fuser::join_reduction(int32_t node) {
  const auto dims_of_node = static_cast<uint8_t>(v(node).attributes.as<ReductionAttributes>().dims);
  int32_t operand = plain(v(node).in[0]);
  if (v(operand).channels_first && !over_planes(operand, dims_of_node & v(operand).wide)) {
    operand = contiguous(operand);  // may add values
    v(node).in[0] = operand;
  }
  int32_t unit = unit_of_[static_cast<size_t>(operand)];
  if (unit < 0 || units[unit].call || level_[static_cast<size_t>(operand)] == Level::late) {
    unit = loaded_by_[static_cast<size_t>(operand)];
  }
  const uint8_t reduced = static_cast<uint8_t>(dims_of_node & v(operand).wide);
  const bool usable = unit >= 0 && units.alive(unit) && !units[unit].call &&
                      (known(unit, operand, Level::full) || known(unit, operand, Level::row)) &&
                      (!v(units[unit].domain).channels_first || over_planes(units[unit].domain, reduced));
  if (!usable) {
    unit = units.add(false);
    units[unit].domain = operand;
    units[unit].wide = v(operand).wide;
  }
  const int dims = std::popcount(reduced);
  const Unit& kernel = units[unit];
  const uint8_t leading = static_cast<uint8_t>(kernel.wide & ~rest_after(kernel.wide, dims));
  const bool full = !usable || known(unit, operand, Level::full);
  const bool row = full && dims > 0 && !v(kernel.domain).channels_first && v(node).small &&
                   (kernel.row_dims == 0 || kernel.row_dims == dims) && reduced == leading;
  if (row) units[unit].row_dims = dims;
  add_member(unit, node, row ? Level::row : Level::late);
}

uint8_t Fuser::rest_after(uint8_t wide, int dims) {
  for (int d = 0; d < dims; ++d) wide = static_cast<uint8_t>(wide & (wide - 1));
  return wide;
}

}  // namespace rosin::plan
