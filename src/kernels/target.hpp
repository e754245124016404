// What the kernels of this room read, for plans whose calls nobody takes. Read first: plan/call.hpp.
#pragma once

#include "plan/call.hpp"

namespace rosin::kernels {

/// A device without a library: no call is taken; products read operands of any strides, other kernels contiguous ones.
class KernelTarget : public plan::Target {
 public:
  bool takes(const plan::CallDescription&) const override { return false; }
  plan::Order order(const plan::CallDescription& call, size_t) const override {
    return call.kind == plan::CallKind::matmul ? plan::Order::strided : plan::Order::contiguous;
  }
  int64_t longest_row() const override { return usual_row; }
  int recomputed_work() const override { return 200; }  // arithmetic is nearly free beside memory
  int vector_bytes() const override { return 16; }
  Form form() const override { return Form::text; }

  static constexpr int64_t usual_row = 4096;
};

}  // namespace rosin::kernels
