// Conversions of ops that address elements by indices. Read first: convert.hpp.
//
// Elements at places in several dims are addressed in a flat view: place = sum over dims of index times stride.
#include <algorithm>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/index.hpp>
#include <rosin/movement.hpp>
#include <rosin/reduce.hpp>

#include "onnx/convert.hpp"

namespace rosin::onnx {
namespace {

/// Negative indices count from the end.
Array counted(const Array& indices, int64_t size) {
  const Array at = as(indices, Int64);
  return where(lt(at, 0), at + size, at);
}

/// Writes into the last dim of (slice, places), as the attribute `reduction` says.
Array written(const NodeCall& call, const Array& target, const Array& places, const Array& updates) {
  const std::string reduction = call.text("reduction", "none");
  const int dim = target.rank() - 1;
  if (reduction == "none") return scatter(target, places, updates, dim);
  if (reduction == "add") return scatter_add(target, places, updates, dim);
  if (reduction == "mul") return scatter_mul(target, places, updates, dim);
  if (reduction == "max") return scatter_max(target, places, updates, dim);
  if (reduction == "min") return scatter_min(target, places, updates, dim);
  call.refuse("the reduction must be none, add, mul, max or min", "\"" + reduction + "\"");
}

/// x with updates at `at` along a dim, and at their own places along the others. An index outside the dim gives a place
/// outside the array, which the kernel refuses.
Array written_along(const NodeCall& call, const Array& x, const Array& at, const Array& updates, int dim) {
  int64_t stride = 1;
  Array places = full({}, 0, Int64);
  for (int d = 0; d < x.rank(); ++d) {
    const Array inside = (at >= 0) & (at < x.size(d));
    const Array here = d == dim ? where(inside, at, x.count()) : along(as(arange(updates.size(d)), Int64), d, x.rank());
    places = places + here * stride;
    stride *= x.size(d);
  }
  return reshape(written(call, reshape(x, {-1}), reshape(places, {-1}), reshape(updates, {-1})), x.shape());
}

/// Places of whole slices, from indices (k, shape...), in an array whose dims before `slice` are those of a slice and
/// whose last `batch` dims are common to both.
struct SlicePlaces {
  Array places;  // (shape..., batch...)
  int64_t slice = 1, count = 1;
  std::vector<int64_t> slice_sizes;
};

SlicePlaces slice_places(const NodeCall& call, const Array& x, const Array& indices, int batch) {
  if (indices.rank() < 1 || indices.rank() < batch) call.refuse("indices must have dims", to_string(indices.shape()));
  const auto k = static_cast<int>(indices.size(0));
  const int inner = x.rank() - batch - k;
  if (inner < 0) call.refuse("indices address at most the dims that there are", std::to_string(k));
  SlicePlaces result;
  const std::vector<int64_t> sizes = sizes_of(x);
  result.slice_sizes.assign(sizes.begin(), sizes.begin() + inner);
  result.slice = product(result.slice_sizes);
  int64_t stride = 1;
  Array places = full({}, 0, Int64);
  for (int j = k - 1; j >= 0; --j) {  // the last one of the file's indices runs fastest
    const int64_t size = sizes[static_cast<size_t>(inner + k - 1 - j)];
    places = places + counted(select(indices, 0, j), size) * stride;
    stride *= size;
  }
  for (int b = 0; b < batch; ++b) {
    const int64_t size = sizes[static_cast<size_t>(inner + k + b)];
    const int dim = indices.rank() - 1 - batch + b;
    places = places + along(as(arange(size), Int64) * stride, dim, indices.rank() - 1);
    stride *= size;
  }
  result.count = stride;
  result.places = places;
  return result;
}

}  // namespace

Arrays gather_value(const NodeCall& call) {
  return {gather(call[0], call[1], call.dim(call.integer("axis", 0), call[0].rank()))};
}

/// The other dims may be smaller than those of the input.
Arrays gather_elements(const NodeCall& call) {
  Array x = call[0];
  const Array& indices = call[1];
  const int dim = call.dim(call.integer("axis", 0), x.rank());
  if (indices.rank() != x.rank()) call.refuse("indices have as many dims as the input", to_string(indices.shape()));
  for (int d = 0; d < x.rank(); ++d) {
    if (d != dim && indices.size(d) != x.size(d)) x = slice(x, d, 0, indices.size(d));
  }
  return {take_along(x, indices, dim)};
}

Arrays gather_nd(const NodeCall& call) {
  const Array &x = call[0], &indices = call[1];
  const SlicePlaces at = slice_places(call, x, indices, static_cast<int>(call.integer("batch_dims", 0)));
  std::vector<int64_t> sizes = at.slice_sizes;
  for (int64_t size : at.places.shape()) sizes.push_back(size);
  return {reshape(gather(reshape(x, {at.slice, at.count}), reshape(at.places, {-1}), 1), sizes)};
}

Arrays scatter_nd(const NodeCall& call) {
  const Array &x = call[0], &indices = call[1], &updates = call[2];
  const SlicePlaces at = slice_places(call, x, indices, 0);
  const Array values = reshape(updates, {at.slice, at.places.count()});
  return {reshape(written(call, reshape(x, {at.slice, at.count}), reshape(at.places, {at.places.count()}), values),
                  x.shape())};
}

Arrays scatter_elements(const NodeCall& call) {
  const Array &x = call[0], &indices = call[1], &updates = call[2];
  const int dim = call.dim(call.integer("axis", 0), x.rank());
  if (indices.rank() != x.rank()) call.refuse("indices have as many dims as the input", to_string(indices.shape()));
  return {written_along(call, x, counted(indices, x.size(dim)), updates, dim)};
}

/// A cache with what is new from a place on, which the batch's observations have each of their own.
Arrays tensor_scatter(const NodeCall& call) {
  const Array &x = call[0], &updates = call[1];
  const int dim = call.dim(call.integer("axis", -2), x.rank());
  const std::string mode = call.text("mode", "linear");
  if (mode != "linear" && mode != "circular") call.refuse("the mode must be linear or circular", mode);
  if (dim == x.rank() - 1) call.refuse("the axis must not be that of the batch", std::to_string(x.rank() - 1 - dim));
  Array at = along(as(arange(updates.size(dim)), Int64), dim, x.rank());
  if (call.has(2)) at = at + along(as(call[2], Int64), x.rank() - 1, x.rank());
  if (mode == "circular") at = mod(at, x.size(dim));
  return {written_along(call, x, at, updates, dim)};
}

/// Labels outside of [-depth, depth) give rows that are all off.
Arrays one_hot(const NodeCall& call) {
  const Array& labels = call[0];
  const int64_t depth = call.integer_in(1);
  const Array off = select(call[2], 0, 0), on = select(call[2], 0, 1);
  const int dim = call.dim(call.integer("axis", -1), labels.rank() + 1);
  const Array at = unsqueeze(counted(labels, depth), dim);
  const Array classes = along(as(arange(depth), Int64), dim, labels.rank() + 1);
  return {where(eq(at, classes), on, off)};
}

Arrays compress(const NodeCall& call) {
  const std::vector<int64_t> chosen = call.integers_in(1);
  std::vector<int64_t> places;
  for (size_t i = 0; i < chosen.size(); ++i) {
    if (chosen[i] != 0) places.push_back(static_cast<int64_t>(i));
  }
  const Array at = worked_out(places, {static_cast<int64_t>(places.size())});
  if (!call.find("axis")) return {gather(reshape(call[0], {-1}), at, 0)};
  return {gather(call[0], at, call.dim(call.integer("axis", 0), call[0].rank()))};
}

/// How many there are depends on values, which are read here.
Arrays non_zero(const NodeCall& call) {
  const Array& x = call[0];
  const std::vector<int64_t> found = as(ne(x, as(0, x.dtype())), Int64).to_vector<int64_t>();
  const std::vector<int64_t> sizes = sizes_of(x);
  const int rank = x.rank();
  std::vector<int64_t> places;  // (rank in the file's order of axes) rows of the file: dim 1 here
  const auto count = std::count_if(found.begin(), found.end(), [](int64_t value) { return value != 0; });
  for (int axis = 0; axis < rank; ++axis) {
    const int dim = rank - 1 - axis;
    const int64_t stride = product(std::span<const int64_t>(sizes).first(static_cast<size_t>(dim)));
    for (size_t i = 0; i < found.size(); ++i) {
      if (found[i] != 0) places.push_back(static_cast<int64_t>(i) / stride % sizes[static_cast<size_t>(dim)]);
    }
  }
  return {worked_out(places, {count, rank})};
}

Arrays reverse_sequence(const NodeCall& call) {
  const Array& x = call[0];
  const int batch = call.dim(call.integer("batch_axis", 1), x.rank());
  const int time = call.dim(call.integer("time_axis", 0), x.rank());
  const Array lengths = along(as(call[1], Int64), batch, x.rank());
  const Array at = along(as(arange(x.size(time)), Int64), time, x.rank());
  const Array places = where(lt(at, lengths), lengths - 1 - at, at);
  return {take_along(x, expand(places, x.shape()), time)};
}

}  // namespace rosin::onnx
