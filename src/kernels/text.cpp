// Printing kernels; see text.hpp. What an operation looks like is data too: the forms below and the dialects.
#include "kernels/text.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <map>
#include <string_view>
#include <utility>

#include <rosin/error.hpp>

#include "kernels/dialects.hpp"
#include "kernels/matrix_layout.hpp"

namespace rosin::kernels {
namespace {

/// How primitives are written; an empty form has no meaning for those types. $x $y $z: the operands, $T: type of x,
/// $U: its unsigned twin, $B: its bits less one, $R: type of the result, $P and $S: the dialect's math_prefix and
/// _suffix.
struct Form {
  Primitive primitive;
  std::string_view floats, integers;
};

constexpr Form forms[] = {
    {Primitive::add, "$x + $y", "($T)(($U)$x + ($U)$y)"},
    {Primitive::subtract, "$x - $y", "($T)(($U)$x - ($U)$y)"},
    {Primitive::multiply, "$x * $y", "($T)(($U)$x * ($U)$y)"},
    {Primitive::divide, "$x / $y", "divide_$T($x, $y)"},
    {Primitive::negate, "-$x", "($T)(0 - ($U)$x)"},
    {Primitive::absolute, "$Pfabs$S($x)", "$x < 0 ? ($T)(0 - ($U)$x) : $x"},
    {Primitive::minimum, "$x < $y || $x != $x ? $x : $y", "$x < $y ? $x : $y"},
    {Primitive::maximum, "$x > $y || $x != $x ? $x : $y", "$x > $y ? $x : $y"},
    {Primitive::floor, "$Pfloor$S($x)", ""},
    {Primitive::ceil, "$Pceil$S($x)", ""},
    {Primitive::trunc, "$Ptrunc$S($x)", ""},
    {Primitive::round_even, "$Print$S($x)", ""},
    {Primitive::sqrt, "$Psqrt$S($x)", ""},
    {Primitive::fma, "$Pfma$S($x, $y, $z)", ""},
    {Primitive::less, "$x < $y", "$x < $y"},
    {Primitive::less_equal, "$x <= $y", "$x <= $y"},
    {Primitive::equal, "$x == $y", "$x == $y"},
    {Primitive::not_equal, "$x != $y", "$x != $y"},
    {Primitive::logical_and, "", "$x && $y"},
    {Primitive::logical_or, "", "$x || $y"},
    {Primitive::logical_not, "", "!$x"},
    {Primitive::select, "", "$x ? $y : $z"},
    {Primitive::bit_and, "", "$x & $y"},
    {Primitive::bit_or, "", "$x | $y"},
    {Primitive::bit_xor, "", "$x ^ $y"},
    {Primitive::shift_left, "", "($T)(($U)$x << ($y & $B))"},
    {Primitive::shift_right, "", "$x >> ($y & $B)"},
    {Primitive::shift_right_zero, "", "($T)(($U)$x >> ($y & $B))"},
    {Primitive::reinterpret, "as_$R($x)", "as_$R($x)"},
};

/// All primitives but those that are written otherwise, in their order.
constexpr bool every_primitive_has_a_form() {
  size_t next = 0;
  for (const PrimitiveInfo& primitive : primitives) {
    const Primitive p = primitive.primitive;
    if (p == Primitive::input || p == Primitive::literal || p == Primitive::convert) continue;
    if (next == std::size(forms) || forms[next++].primitive != p) return false;
  }
  return next == std::size(forms);
}
static_assert(every_primitive_has_a_form());

bool is_float(ScalarType type) { return type == ScalarType::float32 || type == ScalarType::float64; }

constexpr std::string_view scalar_names[scalar_type_count] = {"bool", "i32", "u32", "i64", "u64", "f32", "f64"};
constexpr std::string_view unsigned_names[scalar_type_count] = {"bool", "u32", "u32", "u64", "u64", "", ""};

std::string_view name_of(ScalarType type) { return scalar_names[static_cast<int>(type)]; }

/// What elements are in memory; 16-bit floats by their bits, complex numbers by their parts.
std::string_view element_name(DType type) {
  constexpr std::string_view names[dtype_count] = {"u8",  "u8",  "i8",  "i16", "u16", "i32", "u32", "i64",
                                                   "u64", "u16", "u16", "f32", "f64", "f32", "f64"};
  return names[static_cast<int>(type)];
}

/// Shared Bools are bytes, as in memory.
std::string_view shared_name(ScalarType type) { return type == ScalarType::boolean ? "u8" : name_of(type); }

using Slots = std::initializer_list<std::pair<char, std::string_view>>;

/// The form with its slots filled in.
std::string fill(std::string_view form, Slots slots) {
  std::string text;
  for (size_t i = 0; i < form.size(); ++i) {
    if (form[i] != '$') {
      text += form[i];
      continue;
    }
    ++i;
    for (const auto& [letter, value] : slots)
      if (letter == form[i]) text += value;
  }
  return text;
}

std::string numbered(char letter, int64_t number) { return letter + std::to_string(number); }

template <class F> std::string float_literal(F value) {
  char digits[40];
  const F magnitude = std::abs(value);
  const auto end = std::to_chars(digits, digits + sizeof digits, magnitude, std::chars_format::hex);
  std::string text = std::signbit(value) ? "-0x" : "0x";
  text.append(digits, end.ptr);
  return sizeof(F) == 4 ? text + "f" : text;
}

std::string integer_literal(int64_t value, int64_t lowest) {
  // The digits of the lowest number alone are none of its type.
  return value == lowest ? std::to_string(value + 1) + " - 1" : std::to_string(value);
}

/// The value whose bits are `bits`, exactly.
std::string literal(ScalarType type, int64_t bits) {
  switch (type) {
    case ScalarType::boolean: return bits ? "true" : "false";
    case ScalarType::int32: return integer_literal(static_cast<int32_t>(bits), INT32_MIN);
    case ScalarType::uint32: return std::to_string(static_cast<uint32_t>(bits)) + "u";
    case ScalarType::int64: return integer_literal(bits, INT64_MIN);
    case ScalarType::uint64: return std::to_string(static_cast<uint64_t>(bits)) + "ul";
    case ScalarType::float32: {
      const float value = std::bit_cast<float>(static_cast<int32_t>(bits));
      if (std::isfinite(value)) return float_literal(value);
      return "as_f32(" + literal(ScalarType::int32, bits) + ")";
    }
    case ScalarType::float64: break;
  }
  const double value = std::bit_cast<double>(bits);
  if (std::isfinite(value)) return float_literal(value);
  return "as_f64(" + literal(ScalarType::int64, bits) + ")";
}

/// One kernel as text.
class Printer {
 public:
  Printer(const Dialect& dialect, const KernelCode& code, bool large)
      : dialect_(dialect), code_(code), large_(large && !dialect.large.empty()), read_only_(code.buffers.size(), 0) {
    for (const KernelInstruction& instruction : code.instructions) {
      if (instruction.is(KernelOperation::read_only)) read_only_[static_cast<size_t>(instruction.immediate)] = 1;
    }
  }

  std::string print() {
    head();
    for (size_t i = 0; i < code_.instructions.size(); ++i) {
      const KernelInstruction& instruction = code_.instructions[i];
      if (instruction.operation < primitive_count) compute(i, instruction);
      else if (!structure(i, instruction) && !vector(i, instruction)) act(i, instruction);
    }
    text_ += "}\n";
    return std::move(text_);
  }

 private:
  void head() {
    const std::string group = std::to_string(code_.group);
    const std::string beside = code_.beside > 0 ? fill(dialect_.beside, {{'B', std::to_string(code_.beside)}}) : "";
    const Slots slots = {{'N', code_.name}, {'G', group}, {'A', has_many() ? dialect_.many : beside}};
    const std::string kernel = fill(dialect_.kernel, slots), list = fill(dialect_.list, slots);
    if (list.empty()) text_ += kernel + arguments(", ");
    else text_ += list + arguments("") + "};\n" + kernel;
    text_.append(dialect_.hidden).append(") {\n");
    for (size_t i = 0; i < code_.buffers.size(); ++i) {
      name_argument(read_only_[i] ? dialect_.read_only_place : dialect_.place, element_name(code_.buffers[i]), i);
    }
    for (size_t i = 0; i < code_.parameters.size(); ++i) {
      name_argument(dialect_.parameter_place, name_of(code_.parameters[i]), i);
    }
    shared_arrays();
  }

  /// Variables of Float32 that compilers would keep in pairs, with all that goes into them, where instructions compute
  /// two at a time; so many take more registers then than there are. (What units add up is in the registers that they
  /// say.)
  bool has_many() const {
    constexpr int64_t many = 48;
    const auto multiplies = [](const KernelInstruction& i) { return i.is(KernelOperation::multiply_matrices); };
    const auto& list = code_.instructions;
    if (std::any_of(list.begin(), list.end(), multiplies)) return false;
    return std::count_if(list.begin(), list.end(), [](const KernelInstruction& i) {
             return i.is(KernelOperation::variable) && i.type == ScalarType::float32;
           }) > many;
  }

  std::string arguments(std::string_view between) const {
    std::string all;
    const auto argument = [&](std::string_view form, std::string_view type, size_t number) {
      if (!all.empty()) all += between;
      all += fill(form, {{'T', type}, {'N', std::to_string(number)}});
    };
    for (size_t i = 0; i < code_.buffers.size(); ++i) {
      argument(read_only_[i] ? dialect_.read_only : dialect_.buffer, element_name(code_.buffers[i]), i);
    }
    for (size_t i = 0; i < code_.parameters.size(); ++i) argument(dialect_.parameter, name_of(code_.parameters[i]), i);
    return all;
  }

  /// The name of argument number i in the kernel, where its form is none.
  void name_argument(std::string_view form, std::string_view type, size_t i) {
    if (!form.empty()) line(fill(form, {{'T', type}, {'N', std::to_string(i)}}));
  }

  void shared_arrays() {
    if (large_) line(dialect_.large);
    int64_t offset = 0;
    for (size_t i = 0; i < code_.shared.size(); ++i) {
      const SharedArray& array = code_.shared[i];
      line(fill(large_ ? dialect_.large_shared : dialect_.shared, {{'T', shared_name(array.type)},
                                                                   {'N', std::to_string(i)},
                                                                   {'C', std::to_string(array.count)},
                                                                   {'O', std::to_string(offset)}}));
      const int64_t element = array.type == ScalarType::boolean ? 1 : bytes_of(array.type);
      offset = (offset + element * array.count + 15) / 16 * 16;
    }
  }

  void line(std::string_view what) { text_.append(depth_ * 2, ' ').append(what) += '\n'; }
  void value(size_t place, std::string_view what) {
    const std::string_view type = name_of(code_.instructions[place].type);
    line(fill("const $T $v = $w;", {{'T', type}, {'v', numbered('v', static_cast<int64_t>(place))}, {'w', what}}));
  }
  std::string operand(const KernelInstruction& instruction, int i) const {
    return numbered('v', instruction.operands[i]);
  }
  ScalarType operand_type(const KernelInstruction& instruction, int i) const {
    return code_.instructions[instruction.operands[i]].type;
  }

  void compute(size_t place, const KernelInstruction& instruction) {
    const Primitive primitive = static_cast<Primitive>(instruction.operation);
    if (primitive == Primitive::literal) return value(place, literal(instruction.type, instruction.immediate));
    if (primitive == Primitive::convert) return value(place, conversion(instruction));
    const ScalarType type = operand_type(instruction, 0);
    for (const Form& form : forms) {
      if (form.primitive != primitive) continue;
      const std::string_view chosen = is_float(type) ? form.floats : form.integers;
      value(place, fill(chosen, {{'x', operand(instruction, 0)},
                                 {'y', operand(instruction, 1)},
                                 {'z', operand(instruction, 2)},
                                 {'T', name_of(type)},
                                 {'U', unsigned_names[static_cast<int>(type)]},
                                 {'B', bytes_of(type) == 8 ? "63" : "31"},
                                 {'R', name_of(instruction.type)},
                                 {'P', dialect_.math_prefix},
                                 {'S', type == ScalarType::float32 ? dialect_.math_suffix : ""}}));
    }
  }

  std::string conversion(const KernelInstruction& instruction) const {
    const ScalarType from = operand_type(instruction, 0), to = instruction.type;
    std::string_view form = "($R)$x";
    if (to == ScalarType::boolean) form = "$x != 0";
    else if (is_float(from) && !is_float(to)) form = "$R_of_$T($x)";
    return fill(form, {{'x', operand(instruction, 0)}, {'T', name_of(from)}, {'R', name_of(to)}});
  }

  /// Loops, branches and variables; false for other operations.
  bool structure(size_t place, const KernelInstruction& instruction) {
    const std::string x = operand(instruction, 0), y = operand(instruction, 1), z = operand(instruction, 2);
    switch (static_cast<KernelOperation>(instruction.operation)) {
      case KernelOperation::variable:
        line(fill("$T v$N = $x;", {{'T', name_of(instruction.type)}, {'N', std::to_string(place)}, {'x', x}}));
        break;
      case KernelOperation::assign: line(x + " = " + y + ";"); break;
      case KernelOperation::loop:
        // The bounds are copied, as they may be variables that the loop assigns.
        line(fill("for ($T v$N = $x, end$N = $y, step$N = $z; v$N < end$N; v$N += step$N) {",
                  {{'T', name_of(instruction.type)}, {'N', std::to_string(place)}, {'x', x}, {'y', y}, {'z', z}}));
        ++depth_;
        break;
      case KernelOperation::begin_if:
        line("if (" + x + ") {");
        ++depth_;
        break;
      case KernelOperation::begin_else:
        --depth_;
        line("} else {");
        ++depth_;
        break;
      case KernelOperation::end_loop:
      case KernelOperation::end_if:
        --depth_;
        line("}");
        break;
      case KernelOperation::round:
      case KernelOperation::parameter:
      case KernelOperation::group:
      case KernelOperation::item:
      case KernelOperation::load:
      case KernelOperation::store:
      case KernelOperation::shared_load:
      case KernelOperation::shared_store:
      case KernelOperation::barrier:
      case KernelOperation::multiply_high:
      case KernelOperation::exp2_approximate:
      case KernelOperation::reciprocal_approximate:
      case KernelOperation::tanh_approximate:
      case KernelOperation::load_vector:
      case KernelOperation::lane:
      case KernelOperation::join:
      case KernelOperation::store_vector:
      case KernelOperation::read_only:
      case KernelOperation::shuffle:
      case KernelOperation::pack:
      case KernelOperation::shared_load_vector:
      case KernelOperation::shared_store_vector:
      case KernelOperation::multiply_matrices:
      case KernelOperation::choose:
      case KernelOperation::arrive: return false;
    }
    return true;
  }

  /// Vectors travel as one to four words of 32 bits; their lanes are values of their own before and behind.
  bool vector(size_t place, const KernelInstruction& instruction) {
    const auto at = static_cast<int64_t>(place);
    if (instruction.is(KernelOperation::join)) {
      std::vector<std::string>& all = lanes_[place];
      for (int i = 0; i < 2; ++i) {
        const auto part = lanes_.find(instruction.operands[i]);
        if (part == lanes_.end()) all.push_back(as_it_is_now(place, instruction, i));
        else all.insert(all.end(), part->second.begin(), part->second.end());
      }
    } else if (instruction.is(KernelOperation::load_vector) || instruction.is(KernelOperation::shared_load_vector)) {
      const DType element = element_of(instruction);
      const auto words = words_of(element, lanes_of(instruction));
      line(fill("const $W $v = $m;",
                {{'W', words.name}, {'v', numbered('v', at)}, {'m', memory(instruction, words.name, "const ")}}));
      for (int i = 0; i < lanes_of(instruction); ++i) {
        const std::string lane = lane_of(numbered('v', at), words.count, element, i);
        lanes_[place].push_back("(" + from_memory(lane, instruction.type, element) + ")");
      }
    } else if (instruction.is(KernelOperation::lane)) {
      value(place, lanes_.at(instruction.operands[0])[static_cast<size_t>(instruction.immediate)]);
    } else if (instruction.is(KernelOperation::store_vector) || instruction.is(KernelOperation::shared_store_vector)) {
      store_vector(instruction);
    } else if (instruction.is(KernelOperation::multiply_matrices)) {
      multiply_matrices(place, instruction);
    } else {
      return false;
    }
    return true;
  }

  /// An operand that goes into a vector: of a variable a copy, as it may change before the vector is used.
  std::string as_it_is_now(size_t place, const KernelInstruction& instruction, int i) {
    const std::string name = operand(instruction, i);
    if (!code_.instructions[instruction.operands[i]].is(KernelOperation::variable)) return name;
    const std::string copy = numbered('v', static_cast<int64_t>(place)) + "_" + std::to_string(i);
    line(fill("const $T $c = $x;", {{'T', name_of(instruction.type)}, {'c', copy}, {'x', name}}));
    return copy;
  }

  struct Words {
    std::string_view name;
    int count;
  };
  static Words words_of(DType element, int lanes) {
    const int count = static_cast<int>(size_of(element)) * lanes / 4;
    return {count == 1 ? "u32" : count == 2 ? "words2" : "words4", count};
  }

  static std::string pointer(int buffer) {
    return buffer < chosen_buffer ? numbered('p', buffer) : numbered('q', buffer - chosen_buffer);
  }
  DType type_of(int buffer) const {
    return buffer < chosen_buffer ? code_.buffers[static_cast<size_t>(buffer)] : chosen_.at(buffer);
  }

  /// The first time makes the pointer.
  void choose(const KernelInstruction& instruction) {
    const int from = array_of(instruction);
    const auto number = chosen_buffer + static_cast<int>(instruction.immediate >> lanes_shift);
    const bool first = chosen_.emplace(number, code_.buffers[static_cast<size_t>(from)]).second;
    const bool constant = std::none_of(code_.instructions.begin(), code_.instructions.end(),
                                       [&](const auto& i) { return is_write(i) && buffer_of(i) == number; });
    line(fill(first ? "$Q$C$T* $q = $p;" : "$q = $p;", {{'Q', dialect_.pointer},
                                                        {'C', constant ? "const " : ""},
                                                        {'T', element_name(type_of(number))},
                                                        {'q', pointer(number)},
                                                        {'p', pointer(from)}}));
  }

  /// Of the memory that a load or store of vectors touches.
  DType element_of(const KernelInstruction& instruction) const {
    if (buffer_of(instruction) >= 0) return type_of(buffer_of(instruction));
    return instruction.type == ScalarType::float32 ? DType::Float32
           : instruction.type == ScalarType::int32 ? DType::Int32
                                                   : DType::UInt32;
  }

  /// The words that begin at element x of the buffer or shared array.
  std::string memory(const KernelInstruction& instruction, std::string_view words, std::string_view constant) const {
    const bool shared = buffer_of(instruction) < 0;
    return fill("*($Q$C$W*)($P + $x)",
                {{'Q', shared ? "" : dialect_.pointer},
                 {'C', constant},
                 {'W', words},
                 {'P', shared ? numbered('s', array_of(instruction)) : pointer(buffer_of(instruction))},
                 {'x', operand(instruction, 0)}});
  }

  /// An element as it stands in memory, among words.
  static std::string lane_of(const std::string& words, int count, DType element, int lane) {
    const auto bytes = static_cast<int>(size_of(element));
    const int word = lane * bytes / 4, bit = lane * bytes % 4 * 8;
    const std::string all = count == 1 ? words : words + "." + "xyzw"[word];
    if (bytes == 4) return element == DType::Float32 ? "as_f32((i32)" + all + ")" : fill_cast(element, all);
    return fill_cast(element, bit == 0 ? all : "(" + all + " >> " + std::to_string(bit) + ")");
  }
  static std::string fill_cast(DType element, const std::string& value) {
    return fill("($T)$x", {{'T', element_name(element)}, {'x', value}});
  }

  void store_vector(const KernelInstruction& instruction) {
    const DType element = element_of(instruction);
    const std::vector<std::string>& lanes = lanes_.at(instruction.operands[1]);
    const Words words = words_of(element, static_cast<int>(lanes.size()));
    const size_t each = lanes.size() / static_cast<size_t>(words.count);
    std::string all;
    const std::string_view pair = element == DType::BFloat16  ? "b16_pair($x, $y)"
                                  : element == DType::Float16 ? "f16_pair($x, $y)"
                                                              : "";
    for (size_t i = 0; i < lanes.size(); i += pair.empty() ? 1 : 2) {
      all += i == 0 ? "" : i % each == 0 ? ", " : " | ";
      all += pair.empty() ? bits_of(lanes[i], element, i % each * 32 / each)
                          : fill(pair, {{'x', lanes[i]}, {'y', lanes[i + 1]}});
    }
    if (words.count > 1) all = std::string(words.name) + "_of(" + all + ")";
    line(memory(instruction, words.name, "") + " = " + all + ";");
  }

  void multiply_matrices(size_t place, const KernelInstruction& instruction) {
    const auto element = static_cast<DType>(instruction.immediate);
    std::string all;
    for (const uint32_t operand : instruction.operands) {
      for (const std::string& lane : lanes_.at(operand)) all.append(all.empty() ? "" : ", ").append(lane);
    }
    const size_t words = lanes_.at(instruction.operands[0]).size(), sums = lanes_.at(instruction.operands[2]).size();
    const bool square = words == lanes_.at(instruction.operands[1]).size();
    const std::string_view kind = element == DType::BFloat16 ? "b16" : element == DType::Float16 ? "f16" : "tf32";
    const std::string value = numbered('v', static_cast<int64_t>(place));
    line(fill("const $c $v = $nmatrices_$t($a);", {{'c', !square     ? "floats4"
                                                         : sums == 4 ? "sums4"
                                                                     : "sums8"},
                                                   {'v', value},
                                                   {'n', square ? square_with(words).prefix : ""},
                                                   {'t', square && kind == "tf32" ? "f32" : kind},
                                                   {'a', all}}));
    for (size_t i = 0; i < sums; ++i) {
      lanes_[place].push_back(value + (square ? "[" + std::to_string(i) + "]" : std::string(".") + "xyzw"[i]));
    }
  }

  /// A value as the bits of an element, moved up.
  static std::string bits_of(const std::string& value, DType element, size_t up) {
    if (element == DType::Float32) return "(u32)as_i32(" + value + ")";
    const std::string stored = to_memory(value, element);
    if (size_of(element) == 4) return "(u32)" + stored;
    const std::string narrow = std::string("(u32)") + (size_of(element) == 2 ? "(u16)" : "(u8)") + stored;
    return up == 0 ? narrow : "(" + narrow + " << " + std::to_string(up) + ")";
  }

  /// Arguments, places and memory.
  void act(size_t place, const KernelInstruction& instruction) {
    const auto which = static_cast<size_t>(instruction.immediate);
    const std::string x = operand(instruction, 0), y = operand(instruction, 1), number = std::to_string(which);
    const std::string_view type = name_of(instruction.type);
    switch (static_cast<KernelOperation>(instruction.operation)) {
      case KernelOperation::round: return value(place, rounded(x, instruction.type, static_cast<DType>(which)));
      case KernelOperation::parameter: return value(place, "a" + number);
      case KernelOperation::group: return value(place, fill("($T)$G", {{'T', type}, {'G', dialect_.group[which]}}));
      case KernelOperation::item: return value(place, fill("($T)$G", {{'T', type}, {'G', dialect_.item}}));
      case KernelOperation::load:
        return value(place, from_memory(pointer(buffer_of(instruction)) + "[" + x + "]", instruction.type,
                                        type_of(buffer_of(instruction))));
      case KernelOperation::store:
        return line(pointer(buffer_of(instruction)) + "[" + x + "] = " + to_memory(y, type_of(buffer_of(instruction))) +
                    ";");
      case KernelOperation::shared_load:
        return value(place, "s" + number + "[" + x + "]" + (instruction.type == ScalarType::boolean ? " != 0" : ""));
      case KernelOperation::shared_store: return line("s" + number + "[" + x + "] = " + y + ";");
      case KernelOperation::barrier: return line(dialect_.barrier);
      case KernelOperation::multiply_high:
        return value(place, fill("multiply_high_$T($x, $y)", {{'T', type}, {'x', x}, {'y', y}}));
      case KernelOperation::exp2_approximate: return value(place, "exp2_approximate(" + x + ")");
      case KernelOperation::reciprocal_approximate: return value(place, "reciprocal_approximate(" + x + ")");
      case KernelOperation::tanh_approximate: return value(place, "tanh_approximate(" + x + ")");
      case KernelOperation::shuffle: return value(place, fill("shuffle_$T($x, $y)", {{'T', type}, {'x', x}, {'y', y}}));
      case KernelOperation::pack:
        return value(place, fill(static_cast<DType>(which) == DType::Float16 ? "f16_pair($x, $y)" : "b16_pair($x, $y)",
                                 {{'x', x}, {'y', y}}));
      case KernelOperation::choose: return choose(instruction);
      case KernelOperation::arrive:
        return value(place,
                     fill("arrives_last($p, $x, $y)", {{'p', pointer(buffer_of(instruction))}, {'x', x}, {'y', y}}));
      case KernelOperation::read_only:  // stands in the head
      case KernelOperation::load_vector:
      case KernelOperation::lane:
      case KernelOperation::join:
      case KernelOperation::store_vector:
      case KernelOperation::shared_load_vector:
      case KernelOperation::shared_store_vector:
      case KernelOperation::multiply_matrices:  // vector() has written them
      case KernelOperation::variable:
      case KernelOperation::assign:
      case KernelOperation::loop:
      case KernelOperation::end_loop:
      case KernelOperation::begin_if:
      case KernelOperation::begin_else:
      case KernelOperation::end_if: return;  // structure() has written them
    }
  }

  static std::string to_memory(const std::string& value, DType type) {
    if (type == DType::Float16) return "f16_of_f32(" + value + ")";
    if (type == DType::BFloat16) return "b16_of_f32(" + value + ")";
    return fill("($T)$x", {{'T', element_name(type)}, {'x', value}});
  }

  static std::string from_memory(const std::string& element, ScalarType type, DType stored) {
    if (stored == DType::Float16) return "f32_of_f16(" + element + ")";
    if (stored == DType::BFloat16) return "f32_of_b16(" + element + ")";
    if (stored == DType::Bool) return element + " != 0";
    return fill("($T)$x", {{'T', name_of(type)}, {'x', element}});
  }

  static std::string rounded(const std::string& value, ScalarType type, DType storage) {
    if (storage == DType::Bool) return value;
    const std::string narrow = type == ScalarType::float64 && size_of(storage) == 2 ? "(f32)" + value : value;
    if (storage == DType::BFloat16) return "b16_rounded(" + narrow + ")";
    return from_memory(to_memory(narrow, storage), type, storage);
  }

  const Dialect& dialect_;
  const KernelCode& code_;
  const bool large_;
  std::vector<char> read_only_;                       // of each buffer
  std::map<int, DType> chosen_;                       // buffers, by their numbers
  std::map<size_t, std::vector<std::string>> lanes_;  // of each vector
  std::string text_;
  size_t depth_ = 1;
};

bool is_of_name(char c) {
  return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/// Whether the text contains the name as a whole word.
bool uses(std::string_view text, std::string_view name) {
  for (size_t at = text.find(name); at != text.npos; at = text.find(name, at + 1)) {
    const size_t end = at + name.size();
    if ((at == 0 || !is_of_name(text[at - 1])) && (end == text.size() || !is_of_name(text[end]))) return true;
  }
  return false;
}

bool has(std::span<const Word> words, std::string_view name) {
  return std::any_of(words.begin(), words.end(), [&](const Word& word) { return word.name == name; });
}

/// Puts those of the words before the text that it uses and `others` lack, the last first, as words use only earlier
/// ones.
void define(std::string& text, std::span<const Word> words, const Dialect& dialect, std::span<const Word> others = {}) {
  for (size_t i = words.size(); i-- > 0;) {
    if (!uses(text, words[i].name) || has(others, words[i].name)) continue;
    text = fill(words[i].text, {{'F', dialect.function}}) + "\n" + text;
  }
}

}  // namespace

std::string kernel_text(Language language, std::span<const KernelCode> codes, int64_t shared_bytes) {
  const Dialect& dialect = dialects[static_cast<int>(language)];
  std::string text;
  for (const KernelCode& code : codes)
    text += "\n" + Printer(dialect, code, code.shared_bytes() > shared_bytes).print();
  define(text, common_words, dialect, dialect.words);
  define(text, dialect.words, dialect);
  const bool has_float64 =
      std::any_of(dialect.types.begin(), dialect.types.end(), [](const Word& type) { return type.name == "f64"; });
  if (!has_float64 && uses(text, "f64")) {
    throw Error(ErrorKind::dtype, "kernel: " + std::string(dialect.name) +
                                      " has no 64-bit floats; the kernel uses Float64; convert the arrays to Float32");
  }
  define(text, dialect.types, dialect);
  return std::string(dialect.prologue) + text;
}

}  // namespace rosin::kernels
