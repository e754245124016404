// The op that no gradient flows through.
#include "ops/stop_gradient.hpp"

#include "graph/record.hpp"

namespace rosin {
namespace {

const Op& stop_op = *register_op({.name = "stop_gradient",
                                  .kind = Kind::argument,
                                  .operands = 1,
                                  .doc = "the identity, through which no gradient flows"});

}  // namespace

Array stop_gradient(const Array& x) {
  require(stop_op, x);
  const Array* operands[] = {&x};
  Array stopped = record(stop_op, operands, x.dtype(), x.shape());
  stopped.node()->weak = x.node()->weak;
  return stopped;
}

}  // namespace rosin
