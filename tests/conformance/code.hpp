// Code: kernels as the tests of back ends write them, instruction by instruction, with nothing of rosin but backend.h.
// Read first: rosin/backend.h (Kernels).
#pragma once

#include <bit>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include <rosin/backend.h>

namespace rosin::conformance {

/// The place of an instruction.
using Value = uint32_t;

struct Code {
  std::string name;
  int32_t group = 1;
  std::vector<int32_t> buffers;     // rosin_type of each
  std::vector<int32_t> parameters;  // rosin_scalar_type of each
  std::vector<rosin_shared_array> shared;
  std::vector<rosin_instruction> list;

  Value add(rosin_operation operation, int type, std::initializer_list<Value> operands = {}, int64_t immediate = 0) {
    rosin_instruction in{};
    in.operation = static_cast<uint16_t>(operation);
    in.type = static_cast<uint16_t>(type);
    in.immediate = immediate;
    int i = 0;
    for (const Value operand : operands) in.operands[i++] = operand;
    list.push_back(in);
    return static_cast<Value>(list.size() - 1);
  }
  int type(Value value) const { return list[value].type; }

  Value int32(int64_t value) { return add(ROSIN_LITERAL, ROSIN_SCALAR_INT32, {}, value); }
  Value float32(float value) {
    return add(ROSIN_LITERAL, ROSIN_SCALAR_FLOAT32, {}, static_cast<int64_t>(std::bit_cast<int32_t>(value)));
  }
  Value item() { return add(ROSIN_ITEM, ROSIN_SCALAR_INT32); }
  Value group_at(int dim) { return add(ROSIN_GROUP, ROSIN_SCALAR_INT32, {}, dim); }
  /// The number of this item among all, of launches along dim 0.
  Value global() { return binary(ROSIN_ADD, binary(ROSIN_MULTIPLY, group_at(0), int32(group)), item()); }
  Value parameter(int64_t number) { return add(ROSIN_PARAMETER, parameters[static_cast<size_t>(number)], {}, number); }
  Value binary(rosin_operation operation, Value x, Value y) { return add(operation, type(x), {x, y}); }
  Value less(Value x, Value y) { return add(ROSIN_LESS, ROSIN_SCALAR_BOOL, {x, y}); }
  Value load(int64_t buffer, int scalar_type, Value at) { return add(ROSIN_LOAD, scalar_type, {at}, buffer); }
  void store(int64_t buffer, Value at, Value value) { add(ROSIN_STORE, type(value), {at, value}, buffer); }
  Value load_vector(int64_t buffer, int scalar_type, Value at, int64_t lanes) {
    return add(ROSIN_LOAD_VECTOR, scalar_type, {at}, lanes << 32 | buffer);
  }
  void store_vector(int64_t buffer, Value at, Value vector, int64_t lanes) {
    add(ROSIN_STORE_VECTOR, type(vector), {at, vector}, lanes << 32 | buffer);
  }
  Value lane(Value vector, int64_t number) { return add(ROSIN_LANE, type(vector), {vector}, number); }
  Value join(Value x, Value y) { return add(ROSIN_JOIN, type(x), {x, y}); }
  Value shuffle(Value x, Value of) { return add(ROSIN_SHUFFLE, type(x), {x, of}); }
  Value loop(Value from, Value to, Value step) { return add(ROSIN_LOOP, type(from), {from, to, step}); }
  void end_loop() { add(ROSIN_END_LOOP, ROSIN_SCALAR_INT32); }
  void when(Value condition) { add(ROSIN_IF, ROSIN_SCALAR_BOOL, {condition}); }
  void otherwise() { add(ROSIN_ELSE, ROSIN_SCALAR_BOOL); }
  void end_if() { add(ROSIN_END_IF, ROSIN_SCALAR_BOOL); }
  void barrier() { add(ROSIN_BARRIER, ROSIN_SCALAR_INT32); }
  Value variable(Value initial) { return add(ROSIN_VARIABLE, type(initial), {initial}); }
  void assign(Value variable, Value value) { add(ROSIN_ASSIGN, type(value), {variable, value}); }

  /// Valid as long as this is not changed.
  rosin_kernel_code view() const {
    rosin_kernel_code code{};
    code.size = sizeof(code);
    code.name = name.c_str();
    code.group = group;
    code.buffer_count = static_cast<uint32_t>(buffers.size());
    code.buffers = buffers.data();
    code.parameter_count = static_cast<uint32_t>(parameters.size());
    code.parameters = parameters.data();
    code.shared_count = static_cast<uint32_t>(shared.size());
    code.shared = shared.data();
    code.instruction_count = static_cast<uint32_t>(list.size());
    code.instructions = list.data();
    return code;
  }
};

}  // namespace rosin::conformance
