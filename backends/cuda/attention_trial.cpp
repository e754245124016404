// A small attention, computed by cuDNN and by its definition, with its gradient.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "cuda/cudnn.hpp"
#include "vendor/scratch.hpp"

namespace rosin::cuda {
namespace {

using driver::Address;
using driver::Failure;
using vendor::ScratchMemory;
using vendor::ScratchStream;
using Numbers = std::vector<double>;

constexpr int needed_major = 9, needed_minor = 6;  // before, sums are left for others to clear
constexpr int64_t batch = 2, heads = 4, served = 2, length = 128, features = 16;
constexpr double scale = 0.25, tolerance = 2e-2;

Tensor tensor(int at, int64_t count) {  // heads side by side
  return {{batch, count, length, features}, {length * count * features, features, count * features, 1}, at};
}

Attention tried(bool gradient) {
  Attention a;
  a.gradient = gradient;
  a.causal = a.deterministic = true;
  a.scale = scale;
  a.q = tensor(0, heads);
  a.k = tensor(1, served);
  a.v = tensor(2, served);
  a.y = tensor(3, heads);
  a.state = {{batch, heads, length, 1}, {heads * length, length, 1, 1}, 4};
  if (gradient) {
    a.dy = tensor(5, heads);
    a.dq = tensor(6, heads);
    a.dk = tensor(7, served);
    a.dv = tensor(8, served);
  }
  return a;
}

size_t at(int64_t count, int64_t b, int64_t h, int64_t t, int64_t f) {
  return static_cast<size_t>(((b * length + t) * count + h) * features + f);
}

/// Multiples of 1/8 from -1 to 1: BFloat16 has them all.
Numbers numbers(int64_t count, int which) {
  Numbers all;
  for (int64_t i = 0; i < count * batch * length * features; ++i) {
    all.push_back(std::round(8 * std::sin(1.7 * static_cast<double>(i) + 2.3 * which)) / 8);
  }
  return all;
}

struct Defined {
  Numbers y = Numbers(static_cast<size_t>(batch * heads * length * features)), dq = y;
  Numbers dk = Numbers(static_cast<size_t>(batch * served * length * features)), dv = dk;
};

/// Of one query.
void add_query(const Numbers& q, const Numbers& k, const Numbers& v, const Numbers& dy, int64_t b, int64_t h, int64_t t,
               Defined& made) {
  const int64_t of = h / (heads / served);
  Numbers weight(static_cast<size_t>(t + 1)), slope(weight.size());
  double sum = 0, dots = 0;
  for (int64_t s = 0; s <= t; ++s) {
    double logit = 0;
    for (int64_t f = 0; f < features; ++f) logit += q[at(heads, b, h, t, f)] * k[at(served, b, of, s, f)];
    sum += weight[static_cast<size_t>(s)] = std::exp(scale * logit);
  }
  for (int64_t s = 0; s <= t; ++s) {
    const auto key = static_cast<size_t>(s);
    weight[key] /= sum;
    for (int64_t f = 0; f < features; ++f) {
      made.y[at(heads, b, h, t, f)] += weight[key] * v[at(served, b, of, s, f)];
      made.dv[at(served, b, of, s, f)] += weight[key] * dy[at(heads, b, h, t, f)];
      slope[key] += dy[at(heads, b, h, t, f)] * v[at(served, b, of, s, f)];
    }
    dots += weight[key] * slope[key];
  }
  for (int64_t s = 0; s <= t; ++s) {
    const auto key = static_cast<size_t>(s);
    const double by_logit = scale * weight[key] * (slope[key] - dots);
    for (int64_t f = 0; f < features; ++f) {
      made.dq[at(heads, b, h, t, f)] += by_logit * k[at(served, b, of, s, f)];
      made.dk[at(served, b, of, s, f)] += by_logit * q[at(heads, b, h, t, f)];
    }
  }
}

/// Device memory with the numbers as BFloat16.
class There {
 public:
  There(ScratchStream& stream, const Numbers& values) : memory_(values.size() * sizeof(uint16_t)) {
    for (const double x : values) {
      bits_.push_back(static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(x)) >> 16));
    }
    stream.copy_in(memory_, bits_.data());
  }
  Address address() const { return memory_.address(); }
  bool is_near(ScratchStream& stream, const Numbers& wanted) {
    stream.copy_out(bits_.data(), memory_);
    stream.sync();
    for (size_t i = 0; i < wanted.size(); ++i) {
      const double got = static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits_[i]) << 16));
      if (!(std::abs(got - wanted[i]) <= tolerance * (1 + std::abs(wanted[i])))) return false;
    }
    return true;
  }

 private:
  std::vector<uint16_t> bits_;
  ScratchMemory memory_;
};

bool is_right(Dnn& dnn) {
  constexpr uint64_t most_room = uint64_t{16} << 20;
  const std::shared_ptr<DnnWays> forward = dnn.ways_of(tried(false), most_room),
                                 backward = dnn.ways_of(tried(true), most_room);
  const size_t first = forward->first(), second = backward->first();
  const Numbers q = numbers(heads, 0), k = numbers(served, 1), v = numbers(served, 2), dy = numbers(heads, 3);
  ScratchMemory state(batch * heads * length * sizeof(float)),
      room(std::max<uint64_t>({forward->workspace(first), backward->workspace(second), 1}));
  ScratchStream stream;
  There there_q(stream, q), there_k(stream, k), there_v(stream, v), there_dy(stream, dy), y(stream, dy), dq(stream, dy),
      dk(stream, k), dv(stream, k);
  const Address arrays[] = {there_q.address(),  there_k.address(), there_v.address(), y.address(), state.address(),
                            there_dy.address(), dq.address(),      dk.address(),      dv.address()};
  dnn.run(stream.stream(), *forward, first, arrays, room.address());
  dnn.run(stream.stream(), *backward, second, arrays, room.address());
  Defined wanted;
  for (int64_t i = 0; i < batch * heads * length; ++i) {
    add_query(q, k, v, dy, i / heads / length, i / length % heads, i % length, wanted);
  }
  return y.is_near(stream, wanted.y) && dq.is_near(stream, wanted.dq) && dk.is_near(stream, wanted.dk) &&
         dv.is_near(stream, wanted.dv);
}

std::string tried_attention(Dnn& dnn) {
  if (!dnn.reason().empty()) return dnn.reason();
  const DnnLibrary& library = dnn_library();
  if (!library.is_at_least(needed_major, needed_minor)) {
    return "cuDNN " + library.version() + " is too old for attention: 9.6 is needed";
  }
  try {
    return is_right(dnn) ? std::string() : "cuDNN " + library.version() + " computes a small attention wrongly";
  } catch (const Failure& failure) {
    return failure.text;
  }
}

}  // namespace

const std::string& Dnn::attention_reason() {
  const std::lock_guard guard(trying_);
  if (!attention_reason_) attention_reason_ = tried_attention(*this);
  return *attention_reason_;
}

}  // namespace rosin::cuda
