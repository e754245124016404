// Which instructions of a fused kernel run as machine code together. A pass is one loop over the elements of a strip,
// or over its rows; what is reduced in one is read in a later one. Instructions that the writer does not know run
// alone, between passes. Read first: machine_loop.hpp. The loops compute what the instructions would, bit for bit.
#include <algorithm>
#include <map>

#include "cpu/fused.hpp"
#include "cpu/fused_state.hpp"
#include "cpu/pass_code.hpp"
#include "graph/reducer.hpp"
#include "platform/processor.hpp"
#include "scalar/convert.hpp"

namespace rosin::cpu {
namespace {

using Do = plan::Instr::Do;
using plan::Instr;

constexpr size_t most_items = 128;          // of a pass
constexpr size_t most_instructions = 2048;  // of its items together
constexpr size_t most_streamed_instructions = 16;
constexpr int64_t most_cached = int64_t{16} << 20;  // bytes of an array, where the cache is small or not known

/// An instruction, and the instructions whose results it reads.
struct Item {
  const Instr* instr = nullptr;
  ScalarCode code;  // of apply and convert
  std::vector<int> in;
  bool machine = false;
  int pass = -1;                // -1: before all passes
  bool leaves = false;          // read by another pass, or by an instruction that runs alone
  bool strips = false;          // the same, and one element would not do
  std::vector<uint16_t> ports;  // store ports that its pass writes it to
  bool shares = false;          // one of them has the memory of a load
  uint16_t place = 0;           // in the code of its pass
  int last = -1;                // the last pass that reads it

  /// Whether it goes over elements rather than over rows.
  bool by_element() const { return !instr->row || instr->what == Do::reduce; }
};

/// Of a kernel: instructions in the order of their passes.
struct PassPlan {
  std::vector<Item> items;
  std::vector<std::vector<int>> passes;  // of one loop, or of one instruction that runs alone

  bool alone(size_t pass) const { return !items[static_cast<size_t>(passes[pass][0])].machine; }
};

/// Whether it reads no register.
bool begins(const Instr& instr) { return instr.what == Do::load || instr.what == Do::scalar || instr.what == Do::draw; }

ScalarType type_of(const Instr& instr) {
  return instr.what == Do::apply ? instr.op->body.result[static_cast<int>(instr.type)] : instr.type;
}

ScalarCode conversion(ScalarType from, ScalarType to) {
  ScalarCode code;
  append(code, {.primitive = Primitive::input, .type = from, .immediate = 0});
  if (from != to) code.result = append(code, {.primitive = Primitive::convert, .type = to, .operands = {0, 0, 0}});
  return code;
}

/// How loops may hold elements of this type in memory, which they compute with as another; none: as they are, or not.
Packing packing_of(DType storage, ScalarType type) {
  if (type == ScalarType::int32) {
    if (storage == DType::UInt8) return Packing::byte;
    if (storage == DType::UInt16) return Packing::word;
    if (storage == DType::Int16) return Packing::signed_word;
    return storage == DType::Int8 ? Packing::signed_byte : Packing::none;
  }
  return type == ScalarType::float32 ? half_packing(storage) : Packing::none;
}

/// Whether loops read and write elements of this storage as values of the type.
bool is_held(DType storage, ScalarType type) {
  return storage_of(type) == storage || packing_of(storage, type) != Packing::none;
}

/// Floats become the nearest bound of a short integer that they do not fit.
void bound(ScalarCode& code, Packing packing) {
  const auto limit = [&](Primitive what, int64_t number) {
    const uint16_t most =
        append(code, {.primitive = Primitive::literal, .type = ScalarType::int32, .immediate = number});
    code.result = append(code, {.primitive = what, .type = ScalarType::int32, .operands = {code.result, most, 0}});
  };
  const int64_t values = int64_t{1} << (8 * bytes_of(packing)), least = is_signed(packing) ? -values / 2 : 0;
  limit(Primitive::minimum, least + values - 1);
  limit(Primitive::maximum, least);
}

ScalarCode code_of(const Instr& instr) {
  ScalarCode code;
  if (instr.what == Do::apply) instr.op->body.code(instr.type, code);
  if (instr.what != Do::convert) return code;
  code = conversion(instr.from, instr.type);
  const Packing packing = packing_of(instr.storage, instr.type);
  const bool real = instr.from == ScalarType::float32 || instr.from == ScalarType::float64;
  if (real && instr.type == ScalarType::int32 && packing != Packing::none) bound(code, packing);
  else if (packing != Packing::none) code.result = append(code, rounded_to(packing, code.result));
  return code;
}

bool is_machine(const Instr& instr, const ScalarCode& code) {
  switch (instr.what) {
    case Do::apply: return machine_knows(code);
    case Do::convert: return is_held(instr.storage, instr.type) && machine_knows(code);
    case Do::reduce: return machine_combines(instr.reducer->body, instr.type).has_value();
    default: return false;
  }
}

bool joins_elements(const Item& item) { return item.instr->what == Do::reduce || item.instr->what == Do::root; }

void name_operands(const plan::Kernel& kernel, PassPlan& plan) {
  std::vector<int> made_by(kernel.registers, -1);
  for (const Instr& instr : kernel.instrs) {
    Item item;
    item.instr = &instr;
    item.code = code_of(instr);
    item.machine = is_machine(instr, item.code);
    const int operands = instr.what == Do::apply ? instr.count : begins(instr) ? 0 : 1;
    for (int i = 0; i < operands; ++i) item.in.push_back(made_by[instr.in[i]]);
    if (instr.what != Do::store && instr.what != Do::root) made_by[instr.dst] = static_cast<int>(plan.items.size());
    plan.items.push_back(std::move(item));
  }
}

Item& source(PassPlan& plan, int item) { return plan.items[static_cast<size_t>(item)]; }

/// Repeated rows are read where the rows stand; written out only for instructions that run alone.
bool is_view(const Item& item) { return item.instr->what == Do::expand && !item.strips; }

void find_written_rows(PassPlan& plan) {
  for (Item& item : plan.items) {
    for (const int in : item.in) {
      if (!item.machine && source(plan, in).instr->what == Do::expand) source(plan, in).strips = true;
    }
  }
}

/// The first pass that may hold the item, by one of its operands.
int earliest(PassPlan& plan, const Item& item, int in) {
  const Item& made = source(plan, in);
  if (is_view(made)) return source(plan, made.in[0]).pass + 1;
  const bool together = made.machine && item.machine && made.by_element() == item.by_element() && !joins_elements(made);
  return together ? made.pass : made.pass + 1;
}

bool has_room(PassPlan& plan, const std::vector<int>& pass, const Item& item) {
  if (plan.alone(static_cast<size_t>(&pass - plan.passes.data())) || pass.size() >= most_items) return false;
  if (source(plan, pass[0]).by_element() != item.by_element()) return false;
  size_t instructions = item.code.list.size();
  for (const int other : pass) instructions += source(plan, other).code.list.size();
  if (instructions > most_instructions) return false;
  const auto joins = [&](int other) { return joins_elements(source(plan, other)); };
  return !joins_elements(item) || std::count_if(pass.begin(), pass.end(), joins) < machine_sums();
}

void put(PassPlan& plan, int number, int first) {
  Item& item = source(plan, number);
  for (size_t pass = static_cast<size_t>(std::max(first, 0)); item.machine && pass < plan.passes.size(); ++pass) {
    if (!has_room(plan, plan.passes[pass], item)) continue;
    item.pass = static_cast<int>(pass);
    plan.passes[pass].push_back(number);
    return;
  }
  item.pass = static_cast<int>(plan.passes.size());
  plan.passes.push_back({number});
}

void fill_passes(PassPlan& plan) {
  for (int number = 0; number < static_cast<int>(plan.items.size()); ++number) {
    Item& item = source(plan, number);
    const bool later = item.instr->what == Do::store || begins(*item.instr) || is_view(item);
    if (later) continue;
    int first = 0;
    for (const int in : item.in) first = std::max(first, earliest(plan, item, in));
    put(plan, number, first);
  }
}

/// The last pass that reads the memory of a load.
int last_read(PassPlan& plan, uint16_t port) {
  int last = -1;
  for (const Item& item : plan.items) {
    for (int in : item.in) {
      if (is_view(source(plan, in))) in = source(plan, in).in[0];
      const Instr& made = *source(plan, in).instr;
      if (made.what == Do::load && made.port == port && item.instr->what != Do::store) last = std::max(last, item.pass);
    }
  }
  return last;
}

/// A store is written by the pass that makes its value, unless its memory is read later; else it runs at the end.
void place_stores(const plan::Kernel& kernel, PassPlan& plan) {
  for (int number = 0; number < static_cast<int>(plan.items.size()); ++number) {
    Item& item = source(plan, number);
    if (item.instr->what != Do::store) continue;
    Item& made = source(plan, item.in[0]);
    const plan::Port& port = kernel.stores[item.instr->port];
    const bool free = !port.aliased || last_read(plan, port.alias) <= made.pass;
    const bool held = is_held(item.instr->storage, item.instr->type);
    if (made.machine && held && free && made.instr->row == item.instr->row) {
      made.ports.push_back(item.instr->port);
      made.shares = made.shares || port.aliased;
    } else {
      put(plan, number, 0);
    }
  }
}

void find_leaving(PassPlan& plan) {
  for (const Item& item : plan.items) {
    if (item.instr->what == Do::store && item.pass < 0) continue;  // written by the pass of its value
    for (int in : item.in) {
      const bool one_will_do = item.machine;
      if (is_view(item)) continue;
      if (is_view(source(plan, in))) in = source(plan, in).in[0];
      Item& made = source(plan, in);
      made.leaves = made.leaves || made.pass != item.pass || !item.machine;
      made.last = std::max(made.last, item.pass);
      if (made.instr->what != Do::expand) made.strips = made.strips || !one_will_do;
    }
  }
}

}  // namespace

/// From a plan to instructions that are ready to run.
struct FusedKernel::PassWriter {
  FusedKernel& kernel;
  PassPlan plan;
  std::vector<int> registers;  // by item, -1: none
  std::vector<int> spare;      // registers whose values nobody reads any more

  uint16_t register_of(int item) {
    int& number = registers[static_cast<size_t>(item)];
    if (number < 0 && spare.empty()) number = kernel.registers_++;
    if (number < 0) {
      number = spare.back();
      spare.pop_back();
    }
    return static_cast<uint16_t>(number);
  }

  /// After a pass. What is the same for all strips stays.
  void free_registers(int pass) {
    for (size_t item = 0; item < plan.items.size(); ++item) {
      const Instr& made = *plan.items[item].instr;
      if (plan.items[item].last != pass || registers[item] < 0 || kernel.is_once(made)) continue;
      spare.push_back(registers[item]);
      registers[item] = -1;
    }
  }

  bool reads_one_place(const Item& item) const {
    if (item.instr->what == Do::scalar) return true;
    return item.instr->what == Do::load && kernel.loads_[item.instr->port].access == Access::splat;
  }

  Packing packing_of_load(const Item& item) const {
    if (item.instr->what != Do::load) return Packing::none;
    const Load& load = kernel.loads_[item.instr->port];
    return packing_of(load.storage, load.type);
  }
  /// Whether its elements are read as they lie in memory: by loops only.
  bool is_packed(const Item& item) const { return !item.strips && packing_of_load(item) != Packing::none; }

  Pairing pairing_of(const Item& item) const {
    if (item.strips || item.instr->what != Do::load) return Pairing::none;
    return kernel.loads_[item.instr->port].pairing;
  }

  /// Whether loops read one of its elements for each run.
  bool is_per_run(const Item& item) const {
    if (item.strips || item.instr->what != Do::load) return false;
    const Load& load = kernel.loads_[item.instr->port];
    return load.repeats > 0 && (!load.converts || is_packed(item));
  }

  /// Whether loops read its runs where they stand.
  bool is_lines(const Item& item) const {
    if (item.strips || item.instr->what != Do::load) return false;
    const Load& load = kernel.loads_[item.instr->port];
    return load.lines && (!load.converts || is_packed(item));
  }

  /// The place of an operand in the code of a pass, which reads it from outside where it was made there.
  uint16_t operand(LoopText& text, PassCode& code, Pass& pass, std::map<int, uint16_t>& outside, int number, int in) {
    const Item* made = &plan.items[static_cast<size_t>(in)];
    const bool expands = is_view(*made);
    if (expands) in = made->in[0];
    made = &plan.items[static_cast<size_t>(in)];
    const Item& user = plan.items[static_cast<size_t>(number)];
    if (made->pass == user.pass && !expands) return made->place;
    const bool per_row = expands || is_per_run(*made);
    const Reads reads = reads_one_place(*made) ? Reads::one : per_row ? Reads::row : Reads::each;
    const int key = in * 2 + (reads == Reads::row ? 1 : 0);
    if (const auto known = outside.find(key); known != outside.end()) return known->second;
    const auto input = static_cast<int64_t>(text.inputs.size());
    const Packing packing = is_packed(*made) ? packing_of_load(*made) : Packing::none;
    const bool lines = is_lines(*made);
    if (lines) pass.lines.push_back({text.inputs.size(), made->instr->port});
    text.inputs.push_back({reads, packing, pairing_of(*made), lines});
    const uint16_t place =
        code.add({.primitive = Primitive::input, .type = type_of(*made->instr), .operands = {}, .immediate = input});
    pass.inputs.push_back(register_of(in));
    pass.by_rows = pass.by_rows || reads == Reads::row || lines;
    outside.emplace(key, place);
    return place;
  }

  bool adds_into(const Item& item) const {
    return item.instr->what == Do::root && kernel.roots_[item.instr->port].into;
  }

  /// The strip's results as they are so far, with its elements.
  void add_into(LoopText& text, PassCode& code, Pass& pass, int number, uint16_t element) {
    Item& item = plan.items[static_cast<size_t>(number)];
    const ScalarType type = item.instr->type;
    const auto input = static_cast<int64_t>(text.inputs.size());
    text.inputs.emplace_back();
    const uint16_t so_far = code.add({.primitive = Primitive::input, .type = type, .operands = {}, .immediate = input});
    pass.inputs.push_back(register_of(number));
    LoopOutput& output = text.outputs.emplace_back();
    const Primitive combines = machine_combines(item.instr->reducer->body, type).value();
    output.place = code.add({.primitive = combines, .type = type, .operands = {so_far, element, 0}});
    output.shares = true;
    pass.outputs.push_back({.reg = register_of(number), .root = item.instr->port});
    item.last = item.pass;
  }

  void add_outputs(LoopText& text, const PassCode& code, Pass& pass, int number) {
    const Item& item = plan.items[static_cast<size_t>(number)];
    LoopOutput output;
    output.place = item.place;
    if (joins_elements(item)) {
      output.combines = machine_combines(item.instr->reducer->body, item.instr->type);
      output.neutral = item.instr->reducer->body.neutral_bits(item.instr->type);
      (item.instr->what == Do::root ? pass.by_units : pass.by_rows) = true;
    }
    const auto add = [&](int32_t reg, int32_t store) {
      output.shares = store >= 0 && item.shares;
      text.outputs.push_back(output);
      pass.outputs.push_back({reg, store, item.instr->row, item.instr->what == Do::root});
    };
    if (item.instr->what == Do::root) return add(register_of(number), -1);
    bool leaves = item.leaves;  // and is in no memory yet where others could read it
    for (const uint16_t port : item.ports) {
      const Packing packing = packing_of_store(port, item);
      if (packing != Packing::none) continue;
      add(leaves ? register_of(number) : -1, port);
      leaves = false;
    }
    if (leaves) add(register_of(number), -1);
    for (const uint16_t port : item.ports) {
      output.packing = packing_of_store(port, item);
      if (output.packing == Packing::none) continue;
      output.place = unrounded(text, item.place, output.packing);
      output.fits = code.fits(output.place, output.packing);
      add(-1, port);
    }
  }

  Packing packing_of_store(uint16_t port, const Item& item) const {
    const int32_t value = kernel.kernel_->stores[port].value;
    return packing_of(kernel.structure_.graph.values[static_cast<size_t>(value)].dtype, type_of(*item.instr));
  }

  /// What is rounded when it is written need not be before.
  static uint16_t unrounded(const LoopText& text, uint16_t place, Packing packing) {
    const Instruction& made = text.code.list[place];
    return rounding_of(made) == packing ? made.operands[0] : place;
  }

  static void find_moves(const LoopText& text, Pass& pass) {
    const auto bytes = [](Packing packing, ScalarType type) {
      return static_cast<uint8_t>(packing == Packing::none ? bytes_of(type) : bytes_of(packing));
    };
    for (const LoopOutput& output : text.outputs) {
      const uint8_t size = bytes(output.packing, text.code.list[output.place].type);
      pass.moves.push_back(output.combines ? Pass::Move{0, size} : Pass::Move{size, 0});
    }
    pass.moves.resize(text.outputs.size() + text.inputs.size());
    for (const Instruction& made : text.code.list) {
      if (made.primitive != Primitive::input) continue;
      const LoopInput& input = text.inputs[static_cast<size_t>(made.immediate)];
      Pass::Move& move = pass.moves[text.outputs.size() + static_cast<size_t>(made.immediate)];
      if (input.reads == Reads::each && !input.gaps) move.element = bytes(input.packing, made.type);
      if (input.reads == Reads::row) move.run = bytes(input.packing, made.type);
    }
  }

  /// Whether reading it again finds nothing in the caches anyway.
  bool is_large(const Pass::Output& output, uint8_t element) const {
    static const int64_t most = std::max<int64_t>(platform::last_cache_bytes(), most_cached);
    return output.store >= 0 && !output.row && kernel.total_ * element > most;
  }

  /// Large arrays are written past the caches: nothing is read for that, and what is in the caches stays there. In
  /// place the lines are there already, and beside much arithmetic nothing is gained.
  void stream_outputs(LoopText& text, Pass& pass) const {
    if (text.code.list.size() > most_streamed_instructions) return;
    for (size_t i = 0; i < text.outputs.size(); ++i) {
      LoopOutput& output = text.outputs[i];
      const bool whole = !output.combines && !output.shares && output.packing == Packing::none &&
                         text.code.list[output.place].type != ScalarType::boolean;
      if (!whole || !is_large(pass.outputs[i], pass.moves[i].element)) continue;
      output.streams = true;
      pass.streams.push_back(i);
    }
    if (!pass.streams.empty()) pass.streaming = machine_loop(text);
  }

  bool write_pass(const std::vector<int>& numbers) {
    LoopText text;
    Pass pass;
    pass.row = !plan.items[static_cast<size_t>(numbers[0])].by_element();
    PassCode code(text);
    std::map<int, uint16_t> outside;  // places of what other passes made
    for (const int number : numbers) {
      Item& item = plan.items[static_cast<size_t>(number)];
      std::vector<uint16_t> operands;
      for (const int in : item.in) operands.push_back(operand(text, code, pass, outside, number, in));
      if (adds_into(item)) {
        add_into(text, code, pass, number, operands[0]);
        continue;
      }
      item.place = joins_elements(item) ? operands[0] : code.add(item.code, operands);
      add_outputs(text, code, pass, number);
    }
    pass.loop = machine_loop(text);
    if (!pass.loop) return false;
    find_moves(text, pass);
    stream_outputs(text, pass);
    const size_t arguments = pass.outputs.size() + pass.inputs.size() + pass.lines.size();
    kernel.most_arguments_ = std::max(kernel.most_arguments_, arguments);
    kernel.instrs_.push_back({});
    kernel.instrs_.back().pass = static_cast<int32_t>(kernel.passes_.size());
    kernel.passes_.push_back(std::move(pass));
    for (const int number : numbers) {
      const Item& item = source(plan, number);
      if (item.instr->what == Do::root && !adds_into(item)) write_root(number);
    }
    return true;
  }

  /// What the pass before made of each unit is joined to the results of the parts.
  void write_root(int number) {
    Ready ready = kernel.ready(*source(plan, number).instr);
    ready.in[0] = register_of(number);
    ready.units = true;
    kernel.instrs_.push_back(ready);
    source(plan, number).last = source(plan, number).pass;
  }

  /// Sums of elements that lie together are made where these are, unit by unit; those of columns and planes too.
  void find_roots() {
    if (kernel.kernel_->whole_rows || kernel.only_adds_columns()) return;
    for (Item& item : plan.items) {
      if (item.instr->what != Do::root) continue;
      Root& root = kernel.roots_[item.instr->port];
      if (kernel.column_ > 0 || (root.planes && kernel.planes_.strip > 0)) {
        root.into = item.machine = machine_combines(item.instr->reducer->body, item.instr->type).has_value();
        continue;
      }
      if (!takes_units(root.units())) continue;
      const Item& made = source(plan, item.in[0]);
      const bool converts = made.instr->what == Do::load && packing_of_load(made) != Packing::none;
      item.machine = (made.machine || converts) && machine_combines(item.instr->reducer->body, item.instr->type);
      if (item.machine) kernel.units_ = root.units();
    }
  }

  /// Whether passes may go by them: no unit is short, or part of several runs, and those of all roots are the same.
  bool takes_units(const Root::Units& units) const {
    constexpr int64_t least = 64;
    if (units.unit < least || (kernel.units_.unit > 0 && kernel.units_ != units)) return false;
    const int64_t run = kernel.run_;
    return run == 0 || run % units.stretch == 0 || (units.stretch % run == 0 && run % units.unit == 0);
  }

  /// An instruction that runs alone.
  void write_alone(int number) {
    const Item& item = plan.items[static_cast<size_t>(number)];
    Ready ready = kernel.ready(*item.instr);
    for (size_t i = 0; i < item.in.size(); ++i) ready.in[i] = register_of(item.in[i]);
    if (item.instr->what != Do::store && item.instr->what != Do::root) ready.dst = register_of(number);
    ready.one_will_do = !item.strips && reads_one_place(item);
    ready.packed = is_packed(item);
    ready.lines = is_lines(item);
    ready.paired = pairing_of(item) != Pairing::none;
    ready.per_run = is_per_run(item);
    kernel.instrs_.push_back(ready);
  }

  bool write() {
    registers.assign(plan.items.size(), -1);
    for (int number = 0; number < static_cast<int>(plan.items.size()); ++number) {
      if (begins(*plan.items[static_cast<size_t>(number)].instr)) write_alone(number);
    }
    for (size_t pass = 0; pass < plan.passes.size(); ++pass) {
      if (plan.alone(pass)) write_alone(plan.passes[pass][0]);
      else if (!write_pass(plan.passes[pass])) return false;
      free_registers(static_cast<int>(pass));
    }
    return true;
  }
};

bool FusedKernel::prepare_passes() {
  if (!machine_code_works()) return false;
  PassWriter writer{*this, {}, {}, {}};
  name_operands(*kernel_, writer.plan);
  writer.find_roots();
  find_written_rows(writer.plan);
  fill_passes(writer.plan);
  place_stores(*kernel_, writer.plan);
  find_leaving(writer.plan);
  registers_ = 0;
  if (writer.write() && !passes_.empty()) return true;
  instrs_.clear();
  passes_.clear();
  most_arguments_ = 0;
  return false;
}

}  // namespace rosin::cpu
