// Call: one prepared kernel of an opaque kind (contraction, window, gather, scatter, sort, scan, random, and movements
// that copy) on the CPU. Prepared once for given shapes, run in every step; work is cut by shape only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <rosin/dtype.hpp>
#include <rosin/shape.hpp>

#include "graph/op.hpp"

namespace rosin::cpu {

/// One operand or result: where element (i, j, ...) stands is sum of index * stride (in elements).
struct CallArray {
  DType type = DType::Float32;
  Shape shape;
  int64_t strides[Shape::max_rank] = {};

  bool contiguous() const;
  /// Images (spatial..., channels, batch) in CWHN, or in an order that is the same in memory.
  bool channels_first() const;
};

/// What is to be computed: the op with its attributes on these operands. Operands may be strided (transposed, sliced,
/// broadcast with stride 0) when `accepts_strides` says so for the op; the result is contiguous, column-major.
struct CallSpec {
  const Op* op = nullptr;
  Attributes attributes;
  std::vector<CallArray> operands;
  CallArray result;
};

/// Values of one run. Where operand i is a C++ number, operands[i] is null, and scalars[i] and integers[i] are its
/// value (else unused).
struct CallData {
  const void* operands[Node::max_operands] = {};
  double scalars[Node::max_operands] = {};
  int64_t integers[Node::max_operands] = {};
  void* result = nullptr;
  void* scratch = nullptr;  // scratch_bytes() of this run
};

class Call {
 public:
  virtual ~Call() = default;
  /// Runs once before all pieces, on one thread.
  virtual void begin(const CallData&) {}
  /// Independent pieces; their number depends on shapes only. Every piece runs once, in any order, on any thread.
  virtual int64_t chunks() const { return 1; }
  virtual size_t scratch_bytes() const { return 0; }
  virtual void run(int64_t chunk, const CallData& data) = 0;
  /// Runs once after all pieces (adds partial sums, in order).
  virtual void finish(const CallData&) {}
  /// Whether running can throw: values may be refused, or memory be needed.
  virtual bool may_fail() const { return true; }
};

/// Error (dtype) when the CPU has no such kernel for these types.
std::unique_ptr<Call> prepare(const CallSpec& spec);

/// Whether operand i of the op may be strided; otherwise the plan makes it contiguous first.
bool accepts_strides(const Op& op, int operand);

/// Whether the call takes operand i (the result: -1) as images in CWHN. Where size-1 dims make that the same as the
/// logical order, the array looks contiguous.
bool wants_channels_first(const Op& op, DType type, int operand);

}  // namespace rosin::cpu
