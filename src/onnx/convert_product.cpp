// Conversions of matrix products and of what computes in few bits. The file's matrix (rows, columns) is (columns, rows)
// here, so products change sides. Read first: convert.hpp.
#include <algorithm>
#include <limits>
#include <map>

#include <rosin/elementwise.hpp>
#include <rosin/matmul.hpp>
#include <rosin/movement.hpp>
#include <rosin/reduce.hpp>

#include "onnx/convert.hpp"

namespace rosin::onnx {
namespace {

/// Rows of the file are dim 1 here.
Array of_rows(const Array& zero) { return zero.rank() == 1 && zero.count() > 1 ? unsqueeze(zero, 0) : zero; }

Array less_zero(const NodeCall& call, size_t input, size_t zero, bool rows) {
  const Array x = as(call[input], Int32);
  if (!call.has(zero)) return x;
  const Array z = as(call[zero], Int32);
  return x - (z.count() == 1 ? reshape(z, Shape()) : rows ? of_rows(z) : z);
}

std::pair<double, double> bounds_of(DType type) {
  switch (type) {
    case Int8: return {-128, 127};
    case UInt16: return {0, 65535};
    case Int16: return {-32768, 32767};
    default: return {0, 255};
  }
}

/// Rounded to even, moved by the zero, cut to the type.
Array quantized(const Array& scaled, const Array& zero, DType type) {
  const auto [low, high] = bounds_of(type);
  return as(clamp(round(scaled) + as(zero, scaled.dtype()), low, high), type);
}

/// A list with an element for each place of the axis, or a single one; or an array with one for each block of the axis.
Array of_axis(const NodeCall& call, const Array& list, const Array& x) {
  const int64_t block = call.integer("block_size", 0);
  if (block == 0 && list.count() == 1) return reshape(list, Shape());
  const int dim = call.dim(call.integer("axis", 1), x.rank());
  if (block == 0) return along(list, dim, x.rank());
  if (list.rank() != x.rank() || block < 0 || list.size(dim) != (x.size(dim) + block - 1) / block) {
    call.refuse("scales must be one for each block of the axis",
                to_string(list.shape()) + " for " + to_string(x.shape()) + " in blocks of " + std::to_string(block));
  }
  return slice(repeat(list, block, dim), dim, 0, x.size(dim));
}

// --- Einstein's sums.

struct Equation {
  std::vector<std::string> inputs;
  std::string output;
};

/// Letters of each operand; an ellipsis becomes the letters '0', '1', ... from its last axis on.
std::string spelled(const NodeCall& call, const std::string& term, int rank, int& broadcast) {
  const size_t dots = term.find("...");
  if (dots == std::string::npos) return term;
  int more = rank < 0 ? broadcast : rank - static_cast<int>(term.size() - 3);
  if (more < 0 || more > 8) call.refuse("an operand must have as many axes as the equation says", term);
  broadcast = std::max(broadcast, more);
  std::string middle;
  while (more > 0) middle += static_cast<char>('0' + --more);
  return term.substr(0, dots) + middle + term.substr(dots + 3);
}

Equation equation_of(const NodeCall& call) {
  std::string text = call.text("equation", "");
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  const size_t arrow = text.find("->");
  Equation equation;
  std::string left = text.substr(0, arrow);
  int broadcast = 0;
  for (size_t i = 0, begin = 0; i <= left.size(); ++i) {
    if (i < left.size() && left[i] != ',') continue;
    const size_t operand = equation.inputs.size();
    if (operand >= call.input_count()) call.refuse("there must be an operand for each term", text);
    equation.inputs.push_back(spelled(call, left.substr(begin, i - begin), call[operand].rank(), broadcast));
    begin = i + 1;
  }
  if (equation.inputs.size() != call.input_count()) call.refuse("there must be a term for each operand", text);
  if (arrow != std::string::npos) {
    equation.output = spelled(call, text.substr(arrow + 2), -1, broadcast);
    return equation;
  }
  std::map<char, int> times;
  for (const std::string& term : equation.inputs) {
    for (char letter : term) ++times[letter];
  }
  for (const auto& [letter, count] : times) {
    if (count == 1 || (letter >= '0' && letter <= '9')) equation.output += letter;
  }
  const auto digits = std::find_if(equation.output.begin(), equation.output.end(), [](char c) { return c > '9'; });
  std::reverse(equation.output.begin(), digits);
  return equation;
}

/// The operand with a dim for each letter of `letters` (in the file's order), of size 1 where it has none; a letter
/// twice is a diagonal.
Array spread(const NodeCall& call, Array x, std::string term, const std::string& letters) {
  if (static_cast<int>(term.size()) != x.rank()) call.refuse("an operand must have an axis for each letter", term);
  for (size_t i = 0; i < term.size(); ++i) {
    const size_t again = term.find(term[i], i + 1);
    if (again == std::string::npos) continue;
    const int a = call.dim(static_cast<int64_t>(i), x.rank()), b = call.dim(static_cast<int64_t>(again), x.rank());
    if (x.size(a) != x.size(b)) call.refuse("axes of one letter must have one size", to_string(x.shape()));
    std::vector<int64_t> places(static_cast<size_t>(x.size(a) * x.size(b)));
    for (int64_t j = 0; j < x.size(a); ++j) places[static_cast<size_t>(j * x.size(a) + j)] = 1;
    std::vector<int64_t> sizes(static_cast<size_t>(x.rank()), 1);
    sizes[static_cast<size_t>(a)] = sizes[static_cast<size_t>(b)] = x.size(a);
    const Array mask = as(worked_out(places, Shape(std::span<const int64_t>(sizes))), x.dtype());
    x = squeeze(as(sum(x * mask, b), x.dtype()), b);
    term.erase(again, 1);
    --i;
  }
  std::vector<int64_t> sizes;
  std::vector<int> order;
  for (auto letter = letters.rbegin(); letter != letters.rend(); ++letter) {
    const size_t at = term.find(*letter);
    if (at != std::string::npos) order.push_back(call.dim(static_cast<int64_t>(at), x.rank()));
    sizes.push_back(at == std::string::npos ? 1 : x.size(order.back()));
  }
  return reshape(permute(x, order), sizes);
}

}  // namespace

Arrays matmul_value(const NodeCall& call) { return {as(matmul(call[1], call[0]), call[0].dtype())}; }

Arrays gemm(const NodeCall& call) {
  const Array a = call.integer("transA", 0) != 0 ? transpose(call[0]) : call[0];
  const Array b = call.integer("transB", 0) != 0 ? transpose(call[1]) : call[1];
  const double alpha = call.real("alpha", 1), beta = call.real("beta", 1);
  Array y = as(matmul(b, a), a.dtype());
  if (alpha != 1) y = y * alpha;
  if (call.has(2)) y = y + (beta == 1 ? call[2] : call[2] * beta);
  return {as(y, a.dtype())};
}

Arrays matmul_integer(const NodeCall& call) {
  return {as(matmul(less_zero(call, 1, 3, false), less_zero(call, 0, 2, true)), Int32)};
}

Arrays qlinear_matmul(const NodeCall& call) {
  const auto scalar = [](const Array& x) { return x.count() == 1 ? reshape(x, Shape()) : x; };
  const Array y = matmul(less_zero(call, 3, 5, false), less_zero(call, 0, 2, true));
  const Array scale = scalar(of_rows(call[1])) * scalar(call[4]) / scalar(call[6]);
  return {quantized(as(y, Float32) * as(scale, Float32), scalar(call[7]), call[7].dtype())};
}

/// Products of all operands, summed; matrices alone would be quicker, but letters are rarely more than that.
Arrays einsum(const NodeCall& call) {
  const Equation equation = equation_of(call);
  std::string letters = equation.output;
  for (const std::string& term : equation.inputs) {
    for (char letter : term) {
      if (letters.find(letter) == std::string::npos) letters += letter;
    }
  }
  if (letters.size() > static_cast<size_t>(Shape::max_rank)) call.refuse("at most eight letters", letters);
  Array y;
  for (size_t i = 0; i < equation.inputs.size(); ++i) {
    const Array x = spread(call, call[i], equation.inputs[i], letters);
    y = y.is_nothing() ? x : y * x;
  }
  std::vector<int> summed;
  for (size_t d = 0; d < letters.size() - equation.output.size(); ++d) summed.push_back(static_cast<int>(d));
  if (summed.empty()) return {y};
  y = as(sum(y, Dims(std::span<const int>(summed))), call[0].dtype());
  return {squeeze(y, std::span<const int>(summed))};
}

Arrays quantize(const NodeCall& call) {
  const Array& x = call[0];
  const Array scale = of_axis(call, call[1], x);
  const int64_t stated = call.integer("output_dtype", 0);
  if (!call.has(2)) {
    return {quantized(as(x, scale.dtype()) / scale, 0, stated == 0 ? UInt8 : stated_type(call, stated))};
  }
  return {quantized(as(x, scale.dtype()) / scale, of_axis(call, call[2], x), call[2].dtype())};
}

Arrays dequantize(const NodeCall& call) {
  const Array scale = of_axis(call, call[1], call[0]);
  Array x = as(call[0], scale.dtype());
  if (call.has(2)) x = x - as(of_axis(call, call[2], call[0]), scale.dtype());
  return {x * scale};
}

Arrays dynamic_quantize(const NodeCall& call) {
  const Array& x = call[0];
  const Array low = min(minimum(x), 0.0f), high = max(maximum(x), 0.0f);
  const Array scale = (high - low) / 255.0;
  const Array zero = clamp(round(-low / scale), 0, 255);
  return {quantized(x / scale, zero, UInt8), scale, as(zero, UInt8)};
}

/// By elimination without choice of pivots along the last two axes would fail for zeros: expanded by minors instead.
Arrays det(const NodeCall& call) {
  const Array& x = call[0];
  const int64_t n = x.rank() < 2 ? 0 : x.size(0);
  if (n < 1 || n > 6 || x.size(1) != n)
    call.refuse("matrices must be square, of at most six rows", to_string(x.shape()));
  // minors[set of columns]: the determinant of the first rows in these columns
  std::vector<Array> minors(size_t{1} << n);
  for (size_t set = 1; set < minors.size(); ++set) {
    const int rows = __builtin_popcountll(set);
    int sign = rows % 2 == 0 ? -1 : 1;
    Array total;
    for (int64_t column = 0; column < n; ++column) {
      if (!(set >> column & 1)) continue;
      const Array entry = select(select(x, 1, rows - 1), 0, column);
      const Array& rest = minors[set & ~(size_t{1} << column)];
      const Array term = rest.is_nothing() ? entry : entry * rest;
      total = total.is_nothing() ? (sign > 0 ? term : -term) : sign > 0 ? total + term : total - term;
      sign = -sign;
    }
    minors[set] = total;
  }
  return {minors.back()};
}

}  // namespace rosin::onnx
