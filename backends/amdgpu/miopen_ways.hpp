// From a convolution to MIOpen's solutions of it: those that it names, of which those are left out that change numbers
// more than the call allows. Read first: miopen_library.hpp, weight_order.hpp, vendor/convolution.hpp. Read next:
// miopen.hpp.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "amdgpu/miopen_library.hpp"
#include "amdgpu/weight_order.hpp"
#include "vendor/convolution.hpp"

namespace rosin::amdgpu {

/// A convolution as MIOpen is told of it: descriptors of its arrays and of its window.
class DnnProblem {
 public:
  /// Throws ROSIN_UNSUPPORTED where MIOpen has no words for it.
  explicit DnnProblem(const vendor::Convolution& convolution);

  const vendor::Convolution& convolution() const { return convolution_; }
  const WeightOrder& weights() const { return weights_; }
  const miopen::Direction& direction() const;
  /// The arrays in the order of the direction's functions, the result as the last.
  std::array<const vendor::Tensor*, 3> in_order() const;
  miopen::TensorDescriptor first() const { return tensors_[0].get(); }
  miopen::TensorDescriptor second() const { return tensors_[1].get(); }
  miopen::TensorDescriptor result() const { return tensors_[2].get(); }
  miopen::ConvolutionDescriptor window() const { return window_.get(); }

 private:
  template <class T> struct GiveBack {
    int (*function)(T);
    void operator()(T what) const { function(what); }
  };
  template <class T> using Owned = std::unique_ptr<std::remove_pointer_t<T>, GiveBack<T>>;

  void choose_order();
  Owned<miopen::TensorDescriptor> described(const vendor::Tensor& tensor) const;
  Owned<miopen::ConvolutionDescriptor> described_window() const;

  vendor::Convolution convolution_;
  WeightOrder weights_;
  Owned<miopen::TensorDescriptor> tensors_[3];
  Owned<miopen::ConvolutionDescriptor> window_;
};

/// The ways of computing a convolution, the one that MIOpen thinks fastest first. Used from any thread.
class DnnWays {
 public:
  /// Throws ROSIN_UNSUPPORTED where MIOpen has none.
  DnnWays(DnnHandle& handle, WeightKernel& kernel, const vendor::Convolution& convolution, uint64_t workspace);

  /// Bytes that each array of the call reaches over.
  const std::vector<uint64_t>& bytes() const { return problem_.convolution().bytes; }
  size_t count() const;
  /// Whether a way can be used, which is made ready now: MIOpen may refuse, and it may need too much room.
  bool build(size_t way);
  /// The first way that can be used. Throws ROSIN_UNSUPPORTED where none can.
  size_t first();
  /// The way with this mark, if it can be used.
  std::optional<size_t> marked(uint64_t mark);
  /// What tells a way from others in every process with this MIOpen: its solver.
  uint64_t mark(size_t way) const { return known(way).id; }
  /// Of a way that can be used.
  uint64_t workspace(size_t way) const { return known(way).workspace; }
  /// Lets MIOpen measure what its find mode says, within so many bytes of workspace; it may have more ways then.
  /// `arrays`: of the call, in their order.
  void search(driver::Stream stream, const driver::Address* arrays, driver::Address workspace, uint64_t bytes);
  /// Computes in one of them.
  void run(driver::Stream stream, size_t way, const driver::Address* arrays, driver::Address workspace);

 private:
  struct Way {
    uint64_t id = 0, workspace = 0;  // with room for weights in another order
    bool tried = false, usable = false;
  };
  /// What MIOpen is given.
  struct Given {
    const void *first, *second;
    void *result, *workspace;
  };

  void find();
  bool allows(const miopen::Solution& solution) const;
  void add(uint64_t id, uint64_t workspace);
  Way known(size_t way) const;
  std::optional<size_t> numbered(uint64_t id) const;
  void measure(driver::Stream stream, const driver::Address* arrays, driver::Address workspace, uint64_t bytes);
  uint64_t room_of_weights() const;
  /// Gives work(given) to the stream, with weights in MIOpen's order.
  template <class Work>
  void give(driver::Stream stream, const driver::Address* arrays, driver::Address workspace, Work&& work);

  DnnHandle& handle_;
  WeightKernel& kernel_;
  const DnnProblem problem_;
  uint64_t workspace_limit_;
  mutable std::mutex changing_;
  std::vector<Way> ways_;
};

}  // namespace rosin::amdgpu
