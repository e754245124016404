// Elements: operands and results of opaque steps as kernels move them: of any type, complex ones too, and C++ numbers.
// Read first: launches.hpp. Read next: movement.cpp, gather.cpp, sort.cpp.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <vector>

#include "kernels/launches.hpp"

namespace rosin::kernels {

/// One opaque node with what was recorded for it.
struct CallStep {
  CallStep(const Layout& from, int32_t of)
      : layout(from), node(of), value(from.structure->graph.values[static_cast<size_t>(of)]) {}

  const Layout& layout;
  int32_t node;
  const Value& value;

  int32_t in(int i) const { return value.in[i]; }
  const View& view(int32_t of) const { return layout.views[static_cast<size_t>(of)]; }
  DType dtype(int32_t of) const { return layout.structure->graph.values[static_cast<size_t>(of)].dtype; }
  template <class T> T attributes() const { return layout.attributes[static_cast<size_t>(node)].as<T>(); }
  /// The type of element numbers in a kernel that touches the result and all operands.
  ScalarType index() const;
  /// How many neighbours along dim 0 an item moves as a vector, in all of these arrays; 1 where they are none.
  int strip(std::initializer_list<int32_t> values, const Abilities& device) const;
  KernelWriter writer() const { return {std::string(value.op->name), items_of_group, index()}; }
};

/// A complex element is moved as two floats, its parts; every other element has one part.
constexpr int parts_of(DType type) { return is_complex(type) ? 2 : 1; }

/// An array, or a C++ number that stands for one, read and written in parts.
class Elements {
 public:
  Elements(KernelWriter& writer, const CallStep& step, int32_t value);
  /// The number joins elements of this type.
  Elements(KernelWriter& writer, const CallStep& step, int32_t value, DType type);
  /// Sums like the value, kept as Float32 in a scratch block.
  static Elements sums(KernelWriter& writer, const CallStep& step, int32_t value, int32_t scratch);

  Term load(std::span<const Term> at, int part = 0) const;
  void store(std::span<const Term> at, Term element, int part = 0) const;
  /// Of `lanes` neighbours along dim 0, see CallStep::strip.
  std::vector<Term> load_strip(std::span<const Term> at, int lanes, int vector_bytes) const;
  void store_strip(std::span<const Term> at, std::span<const Term> elements, int vector_bytes) const;
  void copy_strip(std::span<const Term> at, const Elements& from, std::span<const Term> from_at, int lanes,
                  int vector_bytes) const;
  /// Element `at` becomes element `from_at` of another array of the type.
  void copy(std::span<const Term> at, const Elements& from, std::span<const Term> from_at) const;

 private:
  Elements(ArrayTerm array, KernelWriter& writer) : array_(array), writer_(&writer) {}
  Term place(std::span<const Term> at, int part) const;

  std::optional<ArrayTerm> array_;
  Term number_{};
  int parts_ = 1;
  KernelWriter* writer_ = nullptr;
};

/// A loaded element as a number that < orders: Bool as 0 and 1.
Term ordered(Term element, DType type);

/// Whether x comes before y in ascending order, in which NaN is the largest.
Term is_below(Term x, Term y);

/// Runs body(i) for i in [0, count), one item each; no launch where there is nothing.
template <class F> void launch_each(LaunchList& list, KernelWriter& writer, int64_t count, F&& body) {
  if (count == 0) return;
  const Term i = writer.global(), end = writer.number(count);
  writer.when(i < end, [&] { body(i); });
  list.launches.push_back(writer.finish(groups_for(count)));
  list.launches.back().sharing = Sharing::any;
}

/// The dims of an array as they follow each other in memory, the nearest first: of images also in CWHN.
std::vector<size_t> memory_order(const View& view);

/// The sizes of an array in strips along dim 0, and the coordinates of the first element of one.
std::vector<Term> in_strips(KernelWriter& writer, std::vector<Term> sizes, int64_t first_size, int strip);
std::vector<Term> strip_begin(std::vector<Term> at, int strip);

/// Sizes and coordinates of the lines along a dim: the dim itself has one element and stands at 0.
int64_t count_lines(const View& view, int dim);
std::vector<Term> line_sizes(KernelWriter& writer, const View& view, int dim);

}  // namespace rosin::kernels
