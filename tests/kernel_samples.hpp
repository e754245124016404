// Small kernels that together use every operation of kernels with every type it has: what is compiled for devices that
// are not here, and run on those that are. Read first: kernels/code.hpp. Read next: device_text_test.cpp.
#pragma once

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "kernels/code.hpp"

namespace rosin::samples {

using kernels::KernelCode;
using kernels::KernelWriter;
using kernels::Term;

/// One primitive on elements: buffer number arity, the result, gets element i = primitive(element i of the others);
/// the one parameter is the count of elements.
struct PrimitiveSample {
  Primitive primitive = Primitive::add;
  ScalarType type = ScalarType::float32;  // of the operands; select: of the last two
  ScalarType result = ScalarType::float32;
  KernelCode kernel;
};

inline constexpr int items = 256;

inline constexpr ScalarType all_types[] = {ScalarType::boolean, ScalarType::int32,  ScalarType::uint32,
                                           ScalarType::int64,   ScalarType::uint64, ScalarType::float32,
                                           ScalarType::float64};

inline DType stored(ScalarType type) {
  constexpr DType types[scalar_type_count] = {DType::Bool,   DType::Int32,   DType::UInt32, DType::Int64,
                                              DType::UInt64, DType::Float32, DType::Float64};
  return types[static_cast<int>(type)];
}

inline bool is_float(ScalarType type) { return type == ScalarType::float32 || type == ScalarType::float64; }

/// Whether the table of primitives gives this one a meaning for operands of this type.
inline bool has_meaning(Primitive primitive, ScalarType type) {
  const bool boolean = type == ScalarType::boolean;
  switch (primitive) {
    case Primitive::floor:
    case Primitive::ceil:
    case Primitive::trunc:
    case Primitive::round_even:
    case Primitive::sqrt:
    case Primitive::fma: return is_float(type);
    case Primitive::less:
    case Primitive::less_equal:
    case Primitive::equal:
    case Primitive::not_equal:
    case Primitive::select: return true;
    case Primitive::logical_and:
    case Primitive::logical_or:
    case Primitive::logical_not: return boolean;
    case Primitive::bit_and:
    case Primitive::bit_or:
    case Primitive::bit_xor:
    case Primitive::shift_left:
    case Primitive::shift_right:
    case Primitive::shift_right_zero: return !boolean && !is_float(type);
    case Primitive::reinterpret: return !boolean && type != ScalarType::uint32 && type != ScalarType::uint64;
    case Primitive::input:
    case Primitive::literal:
    case Primitive::convert: return false;
    default: return !boolean;
  }
}

inline ScalarType result_of(Primitive primitive, ScalarType type) {
  if (primitive >= Primitive::less && primitive <= Primitive::logical_not) return ScalarType::boolean;
  if (primitive != Primitive::reinterpret) return type;
  switch (type) {
    case ScalarType::int32: return ScalarType::float32;
    case ScalarType::float32: return ScalarType::int32;
    case ScalarType::int64: return ScalarType::float64;
    default: return ScalarType::int64;
  }
}

inline PrimitiveSample sample_of(Primitive primitive, ScalarType type, ScalarType result) {
  PrimitiveSample sample{primitive, type, result, {}};
  KernelWriter writer(std::string(info(primitive).name), items, ScalarType::int32);
  const int arity = info(primitive).arity;
  std::vector<int> buffers;
  for (int i = 0; i < arity; ++i) {
    const bool mask = primitive == Primitive::select && i == 0;
    buffers.push_back(writer.buffer(mask ? DType::Bool : stored(type), {}));
  }
  const int out = writer.buffer(stored(result), {});
  const Term at = writer.global();
  writer.when(at < writer.number(0), [&] {
    Term in[3];
    for (int i = 0; i < arity; ++i) in[i] = writer.load(buffers[static_cast<size_t>(i)], at);
    const Term value = arity == 1   ? writer.apply(primitive, result, {in[0]})
                       : arity == 2 ? writer.apply(primitive, result, {in[0], in[1]})
                                    : writer.apply(primitive, result, {in[0], in[1], in[2]});
    writer.store(out, at, value);
  });
  sample.kernel = writer.finish(1).code;
  return sample;
}

/// out[i] = in[i], through the types that kernels compute in.
inline KernelCode copy_of(DType type) {
  KernelWriter writer(std::string("copy_") + to_string(type), items, ScalarType::int64);
  const int in = writer.buffer(type, {}), out = writer.buffer(type, {});
  const Term at = writer.global();
  writer.when(at < writer.number(0), [&] { writer.store(out, at, writer.load(in, at)); });
  return writer.finish(1).code;
}

/// out[i] = in[i] rounded as an element of the type.
inline KernelCode round_to(DType type) {
  const DType wide = stored(scalar_type(type));
  KernelWriter writer(std::string("round_to_") + to_string(type), items, ScalarType::int32);
  const int in = writer.buffer(wide, {}), out = writer.buffer(wide, {});
  const Term at = writer.global();
  writer.when(at < writer.number(0), [&] { writer.store(out, at, writer.round(writer.load(in, at), type)); });
  return writer.finish(1).code;
}

/// Numbers that a language may spell wrongly, one after the other.
inline KernelCode literals_of(ScalarType type) {
  KernelWriter writer("literals", 1, ScalarType::int32);
  const int out = writer.buffer(stored(type), {});
  std::vector<Term> values;
  if (is_float(type)) {
    const double least = type == ScalarType::float32 ? 0x1p-149 : 0x1p-1074;
    for (const double value : {0.0, -0.0, 0.1, -1.5, 16777217.0, least, -least, std::numeric_limits<double>::infinity(),
                               -std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
      values.push_back(writer.literal(type, value));
    }
  } else {
    const int64_t lowest = bytes_of(type) == 8 ? INT64_MIN : INT32_MIN;
    for (const int64_t value : {int64_t{0}, int64_t{1}, int64_t{-1}, lowest, -(lowest + 1)})
      values.push_back(writer.bits(type, value));
  }
  for (size_t i = 0; i < values.size(); ++i) writer.store(out, writer.index(static_cast<int64_t>(i)), values[i]);
  return writer.finish(1).code;
}

/// out[group] = sum of scale * in[row * items ...], rows apart; a tree in shared memory, branches with two sides.
inline KernelCode sum_of_rows(ScalarType type, ScalarType index) {
  KernelWriter writer("sum_of_rows", items, index);
  const int in = writer.buffer(stored(type), {}), out = writer.buffer(stored(type), {});
  const Term count = writer.number(0), stride = writer.number(0), scale = writer.scalar(type, 0);
  const int shared = writer.shared(type, items);
  const Term item = writer.item();
  const Term row = writer.group(0) + writer.group(1) * 3 + writer.group(2) * 7;
  const Term sum = writer.variable(writer.literal(type, 0));
  writer.loop(item, count, writer.index(items),
              [&](Term i) { writer.assign(sum, sum + writer.load(in, row * stride + i) * scale); });
  writer.shared_store(shared, item, sum);
  writer.barrier();
  for (int width = items / 2; width > 0; width /= 2) {
    writer.when(item < width, [&] {
      writer.shared_store(shared, item, writer.shared_load(shared, item) + writer.shared_load(shared, item + width));
    });
    writer.barrier();
  }
  writer.when(item == 0, [&] { writer.store(out, row, writer.shared_load(shared, item)); });
  return writer.finish(1).code;
}

/// Every primitive with every type that it has a meaning for.
inline std::vector<PrimitiveSample> primitive_samples() {
  std::vector<PrimitiveSample> samples;
  for (const PrimitiveInfo& entry : primitives) {
    for (const ScalarType type : all_types) {
      if (has_meaning(entry.primitive, type))
        samples.push_back(sample_of(entry.primitive, type, result_of(entry.primitive, type)));
    }
  }
  for (const ScalarType from : all_types) {
    for (const ScalarType to : all_types)
      if (from != to) samples.push_back(sample_of(Primitive::convert, from, to));
  }
  return samples;
}

/// Element types, rounding, literals, loops, branches, variables and shared memory.
inline std::vector<KernelCode> control_samples() {
  std::vector<KernelCode> kernels;
  for (int i = 0; i <= static_cast<int>(DType::Float64); ++i) {
    const DType type = static_cast<DType>(i);
    kernels.push_back(copy_of(type));
    kernels.push_back(round_to(type));
  }
  for (const ScalarType type : all_types) {
    if (type == ScalarType::boolean) continue;
    kernels.push_back(literals_of(type));
    kernels.push_back(sum_of_rows(type, ScalarType::int32));
    kernels.push_back(sum_of_rows(type, ScalarType::int64));
  }
  return kernels;
}

/// Whether the kernel needs a device with 64-bit floats.
inline bool uses_float64(const KernelCode& kernel) {
  const auto is_wide = [](ScalarType type) { return type == ScalarType::float64; };
  return std::any_of(kernel.buffers.begin(), kernel.buffers.end(),
                     [&](DType type) { return is_wide(scalar_type(type)); }) ||
         std::any_of(kernel.parameters.begin(), kernel.parameters.end(), is_wide) ||
         std::any_of(kernel.instructions.begin(), kernel.instructions.end(),
                     [&](const kernels::KernelInstruction& instruction) { return is_wide(instruction.type); });
}

}  // namespace rosin::samples
