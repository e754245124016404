// Small recurrent layers, computed by cuDNN and by their definition (rosin_cell): outputs, and the slope of a sum of
// them along one direction of all operands.
#include <array>
#include <cmath>
#include <vector>

#include "cuda/cudnn_recurrent.hpp"
#include "vendor/scratch.hpp"

namespace rosin::cuda {
namespace {

using driver::Address;
using driver::Failure;
using vendor::ScratchMemory;
using vendor::ScratchStream;
using Numbers = std::vector<double>;

constexpr int64_t features = 3, out = 4, steps = 3, batch = 2;
constexpr double tolerance = 1e-4;

/// The operands of a layer, or numbers for each of their elements.
struct Operands {
  Numbers x, weights, h, c;

  Operands moved(const Operands& along, double by) const {
    Operands made = *this;
    const auto move = [by](Numbers& a, const Numbers& b) {
      for (size_t i = 0; i < a.size(); ++i) a[i] += by * b[i];
    };
    move(made.x, along.x);
    move(made.weights, along.weights);
    move(made.h, along.h);
    move(made.c, along.c);
    return made;
  }
};

/// From -1 to 1, of no pattern that hides an exchange of two places.
Numbers numbers(int64_t count, int which) {
  Numbers all;
  for (int64_t i = 0; i < count; ++i) all.push_back(std::sin(1.7 * static_cast<double>(i) + 2.3 * which));
  return all;
}

Operands operands_of(const Recurrent& layer, int which) {
  return {numbers(features * steps * batch, which), numbers(layer.parameters(), which + 1),
          numbers(out * batch, which + 2), numbers(out * batch, which + 3)};
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// W x + b and R h of a gate's row.
struct Sums {
  double s = 0, u = 0;
};
Sums sums_of(const Recurrent& layer, const Operands& a, int64_t gate, int64_t row, const double* x, const double* h) {
  const int64_t gates = layer.gates(), line = gate * out + row;
  const double* weights = a.weights.data();
  Sums made{weights[gates * out * (features + out) + line], 0};
  for (int64_t k = 0; k < features; ++k) made.s += weights[line * features + k] * x[k];
  for (int64_t k = 0; k < out; ++k) made.u += weights[gates * out * features + line * out + k] * h[k];
  return made;
}

/// The state behind a step; c of it is changed.
double stepped(const Recurrent& layer, const std::array<Sums, 4>& gate, double h, double& c) {
  const auto both = [&](int g) { return gate[static_cast<size_t>(g)].s + gate[static_cast<size_t>(g)].u; };
  switch (layer.cell) {
    case ROSIN_CELL_TANH: return std::tanh(both(0));
    case ROSIN_CELL_RELU: return std::max(both(0), 0.0);
    case ROSIN_CELL_LSTM:
      c = sigmoid(both(1)) * c + sigmoid(both(0)) * std::tanh(both(2));
      return sigmoid(both(3)) * std::tanh(c);
    default: {
      const double n = std::tanh(gate[2].s + sigmoid(both(0)) * gate[2].u);
      return n + sigmoid(both(1)) * (h - n);
    }
  }
}

/// Outputs (out, steps, batch).
Numbers defined(const Recurrent& layer, const Operands& a) {
  Numbers y(static_cast<size_t>(out * steps * batch));
  for (int64_t b = 0; b < batch; ++b) {
    Numbers h(a.h.begin() + b * out, a.h.begin() + (b + 1) * out),
        c(a.c.begin() + b * out, a.c.begin() + (b + 1) * out);
    for (int64_t t = 0; t < steps; ++t) {
      Numbers next(static_cast<size_t>(out));
      for (int64_t row = 0; row < out; ++row) {
        std::array<Sums, 4> gate{};
        for (int64_t g = 0; g < layer.gates(); ++g) {
          gate[static_cast<size_t>(g)] =
              sums_of(layer, a, g, row, &a.x[static_cast<size_t>((b * steps + t) * features)], h.data());
        }
        const auto at = static_cast<size_t>(row);
        next[at] = stepped(layer, gate, h[at], c[at]);
        y[static_cast<size_t>((b * steps + t) * out + row)] = next[at];
      }
      h = next;
    }
  }
  return y;
}

double product(const Numbers& a, const Numbers& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// Device memory with the numbers as Float32.
class There {
 public:
  There(ScratchStream& stream, const Numbers& values) : values_(values.begin(), values.end()), memory_(bytes()) {
    stream.copy_in(memory_, values_.data());
  }
  Address address() const { return memory_.address(); }
  Numbers back(ScratchStream& stream) {
    stream.copy_out(values_.data(), memory_);
    stream.sync();
    return {values_.begin(), values_.end()};
  }

 private:
  uint64_t bytes() const { return values_.size() * sizeof(float); }
  std::vector<float> values_;
  ScratchMemory memory_;
};

bool near(double a, double b) { return std::abs(a - b) <= tolerance * (1 + std::abs(b)); }

/// Whether the layer is as defined. The slope: that of the product of the outputs with some numbers.
bool is_right(Dnn& dnn, const Recurrent& layer) {
  const DnnRecurrent computed(dnn, layer);
  const Operands at = operands_of(layer, 0), along = operands_of(layer, 10);
  const Numbers slopes = numbers(out * steps * batch, 20);
  ScratchMemory reserve(std::max<uint64_t>(computed.reserve(), 1)),
      room(std::max<uint64_t>(computed.workspace(true), 1));
  ScratchStream stream;
  const auto zeros = [](const Numbers& like) { return Numbers(like.size()); };
  There x(stream, at.x), weights(stream, at.weights), h(stream, at.h), c(stream, at.c), y(stream, slopes),
      dy(stream, slopes), dx(stream, zeros(at.x)), dweights(stream, zeros(at.weights)), dh(stream, zeros(at.h)),
      dc(stream, zeros(at.c));
  RecurrentArrays arrays{.x = x.address(),
                         .weights = weights.address(),
                         .h = h.address(),
                         .y = y.address(),
                         .dy = dy.address(),
                         .dx = dx.address(),
                         .dweights = dweights.address(),
                         .dh = dh.address(),
                         .reserve = reserve.address(),
                         .workspace = room.address()};
  const bool is_lstm = layer.cell == ROSIN_CELL_LSTM;
  if (is_lstm) {
    arrays.c = c.address();
    arrays.dc = dc.address();
  }
  computed.forward(stream.stream(), arrays);
  computed.backward(stream.stream(), arrays);
  const Numbers wanted = defined(layer, at), got = y.back(stream);
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (!near(got[i], wanted[i])) return false;
  }
  const double little = 1e-5;
  const double slope = (product(defined(layer, at.moved(along, little)), slopes) -
                        product(defined(layer, at.moved(along, -little)), slopes)) /
                       (2 * little);
  const double found = product(dx.back(stream), along.x) + product(dweights.back(stream), along.weights) +
                       product(dh.back(stream), along.h) + (is_lstm ? product(dc.back(stream), along.c) : 0);
  return near(found, slope);
}

std::string tried_recurrent(Dnn& dnn) {
  if (!dnn.reason().empty()) return dnn.reason();
  try {
    for (const int32_t cell : {ROSIN_CELL_TANH, ROSIN_CELL_RELU, ROSIN_CELL_LSTM, ROSIN_CELL_GRU}) {
      Recurrent layer;
      layer.cell = cell;
      layer.features = features;
      layer.out = out;
      layer.steps = steps;
      layer.batch = batch;
      if (!is_right(dnn, layer)) {
        return "cuDNN " + dnn_library().version() + " computes a small recurrent layer wrongly";
      }
    }
  } catch (const Failure& failure) {
    return failure.text;
  }
  return {};
}

}  // namespace

const std::string& Dnn::recurrent_reason() {
  const std::lock_guard guard(trying_);
  if (!recurrent_reason_) recurrent_reason_ = tried_recurrent(*this);
  return *recurrent_reason_;
}

}  // namespace rosin::cuda
