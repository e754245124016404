// Tiles: an elementwise kernel with operands that run along another dim than its results. A group takes a square of
// both dims: it loads neighbours along one, passes them through shared memory, and stores neighbours along the other.
// Read first: body.hpp. Read next: fused.cpp.
#pragma once

#include <vector>

#include "kernels/body.hpp"
#include "kernels/launches.hpp"

namespace rosin::kernels {

class Tiles {
 public:
  /// `stores`: the instrs that go to `buffers`.
  Tiles(KernelWriter& writer, KernelBody& body, const std::vector<size_t>& stores, const std::vector<int>& buffers);

  /// The dim that operands run along; 0: none does, or squares would be mostly empty.
  int dim() const { return dim_; }
  int64_t count() const;
  /// One tile a group.
  void write();

 private:
  static constexpr int side = 32;

  std::vector<Term> corner() const;
  Spot spot_at(std::vector<Term> at, Term inner, Term outer) const;
  Term inside(const Spot& spot) const;
  void fill(const std::vector<Term>& corner);

  KernelWriter& w_;
  KernelBody& body_;
  const KernelLayout& sizes_;
  const std::vector<size_t>& stores_;
  const std::vector<int>& buffers_;
  int dim_ = 0;
  std::vector<size_t> loads_;  // that go through shared memory
  std::vector<int> arrays_;
  std::vector<Term> lengths_;
};

}  // namespace rosin::kernels
