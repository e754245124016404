// Strips: neighbouring elements that one item of an elementwise kernel computes, loaded and stored as vectors.
// Read first: body.hpp. Read next: fused.cpp (who writes kernels of them).
#pragma once

#include <span>
#include <vector>

#include "kernels/body.hpp"
#include "kernels/launches.hpp"

namespace rosin::kernels {

/// Of what stands beside one another for a strip: more would make long texts and use many registers.
inline constexpr size_t most_primitives = 1024;

class Strips {
 public:
  /// `stores`: the instrs that go to `buffers`. Only what follows from types, and from sizes and offsets as multiples
  /// of powers of two, decides: most layouts of a structure have one code.
  Strips(KernelWriter& writer, KernelBody& body, const Abilities& device, const std::vector<size_t>& stores,
         const std::vector<int>& buffers);

  /// Elements of a strip; 1: the device has no vectors, or they do not pay here.
  int lanes() const { return lanes_; }
  /// One strip an item. `count` elements; `sizes` of the domain.
  void write(Term count, std::span<const Term> sizes) const;

 private:
  int widest() const;
  bool fits(int lanes) const;
  bool is_flat() const;
  void whole(Term first, std::span<const Term> sizes) const;
  void rest(Term first, Term count, std::span<const Term> sizes) const;

  KernelWriter& w_;
  KernelBody& body_;
  const Abilities& device_;
  const std::vector<size_t>& stores_;
  const std::vector<int>& buffers_;
  int lanes_ = 1;
};

}  // namespace rosin::kernels
