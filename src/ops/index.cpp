// Gather, scatter, scatter_add along one dim; take_along and its adjoint; one-hot. Values are checked by the kernels.
#include <rosin/index.hpp>

#include <limits>

#include <rosin/complex.hpp>
#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/movement.hpp>
#include <rosin/reduce.hpp>

#include "graph/context.hpp"
#include "graph/gather_form.hpp"
#include "graph/leaf.hpp"
#include "graph/recording_site.hpp"
#include "graph/refuse_type.hpp"
#include "ops/add_along.hpp"
#include "ops/gather_in_range.hpp"
#include "ops/lookup.hpp"
#include "ops/reducers.hpp"
#include "ops/scattered.hpp"
#include "ops/shapes.hpp"

namespace rosin {
namespace {

/// A C++ number as an array beside `x`: the kernels of this family read their operands from memory.
Array in_memory(const Array& number, const Array& x) {
  if (!is_scalar(*number.node())) return number;
  const DeviceScope scope(*x.node());
  const Array made = fresh_leaf(number.dtype(), Shape{});
  write_number(*number.node(), made.node()->data(), number.dtype());
  return in_scope(made);
}

// The dim is the first attribute of all ops here.
int dim_of(const Backward& b) { return static_cast<int>(b.attributes<DimAttributes>().dim); }

void gather_gradient(Backward& b) {
  const SameSite site(b.node());
  const Array x = b.in(0);
  b.give(0, scatter_add(zeros_like(x), b.in(1), b.gradient, dim_of(b)));
}

/// Gather under the name of who asks, which messages about indices show.
const Op& gather_named(std::string_view name) {
  return *register_op({.name = name,
                       .kind = Kind::gather,
                       .operands = 2,
                       .doc = "slices of operand 0 along a dim, by indices; repeated ones add in the gradient",
                       .type_rule = TypeRule::attribute,
                       .attribute_words = 2,
                       .gradient = gather_gradient});
}
const Op& gather_op = gather_named("gather");
const Op& embedding_op = gather_named("Embedding");
const Op& embedding_bag_op = gather_named("EmbeddingBag");

void take_gradient(Backward& b) {
  const SameSite site(b.node());
  b.give(0, add_along(b.in(0).shape(), b.in(1), b.gradient, dim_of(b)));
}

const Op& take_op = *register_op({.name = "take_along",
                                  .kind = Kind::gather,
                                  .operands = 2,
                                  .doc = "elements of operand 0 along a dim, one index for each",
                                  .type_rule = TypeRule::attribute,
                                  .attribute_words = 2,
                                  .gradient = take_gradient});
const Op& onehot_op = *register_op({.name = "onehot",
                                    .kind = Kind::gather,
                                    .operands = 1,
                                    .doc = "true at the label along a new first dim",
                                    .type_rule = TypeRule::boolean});

[[noreturn]] void refuse_label(const Attributes& attributes, int64_t label) {
  throw Error(ErrorKind::argument, "labels: a label must be in [0, " +
                                       std::to_string(attributes.as<LabelAttributes>().classes) + "); got " +
                                       std::to_string(label) + "; labels count from 0");
}

const Op& label_op = *register_op({.name = "labels",
                                   .kind = Kind::gather,
                                   .operands = 1,
                                   .doc = "true; a label that is no class makes the run fail",
                                   .type_rule = TypeRule::boolean,
                                   .attribute_words = 1,
                                   .refuse_index = refuse_label});

void scatter_add_gradient(Backward& b) {
  const SameSite site(b.node());
  b.give(0, b.gradient);
  if (b.needs(2)) b.give(2, gather(b.gradient, b.in(1), dim_of(b)));
}

const Op& scatter_add_op = *register_op({.name = "scatter_add",
                                         .kind = Kind::scatter,
                                         .operands = 3,
                                         .doc = "operand 0 with operand 2 added at indices along a dim, in their order",
                                         .type_rule = TypeRule::attribute,
                                         .reducer = &sum_reducer,
                                         .scatter = Scatter::add,
                                         .attribute_words = 1,
                                         .gradient = scatter_add_gradient});

// Of repeated indices only the last update is in the result: the one whose own number is found at its place.
void scatter_gradient(Backward& b) {
  const SameSite site(b.node());
  const int dim = dim_of(b);
  const Array indices = b.in(1);
  const Array updates = b.in(2);
  if (b.needs(0)) b.give(0, scatter(b.gradient, indices, zeros_like(updates), dim));
  if (!b.needs(2)) return;
  const Array flat = reshape(indices, {indices.count()});
  const Array numbers = arange(indices.count());
  const Array last = scatter(zeros({b.in(0).size(dim)}, numbers.dtype()), flat, numbers);
  const Array stays = cast(eq(gather(last, flat), numbers), b.gradient.dtype());
  const Shape line =
      with_dims(Shape(std::vector<int64_t>(static_cast<size_t>(dim), 1)), dim, 0, sizes_of(indices.shape()));
  b.give(2, gather(b.gradient, indices, dim) * reshape(stays, line));
}

const Op& scatter_op =
    *register_op({.name = "scatter",
                  .kind = Kind::scatter,
                  .operands = 3,
                  .doc = "operand 0 with operand 2 written at indices along a dim; the last one stays",
                  .type_rule = TypeRule::attribute,
                  .scatter = Scatter::write,
                  .attribute_words = 1,
                  .gradient = scatter_gradient});

void add_along_gradient(Backward& b) {
  const SameSite site(b.node());
  b.give(1, take_along(b.gradient, b.in(0), dim_of(b)));
}

const Op& add_along_op = *register_op({.name = "add_along",
                                       .kind = Kind::scatter,
                                       .operands = 2,
                                       .doc = "zeros with operand 1 added along a dim, one index (operand 0) for each",
                                       .type_rule = TypeRule::attribute,
                                       .scatter = Scatter::add_along,
                                       .attribute_words = 1,
                                       .gradient = add_along_gradient});

/// Indices as the kernels read them, in signed 64 bits at most; those beyond stay too large for any dim.
Array checked_indices(const Op& op, const Array& indices) {
  require(op, indices);
  if (indices.dtype() == UInt64) return cast(min(indices, std::numeric_limits<int64_t>::max()), Int64);
  if (is_integer(indices.dtype())) return indices;
  refuse(ErrorKind::dtype, op.name, "indices must be integers", to_string(indices.dtype()),
         "convert them with cast(x, Int32)");
}

Array gathered(const Op& op, const Array& x, const Array& indices, int dim) {
  require(op, x);
  const int at = checked_dim(op.name, dim, x.shape());
  if (is_complex(x.dtype())) return view_as_complex(gathered(op, view_as_real(x), indices, at + 1));
  const Array places = in_memory(checked_indices(op, indices), x);
  const Array* in[] = {&x, &places};
  return record(op, in, x.dtype(), with_dims(x.shape(), at, 1, sizes_of(indices.shape())),
                Attributes::of(GatherAttributes{at, 0}));
}

/// Indices for each element of complex arrays as those of the parts.
Array for_both_parts(const Array& indices) {
  return expand(reshape(indices, with_dims(indices.shape(), 0, 0, {1})), with_dims(indices.shape(), 0, 0, {2}));
}

const bool named[] = {name_function(onecold, "onecold")};

}  // namespace

void require_numbers(const Op& op, const Array& target) {
  require(op, target);
  if (target.dtype() != Bool) return;
  refuse(ErrorKind::dtype, op.name, "it takes numbers", to_string(target.dtype()), "convert with cast(target, Int32)");
}

Array scattered(const Op& op, const Array& target, const Array& indices, const Array& updates, int dim) {
  require(op, target);
  require(op, updates);
  const Array checked = checked_indices(op, indices);
  const int at = checked_dim(op.name, dim, target.shape());
  const Shape wanted = with_dims(target.shape(), at, 1, sizes_of(indices.shape()));
  if (!(updates.shape() == wanted)) {
    refuse(ErrorKind::shape, op.name, "updates must have the shape " + to_string(wanted), to_string(updates.shape()),
           "indices take the place of dim " + std::to_string(at) + " of the target");
  }
  const Array* both[] = {&target, &updates};
  const DType type = common_type(op, both);
  const Array base = target.dtype() == type ? target : cast(target, type);
  if (is_complex(type)) {
    const Array added = updates.dtype() == type ? updates : cast(updates, type);
    return view_as_complex(scattered(op, view_as_real(base), indices, view_as_real(added), at + 1));
  }
  const Array values = in_memory(updates.dtype() == type ? updates : cast(updates, type), target);
  const Array places = in_memory(checked, target);
  const Array* in[] = {&base, &places, &values};
  return record(op, in, type, base.shape(), Attributes::of(DimAttributes{at}));
}

Array add_along(const Shape& shape, const Array& indices, const Array& updates, int dim) {
  const Array* in[] = {&indices, &updates};
  return record(add_along_op, in, updates.dtype(), shape, Attributes::of(DimAttributes{dim}));
}

Array gather(const Array& x, const Array& indices, int dim) { return gathered(gather_op, x, indices, dim); }
Array embedding(const Array& weight, const Array& indices) { return gathered(embedding_op, weight, indices, -1); }
Array embedding_bag(const Array& weight, const Array& indices) {
  return gathered(embedding_bag_op, weight, indices, -1);
}

Array gather_in_range(const Array& x, const Array& indices) {
  if (is_complex(x.dtype())) return view_as_complex(gather_in_range(view_as_real(x), indices));
  const int last = x.rank() - 1;
  const Array* in[] = {&x, &indices};
  return record(gather_op, in, x.dtype(), with_dims(x.shape(), last, 1, sizes_of(indices.shape())),
                Attributes::of(GatherAttributes{last, slices_in_range}));
}

Array scatter(const Array& target, const Array& indices, const Array& updates, int dim) {
  return scattered(scatter_op, target, indices, updates, dim);
}

Array scatter_add(const Array& target, const Array& indices, const Array& updates, int dim) {
  require_numbers(scatter_add_op, target);
  return scattered(scatter_add_op, target, indices, updates, dim);
}

Array take_along(const Array& x, const Array& indices, int dim) {
  require(take_op, x);
  const Array places = checked_indices(take_op, indices);
  const int at = checked_dim("take_along", dim, x.shape());
  if (x.rank() != indices.rank() || !(with_size(x.shape(), at, 0) == with_size(indices.shape(), at, 0))) {
    refuse(ErrorKind::shape, "take_along", "all sizes but that of dim " + std::to_string(at) + " must be equal",
           to_string(x.shape()) + " and " + to_string(indices.shape()), "use gather for whole slices");
  }
  if (is_complex(x.dtype())) return view_as_complex(take_along(view_as_real(x), for_both_parts(indices), at + 1));
  const Array* in[] = {&x, &places};
  return record(take_op, in, x.dtype(), indices.shape(), Attributes::of(GatherAttributes{at, 1}));
}

Array onehot(const Array& labels, int64_t classes) {
  const Array places = checked_indices(onehot_op, labels);
  if (classes < 1) {
    refuse(ErrorKind::argument, "onehot", "there must be at least one class", std::to_string(classes),
           "pass the number of classes, not a label");
  }
  return record_one(onehot_op, in_memory(places, places), Bool, with_dims(labels.shape(), 0, 0, {classes}));
}

Array are_labels(const Array& labels, int64_t classes) {
  const Array checked = checked_indices(label_op, labels);
  return record_one(label_op, in_memory(checked, checked), Bool, with_dims(labels.shape(), 0, 0, {1}),
                    Attributes::of(LabelAttributes{classes}));
}

Array onecold(const Array& y) {
  require_real("onecold", y);
  return squeeze(argmax(y, 0), 0);
}

}  // namespace rosin
