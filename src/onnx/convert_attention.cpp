// Conversions of what transformers are made of. Read first: convert.hpp.
#include <rosin/elementwise.hpp>
#include <rosin/index.hpp>
#include <rosin/movement.hpp>

#include "onnx/convert.hpp"

namespace rosin::onnx {
namespace {

/// (head * heads, length, batch) -> (head, length, heads, batch); arrays with heads stay.
Array with_heads(const NodeCall& call, const Array& x, int64_t heads) {
  if (x.rank() == 4) return x;
  if (x.rank() != 3 || heads < 1 || x.size(0) % heads != 0) {
    call.refuse("heads must divide the features", to_string(x.shape()) + " by " + std::to_string(heads));
  }
  return permute(reshape(x, {x.size(0) / heads, heads, x.size(1), x.size(2)}), {0, 2, 1, 3});
}

}  // namespace

/// Half of each vector's pairs turned by an angle that depends on the place. x is (features, length, batch) or
/// (head, length, heads, batch); the tables are (angles, places), or (angles, length, batch).
Arrays rotary_embedding(const NodeCall& call) {
  const Array x = with_heads(call, call[0], call.integer("num_heads", 0));
  const int64_t all = x.size(0), stated = call.integer("rotary_embedding_dim", 0), turned = stated > 0 ? stated : all;
  const auto table = [&](size_t input) {
    const Array rows = call.has(3) ? gather(call[input], call[3], 1) : call[input];
    return unsqueeze(slice(rows, 0, 0, turned / 2), 2);  // (angles, length, 1, batch)
  };
  const Array cosine = table(1), sine = table(2), part = slice(x, 0, 0, turned);
  const bool interleaved = call.integer("interleaved", 0) != 0;
  const Array a = interleaved ? slice(part, 0, 0, to_end, 2) : slice(part, 0, 0, turned / 2);
  const Array b = interleaved ? slice(part, 0, 1, to_end, 2) : slice(part, 0, turned / 2, turned);
  const Array left = cosine * a - sine * b, right = sine * a + cosine * b;
  Array y = interleaved ? reshape(stack({left, right}, 0), part.shape()) : concat({left, right}, 0);
  if (turned < all) y = concat({y, slice(x, 0, turned, all)}, 0);
  return {call[0].rank() == 4 ? y : reshape(permute(y, {0, 2, 1, 3}), call[0].shape())};
}

}  // namespace rosin::onnx
