// Calls that a vendor's library computes behind a plug-in: questions before a plan is made, and prepared calls.
// Read first: plan/call.hpp, include/rosin/backend.h (Vendor calls), open_device.hpp. Read next: device_executor.hpp.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "kernels/target.hpp"
#include "plan/layout.hpp"
#include "run/open_device.hpp"

namespace rosin {

/// What the plug-in answers for its device. Immutable; asked from any thread.
class PluginTarget final : public kernels::KernelTarget {
 public:
  explicit PluginTarget(OpenDevice& device) : device_(device) {}
  bool takes(const plan::CallDescription& call) const override;
  plan::Order order(const plan::CallDescription& call, size_t i) const override;
  bool writes_strided(const plan::CallDescription& call) const override;
  MathMode usual_mode() const override;
  Form form() const override;
  int64_t longest_row() const override;

 private:
  OpenDevice& device_;
};

/// A prepared call of a device, which outlives it.
class LibraryCall {
 public:
  /// The step's call; where the library refuses it for its sizes the same without its epilogue, and nothing where it
  /// refuses that as well. Error (backend) where that fails.
  static std::optional<LibraryCall> prepare(OpenDevice& device, const plan::Layout& layout, const plan::Step& step);
  /// Whether it computes the epilogue too.
  bool whole() const { return whole_; }

  /// Gives the call to the device's stream. `buffers`: of its arrays, in their order; `numbers`: null unless it is
  /// scaled. For who has the turn.
  rosin_status run(const rosin_place* buffers, rosin_place workspace, const rosin_call_numbers* numbers) const;
  /// Where the number stands that the result is multiplied by, see plan::scalar_index; -1: it is not scaled.
  int64_t scale() const { return scale_; }
  /// Of a run of a scaled call.
  rosin_call_numbers numbers(double scale) const;
  /// It runs as a part of a graph.
  static void count_given() noexcept;
  rosin_call* call() const { return call_.get(); }

  const std::vector<int32_t>& values() const { return values_; }   // whose memory the arrays lie in
  uint64_t offset(size_t array) const { return offsets_[array]; }  // bytes from where that value begins
  bool writes(size_t array) const { return written_[array] != 0; }
  uint64_t workspace() const { return workspace_; }

 private:
  struct Destroy {
    OpenDevice* device;
    void operator()(rosin_call* call) const { device->retire(call); }
  };

  explicit LibraryCall(OpenDevice& device) : device_(&device), call_(nullptr, Destroy{&device}) {}

  /// An array of the call; false where it lies where no library can read it.
  bool add(const plan::Layout& layout, int32_t value, bool written);
  bool add_all(const plan::Layout& layout, const plan::Step& step);
  static std::optional<LibraryCall> prepare(OpenDevice& device, const plan::Layout& layout, const plan::Step& step,
                                            bool whole);

  OpenDevice* device_;
  std::unique_ptr<rosin_call, Destroy> call_;
  std::vector<int32_t> values_;
  std::vector<uint64_t> offsets_;
  std::vector<char> written_;
  uint64_t workspace_ = 0;
  int64_t scale_ = -1;
  bool adds_ = false;  // a residual, or to what stands there
  bool whole_ = true;
};

/// Since the start of the process.
struct LibraryCalls {
  int64_t given = 0, refused = 0;
};
LibraryCalls library_calls();

}  // namespace rosin
