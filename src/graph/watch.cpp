// See watch.hpp.
#include "graph/watch.hpp"

#include <cmath>
#include <string>
#include <vector>

#include <rosin/error.hpp>
#include <rosin/host_vector.hpp>

#include "base/environment.hpp"
#include "graph/context.hpp"
#include "graph/follow.hpp"
#include "graph/leaf.hpp"
#include "scalar/convert.hpp"

namespace rosin {
namespace {

bool is_on(Setting setting) { return environment_switch(setting).value_or(false); }

/// Where NaN stands in an array of floats.
struct Found {
  int64_t count = 0;
  int64_t first = -1;  // element in memory order
};

Found find_nan(const Array& x) {
  Found found;
  if (!is_float(x.dtype())) return found;
  const Array here = on_cpu(x);
  const int64_t count = here.count();
  std::vector<double> values = detail::host_vector<double>("ROSIN_NAN_CHECK", count);
  if (is_scalar(*here.node())) values[0] = scalar_value(*here.node()).real;
  else convert_elements(values.data(), DType::Float64, here.node()->data(), here.dtype(), count);
  for (int64_t i = 0; i < count; ++i) {
    if (!std::isnan(values[static_cast<size_t>(i)])) continue;
    if (found.count++ == 0) found.first = i;
  }
  return found;
}

std::string position_text(int64_t element, const Shape& shape) {
  std::string text = "(";
  for (int d = 0; d < shape.rank(); ++d) {
    text.append(d > 0 ? ", " : "").append(std::to_string(element % shape[d]));
    element /= shape[d];
  }
  return text + ")";
}

std::vector<Array> operands_of(const Node& node) {
  if (node.op == &part_op) return operands_of(*node.in[0]);
  std::vector<Array> operands;
  for (Node* operand : node.arrays()) {
    if (!operand) continue;
    add_count(operand, one_user);
    operands.push_back(Array::adopt(operand));
  }
  return operands;
}

[[noreturn]] void throw_nan(std::string_view op, const Array& made, const Found& found,
                            const std::vector<Array>& operands) {
  std::string text(op);
  text += ": the result must have no NaN where ROSIN_NAN_CHECK is 1; got " + std::to_string(found.count) + " of " +
          std::to_string(made.count()) + " elements, the first at " + position_text(found.first, made.shape());
  for (size_t i = 0; i < operands.size(); ++i) {
    if (find_nan(operands[i]).count == 0) continue;
    throw Error(ErrorKind::numeric, text + "; array " + std::to_string(i) + " of its operands has NaN already: " +
                                        "look at the data, or where that comes from");
  }
  throw Error(ErrorKind::numeric, text + "; no operand has NaN: keep them inside the op's range");
}

/// Copies that looking takes are not looked at.
class Blink {
 public:
  Blink() : context_(Context::current()) { context_.watched = false; }
  Blink(const Blink&) = delete;
  Blink& operator=(const Blink&) = delete;
  ~Blink() { context_.watched = true; }

 private:
  Context& context_;
};

}  // namespace

bool looks_for_nan() {
  static const bool on = is_on(Setting::nan_check);
  return on;
}

bool watches_ops() {
  static const bool on = is_on(Setting::eager) || looks_for_nan();
  return on;
}

void watch(std::span<const Array> made) {
  const Blink blink;
  const Node& first = *made[0].node();
  const std::string_view op = op_name(first);
  const std::vector<Array> operands = looks_for_nan() ? operands_of(first) : std::vector<Array>();
  const bool follows = is_made_of_constants(first);
  for (const Array& result : made) {
    eval(result);
    result.node()->settled = follows;
  }
  for (const Array& result : made) {
    const Found found = looks_for_nan() ? find_nan(result) : Found();
    if (found.count > 0) throw_nan(op, result, found, operands);
  }
}

}  // namespace rosin
