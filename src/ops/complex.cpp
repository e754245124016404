// Complex numbers as pairs of real ones: an array is looked at as its parts, (2, sizes...), where sizes still meet from
// the first dim on. So fusion, gradients and devices know nothing of them. Read first: complex_forms.hpp.
#include <rosin/complex.hpp>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/movement.hpp>
#include <rosin/reduce.hpp>
#include <rosin/special.hpp>

#include "graph/context.hpp"
#include "graph/handle.hpp"
#include "graph/leaf.hpp"
#include "ops/complex_forms.hpp"
#include "ops/shapes.hpp"

namespace rosin {
namespace {

const Op& view_as_real_op = *register_op({.name = "view_as_real",
                                          .kind = Kind::movement,
                                          .operands = 1,
                                          .doc = "complex elements as a first dim of two reals",
                                          .movement = Movement::parts,
                                          .gradient = [](Backward& b) { b.give(0, view_as_complex(b.gradient)); }});
const Op& view_as_complex_op = *register_op({.name = "view_as_complex",
                                             .kind = Kind::movement,
                                             .operands = 1,
                                             .doc = "a first dim of two reals as complex elements",
                                             .movement = Movement::parts,
                                             .gradient = [](Backward& b) { b.give(0, view_as_real(b.gradient)); }});

DType whole_type(DType part) { return part == Float64 ? ComplexF64 : ComplexF32; }

/// The operand of a pending look that is undone at once. (Another thread's node may let its operand go meanwhile.)
Array undone(const Array& x, const Op& op) {
  const Node& node = *x.node();
  if (node.op != &op || node.recorder != &Context::current() || !node.in[0]) return {};
  return handle_of(node.in[0]);
}

Shape without_first(const Shape& shape) { return Shape(sizes_of(shape).subspan(1)); }

/// x with a first dim of size 1; numbers stay.
Array beside_parts(const Array& x) {
  if (x.rank() == 0) return x;
  return reshape(x, with_dims(x.shape(), 0, 0, {1}));
}

/// Parts of an operand: of a real one those of type `type` with imaginary parts 0.
Array parts_of(const Array& x, DType type) {
  if (is_complex(x.dtype())) return view_as_real(x.dtype() == type ? x : cast(x, type));
  return view_as_real(cast(x, type));
}

/// The common complex type: that of the first complex operand.
DType type_of(std::span<const Array> x) {
  for (const Array& operand : x) {
    if (is_complex(operand.dtype())) return operand.dtype();
  }
  return ComplexF32;
}

Array part(const Array& parts, int i) { return slice(parts, 0, i, i + 1); }

/// Two numbers beside the parts.
Array pair(const Array& parts, float first, float second) {
  const DeviceScope scope(*parts.node());
  return table(cast(Array({first, second}, {2}), parts.dtype()));
}

Array conjugate(const Array& parts) { return parts * pair(parts, 1, -1); }
/// i*z: -im, re.
Array turned(const Array& parts) { return flip(parts, 0) * pair(parts, -1, 1); }
Array product(const Array& a, const Array& b) { return part(a, 0) * b + part(a, 1) * turned(b); }

/// a / b, with b scaled so that its square does not leave the type's range.
Array quotient(const Array& a, const Array& b) {
  const Array scale = maximum(abs(b), {0}), small = b / scale;
  return product(a, conjugate(small)) / sum(square(small), {0}) / scale;
}

/// The first part where `first`, else the second, both of size 1 in dim 0.
Array joined(const Array& re, const Array& im) {
  const Array is_first = pair(re, 1, 0) > 0;
  return where(is_first, re, im);
}

Array drop_first(const Array& x) { return reshape(x, without_first(x.shape())); }
Array magnitude(const Array& parts) { return hypot(part(parts, 0), part(parts, 1)); }

void require_complex(const Op& op, const Array& z) {
  require(op, z);
  if (is_complex(z.dtype())) return;
  refuse(ErrorKind::dtype, op.name, "the array must be complex", to_string(z.dtype()), "make one with complex(re, im)");
}

void check_part(std::string_view op, DType type) {
  if (type == Float32 || type == Float64) return;
  refuse(ErrorKind::dtype, op, "parts are Float32 or Float64", to_string(type), "convert them with cast(x, Float32)");
}

const bool named[] = {name_function(real, "real"),
                      name_function(imag, "imag"),
                      name_function(conj, "conj"),
                      name_function(angle, "angle"),
                      name_function(view_as_real, "view_as_real"),
                      name_function(view_as_complex, "view_as_complex")};

}  // namespace

Array view_as_real(const Array& z) {
  require_complex(view_as_real_op, z);
  if (z.rank() == Shape::max_rank) {
    refuse(ErrorKind::shape, "view_as_real", "complex arrays have at most seven dims", to_string(z.shape()),
           "reshape first");
  }
  if (Array parts = undone(z, view_as_complex_op); !parts.is_nothing()) return parts;
  return record_one(view_as_real_op, z, part_type(z.dtype()), with_dims(z.shape(), 0, 0, {2}));
}

Array view_as_complex(const Array& parts) {
  require(view_as_complex_op, parts);
  check_part("view_as_complex", parts.dtype());
  if (parts.rank() == 0 || parts.size(0) != 2) {
    refuse(ErrorKind::shape, "view_as_complex", "the first dim must have size 2", to_string(parts.shape()),
           "see complex(re, im)");
  }
  if (Array z = undone(parts, view_as_real_op); !z.is_nothing()) return z;
  return record_one(view_as_complex_op, parts, whole_type(parts.dtype()), without_first(parts.shape()));
}

Array complex(const Array& re, const Array& im) {
  require(view_as_complex_op, re);
  require(view_as_complex_op, im);
  const Array* both[] = {&re, &im};
  const DType type = common_type(view_as_complex_op, both);
  check_part("complex", type);
  const DeviceScope scope(is_scalar(*re.node()) ? *im.node() : *re.node());
  const auto whole = [&](const Array& x) { return beside_parts(x.dtype() == type ? x : cast(x, type)); };
  return view_as_complex(joined(whole(re), whole(im)));
}

Array real(const Array& z) { return is_complex(z.dtype()) ? drop_first(part(view_as_real(z), 0)) : z; }
Array imag(const Array& z) {
  return is_complex(z.dtype()) ? drop_first(part(view_as_real(z), 1)) : zeros_like(z * 0.0);
}
Array conj(const Array& z) { return is_complex(z.dtype()) ? view_as_complex(conjugate(view_as_real(z))) : z; }
Array angle(const Array& z) { return atan2(imag(z), real(z)); }

namespace complex_form {

Array cast(const Array& x, DType type) {
  if (type == Bool) return ne(x, 0.0);
  if (!is_complex(type)) {
    refuse(ErrorKind::dtype, "cast", "a complex array has no real values",
           std::string(to_string(x.dtype())) + " for " + to_string(type), "take real(z), imag(z) or abs(z)");
  }
  if (!is_complex(x.dtype())) return complex(rosin::cast(x, part_type(type)), 0.0);
  return view_as_complex(rosin::cast(view_as_real(x), part_type(type)));
}

Array add(std::span<const Array> x) {
  const DType type = type_of(x);
  return view_as_complex(parts_of(x[0], type) + parts_of(x[1], type));
}
Array sub(std::span<const Array> x) {
  const DType type = type_of(x);
  return view_as_complex(parts_of(x[0], type) - parts_of(x[1], type));
}
Array mul(std::span<const Array> x) {
  const DType type = type_of(x);
  for (const size_t i : {size_t{0}, size_t{1}}) {
    if (!is_complex(x[i].dtype())) return view_as_complex(beside_parts(x[i]) * parts_of(x[1 - i], type));
  }
  return view_as_complex(product(parts_of(x[0], type), parts_of(x[1], type)));
}
Array div(std::span<const Array> x) {
  const DType type = type_of(x);
  if (!is_complex(x[1].dtype())) return view_as_complex(parts_of(x[0], type) / beside_parts(x[1]));
  return view_as_complex(quotient(parts_of(x[0], type), parts_of(x[1], type)));
}
Array neg(std::span<const Array> x) { return view_as_complex(-view_as_real(x[0])); }
Array square(std::span<const Array> x) {
  const Array parts = view_as_real(x[0]);
  return view_as_complex(product(parts, parts));
}
Array reciprocal(std::span<const Array> x) { return 1.0 / x[0]; }
Array abs(std::span<const Array> x) { return drop_first(magnitude(view_as_real(x[0]))); }

/// The root with a real part of 0 or more.
Array sqrt(std::span<const Array> x) {
  const Array parts = view_as_real(x[0]), re = part(parts, 0), im = part(parts, 1);
  const Array right = re >= 0.0;
  const Array half = rosin::sqrt((magnitude(parts) + rosin::where(right, re, -re)) * 0.5);
  const Array other = im / (2.0 * rosin::where(half == 0.0, 1.0, half));
  const auto signed_as_im = [&](const Array& value) { return rosin::where(im < 0.0, -value, value); };
  return view_as_complex(
      joined(rosin::where(right, half, signed_as_im(other)), rosin::where(right, other, signed_as_im(half))));
}
Array exp(std::span<const Array> x) {
  const Array parts = view_as_real(x[0]), im = part(parts, 1);
  return view_as_complex(rosin::exp(part(parts, 0)) * joined(cos(im), sin(im)));
}
Array log(std::span<const Array> x) {
  const Array parts = view_as_real(x[0]);
  return view_as_complex(joined(rosin::log(magnitude(parts)), atan2(part(parts, 1), part(parts, 0))));
}

Array eq(std::span<const Array> x) {
  const DType type = type_of(x);
  return drop_first(all(parts_of(x[0], type) == parts_of(x[1], type), {0}));
}
Array ne(std::span<const Array> x) {
  const DType type = type_of(x);
  return drop_first(any(parts_of(x[0], type) != parts_of(x[1], type), {0}));
}
Array where(std::span<const Array> x) {
  const DType type = type_of(x.subspan(1));
  return view_as_complex(rosin::where(beside_parts(x[0]), parts_of(x[1], type), parts_of(x[2], type)));
}
Array is_nan(std::span<const Array> x) { return drop_first(any(rosin::is_nan(view_as_real(x[0])), {0})); }
Array is_inf(std::span<const Array> x) { return drop_first(any(rosin::is_inf(view_as_real(x[0])), {0})); }
Array is_finite(std::span<const Array> x) { return drop_first(all(rosin::is_finite(view_as_real(x[0])), {0})); }

}  // namespace complex_form
}  // namespace rosin
