// Indices: how kernels read them, check them against a dim, and report those outside it.
// Read first: elements.hpp. Read next: gather.cpp, scatter.cpp.
#pragma once

#include <span>

#include "kernels/elements.hpp"
#include "kernels/index_check.hpp"

namespace rosin::kernels {

/// The indices of a step into a dim of `size` elements, checked.
class Indices {
 public:
  /// The node must be among list.checks.
  Indices(KernelWriter& writer, const CallStep& step, const LaunchList& list, int32_t value, int64_t size);

  /// Calls body(place) where the index at these coordinates is in [-size, size) (`from_end`: negative ones count from
  /// the end) or in [0, size); else reports it.
  template <class F> void at(std::span<const Term> coordinates, bool from_end, F&& body) const {
    const Found found = find(coordinates, from_end);
    writer_->when(found.good, [&] { body(found.place); });
    writer_->when(!found.good, [&] { check_.report(found.index); });
  }
  /// Whether the index there is that of this place, negative ones from the end.
  Term is_of(std::span<const Term> coordinates, Term place) const {
    return find(coordinates, true).wide == writer_->convert(place, ScalarType::int64);
  }
  /// The first half of at(), and the other.
  template <class F> void if_good(std::span<const Term> coordinates, bool from_end, F&& body) const {
    const Found found = find(coordinates, from_end);
    writer_->when(found.good, [&] { body(found.place); });
  }
  void report_bad(std::span<const Term> coordinates, bool from_end) const {
    const Found found = find(coordinates, from_end);
    writer_->when(!found.good, [&] { check_.report(found.index); });
  }

 private:
  struct Found {
    Term index;  // Int64
    Term wide;   // the place, Int64
    Term place;  // the same, of the kernel's index type
    Term good;
  };

  Found find(std::span<const Term> coordinates, bool from_end) const;

  KernelWriter* writer_;
  Elements indices_;
  IndexCheck check_;
};

}  // namespace rosin::kernels
