// Neighbouring launches whose items work alone, and which touch nothing that another of them writes, become one: the
// updates of an optimiser, one a parameter, cost one launch or a few. The groups of one come behind those of another.
// Which ones are joined follows from structure, but for what shares a place of the arena in one layout alone.
#include <algorithm>

#include "kernels/launches.hpp"

namespace rosin::kernels {
namespace {

constexpr size_t most_parts = 16;           // each with instructions of its own
constexpr size_t most_instructions = 4096;  // longer texts take compilers long, and much memory of those for CPUs

// A buffer may be an address and an offset; beside what parts have, there are the guard and what shares numbers.
size_t argument_bytes(const Launch& launch) { return 16 * launch.buffers.size() + 8 * launch.numbers.size() + 16; }
constexpr size_t bytes_beside = 64;

/// The memory that a launch reads or writes.
struct Touched {
  std::vector<Extent> read, written;
};

Touched touched(const Layout& layout, const Launch& launch) {
  const std::vector<char> stores = stored_buffers(launch.code);
  Touched found;
  for (size_t i = 0; i < stores.size(); ++i) {
    (stores[i] ? found.written : found.read).push_back(extent_of(layout, launch.buffers[i]));
  }
  return found;
}

bool meet(const std::vector<Extent>& a, const std::vector<Extent>& b) {
  return std::any_of(a.begin(), a.end(), [&](const Extent& x) {
    return std::any_of(b.begin(), b.end(), [&](const Extent& y) { return x.meets(y); });
  });
}

bool disturb(const Touched& a, const Touched& b) {
  return meet(a.written, b.written) || meet(a.written, b.read) || meet(a.read, b.written);
}

KernelInstruction made(KernelOperation operation, ScalarType type, uint32_t operand = 0, int64_t immediate = 0) {
  KernelInstruction instruction;
  instruction.operation = static_cast<uint16_t>(operation);
  instruction.type = type;
  instruction.operands[0] = operand;
  instruction.immediate = immediate;
  return instruction;
}

/// Appends launches of one code to `into`, whose first instruction is the number of the group: they do what groups from
/// `begin` on do. Where a part begins is a number of the launch, so that the code does not depend on sizes. Of several
/// parts, groups first find the one that is theirs, by halving, and choose its buffers and numbers.
class Joiner {
 public:
  Joiner(Launch& into, std::span<const Launch* const> parts)
      : into_(into), code_(into.code), parts_(parts), buffers_(static_cast<int64_t>(code_.buffers.size())),
        shared_(static_cast<int64_t>(code_.shared.size())) {}

  void run() {
    code_.shared.insert(code_.shared.end(), parts_.front()->code.shared.begin(), parts_.front()->code.shared.end());
    for (const Launch* part : parts_) {
      begins_.push_back(into_.groups[0]);
      into_.groups[0] += part->groups[0];
      code_.buffers.insert(code_.buffers.end(), part->code.buffers.begin(), part->code.buffers.end());
      into_.buffers.insert(into_.buffers.end(), part->buffers.begin(), part->buffers.end());
      if (into_.step < 0) into_.step = part->step;
      if (into_.what.find(part->what) == std::string::npos)
        into_.what.append(into_.what.empty() ? "" : " ").append(part->what);
    }
    if (parts_.size() > 1) first_choice();
    begin_parts();
    for (KernelInstruction instruction : parts_.front()->code.instructions) add(instruction);
    put(made(KernelOperation::end_if, ScalarType::int32));
  }

 private:
  uint32_t put(const KernelInstruction& instruction) {
    code_.instructions.push_back(instruction);
    return static_cast<uint32_t>(code_.instructions.size() - 1);
  }

  uint32_t number(const LaunchNumber& value) {
    code_.parameters.push_back(value.type);
    into_.numbers.push_back(value);
    return put(made(KernelOperation::parameter, value.type, 0, static_cast<int64_t>(code_.parameters.size() - 1)));
  }
  uint32_t integer(int64_t value) { return number({ScalarType::int32, value, -1}); }

  /// The first part's, outside of all branches.
  void first_choice() {
    for (const KernelInstruction& i : code_.instructions) {
      if (i.is(KernelOperation::choose)) chosen_ = std::max(chosen_, (i.immediate >> lanes_shift) + 1);
    }
    choose_buffers(0);
  }

  void choose_buffers(size_t part) {
    const auto count = static_cast<int64_t>(parts_.front()->buffers.size());
    for (int64_t i = 0; i < count; ++i) {
      const int64_t from = buffers_ + static_cast<int64_t>(part) * count + i;
      put(made(KernelOperation::choose, ScalarType::int32, 0, (chosen_ + i) << lanes_shift | from));
    }
  }

  void begin_parts() {
    const uint32_t begin = integer(begins_.front()), end = integer(into_.groups[0]);
    const uint32_t reached = put(make_instruction(Primitive::less_equal, ScalarType::boolean, {begin, 0}));
    const uint32_t before = put(make_instruction(Primitive::less, ScalarType::boolean, {0, end}));
    const uint32_t own = put(make_instruction(Primitive::logical_and, ScalarType::boolean, {reached, before}));
    put(made(KernelOperation::begin_if, ScalarType::boolean, own));
    for (size_t i = 0; i < parts_.front()->numbers.size(); ++i) {
      numbers_.push_back(is_read(i) ? number(parts_.front()->numbers[i]) : 0);
    }
    if (parts_.size() == 1) {
      group_ = put(make_instruction(Primitive::subtract, ScalarType::int32, {0, begin}));
      return;
    }
    for (size_t i = 0; i < numbers_.size(); ++i) {
      if (is_read(i)) numbers_[i] = variable(numbers_[i]);
    }
    begin_ = variable(begin);
    find_part(0, parts_.size());
    group_ = put(make_instruction(Primitive::subtract, ScalarType::int32, {0, begin_}));
  }

  /// Some numbers of a launch are there for none of its instructions.
  bool is_read(size_t number) const {
    const std::vector<KernelInstruction>& list = parts_.front()->code.instructions;
    return std::any_of(list.begin(), list.end(), [&](const KernelInstruction& i) {
      return i.is(KernelOperation::parameter) && i.immediate == static_cast<int64_t>(number);
    });
  }

  uint32_t variable(uint32_t value) {
    return put(made(KernelOperation::variable, code_.instructions[value].type, value));
  }
  void assign(uint32_t variable, uint32_t value) {
    put(make_instruction(KernelOperation::assign, code_.instructions[value].type, {variable, value}));
  }

  /// Among the parts [first, last).
  void find_part(size_t first, size_t last) {
    if (last - first == 1) return first == 0 ? void() : choose(first);
    const size_t middle = (first + last) / 2;
    const uint32_t bound = integer(begins_[middle]);
    const uint32_t below = put(make_instruction(Primitive::less, ScalarType::boolean, {0, bound}));
    put(made(KernelOperation::begin_if, ScalarType::boolean, below));
    find_part(first, middle);
    put(made(KernelOperation::begin_else, ScalarType::boolean));
    find_part(middle, last);
    put(made(KernelOperation::end_if, ScalarType::int32));
  }

  void choose(size_t part) {
    choose_buffers(part);
    const std::vector<LaunchNumber>& values = parts_[part]->numbers;
    for (size_t i = 0; i < values.size(); ++i) {
      const LaunchNumber& first = parts_.front()->numbers[i];
      const bool same = values[i].integer == first.integer && values[i].scalar == first.scalar;
      if (is_read(i) && (!same || values[i].scalar < 0)) assign(numbers_[i], number(values[i]));
    }
    assign(begin_, integer(begins_[part]));
  }

  void add(KernelInstruction instruction) {
    if (instruction.is(KernelOperation::parameter)) {
      places_.push_back(numbers_[static_cast<size_t>(instruction.immediate)]);
      return;
    }
    if (instruction.is(KernelOperation::group) && instruction.immediate == 0) {
      const bool wide = instruction.type != ScalarType::int32;
      places_.push_back(wide ? put(make_instruction(Primitive::convert, instruction.type, {group_})) : group_);
      return;
    }
    for (uint32_t& operand : instruction.operands) operand = operand < places_.size() ? places_[operand] : 0;
    if (buffer_of(instruction) >= 0) instruction.immediate += parts_.size() > 1 ? chosen_buffer + chosen_ : buffers_;
    if (touches_shared(instruction)) instruction.immediate += shared_;
    places_.push_back(put(instruction));
  }

  static bool touches_shared(const KernelInstruction& i) {
    using enum KernelOperation;
    return i.is(shared_load) || i.is(shared_store) || i.is(shared_load_vector) || i.is(shared_store_vector);
  }

  Launch& into_;
  KernelCode& code_;
  std::span<const Launch* const> parts_;
  const int64_t buffers_, shared_;  // of `into` before
  int64_t chosen_ = 0;              // buffers that others have chosen
  std::vector<int64_t> begins_;     // of the parts, among the groups
  std::vector<uint32_t> numbers_;
  uint32_t begin_ = 0, group_ = 0;
  std::vector<uint32_t> places_;  // where the instructions of the first part stand
};

/// Those with equal codes beside each other, in the order of the first of each.
std::vector<std::vector<const Launch*>> families(std::span<const Launch> launches, bool choices) {
  std::vector<std::vector<const Launch*>> found;
  for (const Launch& launch : launches) {
    const auto same = [&](const auto& family) { return choices && family.front()->code == launch.code; };
    const auto at = std::find_if(found.begin(), found.end(), same);
    (at != found.end() ? *at : found.emplace_back()).push_back(&launch);
  }
  return found;
}

Launch joined(std::span<const Launch> launches, bool choices) {
  const auto all = families(launches, choices);
  Launch whole;
  whole.code.name = "parts";
  if (all.size() == 1) whole.code.name = launches.front().code.name.substr(0, launches.front().code.name.rfind('_'));
  whole.code.group = launches.front().code.group;
  whole.code.instructions.push_back(made(KernelOperation::group, ScalarType::int32));
  whole.groups[0] = 0;
  for (const Launch& launch : launches) whole.code.beside = std::max(whole.code.beside, launch.code.beside);
  for (const auto& family : all) Joiner(whole, family).run();
  name_by_hash(whole.code);
  return whole;
}

/// Launches that follow each other and can be joined, as far as they have been looked at.
class Run {
 public:
  Run(const Layout& layout, const Abilities& device) : layout_(layout), device_(device) {}

  /// Whether this one can join those before; then it is one of them. The first may always.
  bool takes(const Launch& launch) {
    const auto same = [&](const KernelCode* code) { return *code == launch.code; };
    const bool is_known = device_.choices && std::any_of(codes_.begin(), codes_.end(), same);
    if (!touched_.empty() && !may_share(launch, is_known)) return false;
    if (!is_known) codes_.push_back(&launch.code);
    bytes_ += argument_bytes(launch);
    instructions_ += is_known ? launch.buffers.size() + 2 * launch.numbers.size() : launch.code.instructions.size();
    groups_ += launch.groups[0];
    const bool is_much = groups_ > INT32_MAX || bytes_ + bytes_beside > static_cast<size_t>(device_.argument_bytes) ||
                         instructions_ > most_instructions || codes_.size() > most_parts;
    Touched now = touched(layout_, launch);
    const auto hinders = [&](const Touched& other) { return disturb(now, other); };
    if (!touched_.empty() && (is_much || std::any_of(touched_.begin(), touched_.end(), hinders))) return false;
    touched_.push_back(std::move(now));
    sharing_ = launch.sharing;
    return true;
  }

 private:
  bool may_share(const Launch& launch, bool is_known) const {
    if (launch.groups[0] == 0 || launch.sharing != sharing_) return false;
    return launch.sharing == Sharing::any || (launch.sharing == Sharing::like && is_known);
  }

  const Layout& layout_;
  const Abilities& device_;
  std::vector<Touched> touched_;
  std::vector<const KernelCode*> codes_;
  size_t bytes_ = 0, instructions_ = 0;
  int64_t groups_ = 0;
  Sharing sharing_ = Sharing::none;
};

}  // namespace

void merge_launches(const Layout& layout, LaunchList& list) {
  const std::span<const Launch> launches(list.launches);
  std::vector<Launch> merged;
  for (size_t first = 0, last = 0; first < launches.size(); first = last) {
    Run run(layout, list.device);
    while (last < launches.size() && run.takes(launches[last])) ++last;
    if (last - first == 1) merged.push_back(launches[first]);
    else merged.push_back(joined(launches.subspan(first, last - first), list.device.choices));
  }
  list.launches = std::move(merged);
}

}  // namespace rosin::kernels
