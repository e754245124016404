// The state tree as text, in one line.
#include <rosin/optim.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

#include "model/element_text.hpp"
#include "optim/shares.hpp"
#include "optim/tree.hpp"

namespace rosin {
namespace {

constexpr int64_t full_list = 20;   // longer lists show half of this at both ends
constexpr int64_t full_matrix = 4;  // so do rows and columns of matrices

/// Indices that are shown of n; -1 stands for those left out.
std::vector<int64_t> shown_indices(int64_t n, int64_t limit) {
  std::vector<int64_t> indices;
  const int64_t head = n > limit ? limit / 2 : n;
  for (int64_t i = 0; i < head; ++i) indices.push_back(i);
  if (n <= limit) return indices;
  indices.push_back(-1);
  for (int64_t i = n - limit / 2; i < n; ++i) indices.push_back(i);
  return indices;
}

std::string list_text(const Array& x, const ElementTexts& elements) {
  std::string text;
  for (int64_t i : shown_indices(x.count(), full_list)) {
    const bool after_gap = text.ends_with("  ");
    if (i < 0) text += "  …  ";
    else text += (text.empty() || after_gap ? "" : ", ") + elements.text(i);
  }
  return text;
}

/// Rows by "; ", elements by spaces; more dims than two are shown as columns of one matrix.
std::string matrix_text(const Array& x, const ElementTexts& elements) {
  const int64_t rows = x.size(0), columns = rows > 0 ? x.count() / rows : 0;
  std::string text;
  for (int64_t row : shown_indices(rows, full_matrix)) {
    if (!text.empty()) text += "; ";
    if (row < 0) text += "… ";
    bool first = true;
    for (int64_t column : shown_indices(row < 0 ? 0 : columns, full_matrix)) {
      text += first ? "" : " ";
      text += column < 0 ? "…" : elements.text(row + column * rows);
      first = false;
    }
  }
  return text + (columns == 1 ? ";;" : "");
}

std::string array_text(const Array& x) {
  if (x.is_nothing()) return "nothing";
  const bool whole = !is_float(x.dtype()) && !is_complex(x.dtype());
  if (whole) return x.count() == 1 ? std::to_string(x.item<int64_t>()) : to_string(x.dtype());
  const ElementTexts elements(x, true);
  const std::string inside = x.rank() < 2 ? list_text(x, elements) : matrix_text(x, elements);
  return std::string(to_string(x.dtype())) + "[" + inside + "]";
}

/// The powers of beta of the next step, which is how Flux keeps what we count.
class FindBeta : public RuleVisitor {
 public:
  explicit FindBeta(double steps) : steps_(steps) {}
  void enter(std::string_view) override {}
  void leave() override {}
  void option(const RuleOption& option) override {
    if (option.name != "beta" || !text.empty()) return;
    text = "(";
    for (int i = 0; i < option.count; ++i) {
      text += (i > 0 ? ", " : "") + number_text(std::pow(option.numbers[i], steps_ + 1));
    }
    text += ")";
  }
  std::string text;

 private:
  double steps_;
};

class KeptText : public ModelVisitor {
 public:
  explicit KeptText(detail::ErasedRule& rule) : rule_(rule) {}
  void array(const Array& x, const ModelPath& path) override {
    ++count;
    if (!text.empty()) text += ", ";
    if (path.name() == "t" && !x.is_nothing()) {
      FindBeta powers(x.item());
      rule_.describe(powers);
      text += powers.text.empty() ? array_text(x) : powers.text;
    } else {
      text += array_text(x);
    }
  }
  std::string text;
  int count = 0;

 private:
  detail::ErasedRule& rule_;
};

std::string leaf_text(const StateLeaf& leaf) {
  if (is_elsewhere(leaf)) {
    return "Leaf(" + rule_text(*leaf.rule) + ", on rank " + std::to_string(leaf.owner.process) + ")";
  }
  KeptText kept(*leaf.rule);
  std::as_const(*leaf.rule).visit_state(kept, {});
  const std::string state = kept.count == 0 ? "nothing" : kept.count == 1 ? kept.text : "(" + kept.text + ")";
  std::string part;
  if (is_divided(leaf)) {
    const auto [begin, end] = own_elements(leaf);
    part = ", elements " + std::to_string(begin) + " to " + std::to_string(end - 1) + " of " +
           std::to_string(leaf.shape.count());
  }
  return "Leaf(" + rule_text(*leaf.rule) + ", " + state + part + (leaf.frozen ? ", frozen = true)" : ")");
}

}  // namespace

std::string to_string(const State& state) {
  if (!state.tree()) return "()";
  std::string text;
  std::vector<int> children = {0};  // of the open parts
  for (const TreeItem& item : state.tree()->items) {
    if (item.what == TreeItem::What::close) {
      text += children.back() == 1 ? ",)" : ")";
      children.pop_back();
      continue;
    }
    if (children.back()++ > 0) text += ", ";
    if (!item.name.empty()) text += item.name + " = ";
    if (item.what == TreeItem::What::open) {
      text += "(";
      children.push_back(0);
    } else {
      text += item.leaf < 0 ? "()" : leaf_text(state.tree()->leaves[static_cast<size_t>(item.leaf)]);
    }
  }
  return text;
}

}  // namespace rosin
