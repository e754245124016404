// einsum and what is made of it; see rosin/einsum.hpp. A term is an array with a label for each dim; labels are
// letters, and below 'A' those of the dims that "..." stands for. Gradients follow from the parts.
#include <rosin/einsum.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <rosin/elementwise.hpp>
#include <rosin/matmul.hpp>
#include <rosin/movement.hpp>
#include <rosin/reduce.hpp>

#include "graph/refuse_type.hpp"
#include "ops/autocast_casts.hpp"
#include "ops/shapes.hpp"

namespace rosin {
namespace {

constexpr std::string_view dots = "...";

struct Term {
  Array array;
  std::string labels;
};

bool has(std::string_view labels, char label) { return labels.find(label) != std::string_view::npos; }

std::string quoted(std::string_view text) {
  std::string result(1, '"');
  return result.append(text).append(1, '"');
}

[[noreturn]] void refuse_equation(const std::string& rule, std::string_view equation) {
  refuse(ErrorKind::argument, "einsum", rule, quoted(equation),
         "write one letter for each dim, commas between operands, as in \"ij,jk->ik\"");
}

/// The label of dim i of those that "..." stands for.
char unnamed(int i) { return static_cast<char>('!' + i); }

/// The labels of a term, "..." written out for `count` dims.
std::string labels_of(std::string_view text, int count, std::string_view equation) {
  std::string labels;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i, dots.size()) == dots) {
      for (int d = 0; d < count; ++d) labels.push_back(unnamed(d));
      i += dots.size() - 1;
    } else if (text[i] != ' ') {
      const char c = text[i];
      if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))) refuse_equation("dims are named by letters", equation);
      labels.push_back(c);
    }
  }
  return labels;
}

int named_dims(std::string_view text) {
  const auto letters = std::count_if(text.begin(), text.end(), [](char c) { return c != ' ' && c != '.'; });
  return static_cast<int>(letters);
}

std::vector<std::string_view> split_at_commas(std::string_view text) {
  std::vector<std::string_view> parts;
  for (size_t start = 0;;) {
    const size_t end = text.find(',', start);
    parts.push_back(text.substr(start, end == std::string_view::npos ? end : end - start));
    if (end == std::string_view::npos) return parts;
    start = end + 1;
  }
}

/// x with dims a < b, of one size, replaced by their diagonal at a.
Array diagonal_of(const Array& x, int a, int b) {
  std::vector<int> order = {a, b};
  std::vector<int64_t> sizes = {x.size(a) * x.size(b)};
  for (int d = 0; d < x.rank(); ++d) {
    if (d != a && d != b) order.push_back(d), sizes.push_back(x.size(d));
  }
  const Array line = slice(reshape(permute(x, order), sizes), 0, 0, to_end, x.size(a) + 1);
  std::vector<int> back;
  for (int d = 1; d <= a; ++d) back.push_back(d);
  back.push_back(0);
  for (int d = a + 1; d < line.rank(); ++d) back.push_back(d);
  return permute(line, back);
}

/// Labels that occur twice in the term become one.
void take_diagonals(Term& term, std::string_view equation) {
  for (size_t b = 0; b < term.labels.size(); ++b) {
    const size_t a = term.labels.find(term.labels[b]);
    if (a == b) continue;
    const int first = static_cast<int>(a), second = static_cast<int>(b);
    if (term.array.size(first) != term.array.size(second)) {
      refuse(ErrorKind::shape, "einsum", "a letter stands for one size",
             quoted(equation) + " with " + to_string(term.array.shape()), "name the dims differently");
    }
    term.array = diagonal_of(term.array, first, second);
    term.labels.erase(b--, 1);
  }
}

/// The dims in the order of `labels`, which are those of the term.
Array in_order(const Term& term, std::string_view labels) {
  std::vector<int> order;
  for (const char label : labels) order.push_back(static_cast<int>(term.labels.find(label)));
  return permute(term.array, order);
}

/// Sums over the labels that `kept` lacks.
void sum_out(Term& term, std::string_view kept) {
  std::vector<int> dims;
  std::string labels;
  for (size_t d = 0; d < term.labels.size(); ++d) {
    if (has(kept, term.labels[d])) labels.push_back(term.labels[d]);
    else dims.push_back(static_cast<int>(d));
  }
  if (dims.empty()) return;
  term.array = squeeze(sum(term.array, Dims(std::span<const int>(dims))), dims);
  term.labels = labels;
}

int64_t size_of(const Term& term, char label) { return term.array.size(static_cast<int>(term.labels.find(label))); }

int64_t count_of(const Term& term, std::string_view labels) {
  int64_t count = 1;
  for (const char label : labels) count *= size_of(term, label);
  return count;
}

/// The sum of products of two terms over the labels that `kept` lacks. Where one has size 1 it broadcasts.
Term product(Term a, Term b, std::string_view kept) {
  sum_out(a, std::string(kept) + b.labels);
  sum_out(b, std::string(kept) + a.labels);
  std::string of_a, of_b, inner, batch;
  for (const char label : a.labels) (!has(b.labels, label) ? of_a : has(kept, label) ? batch : inner).push_back(label);
  for (const char label : b.labels) {
    if (!has(a.labels, label)) of_b.push_back(label);
  }
  for (const char label : inner) {  // a dim that broadcasts is summed in the one that has it
    if (size_of(a, label) == size_of(b, label)) continue;
    Term& wide = size_of(a, label) == 1 ? b : a;
    wide.array = sum(wide.array, static_cast<int>(wide.labels.find(label)));
  }
  const DType type = a.array.dtype();
  const bool alike = of_a.empty() && of_b.empty() && type == b.array.dtype();
  // No matrices: products of elements, added up where they are made. (In an autocast scope matmul chooses the type.)
  if (alike && (type == Float32 || type == Float64) && !halves(a.array)) {
    Term products{in_order(a, inner + batch) * in_order(b, inner + batch), inner + batch};
    sum_out(products, batch);
    return products;
  }
  std::vector<int64_t> sizes_a = {count_of(a, of_a), count_of(a, inner)},
                       sizes_b = {count_of(b, inner), count_of(b, of_b)}, sizes;
  for (const char label : of_a) sizes.push_back(size_of(a, label));
  for (const char label : of_b) sizes.push_back(size_of(b, label));
  for (const char label : batch) {
    sizes_a.push_back(size_of(a, label));
    sizes_b.push_back(size_of(b, label));
    sizes.push_back(std::max(sizes_a.back(), sizes_b.back()));
    if (sizes_a.back() == 0 || sizes_b.back() == 0) sizes.back() = 0;
  }
  const Array result =
      matmul(reshape(in_order(a, of_a + inner + batch), sizes_a), reshape(in_order(b, inner + of_b + batch), sizes_b));
  return {reshape(result, sizes), of_a + of_b + batch};
}

/// Every label has one size, or 1 where it stands for an unnamed dim.
void check_sizes(const std::vector<Term>& terms, std::string_view equation) {
  std::map<char, int64_t> sizes;
  for (const Term& term : terms) {
    for (size_t d = 0; d < term.labels.size(); ++d) {
      const int64_t size = term.array.size(static_cast<int>(d));
      int64_t& known = sizes.try_emplace(term.labels[d], size).first->second;
      if (known == 1 && term.labels[d] < 'A') known = size;
      if (size == known || (size == 1 && term.labels[d] < 'A')) continue;
      refuse(ErrorKind::shape, "einsum", "a letter stands for one size",
             quoted(equation) + " with sizes " + std::to_string(known) + " and " + std::to_string(size),
             "name the dims differently");
    }
  }
}

/// Letters that occur once, in the order of the alphabet, after the unnamed dims.
std::string implied_result(const std::vector<Term>& terms, int unnamed_dims) {
  std::string all, once;
  for (const Term& term : terms) all += term.labels;
  for (int d = 0; d < unnamed_dims; ++d) once.push_back(unnamed(d));
  std::sort(all.begin(), all.end());
  for (const char label : all) {
    if (label >= 'A' && std::count(all.begin(), all.end(), label) == 1) once.push_back(label);
  }
  return once;
}

void check_result(const std::string& labels, const std::vector<Term>& terms, std::string_view equation) {
  for (const char label : labels) {
    const bool known = std::any_of(terms.begin(), terms.end(), [&](const Term& t) { return has(t.labels, label); });
    if (!known) refuse_equation("letters of the result stand in an operand", equation);
    if (std::count(labels.begin(), labels.end(), label) > 1) {
      refuse_equation("the result has a letter once", equation);
    }
  }
}

struct Equation {
  std::vector<Term> terms;
  std::string result;
};

Equation read(std::string_view text, std::span<const Array> operands) {
  const size_t arrow = text.find("->");
  const std::vector<std::string_view> parts = split_at_commas(text.substr(0, arrow));
  if (parts.size() != operands.size() || operands.empty()) {
    refuse_equation("there is a term for each of " + std::to_string(operands.size()) + " operands", text);
  }
  int most = 0;
  std::vector<int> unnamed_dims;
  for (size_t i = 0; i < parts.size(); ++i) {
    const int count = operands[i].rank() - named_dims(parts[i]);
    if (count < 0 || (count > 0 && parts[i].find(dots) == std::string_view::npos)) {
      refuse_equation("a term has a letter for each dim of " + to_string(operands[i].shape()), text);
    }
    unnamed_dims.push_back(count);
    most = std::max(most, count);
  }
  Equation equation;
  for (size_t i = 0; i < parts.size(); ++i) {
    equation.terms.push_back({operands[i], labels_of(parts[i], unnamed_dims[i], text)});
  }
  equation.result = arrow == std::string_view::npos ? implied_result(equation.terms, most)
                                                    : labels_of(text.substr(arrow + 2), most, text);
  for (Term& term : equation.terms) take_diagonals(term, text);
  check_sizes(equation.terms, text);
  check_result(equation.result, equation.terms, text);
  return equation;
}

void check_matrix(std::string_view op, const Array& x) {
  if (x.rank() >= 2) return;
  refuse(ErrorKind::shape, op, "it takes matrices", to_string(x.shape()), "reshape to two dims");
}

const bool named[] = {name_function(trace, "trace")};

}  // namespace

Array einsum(std::string_view equation, std::span<const Array> operands) {
  auto [terms, result] = read(equation, operands);
  Term all = terms[0];
  for (size_t i = 1; i < terms.size(); ++i) {
    std::string kept = result;
    for (size_t later = i + 1; later < terms.size(); ++later) kept += terms[later].labels;
    all = product(all, terms[i], kept);
  }
  sum_out(all, result);
  return in_order(all, result);
}

Array tensordot(const Array& a, const Array& b, int dims) {
  std::vector<int> of_a, of_b;
  for (int d = 0; d < dims; ++d) {
    of_a.push_back(a.rank() - dims + d);
    of_b.push_back(d);
  }
  return tensordot(a, b, of_a, of_b);
}

Array tensordot(const Array& a, const Array& b, std::span<const int> dims_of_a, std::span<const int> dims_of_b) {
  if (dims_of_a.size() != dims_of_b.size()) {
    refuse(ErrorKind::argument, "tensordot", "dims come in pairs",
           std::to_string(dims_of_a.size()) + " and " + std::to_string(dims_of_b.size()), "name as many of each");
  }
  Term left{a, {}}, right{b, {}};
  for (int d = 0; d < a.rank(); ++d) left.labels.push_back(static_cast<char>('A' + d));
  for (int d = 0; d < b.rank(); ++d) right.labels.push_back(static_cast<char>('a' + d));
  for (size_t i = 0; i < dims_of_a.size(); ++i) {
    const int at_a = checked_dim("tensordot", dims_of_a[i], a.shape());
    const int at_b = checked_dim("tensordot", dims_of_b[i], b.shape());
    if (a.size(at_a) != b.size(at_b)) {
      refuse(ErrorKind::shape, "tensordot", "dims of a pair have one size",
             to_string(a.shape()) + " and " + to_string(b.shape()), "name other dims");
    }
    right.labels[static_cast<size_t>(at_b)] = left.labels[static_cast<size_t>(at_a)];
  }
  std::string kept;
  for (const char label : left.labels) {
    if (!has(right.labels, label)) kept.push_back(label);
  }
  for (const char label : right.labels) {
    if (!has(left.labels, label)) kept.push_back(label);
  }
  return in_order(product(left, right, kept), kept);
}

Array kron(const Array& a, const Array& b) {
  check_matrix("kron", a);
  check_matrix("kron", b);
  const int64_t rows = a.size(0) * b.size(0);
  // A column of the result is a product of two columns of its length.
  const auto stretched = [&](const Array& x, int dim, const Shape& columns) {
    return reshape(expand(unsqueeze(x, dim), {b.size(0), a.size(0), x.size(1)}), columns);
  };
  const Array products = stretched(a, 0, {rows, 1, a.size(1)}) * stretched(b, 1, {rows, b.size(1), 1});
  return reshape(products, {rows, a.size(1) * b.size(1)});
}

Array diagonal(const Array& x, int64_t k) {
  check_matrix("diagonal", x);
  const int64_t row = std::max<int64_t>(-k, 0), column = std::max<int64_t>(k, 0);
  const int64_t length = std::min(x.size(0) - row, x.size(1) - column);
  if (length < 0) {
    refuse(ErrorKind::shape, "diagonal", "k is a diagonal of the matrix",
           std::to_string(k) + " for " + to_string(x.shape()), "choose one nearer to 0");
  }
  return diagonal_of(slice(slice(x, 0, row, row + length), 1, column, column + length), 0, 1);
}

Array diagm(const Array& v, int64_t k) {
  if (v.rank() != 1) refuse(ErrorKind::shape, "diagm", "it takes a vector", to_string(v.shape()), "reshape it");
  const int64_t n = v.size(0), row = std::max<int64_t>(-k, 0), column = std::max<int64_t>(k, 0);
  // Each element and n zeros after it make the columns of the square, one after another.
  const Array square = n == 0 ? reshape(v, {0, 0})
                              : reshape(slice(reshape(pad(reshape(v, {1, n}), 0, 0, n), {-1}), 0, 0, n * n), {n, n});
  return pad(square, {{row, column}, {column, row}});
}

Array trace(const Array& x) { return squeeze(sum(diagonal(x), 0), 0); }

}  // namespace rosin
