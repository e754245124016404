// Values in recording order: each one that is as large as the kernels that read it, or as their rows, and that follows
// from leaves, from what is stored for others and from results of rows, is taken out of memory when this moves fewer
// bytes; so is what follows from C++ numbers alone. What only one other kernel reads is not computed again but there
// alone: of a forward pass, what its gradient has added to it.
#include "plan/recompute.hpp"

#include <algorithm>

#include "scalar/scalar_code.hpp"

namespace rosin::plan {
namespace {

/// Of a draw, which takes about as long on processors as a polynomial, and no memory at all.
constexpr int draw_work = 8;

int primitives_of(const Value& value) {
  if (value.op->kind == Kind::draw) return draw_work;
  ScalarCode code;
  value.op->body.code(value.compute, code);
  return static_cast<int>(code.list.size());
}

class Recompute {
 public:
  Recompute(const Structure& structure, Fuser& fuser, int work)
      : s_(structure), fuser_(fuser), work_(work), stored_(structure.graph.values.size(), 0),
        pinned_(structure.graph.values.size(), 0), used_here_(structure.graph.values.size(), 0),
        readers_(structure.graph.values.size()), loads_(at(fuser.units.count())) {}

  void run() {
    find_readers();
    for (int32_t node = 0; node < s_.graph.nodes; ++node) consider(node);
  }

 private:
  /// How a value follows: what is computed on the way (itself last), and what that reads from memory.
  struct Expression {
    std::vector<int32_t> nodes, reads;
    int work = 0;
  };

  static size_t at(int32_t i) { return static_cast<size_t>(i); }
  const Value& v(int32_t value) const { return s_.graph.values[at(value)]; }
  /// Whether kernels compute it element by element, and anywhere.
  bool is_of_elements(int32_t value) const {
    const Op* op = v(value).op;
    return op && (op->kind == Kind::draw || (op->kind == Kind::elementwise && op->body.code != nullptr));
  }
  /// All values of one size class count as equally large: a structure knows no sizes.
  int64_t bytes(int32_t value) const { return static_cast<int64_t>(size_of(v(value).dtype)); }

  void find_readers() {
    for (int32_t unit = 0; unit < fuser_.units.count(); ++unit) {
      if (!fuser_.units.alive(unit)) continue;
      if (fuser_.units[unit].call) {  // its product, of which an epilogue would follow, is never in memory
        for (const int32_t value : written_by_epilogue(fuser_.units[unit])) stored_[at(value)] = pinned_[at(value)] = 1;
      }
      for (int32_t member : fuser_.units[unit].members) {
        each_read(s_, fuser_, member, [&](int32_t operand) { add_reader(unit, member, operand); });
      }
    }
    for (int32_t node = 0; node < s_.graph.nodes; ++node) {
      if (!v(node).held) continue;
      const int32_t root = held_storage(s_, fuser_, node);
      stored_[at(root)] = pinned_[at(root)] = 1;
    }
  }

  void add_reader(int32_t unit, int32_t member, int32_t operand) {
    const int32_t root = fuser_.storage(operand);
    if (root == operand && fuser_.unit_of(operand) == unit) {  // in its registers, or late and stored anyway
      ++used_here_[at(operand)];
      return;
    }
    stored_[at(root)] = 1;
    const bool copies = !v(member).op;
    if (root != operand || copies || fuser_.units[unit].call) {
      pinned_[at(root)] = 1;
      return;
    }
    add_unique(readers_[at(operand)], unit);
    add_unique(loads_[at(unit)], operand);
  }

  bool in_memory(int32_t value) const {
    const int32_t root = fuser_.storage(value);
    return s_.homes[at(root)] == Home::leaf || stored_[at(root)] != 0 || fuser_.level(root) == Level::late;
  }

  /// Whether what has been added behind these first nodes and reads depends on the order of elements in memory: reads
  /// element by element, and draws, which count elements. What is made of numbers and of values that repeat does not.
  bool has_order(int32_t value, const Expression& e, size_t nodes, size_t reads) const {
    const auto behind = [](const std::vector<int32_t>& list, size_t first, auto&& is) {
      return std::any_of(list.begin() + static_cast<std::ptrdiff_t>(first), list.end(), is);
    };
    return behind(e.nodes, nodes, [&](int32_t node) { return v(node).op->kind == Kind::draw; }) ||
           behind(e.reads, reads, [&](int32_t read) { return v(read).wide == v(value).wide; });
  }

  /// How `value`, as large as `of`, follows; false where it does not. `moves`: nobody but its reader wants it, so that
  /// its own kernel computes it no longer, and no work is done twice.
  bool express(int32_t value, int32_t of, bool moves, Expression& e) const {
    const bool as_large = v(value).wide == v(of).wide || fuser_.is_constant(value);
    const bool fits = is_of_elements(value) && fuser_.level(value) == Level::full && as_large;
    const size_t nodes_before = e.nodes.size(), reads_before = e.reads.size();
    if (!fits || (e.work += moves ? 0 : primitives_of(v(value))) > work_) return false;
    bool follows = true;
    each_read(s_, fuser_, value, [&](int32_t operand) {
      if (!follows || v(operand).is_scalar() || contains(e.nodes, operand)) return;
      const bool of_row = fuser_.storage(operand) == operand && fuser_.level(operand) == Level::row;
      if (in_memory(operand) || of_row) add_unique(e.reads, operand);
      else follows = express(operand, of, moves && used_here_[at(operand)] == 1 && readers_[at(operand)].empty(), e);
    });
    e.nodes.push_back(value);
    const bool same_order = v(value).channels_first == v(of).channels_first;
    return follows && (same_order || !has_order(value, e, nodes_before, reads_before));
  }

  /// Whether the kernel can compute the value, for its elements, its rows or from numbers, and is not a further reader
  /// of a leaf as large that a result could take the place of.
  bool can_compute(int32_t unit, int32_t value, const Expression& e) const {
    const Unit& kernel = fuser_.units[unit];
    if (kernel.call) return false;
    if (fuser_.is_constant(value)) return true;
    const Level level = kernel.level_of(v(value).wide);
    const auto draws = [&](int32_t node) { return v(node).op->kind == Kind::draw; };
    if (level == Level::none) return false;
    if (level == Level::row && std::any_of(e.nodes.begin(), e.nodes.end(), draws)) return false;
    if (v(kernel.domain).channels_first != v(value).channels_first && has_order(value, e, 0, 0)) return false;
    if (loads_[at(unit)].size() + e.reads.size() > load_limit) return false;
    return std::all_of(e.reads.begin(), e.reads.end(), [&](int32_t read) {
      const Value& root = v(fuser_.storage(read));
      return !root.donatable || root.wide != v(value).wide || contains(loads_[at(unit)], read);
    });
  }

  /// Bytes that the kernels load for it instead, in elements of the value's size.
  int64_t cost(int32_t value, const Expression& e) const {
    int64_t bytes_more = 0;
    for (int32_t unit : readers_[at(value)]) {
      for (int32_t read : e.reads) {
        if (v(read).wide == v(value).wide && !contains(loads_[at(unit)], read)) bytes_more += bytes(read);
      }
    }
    return bytes_more;
  }

  void consider(int32_t value) {
    const std::vector<int32_t>& readers = readers_[at(value)];
    if (readers.empty() || pinned_[at(value)] || s_.homes[at(value)] != Home::own) return;
    Expression e;
    if (!express(value, value, readers.size() == 1 && used_here_[at(value)] == 0, e)) return;
    for (int32_t unit : readers) {
      if (!can_compute(unit, value, e)) return;
    }
    const int64_t saved = bytes(value) * static_cast<int64_t>(1 + readers.size());
    if (cost(value, e) < saved) take_out(value, e);
  }

  void take_out(int32_t value, const Expression& e) {
    stored_[at(value)] = 0;
    for (int32_t unit : readers_[at(value)]) {
      std::vector<int32_t>& loads = loads_[at(unit)];
      loads.erase(std::find(loads.begin(), loads.end(), value));
      for (int32_t node : e.nodes) {
        if (fuser_.unit_of(node) != unit) add_unique(fuser_.units[unit].again, node);
      }
      for (int32_t read : e.reads) {
        const int32_t root = fuser_.storage(read);
        if (fuser_.unit_of(read) == unit && root == read) continue;
        stored_[at(root)] = 1;
        if (root != read) pinned_[at(root)] = 1;
        else add_unique(readers_[at(read)], unit);
        add_unique(loads, read);
      }
    }
    readers_[at(value)].clear();
  }

  const Structure& s_;
  Fuser& fuser_;
  int work_;
  std::vector<char> stored_, pinned_;
  std::vector<int32_t> used_here_;             // how often members of its own unit read the value
  std::vector<std::vector<int32_t>> readers_;  // units that read the value as it is, but for its own
  std::vector<std::vector<int32_t>> loads_;    // of each unit
};

}  // namespace

void choose_recomputed(const Structure& structure, Fuser& fuser, int work) { Recompute(structure, fuser, work).run(); }

int32_t held_storage(const Structure& structure, const Fuser& fuser, int32_t node) {
  const int32_t copy = structure.contiguous[static_cast<size_t>(node)];
  return fuser.storage(copy >= 0 ? copy : node);
}

}  // namespace rosin::plan
