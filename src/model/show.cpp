// to_string of models: a walk makes a tree of parts, which is then laid out as Flux does.
#include <rosin/show.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

#include <rosin/model.hpp>

#include "model/number_text.hpp"
#include "model/ties.hpp"

namespace rosin {
namespace {

/// A part of the model and all it holds. Arrays are counted at the part they belong to and at every part around it.
struct Part {
  std::string name;   // of the field; empty for elements
  std::string label;  // the one-line form, or the class of a container
  std::string open = "(", close = ")";
  bool leaf = false;      // an array, number, function
  bool one_line = false;  // a layer that says how it is printed
  bool hidden = false;    // not printed, only counted
  std::vector<Part> children;
  std::vector<Array> trained, fixed;
  std::vector<std::string> ties;  // "weight tied to embedding.weight"
};

std::string leaf_text(const ModelPart& part) {
  switch (part.kind) {
    case PartKind::integer: return std::to_string(part.integer);
    case PartKind::real: return number_text(part.real);
    case PartKind::boolean: return part.integer ? "true" : "false";
    case PartKind::text: return '"' + std::string(part.text) + '"';
    default: return part.show ? part.show(part.object) : std::string(part.type);
  }
}

class TreeBuilder : public ModelVisitor {
 public:
  TreeBuilder() { open_.push_back(&root); }

  void array(const Array& x, const ModelPath& path) override { add_array(x, path, false); }
  void buffer(const Buffer& x, const ModelPath& path) override { add_array(x.value(), path, true); }

  bool enter(const ModelPart& part, const ModelPath& path) override {
    Part& made = add(path);
    made.label = part.show ? part.show(part.object) : part.kind == PartKind::fields ? std::string(part.type) : "";
    made.one_line = part.show != nullptr;
    if (part.kind == PartKind::sequence) made.open = "[", made.close = "]";
    if (part.kind == PartKind::map) made.open = "(;";
    open_.push_back(&made);
    return true;
  }

  void leave(const ModelPart&, const ModelPath&) override {
    Part& done = *open_.back();
    open_.pop_back();
    append(open_.back()->trained, done.trained);
    append(open_.back()->fixed, done.fixed);
    open_.back()->ties.insert(open_.back()->ties.end(), done.ties.begin(), done.ties.end());
  }

  void leaf(const ModelPart& part, const ModelPath& path) override {
    Part& made = add(path);
    made.leaf = true;
    made.label = leaf_text(part);
    made.hidden = part.type == "LayerMode";
  }

  Part root;

 private:
  Part& add(const ModelPath& path) {
    // Children are added to the innermost open part only, so pointers to open parts stay valid.
    Part& made = open_.back()->children.emplace_back();
    made.name = path.name();
    return made;
  }

  void add_array(const Array& x, const ModelPath& path, bool buffer) {
    if (x.is_nothing()) return;
    Part& made = add(path);
    made.leaf = true;
    made.hidden = buffer;
    made.label = heading_text(x.shape(), x.dtype());
    if (const Ties::First* first = ties_.find_or_add(x, path)) {
      const std::string own = path.name().empty() ? "" : std::string(path.name()) + " ";
      made.ties.push_back("tied to " + first->path);
      open_.back()->ties.push_back(own + "tied to " + first->path);
      return;
    }
    const bool trained = path.trainable() && !buffer && (is_float(x.dtype()) || is_complex(x.dtype()));
    (trained ? made.trained : made.fixed).push_back(x);
    (trained ? open_.back()->trained : open_.back()->fixed).push_back(x);
  }

  static void append(std::vector<Array>& all, const std::vector<Array>& more) {
    all.insert(all.end(), more.begin(), more.end());
  }

  std::vector<Part*> open_;
  Ties ties_;
};

int64_t elements_of(const std::vector<Array>& arrays) {
  int64_t count = 0;
  for (const Array& x : arrays) count += x.count();
  return count;
}

int64_t bytes_of(const std::vector<Array>& arrays) {
  int64_t bytes = 0;
  for (const Array& x : arrays) bytes += x.count() * static_cast<int64_t>(size_of(x.dtype()));
  return bytes;
}

/// "  (all zero)", "  (some NaN)", "  (some Inf)" or nothing.
std::string mark_of(const std::vector<Array>& arrays) {
  bool all_zero = elements_of(arrays) > 0, some_nan = false, some_inf = false;
  for (const Array& x : arrays) {
    if (!is_float(x.dtype())) return {};
    for (double value : x.to_vector<double>()) {
      all_zero = all_zero && value == 0;
      some_nan = some_nan || std::isnan(value);
      some_inf = some_inf || std::isinf(value);
    }
  }
  return all_zero ? "  (all zero)" : some_nan ? "  (some NaN)" : some_inf ? "  (some Inf)" : "";
}

std::string spaces(size_t count) { return std::string(count, ' '); }

class Printer {
 public:
  std::string text;

  void print(const Part& part, size_t indent) {
    if (is_line(part)) print_line(part, indent);
    else print_container(part, indent);
  }

 private:
  static bool is_line(const Part& part) {
    if (part.leaf || part.one_line) return true;
    return std::all_of(part.children.begin(), part.children.end(), [](const Part& child) { return child.leaf; });
  }

  static std::string name_of(const Part& part) { return part.name.empty() ? "" : part.name + " = "; }

  static std::string line_text(const Part& part) {
    if (part.leaf || part.one_line) return part.label;
    std::string line = part.label + part.open;
    bool first = true;
    for (const Part& child : part.children) {
      if (child.hidden) continue;
      line += (first ? "" : ", ") + name_of(child) + child.label;
      first = false;
    }
    return line + part.close;
  }

  void print_line(const Part& part, size_t indent) {
    const std::string line = name_of(part) + line_text(part);
    text += spaces(indent) + line + (indent > 0 ? "," : "");
    if (!part.trained.empty() || !part.ties.empty()) {
      const size_t used = indent + width_of(line), column = indent > 0 ? 39 : 20;
      text += spaces(used + 2 > column ? 2 : column - used);
      text += "# " + grouped(elements_of(part.trained)) + " parameters";
      const int64_t fixed = elements_of(part.fixed);
      if (fixed > 0) text += ", plus " + grouped(fixed) + (indent > 0 ? "" : " non-trainable");
      text += mark_of(part.trained);
      for (const std::string& tie : part.ties) text += "  (" + tie + ")";
    }
    if (indent > 0) text += '\n';
  }

  void print_container(const Part& part, size_t indent) {
    text += spaces(indent) + name_of(part) + part.label + part.open + "\n";
    for (const Part& child : part.children) {
      if (!child.hidden) print(child, indent + 2);
    }
    text += spaces(indent) + part.close + (indent > 0 ? ",\n" : "");
    if (indent == 0) print_total(part);
  }

  void print_total(const Part& part) {
    const size_t arrays = part.trained.size();
    if (arrays <= 2) return;
    const std::string parameters = grouped(elements_of(part.trained));
    const std::string bytes = bytes_text(bytes_of(part.trained) + bytes_of(part.fixed));
    if (part.fixed.empty()) {
      text +=
          spaces(19) + "# Total: " + std::to_string(arrays) + " arrays, " + parameters + " parameters, " + bytes + ".";
      return;
    }
    text += spaces(9) + "# Total: " + std::to_string(arrays) + " trainable arrays, " + parameters + " parameters,\n";
    text += spaces(10) + "# plus " + std::to_string(part.fixed.size()) + " non-trainable, " +
            grouped(elements_of(part.fixed)) + " parameters, summarysize " + bytes + ".";
  }
};

}  // namespace

std::string to_string(ModelView model) {
  TreeBuilder tree;
  model.visit_with(tree);
  if (tree.root.children.empty()) return "nothing";
  // An optional or a pointer leaves no trace: the root has the one part that the model is.
  Printer printer;
  printer.print(tree.root.children.front(), 0);
  return printer.text;
}

}  // namespace rosin
