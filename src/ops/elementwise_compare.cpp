// Comparisons, logic, choice, conversion. Read first: elementwise_op.hpp.
#include <rosin/elementwise.hpp>

#include "graph/context.hpp"
#include "graph/handle.hpp"
#include "graph/integers.hpp"
#include "graph/leaf.hpp"
#include "graph/record.hpp"
#include "ops/complex_forms.hpp"
#include "ops/elementwise_op.hpp"

namespace rosin {
namespace {

using scalar::FloatScalar;

/// The same answer for every element of an array of integers.
Array everywhere(const Array& x, bool answer) {
  const int64_t lowest = bounds_of(x.dtype()).lowest;
  return answer ? le(lowest, x) : lt(x, lowest);
}

// What comparisons with a number beyond the array's type give.
Array always(const Array& x, bool, bool) { return everywhere(x, true); }
Array never(const Array& x, bool, bool) { return everywhere(x, false); }
Array is_first_lower(const Array& x, bool number_first, bool above) { return everywhere(x, number_first != above); }

const Op& eq_op = elementwise<2>(
                      "eq", "a == b", [](auto a, auto b) { return a == b; }, everything)
                      .with_beyond(never)
                      .with_complex(complex_form::eq);
const Op& ne_op = elementwise<2>(
                      "ne", "a != b; true for NaN", [](auto a, auto b) { return a != b; }, everything)
                      .with_beyond(always)
                      .with_complex(complex_form::ne);
const Op& lt_op = elementwise<2>(
                      "lt", "a < b", [](auto a, auto b) { return a < b; }, everything)
                      .with_beyond(is_first_lower);
const Op& le_op = elementwise<2>(
                      "le", "a <= b", [](auto a, auto b) { return a <= b; }, everything)
                      .with_beyond(is_first_lower);

const Op& and_op = elementwise<2>(
    "logical_and", "both, of Bool", [](auto a, auto b) { return a & b; }, bools);
const Op& or_op = elementwise<2>(
    "logical_or", "at least one, of Bool", [](auto a, auto b) { return a | b; }, bools);
const Op& xor_op = elementwise<2>(
    "logical_xor", "exactly one, of Bool", [](auto a, auto b) { return a != b; }, bools);
const Op& not_op = elementwise<1>(
                       "logical_not", "the opposite, of Bool", [](auto a) { return !a; }, bools)
                       .called(logical_not);

const Op& where_op = elementwise<3, Operands::mask_first>(
                         "where", "a where the condition holds, else b",
                         [](auto condition, auto a, auto b) { return select(condition, a, b); }, everything)
                         .with_complex(complex_form::where)
                         .with_gradient([](Backward& b) {
                           if (b.needs(1)) b.give(1, where(b.in(0), b.gradient, 0.0));
                           if (b.needs(2)) b.give(2, where(b.in(0), 0.0, b.gradient));
                         });

const Op& is_nan_op = elementwise<1>(
                          "is_nan", "whether x is NaN", [](auto x) { return is_nan(x); }, everything)
                          .with_complex(complex_form::is_nan)
                          .called(is_nan);
const Op& is_inf_op = elementwise<1>(
                          "is_inf", "whether x is Inf or -Inf",
                          [](auto x) {
                            if constexpr (FloatScalar<decltype(x)>) return abs(x) == infinity(x);
                            else return x != x;
                          },
                          everything)
                          .with_complex(complex_form::is_inf)
                          .called(is_inf);
const Op& is_finite_op = elementwise<1>(
                             "is_finite", "whether x is neither NaN nor infinite",
                             [](auto x) {
                               if constexpr (FloatScalar<decltype(x)>) return abs(x) < infinity(x);
                               else return x == x;
                             },
                             everything)
                             .with_complex(complex_form::is_finite)
                             .called(is_finite);

const Op& cast_op = elementwise<1>(
                        "cast", "x in another type; floats are cut toward zero and saturate, NaN gives 0",
                        [](auto x) { return x; }, everything)
                        .with_gradient([](Backward& b) {
                          const DType from = b.in(0).dtype();
                          if (is_float(from)) b.give(0, cast(b.gradient, from));
                        });

}  // namespace

Array eq(const Array& a, const Array& b) { return record(eq_op, a, b); }
Array ne(const Array& a, const Array& b) { return record(ne_op, a, b); }
Array lt(const Array& a, const Array& b) { return record(lt_op, a, b); }
Array le(const Array& a, const Array& b) { return record(le_op, a, b); }
Array gt(const Array& a, const Array& b) { return record(lt_op, b, a); }
Array ge(const Array& a, const Array& b) { return record(le_op, b, a); }
Array operator==(const Array& a, const Array& b) { return record(eq_op, a, b); }
Array operator!=(const Array& a, const Array& b) { return record(ne_op, a, b); }
Array operator<(const Array& a, const Array& b) { return record(lt_op, a, b); }
Array operator<=(const Array& a, const Array& b) { return record(le_op, a, b); }
Array operator>(const Array& a, const Array& b) { return record(lt_op, b, a); }
Array operator>=(const Array& a, const Array& b) { return record(le_op, b, a); }
Array logical_and(const Array& a, const Array& b) { return record(and_op, a, b); }
Array logical_or(const Array& a, const Array& b) { return record(or_op, a, b); }
Array logical_xor(const Array& a, const Array& b) { return record(xor_op, a, b); }
Array logical_not(const Array& x) { return record(not_op, x); }
Array operator&(const Array& a, const Array& b) { return record(and_op, a, b); }
Array operator|(const Array& a, const Array& b) { return record(or_op, a, b); }
Array operator^(const Array& a, const Array& b) { return record(xor_op, a, b); }
Array operator!(const Array& x) { return record(not_op, x); }
Array where(const Array& condition, const Array& a, const Array& b) { return record(where_op, condition, a, b); }
Array is_nan(const Array& x) { return record(is_nan_op, x); }
Array is_inf(const Array& x) { return record(is_inf_op, x); }
Array is_finite(const Array& x) { return record(is_finite_op, x); }
Array cast(const Array& x, DType type) {
  require(cast_op, x);
  // A C++ number is exact as double or integer, but would pass through Float32 or Int32 as a recorded operand.
  if (is_scalar(*x.node()) && size_of(type) == 8 && !is_complex(type)) {
    const Array exact = constant(fresh_leaf(type, Shape{}));
    write_number(*x.node(), exact.node()->data(), type);
    return in_scope(exact);
  }
  if (x.dtype() == type && !x.node()->weak) return x;
  return is_complex(type) || is_complex(x.dtype()) ? complex_form::cast(x, type) : record_as(cast_op, x, type);
}

Array unwidened(const Array& x) {
  const Node& node = *x.node();
  const bool pending = node.state.load(std::memory_order_relaxed) == NodeState::pending;
  if (node.op != &cast_op || !pending || node.scalars != 0 || node.recorder != Context::current_or_null()) return x;
  Node* const from = node.arrays()[0];
  if (!is_float(from->dtype) || !is_float(node.dtype) || size_of(from->dtype) >= size_of(node.dtype)) return x;
  return handle_of(from);
}

}  // namespace rosin
