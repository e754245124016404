// Call: one prepared kernel of an opaque kind (contraction, window, gather, scatter, sort, scan, random, and movements
// that copy) on the CPU. Prepared once for given shapes, run in every step; work is cut by shape only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <rosin/dtype.hpp>
#include <rosin/shape.hpp>

#include "engines/vendor.hpp"
#include "graph/op.hpp"
#include "plan/call.hpp"

namespace rosin::cpu {

using plan::CallArray;

/// What is to be computed: the op with its attributes on these operands. Operands may be strided (transposed, sliced,
/// broadcast with stride 0) where the kernel of the op reads them so; the result is contiguous, column-major, or CWHN.
struct CallSpec {
  const Op* op = nullptr;
  Attributes attributes;
  std::vector<CallArray> operands;
  CallArray result;                  // of an op of several: number 0
  uint32_t unread = 0;               // of an op of several: bit n: nobody reads result n
  uint32_t stay = 0;                 // bit n: operand n has the same values in most runs
  plan::Epilogue epilogue;           // contractions
  std::vector<CallArray> additions;  // of the epilogue: what it reads, as plan::values_of_epilogue() has it
};

/// Where what an epilogue reads stands among the operands of a run.
inline constexpr int bias_operand = 2, residual_operand = 3, center_operand = 4, factor_operand = 5, shift_operand = 6;
inline constexpr int operand_places = 7;
static_assert(operand_places >= Node::max_operands);

/// Values of one run. Where operand i is a C++ number, operands[i] is null, and scalars[i] and integers[i] are its
/// value (else unused).
struct CallData {
  const void* operands[operand_places] = {};
  const void* const* many = nullptr;  // where there are more operands than that: all of them, numbers as ScalarValue
  double scalars[Node::max_operands] = {};
  int64_t integers[Node::max_operands] = {};
  void* result = nullptr;
  void* const* results = nullptr;  // of an op of several, by number; null where nobody reads one
  void* scratch = nullptr;         // scratch_bytes() of this run
  const void* forms[2] = {};       // of the first two operands, where they were made before (Call::form)

  const void* operand(int i) const { return many ? many[i] : operands[i]; }
  /// The C++ number that operand i is.
  int64_t integer(int i) const { return many ? static_cast<const ScalarValue*>(many[i])->integer : integers[i]; }
};

/// Shared by all threads: several runs may go on at the same time, and leave nothing in the call.
class Call {
 public:
  virtual ~Call() = default;
  /// About what it takes, for the budget of plans.
  virtual size_t bytes() const { return 512; }
  /// Runs once before all pieces, on one thread.
  virtual void begin(const CallData&) {}
  /// Independent pieces; their number depends on shapes only. Every piece runs once, in any order, on any thread.
  virtual int64_t chunks() const { return 1; }
  virtual size_t scratch_bytes() const { return 0; }
  virtual void run(int64_t chunk, const CallData& data) = 0;
  /// Runs once after all pieces (adds partial sums, in order).
  virtual void finish(const CallData&) {}
  /// Another form of the first (0) or second (1) operand that a run would make, unless it is given one.
  virtual engines::Form form(int) const { return {}; }
  virtual void make_form(int, const void* /*operand*/, void* /*to*/) const {}
  /// Whether running can throw: values may be refused, or memory be needed.
  virtual bool may_fail() const { return true; }
};

/// Error (dtype) when the CPU has no such kernel for these types.
std::unique_ptr<Call> prepare(const CallSpec& spec);

/// What the CPU says of plans that are made for it.
const plan::Target& cpu_target();

}  // namespace rosin::cpu
