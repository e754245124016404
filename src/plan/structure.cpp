// compile(): fuse, emit, put the steps in order, find out whose memory may be taken over.
#include "plan/structure.hpp"

#include <algorithm>
#include <queue>

#include "graph/gather_form.hpp"
#include "plan/fuse.hpp"
#include "plan/program.hpp"
#include "plan/recompute.hpp"

namespace rosin::plan {
namespace {

class Compiler {
 public:
  Compiler(Structure& structure, const Target& target)
      : s_(structure), fuser_(structure, target), recomputed_work_(target.recomputed_work()),
        labels_in_rows_(target.rows_check_labels()), scatters_in_place_(target.scatters_in_place()) {}

  void run() {
    fuser_.run();
    if (recomputed_work_ > 0) choose_recomputed(s_, fuser_, recomputed_work_);
    find_stored();
    order_units();
    find_ends();
    for (int32_t unit : order_) {
      if (ends_of_[at(unit)] < 0) add_step(unit);
    }
    if (labels_in_rows_) check_labels_in_rows();
    find_donors();
  }

 private:
  const Value& v(int32_t value) const { return s_.graph.values[static_cast<size_t>(value)]; }
  static size_t at(int32_t i) { return static_cast<size_t>(i); }

  /// f(value) for the values in memory that a unit reads.
  template <class F> void each_loaded(int32_t u, F&& f) const {
    const Unit& unit = fuser_.units[u];
    const auto of_member = [&](int32_t member) {
      each_read(s_, fuser_, member, [&](int32_t operand) {
        const int32_t root = fuser_.storage(operand);
        if (root != operand || (fuser_.unit_of(operand) != u && !unit.computes_again(operand))) f(root);
      });
    };
    std::for_each(unit.members.begin(), unit.members.end(), of_member);
    std::for_each(unit.again.begin(), unit.again.end(), of_member);
  }

  void find_stored() {
    stored_.assign(s_.graph.values.size(), 0);
    escapes_.assign(s_.graph.values.size(), 0);
    for (int32_t u = 0; u < fuser_.units.count(); ++u) {
      if (fuser_.units.alive(u)) each_loaded(u, [&](int32_t root) { stored_[at(root)] = 1; });
    }
    for (int32_t u = 0; u < fuser_.units.count(); ++u) {
      if (!fuser_.units.alive(u) || !fuser_.units[u].call) continue;
      for (const int32_t value : written_by_epilogue(fuser_.units[u])) stored_[at(value)] = 1;
      for (const int32_t result : fuser_.units[u].results) {
        if (result >= 0) stored_[at(fuser_.storage(result))] = 1;
      }
    }
    for (int32_t node = 0; node < s_.graph.nodes; ++node) {
      if (!v(node).held) continue;
      const int32_t root = held_storage(s_, fuser_, node);
      stored_[at(root)] = escapes_[at(root)] = 1;
    }
    for (size_t i = 0; i < s_.homes.size(); ++i) {
      if (s_.homes[i] == Home::own && !stored_[i] && fuser_.level(static_cast<int32_t>(i)) != Level::late) {
        s_.homes[i] = Home::none;
      }
    }
  }

  static constexpr int64_t comes_last = int64_t{1} << 40;

  /// Where a unit stands among those that may run: as recorded. Kernels that nobody waits for come last where they read
  /// leaves, whose memory they may take over (optimiser updates): what can fail has run by then. Else they come right
  /// behind what they read: others may wait for their results (run/early.hpp).
  int64_t rank_of(int32_t u) const {
    const std::vector<int32_t>& members = fuser_.units[u].members;
    int64_t recorded = 0, read = 0;
    for (int32_t member : members) recorded = std::max<int64_t>(recorded, fuser_.wanted_at(member));
    if (awaited_[at(u)] || fuser_.units[u].call) return recorded;
    bool reads_leaf = false;
    each_loaded(u, [&](int32_t root) {
      reads_leaf = reads_leaf || s_.homes[at(root)] == Home::leaf;
      read = std::max<int64_t>(read, fuser_.wanted_at(root));
    });
    return reads_leaf ? recorded + comes_last : read;
  }

  /// By rank, as far as dependencies allow.
  void order_units() {
    const int32_t count = fuser_.units.count();
    awaited_.assign(at(count), 0);
    std::vector<int32_t> waiting(at(count), 0);
    std::vector<std::vector<int32_t>> waiters(at(count));
    for (int32_t u = 0; u < count; ++u) {
      if (!fuser_.units.alive(u)) continue;
      fuser_.units.each_dependency(u, [&](int32_t on) {
        ++waiting[at(u)];
        awaited_[at(on)] = 1;
        waiters[at(on)].push_back(u);
      });
    }
    using Entry = std::pair<int64_t, int32_t>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
    const auto push = [&](int32_t u) { ready.emplace(rank_of(u), u); };
    for (int32_t u = 0; u < count; ++u) {
      if (fuser_.units.alive(u) && waiting[at(u)] == 0) push(u);
    }
    while (!ready.empty()) {
      const int32_t done = ready.top().second;
      ready.pop();
      order_.push_back(done);
      for (const int32_t u : waiters[at(done)]) {
        if (--waiting[at(u)] == 0) push(u);
      }
    }
  }

  /// A kernel on results of another kernel's roots alone is that one's end where all else that it reads is there by
  /// then: devices compute it where these are added up. What comes last, once nothing can fail, stays there.
  void find_ends() {
    ends_of_.assign(at(fuser_.units.count()), -1);
    std::vector<size_t> place(at(fuser_.units.count()), 0);
    for (size_t i = 0; i < order_.size(); ++i) place[at(order_[i])] = i;
    for (const int32_t u : order_) {
      if (fuser_.units[u].call || rank_of(u) >= comes_last || !is_short_of_elements(u)) continue;
      int32_t last = -1;  // of those that it waits for
      fuser_.units.each_dependency(u, [&](int32_t on) {
        if (last < 0 || place[at(on)] > place[at(last)]) last = on;
      });
      if (last < 0 || !reads_roots_of(u, last)) continue;
      ends_of_[at(u)] = last;
      ends_.push_back(u);
    }
  }

  /// Whether every member is computed element by element, from little.
  bool is_short_of_elements(int32_t u) const {
    constexpr size_t most_members = 16, most_loads = 8;
    const Unit& unit = fuser_.units[u];
    const bool elements = std::all_of(unit.members.begin(), unit.members.end(), [&](int32_t member) {
      return v(member).op && fuser_.level(member) == Level::full;
    });
    std::vector<int32_t> loads;
    each_loaded(u, [&](int32_t root) { add_unique(loads, root); });
    return elements && !v(unit.domain).channels_first && loads.size() <= most_loads &&
           unit.members.size() + unit.again.size() <= most_members;
  }

  /// Whether the unit reads of the other one results of its roots alone, some of them element by element.
  bool reads_roots_of(int32_t u, int32_t other) const {
    if (fuser_.units[other].call || ends_of_[at(other)] >= 0) return false;
    bool roots = true, as_large = false;
    each_loaded(u, [&](int32_t root) {
      if (fuser_.unit_of(root) != other) return;
      roots = roots && fuser_.level(root) == Level::late;
      as_large = as_large || contains(fuser_.units[u].full_loads, root);
    });
    return roots && as_large;
  }

  void add_step(int32_t unit) {
    Step step;
    if (fuser_.units[unit].call) {
      add_call(step, unit);
    } else {
      Kernel kernel = emit(s_, fuser_, unit, fuser_.units[unit], stored_);
      if (kernel.stores.empty() && kernel.roots.empty()) return;
      step.kernel = static_cast<int32_t>(s_.kernels.size());
      add_kernel(step, std::move(kernel));
      for (const int32_t end : ends_) {
        if (ends_of_[at(end)] == unit) add_end(step, end);
      }
    }
    s_.steps.push_back(std::move(step));
  }

  void add_kernel(Step& step, Kernel&& kernel) {
    for (const Port& port : kernel.loads) add_unique(step.reads, fuser_.storage(port.value));
    for (const Port& port : kernel.stores) step.writes.push_back(port.value);
    for (const Port& port : kernel.roots) step.writes.push_back(port.value);
    s_.kernels.push_back(std::move(kernel));
  }

  void add_end(Step& step, int32_t unit) {
    Kernel kernel = emit(s_, fuser_, unit, fuser_.units[unit], stored_);
    if (kernel.stores.empty()) return;
    step.ends.push_back(static_cast<int32_t>(s_.kernels.size()));
    add_kernel(step, std::move(kernel));
  }

  void add_call(Step& step, int32_t number) {
    const Unit& unit = fuser_.units[number];
    step.node = unit.members.front();
    step.result = unit.members.back();
    step.taken = unit.taken;
    step.epilogue = unit.epilogue;
    step.bias = unit.bias;
    step.residual = unit.residual;
    step.center = unit.center;
    step.factor = unit.factor;
    step.shift = unit.shift;
    step.auxiliary = unit.auxiliary;
    step.bias_gradient = unit.bias_gradient;
    step.scale = unit.scale;
    for (int i = 0; i < v(step.node).operands; ++i) add_unique(step.reads, fuser_.storage(v(step.node).in[i]));
    if (step.epilogue.reads_auxiliary()) add_unique(step.reads, fuser_.storage(step.auxiliary));
    step.results = unit.results;
    if (step.results.empty()) step.writes = written_by_epilogue(unit);
    for (const int32_t result : step.results) {
      if (result >= 0) add_unique(step.writes, fuser_.storage(result));
    }
    add_kernels_behind(step, number);
  }

  /// What computes the epilogue of a call that is refused; it reads memory, and so that must be there.
  void add_kernels_behind(Step& step, int32_t number) {
    const Unit& unit = fuser_.units[number];
    const auto add = [&](Kernel&& kernel) {
      for (const Port& port : kernel.loads) {
        const int32_t root = fuser_.storage(port.value);
        if (root != step.node && !contains(step.writes, root)) add_unique(step.reads, root);
      }
      step.behind.push_back(static_cast<int32_t>(s_.kernels.size()));
      s_.kernels.push_back(std::move(kernel));
    };
    if (unit.members.size() > 1) {
      Kernel kernel = emit(s_, fuser_, number, unit, stored_);
      alias_result(kernel, step);
      add(std::move(kernel));
    }
    if (step.bias_gradient < 0 || contains(unit.members, step.bias_gradient)) return;
    Unit sums;
    sums.domain = v(step.bias_gradient).in[0];
    sums.wide = v(sums.domain).wide;
    sums.members = {step.bias_gradient};
    add(emit(s_, fuser_, number, sums, stored_));
  }

  /// The product stands where the epilogue's end will (unless somebody else reads it).
  void alias_result(Kernel& kernel, const Step& step) const {
    if (s_.homes[at(step.node)] != Home::result) return;
    const auto of = [](int32_t value) { return [value](const Port& port) { return port.value == value; }; };
    const auto product = std::find_if(kernel.loads.begin(), kernel.loads.end(), of(step.node));
    const auto result = std::find_if(kernel.stores.begin(), kernel.stores.end(), of(step.result));
    result->aliased = true;
    result->alias = static_cast<uint16_t>(product - kernel.loads.begin());
  }

  /// Which labels are classes is asked where rows read that, once for all: the call before them goes.
  void check_labels_in_rows() {
    for (size_t i = s_.steps.size(); i-- > 0;) {
      const int32_t node = s_.steps[i].node;
      if (node < 0 || !asks_labels_of_leaf(node) || escapes_[at(node)]) continue;
      Step* const reader = rows_that_read(node);
      if (!reader) continue;
      for (Port& load : s_.kernels[at(reader->kernel)].loads) {
        if (fuser_.storage(load.value) == node) load.check = node;
      }
      s_.homes[at(node)] = Home::alias;
      s_.base[at(node)] = v(node).in[0];
      std::erase(reader->reads, node);
      add_unique(reader->reads, fuser_.storage(node));
      s_.steps.erase(s_.steps.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  /// Whether the node asks that of a leaf in logical order.
  bool asks_labels_of_leaf(int32_t node) const {
    const Value& value = v(node);
    if (value.op->kind != Kind::gather || value.operands != 1 || value.attributes.as<LabelAttributes>().classes == 0)
      return false;
    return s_.homes[at(value.in[0])] != Home::view && s_.homes[at(fuser_.storage(value.in[0]))] == Home::leaf;
  }

  /// The step that alone reads a value, one element a row; nothing where there is none.
  Step* rows_that_read(int32_t value) {
    const auto reads = [&](const Step& step) { return contains(step.reads, value); };
    const auto reader = std::find_if(s_.steps.begin(), s_.steps.end(), reads);
    if (reader == s_.steps.end() || reader->kernel < 0 || is_read_by_ends(*reader, value)) return nullptr;
    if (std::find_if(reader + 1, s_.steps.end(), reads) != s_.steps.end()) return nullptr;
    const Kernel& kernel = s_.kernels[at(reader->kernel)];
    const bool by_rows = std::all_of(kernel.loads.begin(), kernel.loads.end(),
                                     [&](const Port& load) { return load.row || fuser_.storage(load.value) != value; });
    return kernel.whole_rows && by_rows && !overwrites_leaf(kernel) ? &*reader : nullptr;
  }

  /// Whether what comes out of the kernel may take over the memory of a leaf: a parameter that it updates. All that can
  /// fail has run by then.
  bool overwrites_leaf(const Kernel& kernel) const {
    const auto comes_out = [&](const Port& store) { return escapes_[at(store.value)] != 0; };
    const auto is_leaf = [&](const Port& load) { return !load.row && s_.homes[at(load.value)] == Home::leaf; };
    return std::any_of(kernel.stores.begin(), kernel.stores.end(), comes_out) &&
           std::any_of(kernel.loads.begin(), kernel.loads.end(), is_leaf);
  }

  /// A store may take over the memory of a load that ends with this kernel and has the same elements in the same
  /// places: a parameter that nobody else holds, or an intermediate.
  void find_donors() {
    s_.donor.assign(s_.graph.values.size(), -1);
    find_predecessors();
    std::vector<int32_t> last_read(s_.graph.values.size(), -1);
    for (size_t i = 0; i < s_.steps.size(); ++i) {
      for (int32_t value : s_.steps[i].reads) last_read[at(value)] = static_cast<int32_t>(i);
    }
    int32_t last_call = -1;
    for (size_t i = 0; i < s_.steps.size(); ++i) {
      if (s_.steps[i].kernel < 0) last_call = static_cast<int32_t>(i);
    }
    for (size_t i = 0; i < s_.steps.size(); ++i) {
      if (s_.steps[i].kernel < 0) {
        find_target(s_.steps[i], last_read, static_cast<int32_t>(i));
        continue;
      }
      Kernel& kernel = s_.kernels[at(s_.steps[i].kernel)];
      std::vector<char> taken(kernel.loads.size(), 0);
      for (Port& store : kernel.stores) {
        passed_over_ = false;
        for (size_t k = 0; k < kernel.loads.size(); ++k) {
          const bool after_calls = static_cast<int32_t>(i) > last_call;
          if (taken[k] || !donates(kernel, kernel.loads[k], store, last_read, static_cast<int32_t>(i), after_calls))
            continue;
          taken[k] = 1;
          store.aliased = true;
          store.alias = static_cast<uint16_t>(k);
          s_.donor[at(store.value)] = kernel.loads[k].value;
          break;
        }
        s_.beside = s_.beside || (passed_over_ && !store.aliased);
      }
    }
    s_.beside = s_.beside || some_heir_stands_elsewhere();
  }

  /// A scatter may take over the memory of its target, which ends with this step.
  void find_target(const Step& step, const std::vector<int32_t>& last_read, int32_t number) {
    const Scatter scatter = v(step.node).op->scatter;
    if (!scatters_in_place_ || scatter == Scatter::none || scatter == Scatter::add_along) return;
    int32_t target = v(step.node).in[0];
    while (target < s_.graph.nodes && v(target).op->movement == Movement::reshape && fuser_.storage(target) != target) {
      target = v(target).in[0];
    }
    const bool ends = fuser_.storage(target) == target && last_read[at(target)] == number && !escapes_[at(target)];
    if (ends && may_scatter_into(step, target)) s_.donor[at(step.node)] = target;
  }

  /// Whether the target is an intermediate, or a leaf that nobody else holds. Who evaluates again after an error
  /// scatters again: what has been written already is written once more, so of leaves this holds where nothing else
  /// reads them, nothing is added up, and no step gives them back.
  bool may_scatter_into(const Step& step, int32_t target) const {
    const Value& scatter = v(step.node);
    const Value& from = v(target);
    if (fuser_.storage(scatter.in[1]) == target || fuser_.storage(scatter.in[2]) == target) return false;
    if (from.dtype != scatter.dtype || v(scatter.in[0]).wide != scatter.wide || from.channels_first ||
        is_read_by_ends(step, target))
      return false;
    if (s_.homes[at(target)] == Home::own) return !escapes_[at(step.node)];
    if (s_.homes[at(target)] != Home::leaf || scatter.op->scatter != Scatter::write) return false;
    return from.donatable && !from.guarded && escapes_[at(step.node)] && may_follow(step.node, target) &&
           std::count_if(s_.steps.begin(), s_.steps.end(),
                         [&](const Step& other) { return contains(other.reads, target); }) == 1;
  }

  void find_predecessors() {
    predecessor_.assign(s_.graph.values.size(), -1);
    for (size_t leaf = at(s_.graph.nodes); leaf < s_.graph.values.size(); ++leaf) {
      const int32_t heir = s_.graph.values[leaf].heir;
      if (heir >= 0) predecessor_[at(fuser_.storage(heir))] = static_cast<int32_t>(leaf);
    }
  }

  bool may_follow(int32_t value, int32_t leaf) const {
    return predecessor_[at(value)] >= 0 ? predecessor_[at(value)] == leaf : v(leaf).heir < 0;
  }

  bool some_heir_stands_elsewhere() const {
    for (size_t leaf = at(s_.graph.nodes); leaf < s_.graph.values.size(); ++leaf) {
      const int32_t heir = s_.graph.values[leaf].heir;
      const int32_t made = heir < 0 ? -1 : fuser_.storage(heir);
      const bool is_made = heir >= 0 && s_.homes[at(made)] != Home::leaf && s_.homes[at(made)] != Home::scalar;
      if (is_made && s_.donor[at(made)] != static_cast<int32_t>(leaf)) return true;
    }
    return false;
  }

  bool is_read_by_ends(const Step& step, int32_t value) const {
    return std::any_of(step.ends.begin(), step.ends.end(), [&](int32_t end) {
      const std::vector<Port>& loads = s_.kernels[at(end)].loads;
      return std::any_of(loads.begin(), loads.end(),
                         [&](const Port& load) { return fuser_.storage(load.value) == value; });
    });
  }

  bool donates(const Kernel& kernel, const Port& load, const Port& store, const std::vector<int32_t>& last_read,
               int32_t step, bool after_calls) {
    const Value &from = v(load.value), &to = v(store.value);
    if (load.row || store.row || from.dtype != to.dtype || from.wide != kernel.wide || to.wide != kernel.wide)
      return false;
    if (from.channels_first != kernel.channels_first) return false;
    if (last_read[at(load.value)] != step || escapes_[at(load.value)]) return false;
    if (is_read_by_ends(s_.steps[at(step)], load.value)) return false;
    const auto same_memory = [&](const Port& port) { return fuser_.storage(port.value) == load.value; };
    if (std::count_if(kernel.loads.begin(), kernel.loads.end(), same_memory) != 1) return false;
    const Home home = s_.homes[at(load.value)];
    if (home == Home::leaf) {
      const bool wanted = escapes_[at(store.value)] && after_calls && may_follow(store.value, load.value);
      passed_over_ = passed_over_ || (wanted && !from.donatable);
      return wanted && from.donatable;
    }
    return home == Home::own && !escapes_[at(store.value)];
  }

  Structure& s_;
  Fuser fuser_;
  int recomputed_work_;
  bool labels_in_rows_, scatters_in_place_;
  bool passed_over_ = false;  // a leaf whose memory a store would take over, because somebody else holds it
  std::vector<char> stored_, escapes_;
  std::vector<int32_t> predecessor_;  // of values: the leaf whose heir it is, or -1
  std::vector<char> awaited_;         // units that others depend on
  std::vector<int32_t> order_;
  std::vector<int32_t> ends_of_;  // of units: the one whose end it is, or -1
  std::vector<int32_t> ends_;     // units that are one, in order
};

}  // namespace

Structure compile(Graph&& graph, const Target& target) {
  Structure structure;
  structure.graph = std::move(graph);
  Compiler(structure, target).run();
  structure.graph.values.shrink_to_fit();  // it is kept for long
  structure.kernels.shrink_to_fit();
  structure.steps.shrink_to_fit();
  return structure;
}

namespace {

template <class T> size_t room_of(const std::vector<T>& list) { return list.capacity() * sizeof(T); }

}  // namespace

size_t Structure::bytes() const {
  size_t bytes = sizeof(Structure) + room_of(graph.values) + room_of(homes) + room_of(base) + room_of(contiguous) +
                 room_of(donor) + room_of(kernels) + room_of(steps);
  for (const Value& value : graph.values) bytes += value.in.bytes();
  for (const Step& step : steps)
    bytes +=
        room_of(step.reads) + room_of(step.writes) + room_of(step.results) + room_of(step.behind) + room_of(step.ends);
  for (const Kernel& k : kernels) {
    bytes += room_of(k.instrs) + room_of(k.loads) + room_of(k.scalars) + room_of(k.stores) + room_of(k.roots);
  }
  return bytes;
}

}  // namespace rosin::plan
