// What follows element by element from the results of a kernel's roots (Step::ends), written by the items that have
// these. Read first: body.hpp. Read next: roots.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/body.hpp"
#include "kernels/launches.hpp"

namespace rosin::kernels {

/// Takes out of `ends` those that may stand where `results`, some roots of the kernel, are added up: that read no other
/// root, each result at its own element, and count elements in integers of this type.
std::vector<int32_t> take_ends(const Layout& layout, int32_t kernel, std::span<const int32_t> results, ScalarType index,
                               std::vector<int32_t>& ends);

/// Some ends in one writer.
class RootEnds {
 public:
  /// Declares what they read and write. `results[i]`: the value that write() is given as sum i.
  RootEnds(KernelWriter& writer, const Layout& layout, std::span<const int32_t> ends, std::span<const int32_t> results);
  bool empty() const { return ends_.empty(); }
  /// At element `at` of the results, where they are `sums`.
  void write(Term at, std::span<const Term> sums);

 private:
  /// A load that is a result.
  struct Given {
    size_t load, result;
  };
  struct End {
    KernelBody body;
    std::vector<size_t> stores;
    std::vector<int> buffers;
    std::vector<Term> sizes;
    std::vector<Given> given;
  };

  void add(int32_t end, std::span<const int32_t> results);
  Term as_stored(size_t result, Term sum) const;
  void write(End& end, Term at, std::span<const Term> sums);

  KernelWriter& writer_;
  const Layout& layout_;
  std::vector<DType> types_;  // of the results
  std::vector<End> ends_;
};

}  // namespace rosin::kernels
