// Weights made from lengths and directions, or of norm 1: see rosin/reparametrise.hpp.
#include <rosin/reparametrise.hpp>

#include <string>
#include <vector>

#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/matmul.hpp>
#include <rosin/movement.hpp>
#include <rosin/random.hpp>
#include <rosin/reduce.hpp>

#include "graph/context.hpp"
#include "nn/layer_parts.hpp"
#include "ops/stop_gradient.hpp"

namespace rosin {
namespace {

Array of_unit_length(const Array& v, double eps) { return v / max(sqrt(sum(square(v))), eps); }

/// (n, all the rest): row i is slice i along `dim`.
Array matrix_of(const Array& weight, int dim) {
  std::vector<int> order = {dim};
  for (int d = 0; d < weight.rank(); ++d) {
    if (d != dim) order.push_back(d);
  }
  return reshape(permute(weight, order), {weight.size(dim), -1});
}

}  // namespace

int detail::checked_output_dim(const char* layer, const Array& weight, int stated) {
  const int rank = weight.is_nothing() ? 0 : weight.rank();
  const int dim = stated == automatic_dim ? (rank <= 2 ? 0 : rank - 1) : stated < 0 ? stated + rank : stated;
  if (dim >= 0 && dim < rank) return dim;
  throw Error(ErrorKind::argument, std::string(layer) + ": the dim must be one of the weight's; got dim " +
                                       std::to_string(stated) + " of " +
                                       (rank == 0 ? "nothing" : to_string(weight.shape())) +
                                       "; give a layer with a weight, and the dim of its outputs");
}

Array detail::slice_lengths(const Array& weight, int dim) {
  std::vector<int> others;
  for (int d = 0; d < weight.rank(); ++d) {
    if (d != dim) others.push_back(d);
  }
  const Array squares = others.empty() ? square(weight) : sum(square(weight), Dims(others));
  return sqrt(max(squares, 1e-24));
}

detail::Directions detail::first_directions(const Array& weight, int dim, double eps) {
  const DeviceScope scope(*weight.node());
  const Array u = of_unit_length(randn({weight.size(dim), 1}, weight.dtype()), eps);
  const Array v = of_unit_length(matmul(transpose(matrix_of(weight, dim)), u), eps);
  const Directions made = next_directions(weight, {u, v}, dim, 15, eps);
  eval();
  return made;
}

detail::Directions detail::next_directions(const Array& weight, const Directions& now, int dim, int64_t steps,
                                           double eps) {
  const Array matrix = stop_gradient(matrix_of(weight, dim));
  Directions next = now;
  for (int64_t i = 0; i < steps; ++i) {
    next.u = of_unit_length(matmul(matrix, next.v), eps);
    next.v = of_unit_length(matmul(transpose(matrix), next.u), eps);
  }
  return next;
}

Array detail::with_unit_norm(const Array& weight, const Directions& directions, int dim) {
  return weight / sum(directions.u * matmul(matrix_of(weight, dim), directions.v));
}

}  // namespace rosin
