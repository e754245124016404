// PReLU, rrelu, hardshrink: see rosin/prelu.hpp.
#include <rosin/prelu.hpp>

#include <algorithm>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/layer.hpp>
#include <rosin/random.hpp>
#include <rosin/reduce.hpp>

#include "graph/context.hpp"
#include "graph/op.hpp"
#include "graph/refuse_type.hpp"
#include "model/locate.hpp"
#include "nn/layer_parts.hpp"

namespace rosin {

PReLU::PReLU(int64_t channels, double slope) {
  if (channels < 1) {
    throw Error(ErrorKind::argument, "PReLU: there must be at least one weight; got " + std::to_string(channels) +
                                         " channels; write PReLU() for one weight");
  }
  weight = full({channels}, slope, Float32);
  eval(weight);
}

Array PReLU::operator()(const Array& x) const {
  return located(*this, [&] {
    const int dim = std::max(x.rank() - 2, 0);
    if (weight.count() > 1 && (x.rank() == 0 || x.size(dim) != weight.count())) {
      refuse_input(rosin_show(),
                   "expects size(input, " + std::to_string(dim) + ") == " + std::to_string(weight.count()), x,
                   "arrays are (..., channels, batch)");
    }
    const Array in = matched_input(x, weight, *this);
    const Array slope = x.rank() == 0 ? sum(weight) : along_dim(weight, dim, x.rank());
    return where(gt(in, 0), in, slope * in);
  });
}

std::string PReLU::rosin_show() const {
  return "PReLU(" + (weight.is_nothing() ? "" : std::to_string(weight.count())) + ")";
}

namespace {

const bool named[] = {name_function(rrelu, "rrelu"), name_function(hardshrink, "hardshrink")};

}  // namespace

Array rrelu(const Array& x) { return rrelu(x, 1.0 / 8, 1.0 / 3); }

Array rrelu(const Array& x, double low, double high) {
  if (!is_training(LayerMode::automatic)) return where(lt(x, 0), x * ((low + high) / 2), x);
  const DeviceScope scope(*x.node());
  const Array slope = uniform(x.shape(), low, high, x.dtype());
  return where(lt(x, 0), slope * x, x);
}

Array hardshrink(const Array& x) { return hardshrink(x, 0.5); }
Array hardshrink(const Array& x, double lambda) {
  require_real("hardshrink", x);
  return where(le(abs(x), lambda), 0, x);
}

}  // namespace rosin
