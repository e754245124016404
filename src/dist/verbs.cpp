// Collectives on arrays, and the processes as a value.
#include <rosin/distributed.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/gradient_rules.hpp>
#include <rosin/index.hpp>
#include <rosin/movement.hpp>

#include "dist/device_memory.hpp"
#include "dist/group.hpp"
#include "dist/host.hpp"
#include "graph/hooks.hpp"
#include "graph/leaf.hpp"
#include "graph/node.hpp"
#include "graph/record.hpp"
#include "graph/transfer.hpp"

namespace rosin::distributed {

bool is_on_cpu(const Array& x) { return !is_scalar(*x.node()) && x.node()->device == 0; }

Array host_array(const Array& x) {
  if (!is_scalar(*x.node())) return on_cpu(x);
  Array made = fresh_leaf(x.dtype(), x.shape());
  write_number(*x.node(), made.node()->data(), x.dtype());
  return made;
}

Array placed_array(const Array& x) {
  if (is_scalar(*x.node())) return host_array(x);
  eval(x);
  look_at_checks(x);
  return x;
}

bool are_together(const std::vector<Array>& arrays) {
  return std::all_of(arrays.begin(), arrays.end(), [&](const Array& x) {
    return !is_scalar(*x.node()) && x.node()->device == arrays.front().node()->device;
  });
}

std::vector<Array> placed_together(const std::vector<Array>& arrays) {
  const bool together = are_together(arrays);
  std::vector<Array> placed;
  for (const Array& x : arrays) placed.push_back(together ? placed_array(x) : host_array(x));
  return placed;
}

Array fresh_beside(const Array& x, DType type, const Shape& shape) {
  const int device = is_scalar(*x.node()) ? 0 : x.node()->device;
  return leaf(hooks.allocate({.bytes = bytes_of(type, shape), .device = device}), type, shape);
}

Array few_elements(DType type, int64_t count) {
  using Word = std::max_align_t;
  auto* const words = new Word[bytes_of(type, {count}) / sizeof(Word) + 1];
  return borrowed_leaf(words, type, {count},
                       MemoryOwner(words, [](void* all) noexcept { delete[] static_cast<Word*>(all); }));
}

Array placed_like(Array made, const Array& like) {
  // Counters are numbers of the host, wherever the arrays beside them are.
  if (is_scalar(*like.node()) && like.dtype() == Int64) return scalar_argument(made.item<int64_t>());
  Array placed = transferred(made, is_scalar(*like.node()) ? 0 : like.node()->device);
  placed.node()->tied = like.node()->tied;
  return placed;
}

namespace {

void require_array(const char* op, const Array& x) {
  if (!x.is_nothing()) return;
  throw Error(ErrorKind::argument, std::string(op) + ": x must be an array; got nothing (an empty handle)");
}

[[noreturn]] void refuse_type(const char* op, const Array& x, const char* rule, const char* cure) {
  throw Error(ErrorKind::dtype, std::string(op) + ": " + rule + "; x is " + to_string(x.dtype()) + "; " + cure);
}

/// Elements of x as the transport counts them: a complex number is two.
int64_t counted_elements(const Array& x) { return x.count() * (is_complex(x.dtype()) ? 2 : 1); }

void check_reduction(const char* op, const Array& x, Reduction reduction) {
  require_array(op, x);
  if (x.dtype() == Bool) refuse_type(op, x, "elements that are reduced must be numbers", "convert it with cast");
  if (is_complex(x.dtype()) && reduction != Reduction::sum && reduction != Reduction::average) {
    refuse_type(op, x, "complex numbers have a sum and an average only", "reduce real and imaginary parts");
  }
  if (reduction == Reduction::average && !is_float(x.dtype()) && !is_complex(x.dtype())) {
    refuse_type(op, x, "an average needs a floating type", "reduce the sum, or convert with cast");
  }
}

/// The shape with another last dim; of a number, that of a vector.
Shape with_last_dim(const Shape& shape, int64_t last) {
  std::vector<int64_t> sizes(shape.begin(), shape.end());
  if (sizes.empty()) sizes.push_back(1);
  sizes.back() = last;
  return Shape(std::span<const int64_t>(sizes));
}

/// The reduced sum as what was asked for.
Array finished(const Array& reduced, Reduction reduction, int ranks) {
  return reduction == Reduction::average ? reduced * (1.0 / ranks) : reduced;
}

Array reduced(const Backend& backend, const Array& x, Reduction reduction, Verb verb) {
  check_reduction(verb.name, x, reduction);
  Group& group = backend.group();
  const Array given = placed_array(x);
  Array made = fresh_beside(x, x.dtype(), x.shape());
  verb.type = part_type(x.dtype());
  verb.reduction = reduction;
  const Piece piece{given, made, counted_elements(x)};
  group.run(verb, {&piece, 1});
  const bool has_result = group.ranks() > 1 && (verb.kind == ROSIN_COMM_ALLREDUCE || group.rank() == verb.root);
  return has_result ? finished(placed_like(made, x), reduction, group.ranks()) : x;
}

}  // namespace

std::string_view Backend::name() const { return group_->name(); }
int local_rank(const Backend& backend) { return backend.group().rank(); }
int total_workers(const Backend& backend) { return backend.group().ranks(); }

std::string to_string(const Backend& backend) {
  const Group& group = backend.group();
  return group.name() + " backend: rank " + std::to_string(group.rank()) + " of " + std::to_string(group.ranks());
}

Array bcast(const Backend& backend, const Array& x, RootOptions options) {
  require_array("bcast", x);
  Group& group = backend.group();
  const Array given = placed_array(x);
  const bool is_root = group.rank() == options.root;
  Array made = is_root ? given : fresh_beside(x, x.dtype(), x.shape());
  const Piece piece{given, made, x.count()};
  group.run({ROSIN_COMM_BROADCAST, "bcast", x.dtype(), Reduction::sum, options.root}, {&piece, 1});
  return is_root ? x : placed_like(made, x);
}

Array allreduce(const Backend& backend, const Array& x, Reduction reduction) {
  return reduced(backend, x, reduction, {ROSIN_COMM_ALLREDUCE, "allreduce"});
}

Array reduce(const Backend& backend, const Array& x, Reduction reduction, RootOptions options) {
  return reduced(backend, x, reduction, {.kind = ROSIN_COMM_REDUCE, .name = "reduce", .root = options.root});
}

Array allgather(const Backend& backend, const Array& x) {
  require_array("allgather", x);
  Group& group = backend.group();
  if (group.ranks() == 1) return x.rank() == 0 ? reshape(x, {1}) : x;
  const Array given = placed_array(x);
  const int64_t last = x.rank() == 0 ? 1 : x.size(-1);
  Array made = fresh_beside(x, x.dtype(), with_last_dim(x.shape(), last * group.ranks()));
  const Piece piece{given, made, x.count()};
  group.run({ROSIN_COMM_ALLGATHER, "allgather", x.dtype()}, {&piece, 1});
  return placed_like(made, x);
}

Array reduce_scatter(const Backend& backend, const Array& x, Reduction reduction) {
  check_reduction("reduce_scatter", x, reduction);
  Group& group = backend.group();
  const int64_t last = x.rank() == 0 ? 1 : x.size(-1);
  if (x.rank() == 0 || last % group.ranks() != 0) {
    throw Error(ErrorKind::shape, "reduce_scatter: the last dim of x must be a multiple of the " +
                                      std::to_string(group.ranks()) + " ranks; x is " + to_string(x.shape()));
  }
  if (group.ranks() == 1) return x;
  const Array given = placed_array(x);
  Array made = fresh_beside(x, x.dtype(), with_last_dim(x.shape(), last / group.ranks()));
  const Piece piece{given, made, counted_elements(made)};
  group.run({ROSIN_COMM_REDUCE_SCATTER, "reduce_scatter", part_type(x.dtype()), reduction}, {&piece, 1});
  return finished(placed_like(made, x), reduction, group.ranks());
}

Array sum_over_ranks(const Backend& backend, const Array& x) {
  return custom_gradient(allreduce(backend, x, Reduction::sum), {x},
                         [backend](const Array& dy) { return allreduce(backend, dy, Reduction::sum); });
}

BatchNorm SyncBatchNorm(const Backend& backend, int64_t channels, Activation activation,
                        const BatchNormOptions& options) {
  BatchNorm layer(channels, std::move(activation), options);
  layer.over = {[](void* group, const Array& x) { return sum_over_ranks(Backend(static_cast<Group*>(group)), x); },
                &backend.group()};
  return layer;
}

void barrier(const Backend& backend) { backend.group().run({ROSIN_COMM_BARRIER, "barrier"}, {}); }

void abort(const Backend& backend, std::string_view why) { backend.group().abort(std::string(why)); }

}  // namespace rosin::distributed
