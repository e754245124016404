// Kernel's constructor: checks every instruction and turns it into steps.
#include "interpret.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "types.hpp"

namespace rosin::reference {

class Translator {
 public:
  Translator(const rosin_kernel_code& code, Kernel& kernel) : code_(code), kernel_(kernel) {}
  void translate();

 private:
  /// A LOOP or IF that is still open.
  struct Scope {
    uint32_t place = 0;  // of its instruction; values after it are seen inside only
    size_t step = 0;     // its step; after an ELSE, the step of that
    bool loop = false;
    bool after_else = false;
  };

  const rosin_instruction& at(uint32_t place) const { return code_.instructions[place]; }
  [[noreturn]] void refuse(const std::string& what) const;
  void need(bool holds, const char* what) const {
    if (!holds) refuse(what);
  }
  void take_arguments();
  void take_shared();
  size_t reserve(int type);
  uint32_t operand(int number) const;
  int type_of(int operand_number) const { return at(operand(operand_number)).type; }
  size_t register_of(int operand_number) const { return registers_[operand(operand_number)]; }
  void value(Run run, int operands, std::optional<int64_t> immediate = {});
  void action(Run run, int operands, std::optional<int64_t> immediate = {});
  Step step_of(Run run, int operands) const;
  void instruction();
  void compute();
  void touch_memory();
  void touch_vector();
  void touch_shared_vector();
  void vector_value(Step step, int lanes);
  void take_lane();
  void join();
  void mark_read_only();
  void exchange();
  void multiply();
  void choose_buffer();
  void arrive_at_counter();
  size_t buffer_number(int64_t named) const;
  int element_of(size_t buffer) const;
  void mark_stored(size_t buffer);
  int vector_of(int operand_number) const;
  void open_loop();
  void open_if();
  void turn_else();
  void close(bool loop);
  void hide(uint32_t from);

  const rosin_kernel_code& code_;
  Kernel& kernel_;
  uint32_t place_ = 0;
  std::vector<size_t> registers_;  // of each place: the offset of its value
  std::vector<bool> visible_;      // of each place: it has a value that may be used here
  std::vector<int> lanes_;         // of each place: more than 1 where it is a vector
  std::vector<Scope> scopes_;
  std::vector<std::pair<size_t, size_t>> choices_;  // number among the chosen, buffer
};

Kernel::Kernel(const rosin_kernel_code& code) {
  if (!code.name || !*code.name) throw InvalidCode("a kernel without a name");
  name_ = code.name;
  Translator(code, *this).translate();
}

void Translator::refuse(const std::string& what) const {
  std::string text = "kernel " + kernel_.name_ + ": ";
  if (place_ < code_.instruction_count) {
    text += "instruction " + std::to_string(place_) + " (operation " + std::to_string(at(place_).operation) + "): ";
  }
  throw InvalidCode(text + what);
}

void Translator::translate() {
  place_ = code_.instruction_count;
  take_arguments();
  take_shared();
  registers_.resize(code_.instruction_count);
  visible_.resize(code_.instruction_count);
  lanes_.resize(code_.instruction_count, 1);
  for (place_ = 0; place_ < code_.instruction_count; ++place_) instruction();
  need(scopes_.empty(), "a LOOP or an IF has no end");
  for (const auto& [number, buffer] : choices_) {
    if (kernel_.stored_[kernel_.buffer_count_ + number]) mark_stored(buffer);
  }
  kernel_.stored_.resize(kernel_.buffer_count_);
}

void Translator::take_arguments() {
  need(code_.group >= 1 && code_.group <= largest_group, "groups have 1 to 256 items");
  kernel_.items_ = code_.group;
  kernel_.buffer_count_ = code_.buffer_count;
  kernel_.read_only_.resize(code_.buffer_count);
  kernel_.stored_.resize(code_.buffer_count);
  for (uint32_t i = 0; i < code_.buffer_count; ++i) {
    need(code_.buffers[i] >= ROSIN_BOOL && code_.buffers[i] <= ROSIN_COMPLEX64, "a buffer of no rosin_type");
    kernel_.uses_float64_ |= code_.buffers[i] == ROSIN_FLOAT64;
  }
  for (uint32_t i = 0; i < code_.parameter_count; ++i) {
    const int32_t type = code_.parameters[i];
    need(type > ROSIN_SCALAR_BOOL && type <= ROSIN_SCALAR_FLOAT64, "a parameter of no number type");
    kernel_.uses_float64_ |= type == ROSIN_SCALAR_FLOAT64;
    kernel_.parameters_.push_back(type);
  }
}

void Translator::take_shared() {
  for (uint32_t i = 0; i < code_.shared_count; ++i) {
    const rosin_shared_array& array = code_.shared[i];
    const size_t bytes = scalar_bytes(array.type);
    need(bytes != 0 && array.count > 0 && array.count <= largest_shared, "a shared array of no type or no size");
    kernel_.shared_size_ = (kernel_.shared_size_ + bytes - 1) / bytes * bytes;
    kernel_.shared_.push_back({array.type, array.count, kernel_.shared_size_, kernel_.shared_elements_});
    kernel_.shared_size_ += bytes * static_cast<size_t>(array.count);
    kernel_.shared_elements_ += static_cast<size_t>(array.count);
    need(kernel_.shared_size_ <= largest_shared, "a group has 65536 bytes of shared memory at most");
  }
}

/// Room for one scalar of each item.
size_t Translator::reserve(int type) {
  const size_t at = kernel_.register_bytes_;
  kernel_.register_bytes_ += Frame::value_bytes(scalar_bytes(type), kernel_.items_);
  kernel_.uses_float64_ |= type == ROSIN_SCALAR_FLOAT64;
  return at;
}

uint32_t Translator::operand(int number) const {
  const uint32_t place = at(place_).operands[number];
  if (place >= place_ || !visible_[place]) {
    refuse("operand " + std::to_string(number) + " is no value that is seen here: " + std::to_string(place));
  }
  const int operation = at(place_).operation;
  const bool takes_vector =
      operation == ROSIN_JOIN || (operation == ROSIN_LANE && number == 0) ||
      ((operation == ROSIN_STORE_VECTOR || operation == ROSIN_SHARED_STORE_VECTOR) && number == 1) ||
      operation == ROSIN_MULTIPLY_MATRICES;
  need(takes_vector || lanes_[place] == 1, "a vector where a value belongs");
  return place;
}

Step Translator::step_of(Run run, int operands) const {
  need(run != nullptr, "no meaning for these types");
  Step step;
  step.run = run;
  step.place = place_;
  step.immediate = at(place_).immediate;
  for (int i = 0; i < operands; ++i) step.operands[i] = register_of(i);
  return step;
}

/// A step with a value of the instruction's type.
void Translator::value(Run run, int operands, std::optional<int64_t> immediate) {
  Step step = step_of(run, operands);
  step.immediate = immediate.value_or(step.immediate);
  const int operation = at(place_).operation;
  step.out = registers_[place_] = reserve(at(place_).type);
  visible_[place_] = true;
  const bool fixed = operation == ROSIN_LITERAL || operation == ROSIN_PARAMETER || operation == ROSIN_ITEM;
  (fixed ? kernel_.once_ : kernel_.steps_).push_back(step);
}

void Translator::action(Run run, int operands, std::optional<int64_t> immediate) {
  Step step = step_of(run, operands);
  step.immediate = immediate.value_or(step.immediate);
  kernel_.steps_.push_back(step);
}

void Translator::instruction() {
  const rosin_instruction& in = at(place_);
  need(in.type <= ROSIN_SCALAR_FLOAT64, "no scalar type");
  switch (in.operation) {
    case ROSIN_LITERAL:
    case ROSIN_ITEM: return value(constant(in.operation, in.type), 0);
    case ROSIN_PARAMETER:
      need(in.immediate >= 0 && in.immediate < static_cast<int64_t>(kernel_.parameters_.size()), "no such parameter");
      need(kernel_.parameters_[static_cast<size_t>(in.immediate)] == in.type, "not the parameter's type");
      return value(constant(in.operation, in.type), 0);
    case ROSIN_GROUP:
      need(in.immediate >= 0 && in.immediate <= 2, "groups have dims 0 to 2");
      return value(constant(in.operation, in.type), 0);
    case ROSIN_ROUND:
      need(scalar_of_element(in.immediate) == in.type && type_of(0) == in.type, "rounds to elements of another type");
      return value(round(static_cast<int>(in.immediate)), 1);
    case ROSIN_LOAD:
    case ROSIN_STORE:
    case ROSIN_SHARED_LOAD:
    case ROSIN_SHARED_STORE: return touch_memory();
    case ROSIN_LOAD_VECTOR:
    case ROSIN_STORE_VECTOR: return touch_vector();
    case ROSIN_SHARED_LOAD_VECTOR:
    case ROSIN_SHARED_STORE_VECTOR: return touch_shared_vector();
    case ROSIN_LANE: return take_lane();
    case ROSIN_JOIN: return join();
    case ROSIN_READ_ONLY: return mark_read_only();
    case ROSIN_SHUFFLE: return exchange();
    case ROSIN_PACK:
      for (int i = 0; i < 2; ++i) need(type_of(i) == ROSIN_SCALAR_FLOAT32, "packs other types");
      need(in.type == ROSIN_SCALAR_UINT32, "packs into another type");
      return value(pack(static_cast<int>(in.immediate)), 2);
    case ROSIN_MULTIPLY_MATRICES: return multiply();
    case ROSIN_CHOOSE: return choose_buffer();
    case ROSIN_ARRIVE: return arrive_at_counter();
    case ROSIN_BARRIER: return action(&barrier, 0);
    case ROSIN_VARIABLE: need(type_of(0) == in.type, "starts as another type"); return value(copy(in.type), 1);
    case ROSIN_ASSIGN:
      need(at(operand(0)).operation == ROSIN_VARIABLE, "operand 0 is no VARIABLE");
      need(type_of(0) == type_of(1), "assigns another type");
      return action(assign(type_of(0)), 2);
    case ROSIN_LOOP: return open_loop();
    case ROSIN_END_LOOP: return close(true);
    case ROSIN_IF: return open_if();
    case ROSIN_ELSE: return turn_else();
    case ROSIN_END_IF: return close(false);
    default: return compute();
  }
}

void Translator::compute() {
  const int operation = at(place_).operation, type = at(place_).type;
  if (operation == ROSIN_CONVERT || operation == ROSIN_REINTERPRET) {
    return value(primitive(operation, type, type_of(0)), 1);
  }
  if (operation == ROSIN_SELECT) {
    need(type_of(0) == ROSIN_SCALAR_BOOL && type_of(1) == type && type_of(2) == type, "selects other types");
    return value(primitive(operation, type, type), 3);
  }
  const bool one = operation == ROSIN_NEGATE || operation == ROSIN_ABSOLUTE || operation == ROSIN_LOGICAL_NOT ||
                   (operation >= ROSIN_FLOOR && operation <= ROSIN_SQRT) ||
                   (operation >= ROSIN_EXP2_APPROXIMATE && operation <= ROSIN_TANH_APPROXIMATE);
  const int operands = one ? 1 : operation == ROSIN_FMA ? 3 : 2;
  const bool compares = operation >= ROSIN_LESS && operation <= ROSIN_NOT_EQUAL;
  const int in = type_of(0);
  for (int i = 1; i < operands; ++i) need(type_of(i) == in, "operands of different types");
  need(type == (compares ? ROSIN_SCALAR_BOOL : in), "a result of another type");
  value(primitive(operation, type, in), operands);
}

void Translator::touch_memory() {
  const rosin_instruction& in = at(place_);
  const bool shared = in.operation == ROSIN_SHARED_LOAD || in.operation == ROSIN_SHARED_STORE;
  const size_t number = shared ? static_cast<size_t>(in.immediate) : buffer_number(in.immediate);
  need(!shared || (in.immediate >= 0 && number < kernel_.shared_.size()), "no such shared array");
  const int element = shared ? kernel_.shared_[number].type : element_of(number);
  const int scalar = shared ? element : scalar_of_element(element);
  const int index = type_of(0);
  switch (in.operation) {
    case ROSIN_LOAD:
      need(in.type == scalar, "not the scalar type of the elements");
      return value(load(element, index), 1, static_cast<int64_t>(number));
    case ROSIN_SHARED_LOAD:
      need(in.type == scalar, "not the array's type");
      return value(shared_load(element, index), 1);
    case ROSIN_STORE:
      need(type_of(1) == scalar, "stores another type than the elements'");
      mark_stored(number);
      return action(store(element, index), 2, static_cast<int64_t>(number));
    default:
      need(type_of(1) == scalar, "stores another type than the array's");
      return action(shared_store(element, index), 2);
  }
}

/// Lanes of the vector that an operand is.
int Translator::vector_of(int operand_number) const {
  const int lanes = lanes_[operand(operand_number)];
  need(lanes > 1, "a value where a vector belongs");
  return lanes;
}

void Translator::touch_vector() {
  const rosin_instruction& in = at(place_);
  const int64_t lanes = in.immediate >> 32;
  const size_t number = buffer_number(in.immediate & INT32_MAX);
  need(lanes == 2 || lanes == 4 || lanes == 8 || lanes == 16, "a vector has 2, 4, 8 or 16 lanes");
  const int element = element_of(number);
  const auto bytes = with_element(element, size_t{0}, []<class E>(E) { return sizeof(typename E::Stored); });
  const auto whole = bytes * static_cast<size_t>(lanes);
  need(bytes > 0 && bytes <= 4 && whole >= 4 && whole <= vector_bytes, "no such vector in memory");
  const bool load = in.operation == ROSIN_LOAD_VECTOR;
  need(in.type == scalar_of_element(element), "not the scalar type of the elements");
  Step step = step_of(load ? load_vector(element, type_of(0)) : store_vector(element, type_of(0)), load ? 1 : 2);
  step.immediate = static_cast<int64_t>(number);
  step.lanes = static_cast<int>(lanes);
  if (load) return vector_value(step, step.lanes);
  need(vector_of(1) == step.lanes && type_of(1) == in.type, "stores another vector");
  mark_stored(number);
  kernel_.steps_.push_back(step);
}

/// A step whose value is a vector.
void Translator::vector_value(Step step, int lanes) {
  step.out = registers_[place_] = reserve(at(place_).type);
  for (int i = 1; i < lanes; ++i) reserve(at(place_).type);
  lanes_[place_] = lanes;
  visible_[place_] = true;
  kernel_.steps_.push_back(step);
}

void Translator::touch_shared_vector() {
  const rosin_instruction& in = at(place_);
  const int64_t array = in.immediate & INT32_MAX, lanes = in.immediate >> 32;
  need(array < static_cast<int64_t>(kernel_.shared_.size()), "no such shared array");
  need(lanes == 2 || lanes == 4, "a vector in shared memory has 2 or 4 lanes");
  need(in.type == kernel_.shared_[static_cast<size_t>(array)].type, "not the array's type");
  const bool load = in.operation == ROSIN_SHARED_LOAD_VECTOR;
  Step step =
      step_of(load ? shared_load_vector(in.type, type_of(0)) : shared_store_vector(in.type, type_of(0)), load ? 1 : 2);
  step.immediate = array;
  step.lanes = static_cast<int>(lanes);
  if (load) return vector_value(step, step.lanes);
  need(vector_of(1) == step.lanes && type_of(1) == in.type, "stores another vector");
  kernel_.steps_.push_back(step);
}

/// No step: the value stands where the lane of the vector does.
void Translator::take_lane() {
  const rosin_instruction& in = at(place_);
  need(in.immediate >= 0 && in.immediate < vector_of(0), "no such lane");
  need(type_of(0) == in.type, "a lane of another type");
  const size_t apart = Frame::value_bytes(scalar_bytes(in.type), kernel_.items_);
  registers_[place_] = register_of(0) + static_cast<size_t>(in.immediate) * apart;
  visible_[place_] = true;
}

void Translator::join() {
  const rosin_instruction& in = at(place_);
  need(type_of(0) == in.type && type_of(1) == in.type, "joins other types");
  const int half = lanes_[operand(0)];
  need(lanes_[operand(1)] == half && half <= 8, "joins vectors of unequal lengths, or too long ones");
  const size_t apart = Frame::value_bytes(scalar_bytes(in.type), kernel_.items_);
  for (int i = 0; i < 2 * half; ++i) {
    Step lane = step_of(copy(in.type), 0);
    lane.operands[0] = register_of(i / half) + static_cast<size_t>(i % half) * apart;
    lane.out = reserve(in.type);
    if (i == 0) registers_[place_] = lane.out;
    kernel_.steps_.push_back(lane);
  }
  lanes_[place_] = 2 * half;
  visible_[place_] = true;
}

/// Those that are chosen follow the arguments.
size_t Translator::buffer_number(int64_t named) const {
  const bool chosen = named >= ROSIN_CHOSEN_BUFFER;
  const int64_t number = chosen ? named - ROSIN_CHOSEN_BUFFER : named;
  need(number >= 0 && number < static_cast<int64_t>(chosen ? kernel_.chosen_.size() : kernel_.buffer_count_),
       "no such buffer");
  return static_cast<size_t>(number) + (chosen ? kernel_.buffer_count_ : 0);
}

int Translator::element_of(size_t buffer) const {
  return buffer < kernel_.buffer_count_ ? code_.buffers[buffer] : kernel_.chosen_[buffer - kernel_.buffer_count_];
}

void Translator::mark_stored(size_t buffer) {
  need(buffer >= kernel_.buffer_count_ || !kernel_.read_only_[buffer], "stores to a buffer that is read-only");
  kernel_.stored_[buffer] = 1;
}

void Translator::choose_buffer() {
  const int64_t buffer = at(place_).immediate & INT32_MAX;
  const auto number = static_cast<size_t>(at(place_).immediate >> 32);
  need(buffer < static_cast<int64_t>(kernel_.buffer_count_) && number <= kernel_.chosen_.size(), "no such buffer");
  const int32_t type = code_.buffers[buffer];
  if (number == kernel_.chosen_.size()) {
    need(scopes_.empty(), "the first choice stands in a LOOP or an IF");
    kernel_.chosen_.push_back(type);
    kernel_.stored_.push_back(0);
  }
  need(kernel_.chosen_[number] == type, "chooses a buffer of another type");
  choices_.emplace_back(number, static_cast<size_t>(buffer));
  action(&choose, 0, static_cast<int64_t>(kernel_.buffer_count_ + number) << 32 | buffer);
}

void Translator::arrive_at_counter() {
  const size_t buffer = buffer_number(at(place_).immediate);
  need(element_of(buffer) == ROSIN_INT32, "counts in elements of another type");
  need(at(place_).type == ROSIN_SCALAR_BOOL && type_of(1) == ROSIN_SCALAR_INT32, "arrives with other types");
  mark_stored(buffer);
  value(arrive(type_of(0)), 2, static_cast<int64_t>(buffer));
}

void Translator::mark_read_only() {
  const int64_t buffer = at(place_).immediate;
  need(buffer >= 0 && buffer < static_cast<int64_t>(kernel_.buffer_count_), "no such buffer");
  need(!kernel_.stored_[static_cast<size_t>(buffer)], "a buffer that is stored to is not read-only");
  kernel_.read_only_[static_cast<size_t>(buffer)] = 1;
}

void Translator::exchange() {
  need(kernel_.items_ % warp == 0, "a group is not made of whole warps");
  need(type_of(0) == at(place_).type && type_of(1) == ROSIN_SCALAR_INT32, "exchanges other types");
  value(shuffle(at(place_).type), 2);
}

void Translator::multiply() {
  const int lanes[] = {vector_of(0), vector_of(1), vector_of(2)};
  const int items = lanes[0] == 2 ? 64 : warp;
  need(kernel_.items_ % items == 0, "a group is not made of whole warps");
  need(type_of(0) == ROSIN_SCALAR_UINT32 && type_of(1) == ROSIN_SCALAR_UINT32, "multiplies what are no words");
  need(type_of(2) == ROSIN_SCALAR_FLOAT32 && at(place_).type == ROSIN_SCALAR_FLOAT32, "adds other types");
  const Run run = multiply_matrices(static_cast<int>(at(place_).immediate), lanes);
  need(run != nullptr, "multiplies matrices of other sizes or types");
  vector_value(step_of(run, 3), lanes[2]);
}

void Translator::open_loop() {
  const int type = at(place_).type;
  for (int i = 0; i < 3; ++i) need(type_of(i) == type, "bounds of another type than the counter's");
  Step loop = step_of(begin_loop(type), 3);
  loop.out = registers_[place_] = reserve(type);
  // The end and the step are read once: they may be variables that the body assigns.
  for (int i = 1; i < 3; ++i) {
    Step kept = step_of(copy(type), 0);
    kept.operands[0] = register_of(i);
    kept.out = loop.operands[i] = reserve(type);
    kernel_.steps_.push_back(kept);
  }
  scopes_.push_back({place_, kernel_.steps_.size(), true, false});
  kernel_.depth_ = std::max(kernel_.depth_, static_cast<int>(scopes_.size()));
  kernel_.steps_.push_back(loop);
  visible_[place_] = true;
}

void Translator::open_if() {
  need(type_of(0) == ROSIN_SCALAR_BOOL, "the condition is no Bool");
  scopes_.push_back({place_, kernel_.steps_.size(), false, false});
  kernel_.depth_ = std::max(kernel_.depth_, static_cast<int>(scopes_.size()));
  action(&begin_if, 1);
}

void Translator::turn_else() {
  need(!scopes_.empty() && !scopes_.back().loop && !scopes_.back().after_else, "no IF is open here");
  hide(scopes_.back().place);
  kernel_.steps_[scopes_.back().step].jump = kernel_.steps_.size();
  scopes_.back().step = kernel_.steps_.size();
  scopes_.back().after_else = true;
  action(&begin_else, 0);
}

void Translator::close(bool loop) {
  need(!scopes_.empty() && scopes_.back().loop == loop, "ends what is not open");
  const Scope scope = scopes_.back();
  scopes_.pop_back();
  hide(scope.place);
  if (!loop) {
    kernel_.steps_[scope.step].jump = kernel_.steps_.size();
    return action(&end_if, 0);
  }
  Step end = step_of(end_loop(at(scope.place).type), 0);
  Step& begin = kernel_.steps_[scope.step];
  for (int i = 1; i < 3; ++i) end.operands[i] = begin.operands[i];
  end.out = begin.out;
  end.jump = scope.step + 1;
  begin.jump = kernel_.steps_.size() + 1;
  kernel_.steps_.push_back(end);
}

void Translator::hide(uint32_t from) {
  for (uint32_t place = from; place < place_; ++place) visible_[place] = false;
}

}  // namespace rosin::reference
