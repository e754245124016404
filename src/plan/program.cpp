// From members to instructions: loads and conversions where operands need them, one apply per op, stores at the end;
// then registers are shared by values that are not needed at the same time.
#include "plan/program.hpp"

#include <algorithm>

#include <rosin/error.hpp>

#include "graph/autocast.hpp"
#include "graph/reducer.hpp"
#include "plan/recompute.hpp"
#include "scalar/convert.hpp"

namespace rosin::plan {
namespace {

using Do = Instr::Do;

class Emitter {
 public:
  Emitter(const Structure& structure, const Fuser& fuser, int32_t number, const Unit& unit,
          const std::vector<char>& stored)
      : s_(structure), fuser_(fuser), number_(number), unit_(unit), stored_(stored) {
    kernel_.domain = unit.domain;
    kernel_.wide = unit.wide;
    kernel_.channels_first = v(kernel_.domain).channels_first;
    kernel_.whole_rows = unit.row_dims > 0;
    kernel_.row_dims = kernel_.whole_rows ? unit.row_dims : 1;
  }

  Kernel run() {
    std::vector<int32_t> members = unit_.members;
    if (unit_.call) members.erase(members.begin());  // the epilogue of a call: the rest, behind it
    members.insert(members.end(), unit_.again.begin(), unit_.again.end());
    // Copies come from memory, and nodes of their kernel may read them.
    const auto place = [this](int32_t member) { return std::pair(member < s_.graph.nodes, member); };
    std::sort(members.begin(), members.end(), [&](int32_t a, int32_t b) { return place(a) < place(b); });
    members = needed(members);
    for (int32_t member : members) {
      if (!is_constant_again(member)) emit(member);
    }
    for (int32_t member : members) {
      if (is_own(member)) store(member);
    }
    share_registers();
    return std::move(kernel_);
  }

 private:
  const Value& v(int32_t value) const { return s_.graph.values[static_cast<size_t>(value)]; }
  /// Of a value that is computed here.
  Level level(int32_t value) const { return is_again(value) ? unit_.level_of(v(value).wide) : fuser_.level(value); }
  bool is_again(int32_t value) const { return !is_own(value) && unit_.computes_again(value); }
  /// Whether it is computed wherever it is read, from numbers.
  bool is_constant_again(int32_t value) const {
    return is_again(value) && level(value) == Level::none && fuser_.is_constant(value);
  }
  /// Whether it is a member, and not one of another unit's that is computed here as well.
  bool is_own(int32_t value) const { return fuser_.unit_of(value) == number_ && fuser_.storage(value) == value; }

  /// Without those that are neither stored nor read here: another kernel computes them instead.
  std::vector<int32_t> needed(const std::vector<int32_t>& members) const {
    std::vector<char> read(s_.graph.values.size(), 0);
    std::vector<int32_t> kept;
    for (size_t i = members.size(); i-- > 0;) {
      const auto member = static_cast<size_t>(members[i]);
      if (read[member] == 0 && !(is_own(members[i]) && stored_[member] != 0)) continue;
      kept.push_back(members[i]);
      each_read(s_, fuser_, members[i], [&](int32_t operand) { read[static_cast<size_t>(operand)] = 1; });
    }
    std::reverse(kept.begin(), kept.end());
    return kept;
  }

  Instr& append(Do what, ScalarType type, bool row) {
    Instr instr;
    instr.what = what;
    instr.type = type;
    instr.row = row;
    instr.dst = next_register_++;
    kernel_.instrs.push_back(instr);
    return kernel_.instrs.back();
  }

  /// The register of an operand in the wanted type; `row` says whether the user works at row level.
  uint16_t get(int32_t value, ScalarType type, bool row) {
    if (v(value).is_scalar()) return scalar(value, -1, type, row);
    bool at_row = row;
    uint16_t reg = source(value, row, at_row);
    reg = converted(reg, scalar_type(v(value).dtype), type, at_row);
    return at_row && !row ? expanded(reg, type) : reg;
  }

  uint16_t source(int32_t value, bool row, bool& at_row) {
    if (is_constant_again(value)) {
      const auto key = std::pair(value, at_row = row);
      if (const auto found = constants_.find(key); found != constants_.end()) return found->second;
      return constants_[key] = applied(value, row);
    }
    const bool computed = is_own(value) ? level(value) != Level::late : unit_.computes_again(value);
    if (computed) {
      at_row = level(value) == Level::row;
      return computed_.at(value);
    }
    return load(value, row);
  }

  uint16_t scalar(int32_t value, int32_t operand, ScalarType type, bool row) {
    const auto key = std::tuple(value, operand, type, row);
    if (auto found = scalars_.find(key); found != scalars_.end()) return found->second;
    Instr& instr = append(Do::scalar, type, row);
    instr.port = static_cast<uint16_t>(kernel_.scalars.size());
    kernel_.scalars.push_back({value, operand, row, false, 0});
    return scalars_[key] = instr.dst;
  }

  uint16_t load(int32_t value, bool row) {
    const auto key = std::pair(value, row);
    if (auto found = loads_.find(key); found != loads_.end()) return found->second;
    Instr& instr = append(Do::load, scalar_type(v(value).dtype), row);
    instr.storage = v(value).dtype;
    instr.port = static_cast<uint16_t>(kernel_.loads.size());
    kernel_.loads.push_back({value, -1, row, false, 0});
    return loads_[key] = instr.dst;
  }

  uint16_t converted(uint16_t reg, ScalarType from, ScalarType type, bool row) {
    if (from == type) return reg;
    const auto key = std::pair(reg, type);
    if (auto found = conversions_.find(key); found != conversions_.end()) return found->second;
    const uint16_t dst = convert(reg, from, type, row, storage_of(type));
    return conversions_[key] = dst;
  }

  uint16_t convert(uint16_t reg, ScalarType from, ScalarType type, bool row, DType storage) {
    Instr& instr = append(Do::convert, type, row);
    instr.from = from;
    instr.storage = storage;
    instr.in[0] = reg;
    return instr.dst;
  }

  uint16_t expanded(uint16_t reg, ScalarType type) {
    if (auto found = expansions_.find(reg); found != expansions_.end()) return found->second;
    Instr& instr = append(Do::expand, type, false);
    instr.in[0] = reg;
    return expansions_[reg] = instr.dst;
  }

  void emit(int32_t member) {
    const Value& value = v(member);
    if (!value.op) return emit_copy(member);
    if (value.op->kind == Kind::reduction) return emit_reduction(member);
    if (value.op->kind == Kind::draw) return emit_draw(member);
    computed_[member] = applied(member, level(member) == Level::row);
  }

  /// The register of what an elementwise op makes.
  uint16_t applied(int32_t member, bool row) {
    const Value& value = v(member);
    uint16_t in[Node::max_positions] = {};
    for (int i = 0; i < value.operands; ++i) {
      const ScalarType wanted = value.op->mask_first && i == 0 ? ScalarType::boolean : value.compute;
      in[i] =
          value.in[i] < 0 ? scalar(member, i, wanted, row) : get(fuser_.without_broadcast(value.in[i]), wanted, row);
    }
    if (!value.op->body.loops[static_cast<int>(value.compute)]) throw_no_body(value);
    Instr& instr = append(Do::apply, value.compute, row);
    take_mode(instr, value);
    instr.op = value.op;
    instr.count = static_cast<uint16_t>(value.operands);
    std::copy(std::begin(in), std::end(in), instr.in);
    const ScalarType result = value.op->body.result[static_cast<int>(value.compute)];
    return rounded(instr.dst, result, value.dtype, row);
  }

  static void take_mode(Instr& instr, const Value& value) {
    instr.mode = value.mode;
    instr.narrow = is_half(value.dtype);
  }

  [[noreturn]] static void throw_no_body(const Value& value) {
    throw Error(ErrorKind::dtype, std::string(value.op->name) + ": not defined for elements of type " +
                                      to_string(storage_of(value.compute)) + "; convert with cast(x, type)");
  }

  /// A result as elements of `dtype`: converted, and rounded to narrow types, once per op.
  uint16_t rounded(uint16_t reg, ScalarType from, DType dtype, bool row) {
    const ScalarType type = scalar_type(dtype);
    if (from == type && storage_of(type) == dtype) return reg;
    return convert(reg, from, type, row, dtype);
  }

  void emit_draw(int32_t member) {
    Instr& instr = append(Do::draw, scalar_type(v(member).dtype), false);
    instr.op = v(member).op;
    instr.port = static_cast<uint16_t>(kernel_.scalars.size());
    for (const int i : {0, 1}) kernel_.scalars.push_back({fuser_.plain(v(member).in[i]), -1, false, false, 0});
    computed_[member] = instr.dst;
  }

  void emit_copy(int32_t member) {
    const int32_t from = fuser_.plain(v(member).in[0]);
    computed_[member] = v(from).is_scalar() ? scalar(from, -1, scalar_type(v(member).dtype), false) : load(from, false);
  }

  void emit_reduction(int32_t member) {
    const Value& value = v(member);
    const int32_t operand = fuser_.plain(value.in[0]);
    if (!value.op->reducer->body.of(value.compute).reduce) throw_no_body(value);
    if (level(member) == Level::row) {
      const uint16_t in = get(operand, value.compute, false);
      Instr& instr = append(Do::reduce, value.compute, true);
      take_mode(instr, value);
      instr.reducer = value.op->reducer;
      instr.in[0] = in;
      computed_[member] = rounded(instr.dst, value.compute, value.dtype, true);
      return;
    }
    if (!stored_[static_cast<size_t>(member)]) return;
    const bool at_row = v(operand).wide != unit_.wide;
    const uint16_t in = get(operand, value.compute, at_row);
    Instr& instr = append(Do::root, value.compute, at_row);
    take_mode(instr, value);
    instr.reducer = value.op->reducer;
    instr.storage = value.dtype;
    instr.in[0] = in;
    instr.port = static_cast<uint16_t>(kernel_.roots.size());
    kernel_.roots.push_back({member, -1, at_row, false, 0});
  }

  void store(int32_t member) {
    if (!stored_[static_cast<size_t>(member)] || level(member) == Level::late) return;
    const bool row = level(member) == Level::row;
    Instr& instr = append(Do::store, scalar_type(v(member).dtype), row);
    instr.storage = v(member).dtype;
    instr.in[0] = computed_.at(member);
    instr.port = static_cast<uint16_t>(kernel_.stores.size());
    kernel_.stores.push_back({member, -1, row, false, 0});
  }

  static int operand_count(const Instr& instr) {
    if (instr.what == Do::load || instr.what == Do::scalar || instr.what == Do::draw) return 0;
    return instr.what == Do::apply ? instr.count : 1;
  }

  /// Linear scan: a register is free again after the last instruction that reads it. Loads and scalars keep theirs,
  /// because some are filled only once for many strips.
  void share_registers() {
    std::vector<int> last(next_register_, -1);
    for (size_t i = 0; i < kernel_.instrs.size(); ++i) {
      for (int k = 0; k < operand_count(kernel_.instrs[i]); ++k) last[kernel_.instrs[i].in[k]] = static_cast<int>(i);
    }
    std::vector<uint16_t> place(next_register_, 0), free;
    std::vector<char> fixed(next_register_, 0);
    uint16_t used = 0;
    for (size_t i = 0; i < kernel_.instrs.size(); ++i) {
      Instr& instr = kernel_.instrs[i];
      const int operands = operand_count(instr);
      std::vector<uint16_t> dying;
      for (int k = 0; k < operands; ++k) {
        const uint16_t reg = instr.in[k];
        const bool seen = std::find(instr.in, instr.in + k, reg) != instr.in + k;
        if (!seen && last[reg] == static_cast<int>(i) && !fixed[reg]) dying.push_back(place[reg]);
      }
      for (int k = 0; k < operands; ++k) operands_[k] = place[instr.in[k]];
      const bool writes = instr.what != Do::store && instr.what != Do::root;
      if (writes) {
        if (instr.what == Do::load || instr.what == Do::scalar) fixed[instr.dst] = 1;
        // A fresh register even where an operand dies here: loops of different element sizes may not overlap.
        const bool reuse = !free.empty() && !fixed[instr.dst];
        place[instr.dst] = reuse ? free.back() : used++;
        if (reuse) free.pop_back();
        if (last[instr.dst] < 0 && !fixed[instr.dst]) dying.push_back(place[instr.dst]);
        instr.dst = place[instr.dst];
      }
      for (int k = 0; k < operands; ++k) instr.in[k] = operands_[k];
      free.insert(free.end(), dying.begin(), dying.end());
    }
    kernel_.registers = used;
  }

  const Structure& s_;
  const Fuser& fuser_;
  int32_t number_;
  const Unit& unit_;
  const std::vector<char>& stored_;
  Kernel kernel_;
  uint16_t next_register_ = 0;
  uint16_t operands_[Node::max_positions] = {};
  std::map<int32_t, uint16_t> computed_;
  std::map<std::pair<int32_t, bool>, uint16_t> constants_;  // by level
  std::map<std::pair<int32_t, bool>, uint16_t> loads_;
  std::map<std::tuple<int32_t, int32_t, ScalarType, bool>, uint16_t> scalars_;
  std::map<std::pair<uint16_t, ScalarType>, uint16_t> conversions_;
  std::map<uint16_t, uint16_t> expansions_;
};

}  // namespace

Kernel emit(const Structure& structure, const Fuser& fuser, int32_t number, const Unit& unit,
            const std::vector<char>& stored) {
  return Emitter(structure, fuser, number, unit, stored).run();
}

}  // namespace rosin::plan
