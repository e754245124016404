// Writing kernels; see code.hpp.
#include "kernels/code.hpp"

#include <algorithm>
#include <bit>

#include "base/hash.hpp"

namespace rosin::kernels {

uint64_t KernelCode::hash() const {
  uint64_t hash = mix(static_cast<uint64_t>(group) | static_cast<uint64_t>(beside) << 32, instructions.size());
  for (const DType type : buffers) hash = mix(hash, static_cast<uint64_t>(type));
  for (const ScalarType type : parameters) hash = mix(hash, static_cast<uint64_t>(type));
  for (const SharedArray& array : shared) {
    hash = mix(hash, static_cast<uint64_t>(array.type) | static_cast<uint64_t>(array.count) << 8);
  }
  for (const KernelInstruction& instruction : instructions) {
    hash = mix(hash, uint64_t{instruction.operation} | static_cast<uint64_t>(instruction.type) << 16 |
                         uint64_t{instruction.operands[0]} << 32);
    hash = mix(hash, uint64_t{instruction.operands[1]} | uint64_t{instruction.operands[2]} << 32);
    hash = mix(hash, static_cast<uint64_t>(instruction.immediate));
  }
  return hash;
}

namespace {

/// How many of an instruction's operands mean something.
int operand_count(const KernelInstruction& instruction) {
  if (instruction.operation < primitive_count) return info(static_cast<Primitive>(instruction.operation)).arity;
  switch (static_cast<KernelOperation>(instruction.operation)) {
    case KernelOperation::multiply_matrices:
    case KernelOperation::loop: return 3;
    case KernelOperation::store:
    case KernelOperation::shared_store:
    case KernelOperation::multiply_high:
    case KernelOperation::join:
    case KernelOperation::store_vector:
    case KernelOperation::shuffle:
    case KernelOperation::pack:
    case KernelOperation::shared_store_vector:
    case KernelOperation::arrive:
    case KernelOperation::assign: return 2;
    case KernelOperation::round:
    case KernelOperation::load:
    case KernelOperation::shared_load:
    case KernelOperation::variable:
    case KernelOperation::exp2_approximate:
    case KernelOperation::reciprocal_approximate:
    case KernelOperation::tanh_approximate:
    case KernelOperation::load_vector:
    case KernelOperation::shared_load_vector:
    case KernelOperation::lane:
    case KernelOperation::begin_if: return 1;
    case KernelOperation::parameter:
    case KernelOperation::group:
    case KernelOperation::item:
    case KernelOperation::barrier:
    case KernelOperation::read_only:
    case KernelOperation::choose:
    case KernelOperation::end_loop:
    case KernelOperation::begin_else:
    case KernelOperation::end_if: break;
  }
  return 0;
}

/// Whether it only computes a value.
bool is_pure(const KernelInstruction& instruction) {
  if (instruction.operation < primitive_count) return true;
  switch (static_cast<KernelOperation>(instruction.operation)) {
    case KernelOperation::round:
    case KernelOperation::parameter:
    case KernelOperation::group:
    case KernelOperation::item:
    case KernelOperation::load:
    case KernelOperation::multiply_high:
    case KernelOperation::exp2_approximate:
    case KernelOperation::reciprocal_approximate:
    case KernelOperation::tanh_approximate:
    case KernelOperation::load_vector:
    case KernelOperation::lane:
    case KernelOperation::join:
    case KernelOperation::pack:
    case KernelOperation::shared_load_vector:
    case KernelOperation::shared_load: return true;
    case KernelOperation::store:
    case KernelOperation::shared_store:
    case KernelOperation::store_vector:
    case KernelOperation::shared_store_vector:
    case KernelOperation::barrier:
    case KernelOperation::read_only:
    case KernelOperation::choose:
    case KernelOperation::arrive:
    case KernelOperation::shuffle:  // all items of a warp reach these
    case KernelOperation::multiply_matrices:
    case KernelOperation::variable:
    case KernelOperation::assign:
    case KernelOperation::loop:
    case KernelOperation::end_loop:
    case KernelOperation::begin_if:
    case KernelOperation::begin_else:
    case KernelOperation::end_if: break;
  }
  return false;
}

/// Drops instructions whose values nobody needs.
void drop_unused(std::vector<KernelInstruction>& list) {
  std::vector<char> needed(list.size(), 0);
  for (size_t i = list.size(); i-- > 0;) {
    if (is_pure(list[i]) && !needed[i]) continue;
    needed[i] = 1;
    for (int k = 0; k < operand_count(list[i]); ++k) needed[list[i].operands[k]] = 1;
  }
  std::vector<uint32_t> place(list.size(), 0);
  size_t kept = 0;
  for (size_t i = 0; i < list.size(); ++i) {
    if (!needed[i]) continue;
    KernelInstruction instruction = list[i];
    for (int k = 0; k < operand_count(instruction); ++k) instruction.operands[k] = place[instruction.operands[k]];
    place[i] = static_cast<uint32_t>(kept);
    list[kept++] = instruction;
  }
  list.resize(kept);
}

uint16_t operation_of(const Instruction& instruction) {
  switch (instruction.quick) {
    case Quick::none: break;
    case Quick::exp2: return static_cast<uint16_t>(KernelOperation::exp2_approximate);
    case Quick::reciprocal: return static_cast<uint16_t>(KernelOperation::reciprocal_approximate);
    case Quick::tanh: return static_cast<uint16_t>(KernelOperation::tanh_approximate);
  }
  return static_cast<uint16_t>(instruction.primitive);
}

}  // namespace

bool is_store(const KernelInstruction& instruction) {
  return instruction.is(KernelOperation::store) || instruction.is(KernelOperation::store_vector);
}

bool is_write(const KernelInstruction& instruction) {
  return is_store(instruction) || instruction.is(KernelOperation::arrive);
}

int array_of(const KernelInstruction& instruction) { return static_cast<int>(instruction.immediate & INT32_MAX); }

int buffer_of(const KernelInstruction& instruction) {
  const bool touches = is_write(instruction) || instruction.is(KernelOperation::load) ||
                       instruction.is(KernelOperation::load_vector) || instruction.is(KernelOperation::read_only);
  return touches ? array_of(instruction) : -1;
}

int lanes_of(const KernelInstruction& instruction) {
  return std::max(1, static_cast<int>(instruction.immediate >> lanes_shift));
}

std::vector<char> stored_buffers(const KernelCode& code) {
  std::vector<char> stored(code.buffers.size(), 0);
  std::vector<char> chosen;  // of those that are chosen
  for (const KernelInstruction& instruction : code.instructions) {
    if (!is_write(instruction)) continue;
    const int buffer = buffer_of(instruction);
    const auto at = static_cast<size_t>(buffer % chosen_buffer);
    std::vector<char>& list = buffer < chosen_buffer ? stored : chosen;
    list.resize(std::max(list.size(), at + 1));
    list[at] = 1;
  }
  for (const KernelInstruction& instruction : code.instructions) {
    if (!instruction.is(KernelOperation::choose)) continue;
    const auto number = static_cast<size_t>(instruction.immediate >> lanes_shift);
    if (number < chosen.size() && chosen[number]) stored[static_cast<size_t>(array_of(instruction))] = 1;
  }
  return stored;
}

int64_t KernelCode::shared_bytes() const {
  int64_t bytes = 0;
  for (const SharedArray& array : shared) {
    const int64_t element = array.type == ScalarType::boolean ? 1 : bytes_of(array.type);
    bytes = (bytes + 15) / 16 * 16 + element * array.count;
  }
  return bytes;
}

void name_by_hash(KernelCode& code) {
  char digits[17];
  uint64_t hash = code.hash();
  for (int i = 15; i >= 0; --i, hash >>= 4) digits[i] = "0123456789abcdef"[hash & 15];
  digits[16] = 0;
  code.name.append("_").append(digits);
}

KernelWriter::KernelWriter(std::string name, int group, ScalarType index) : index_type_(index) {
  launch_.code.name = std::move(name);
  launch_.code.group = group;
}

Term KernelWriter::append(uint16_t operation, ScalarType type, std::initializer_list<uint32_t> operands,
                          int64_t immediate) {
  const bool is_sum =
      operation == static_cast<uint16_t>(Primitive::add) || operation == static_cast<uint16_t>(Primitive::subtract);
  if (allowed_.contraction && is_sum && operands.size() >= 2) {
    const uint32_t x = operands.begin()[0], y = operands.begin()[1];
    if (is_product(x) || is_product(y)) return fused(operation, type, x, y);
  }
  launch_.code.instructions.push_back(make_instruction(operation, type, operands, immediate));
  contracted_.push_back(allowed_.contraction);
  return {this, static_cast<uint32_t>(launch_.code.instructions.size() - 1), type};
}

/// Whether the value is a product of floats that need not be rounded. (A variable may have changed since.)
bool KernelWriter::is_product(uint32_t place) const {
  const std::vector<KernelInstruction>& list = launch_.code.instructions;
  const KernelInstruction& product = list[place];
  if (!contracted_[place] || !product.is(Primitive::multiply)) return false;
  if (product.type != ScalarType::float32 && product.type != ScalarType::float64) return false;
  const auto changes = [&](uint32_t operand) { return list[operand].is(KernelOperation::variable); };
  return !changes(product.operands[0]) && !changes(product.operands[1]);
}

/// x + y or x - y where one of them is a product; where nothing else needs that, it is dropped.
Term KernelWriter::fused(uint16_t operation, ScalarType type, uint32_t x, uint32_t y) {
  const bool first = is_product(x), difference = operation == static_cast<uint16_t>(Primitive::subtract);
  const KernelInstruction product = launch_.code.instructions[first ? x : y];
  const auto negated = [&](uint32_t place) {
    return append(static_cast<uint16_t>(Primitive::negate), type, {place}).place;
  };
  uint32_t factor = product.operands[0], added = first ? y : x;
  if (difference && first) added = negated(added);
  if (difference && !first) factor = negated(factor);
  return append(static_cast<uint16_t>(Primitive::fma), type, {factor, product.operands[1], added});
}

int KernelWriter::buffer(DType type, LaunchBuffer where) {
  launch_.code.buffers.push_back(type);
  launch_.buffers.push_back(where);
  return static_cast<int>(launch_.buffers.size() - 1);
}

Term KernelWriter::number(int64_t value) {
  launch_.code.parameters.push_back(index_type_);
  launch_.numbers.push_back({index_type_, value, -1});
  return parameter(launch_.numbers.size() - 1);
}

Term KernelWriter::parameter(size_t number) {
  return append(static_cast<uint16_t>(KernelOperation::parameter), launch_.numbers[number].type, {},
                static_cast<int64_t>(number));
}

namespace {

/// n / divisor is the high half of 2 n * factor, moved down by `shift`, for all n that are not below 0. Rounded up, the
/// factor is 2^(bits + shift) / divisor and less than `divisor` too much, which n < 2^bits times make less than a unit.
/// Source: Granlund and Montgomery, Division by Invariant Integers using Multiplication (1994).
struct Reciprocal {
  int64_t factor, shift;
};

Reciprocal reciprocal(int64_t divisor, int bits) {
  if (divisor <= 0) return {0, 0};  // as the primitive: nothing is divided by 0
  const auto whole = static_cast<unsigned __int128>(divisor);
  const auto shift = static_cast<int>(std::bit_width(static_cast<uint64_t>(divisor - 1)));
  const auto factor =
      static_cast<uint64_t>((((static_cast<unsigned __int128>(1) << (bits + shift)) + whole - 1) / whole));
  return {bits == 31 ? static_cast<int32_t>(factor) : static_cast<int64_t>(factor), shift};
}

}  // namespace

/// The place of the factor among the numbers; the shift follows. By the place of the divisor, not by what it is: sizes
/// that happen to be equal have factors of their own, so that the code does not depend on them.
size_t KernelWriter::reciprocal_of(size_t divisor) {
  for (const auto& [known, factor] : reciprocals_) {
    if (known == divisor) return factor;
  }
  const Reciprocal made = reciprocal(launch_.numbers[divisor].integer, index_type_ == ScalarType::int32 ? 31 : 63);
  for (const int64_t number : {made.factor, made.shift}) {
    launch_.code.parameters.push_back(index_type_);
    launch_.numbers.push_back({index_type_, number, -1});
  }
  reciprocals_.emplace_back(divisor, launch_.numbers.size() - 2);
  return reciprocals_.back().second;
}

Term KernelWriter::quotient(Term x, Term y) {
  const KernelInstruction divisor = launch_.code.instructions[y.place];
  const bool known = divisor.is(KernelOperation::parameter) && y.type == index_type_ && x.type == index_type_ &&
                     launch_.numbers[static_cast<size_t>(divisor.immediate)].scalar < 0;
  if (!known) return x / y;
  const ScalarType bits = index_type_ == ScalarType::int32 ? ScalarType::uint32 : ScalarType::uint64;
  const size_t at = reciprocal_of(static_cast<size_t>(divisor.immediate));
  const Term n = convert(x, bits), factor = convert(parameter(at), bits), shift = convert(parameter(at + 1), bits);
  const Term high = append(static_cast<uint16_t>(KernelOperation::multiply_high), bits, {(n + n).place, factor.place});
  return convert(apply(Primitive::shift_right_zero, bits, {high, shift}), index_type_);
}

Term KernelWriter::scalar(ScalarType type, size_t scalar_index) {
  // There are no Bool parameters: a Bool number travels as Int32.
  const ScalarType travels = type == ScalarType::boolean ? ScalarType::int32 : type;
  launch_.code.parameters.push_back(travels);
  launch_.numbers.push_back({travels, 0, static_cast<int64_t>(scalar_index)});
  return convert(parameter(launch_.numbers.size() - 1), type);
}

Term KernelWriter::bits(ScalarType type, int64_t immediate) {
  return append(static_cast<uint16_t>(Primitive::literal), type, {}, immediate);
}

Term KernelWriter::literal(ScalarType type, double value) {
  if (type == ScalarType::float32) return bits(type, std::bit_cast<int32_t>(static_cast<float>(value)));
  if (type == ScalarType::float64) return bits(type, std::bit_cast<int64_t>(value));
  return bits(type, static_cast<int64_t>(value));
}

Term KernelWriter::group(int dim) {
  return append(static_cast<uint16_t>(KernelOperation::group), index_type_, {}, dim);
}

Term KernelWriter::item() {
  return convert(append(static_cast<uint16_t>(KernelOperation::item), ScalarType::int32, {}), index_type_);
}

Term KernelWriter::global() { return group(0) * items() + item(); }

Term KernelWriter::load(int buffer, Term at) {
  return append(static_cast<uint16_t>(KernelOperation::load), type_of_buffer(buffer), {at.place}, buffer);
}

void KernelWriter::store(int buffer, Term at, Term value) {
  append(static_cast<uint16_t>(KernelOperation::store), type_of_buffer(buffer), {at.place, value.place}, buffer);
}

namespace {

/// Elements of one vector: as many as there are, and not more than fit; 1 where that is less than any vector.
size_t part_of(DType element, size_t lanes, int vector_bytes) {
  if (size_of(element) > 4) return 1;
  const size_t part = std::min(lanes, std::min<size_t>(static_cast<size_t>(vector_bytes), 16) / size_of(element));
  return part * size_of(element) < 4 ? 1 : part;
}

int64_t whole(int buffer, size_t lanes) { return static_cast<int64_t>(lanes) << lanes_shift | buffer; }

}  // namespace

std::vector<Term> KernelWriter::load_vector(int buffer, Term at, int lanes, int vector_bytes) {
  const auto count = static_cast<size_t>(lanes);
  const size_t part = part_of(element_of_buffer(buffer), count, vector_bytes);
  const ScalarType type = type_of_buffer(buffer);
  std::vector<Term> values;
  for (size_t first = 0; first < count; first += part) {
    const Term from = first == 0 ? at : at + static_cast<int64_t>(first);
    if (part == 1) {
      values.push_back(load(buffer, from));
      continue;
    }
    const Term vector =
        append(static_cast<uint16_t>(KernelOperation::load_vector), type, {from.place}, whole(buffer, part));
    const std::vector<Term> lanes_there = lanes_of_vector(vector, part);
    values.insert(values.end(), lanes_there.begin(), lanes_there.end());
  }
  return values;
}

std::vector<Term> KernelWriter::lanes_of_vector(Term vector, size_t lanes) {
  std::vector<Term> values;
  for (size_t i = 0; i < lanes; ++i) {
    values.push_back(
        append(static_cast<uint16_t>(KernelOperation::lane), vector.type, {vector.place}, static_cast<int64_t>(i)));
  }
  return values;
}

void KernelWriter::store_vector(int buffer, Term at, std::span<const Term> values, int vector_bytes) {
  const size_t part = part_of(element_of_buffer(buffer), values.size(), vector_bytes);
  for (size_t first = 0; first < values.size(); first += part) {
    const Term to = first == 0 ? at : at + static_cast<int64_t>(first);
    if (part == 1) {
      store(buffer, to, values[first]);
      continue;
    }
    const Term vector = join(values.subspan(first, part));
    append(static_cast<uint16_t>(KernelOperation::store_vector), vector.type, {to.place, vector.place},
           whole(buffer, part));
  }
}

Term KernelWriter::join(std::span<const Term> values) {
  if (values.size() == 1) return values[0];
  const Term x = join(values.first(values.size() / 2)), y = join(values.subspan(values.size() / 2));
  return append(static_cast<uint16_t>(KernelOperation::join), x.type, {x.place, y.place});
}

Term KernelWriter::shuffle(Term value, Term of) {
  return append(static_cast<uint16_t>(KernelOperation::shuffle), value.type, {value.place, of.place});
}

int KernelWriter::shared(ScalarType type, int count) {
  launch_.code.shared.push_back({type, count});
  return static_cast<int>(launch_.code.shared.size() - 1);
}

Term KernelWriter::shared_load(int array, Term at) {
  const ScalarType type = launch_.code.shared[static_cast<size_t>(array)].type;
  return append(static_cast<uint16_t>(KernelOperation::shared_load), type, {at.place}, array);
}

void KernelWriter::shared_store(int array, Term at, Term value) {
  append(static_cast<uint16_t>(KernelOperation::shared_store), value.type, {at.place, value.place}, array);
}

std::vector<Term> KernelWriter::shared_load_vector(int array, Term at, int lanes) {
  const ScalarType type = launch_.code.shared[static_cast<size_t>(array)].type;
  const auto count = static_cast<size_t>(lanes);
  return lanes_of_vector(
      append(static_cast<uint16_t>(KernelOperation::shared_load_vector), type, {at.place}, whole(array, count)), count);
}

void KernelWriter::shared_store_vector(int array, Term at, std::span<const Term> values) {
  const Term vector = join(values);
  append(static_cast<uint16_t>(KernelOperation::shared_store_vector), vector.type, {at.place, vector.place},
         whole(array, values.size()));
}

Term KernelWriter::pack(DType storage, Term x, Term y) {
  return append(static_cast<uint16_t>(KernelOperation::pack), ScalarType::uint32, {x.place, y.place},
                static_cast<int64_t>(storage));
}

std::vector<Term> KernelWriter::multiply_matrices(DType element, std::span<const Term> x, std::span<const Term> y,
                                                  std::span<const Term> z) {
  const Term vectors[] = {join(x), join(y), join(z)};
  return lanes_of_vector(append(static_cast<uint16_t>(KernelOperation::multiply_matrices), ScalarType::float32,
                                {vectors[0].place, vectors[1].place, vectors[2].place}, static_cast<int64_t>(element)),
                         z.size());
}

void KernelWriter::barrier() { append(static_cast<uint16_t>(KernelOperation::barrier), ScalarType::int32, {}); }

/// What the last group goes on with would otherwise wait in memory: compilers keep to the registers of the fullest
/// multiprocessor.
Term KernelWriter::arrive(int buffer, Term at, Term count) {
  stand_beside(4);
  const Term whole = convert(count, ScalarType::int32);
  return append(static_cast<uint16_t>(KernelOperation::arrive), ScalarType::boolean, {at.place, whole.place}, buffer);
}

Term KernelWriter::variable(Term initial) {
  return append(static_cast<uint16_t>(KernelOperation::variable), initial.type, {initial.place});
}

void KernelWriter::assign(Term variable, Term value) {
  append(static_cast<uint16_t>(KernelOperation::assign), value.type, {variable.place, value.place});
}

Term KernelWriter::begin_loop(Term from, Term to, Term step) {
  return append(static_cast<uint16_t>(KernelOperation::loop), from.type, {from.place, to.place, step.place});
}

Term KernelWriter::apply(Primitive primitive, ScalarType type, std::initializer_list<Term> operands) {
  uint32_t places[3] = {};
  std::transform(operands.begin(), operands.end(), places, [](Term term) { return term.place; });
  return append(static_cast<uint16_t>(primitive), type, {places[0], places[1], places[2]});
}

Term KernelWriter::apply(const ScalarCode& body, std::span<const Term> operands) {
  std::vector<uint32_t> places;
  places.reserve(body.list.size());
  for (const Instruction& instruction : body.list) {
    if (instruction.primitive == Primitive::input) {
      places.push_back(operands[static_cast<size_t>(instruction.immediate)].place);
      continue;
    }
    uint32_t in[3] = {};
    const int arity = instruction.quick != Quick::none ? 1 : info(instruction.primitive).arity;
    for (int i = 0; i < arity; ++i) in[i] = places[instruction.operands[i]];
    const Term term = append(operation_of(instruction), instruction.type, {in[0], in[1], in[2]}, instruction.immediate);
    places.push_back(term.place);
  }
  return {this, places[body.result], body.list[body.result].type};
}

Term KernelWriter::combine(const CombineBody& body, Term x, Term y) {
  ScalarCode code;
  code.quick = allowed_.quick;
  body.code(x.type, code);
  const Term operands[] = {x, y};
  return apply(code, operands);
}

Term KernelWriter::convert(Term x, ScalarType type) {
  if (x.type == type) return x;
  return apply(Primitive::convert, type, {x});
}

Term KernelWriter::round(Term x, DType storage) {
  if (size_of(storage) == static_cast<size_t>(bytes_of(x.type))) return x;
  return append(static_cast<uint16_t>(KernelOperation::round), x.type, {x.place}, static_cast<int64_t>(storage));
}

Term KernelWriter::select(Term mask, Term x, Term y) { return apply(Primitive::select, x.type, {mask, x, y}); }

std::vector<Term> KernelWriter::coordinates(Term linear, std::span<const Term> sizes) {
  std::vector<Term> at;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (d + 1 == sizes.size()) {
      at.push_back(linear);
      break;
    }
    const Term rest = quotient(linear, sizes[d]);
    at.push_back(linear - rest * sizes[d]);
    linear = rest;
  }
  return at;
}

Launch KernelWriter::finish(int64_t groups, int64_t second, int64_t third) {
  drop_unused(launch_.code.instructions);
  launch_.groups[0] = groups;
  launch_.groups[1] = second;
  launch_.groups[2] = third;
  name_by_hash(launch_.code);
  return std::move(launch_);
}

Term operator+(Term x, Term y) { return x.writer->apply(Primitive::add, x.type, {x, y}); }
Term operator-(Term x, Term y) { return x.writer->apply(Primitive::subtract, x.type, {x, y}); }
Term operator*(Term x, Term y) { return x.writer->apply(Primitive::multiply, x.type, {x, y}); }
Term operator/(Term x, Term y) { return x.writer->apply(Primitive::divide, x.type, {x, y}); }
Term operator%(Term x, Term y) { return x - x / y * y; }
Term operator<(Term x, Term y) { return x.writer->apply(Primitive::less, ScalarType::boolean, {x, y}); }
Term operator<=(Term x, Term y) { return x.writer->apply(Primitive::less_equal, ScalarType::boolean, {x, y}); }
Term operator==(Term x, Term y) { return x.writer->apply(Primitive::equal, ScalarType::boolean, {x, y}); }
Term operator!=(Term x, Term y) { return x.writer->apply(Primitive::not_equal, ScalarType::boolean, {x, y}); }
Term operator&&(Term x, Term y) { return x.writer->apply(Primitive::logical_and, ScalarType::boolean, {x, y}); }
Term operator||(Term x, Term y) { return x.writer->apply(Primitive::logical_or, ScalarType::boolean, {x, y}); }
Term operator!(Term x) { return x.writer->apply(Primitive::logical_not, ScalarType::boolean, {x}); }
Term min(Term x, Term y) { return x.writer->apply(Primitive::minimum, x.type, {x, y}); }
Term max(Term x, Term y) { return x.writer->apply(Primitive::maximum, x.type, {x, y}); }
Term like(Term x, int64_t value) {
  const bool real = x.type == ScalarType::float32 || x.type == ScalarType::float64;
  return real ? x.writer->literal(x.type, static_cast<double>(value)) : x.writer->bits(x.type, value);
}

}  // namespace rosin::kernels
