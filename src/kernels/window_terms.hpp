// Windows over images as kernels walk them: the elements of one window, or the windows that hold one element.
// Read first: code.hpp, graph/attributes.hpp. Read next: convolution.cpp, window.cpp.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "kernels/launches.hpp"

namespace rosin::kernels {

/// Element `tap` of the window at `place` is element place * stride + tap * dilation - low of the image, in each
/// spatial dim. Places of windows lie in the pooled image.
class WindowTerms {
 public:
  /// `image` and `pooled` have the spatial dims, channels and batch; `windows[d]`: size of the window.
  WindowTerms(KernelWriter& writer, const View& image, const View& pooled, std::span<const int64_t> windows,
              const WindowAttributes& attributes);

  using Visit = std::function<void(std::span<const Term> at, std::span<const Term> tap)>;
  /// visit(at, tap) for the elements of the window at `place` that lie inside the image, dim 0 fastest.
  void each_tap(std::span<const Term> place, const Visit& visit) const;
  /// visit(place, tap) for the windows that hold element `at` of the image, dim 0 fastest.
  void each_window(std::span<const Term> at, const Visit& visit) const;
  /// visit(at, tap) where element `tap` of the window at `place` lies inside the image.
  void when_inside(std::span<const Term> place, std::span<const Term> tap, const Visit& visit) const;

  /// The element at this distance from where the window at `place` begins, inside the image or not.
  std::vector<Term> element(std::span<const Term> place, std::span<const int64_t> distance) const;
  /// Bool: the element lies inside the image, or the place among those of windows; neither is below 0 without padding.
  Term is_inside(std::span<const Term> at) const;
  Term is_place(std::span<const Term> place) const;

  int dims() const { return static_cast<int>(axes_.size()); }
  /// Bool: the window at `place` has elements outside the image. Where has_padding() is false, none has.
  Term touches_padding(std::span<const Term> place) const;
  bool has_padding() const { return has_padding_; }
  /// Of dim d: elements of the image, of the pooled image, of the window.
  Term image(int d) const { return axes_[static_cast<size_t>(d)].image; }
  Term pooled(int d) const { return axes_[static_cast<size_t>(d)].pooled; }
  Term window(int d) const { return axes_[static_cast<size_t>(d)].window; }

 private:
  struct Axis {
    Term image, pooled, window, stride, dilation, low;
    bool dense = true;  // dilation 1
  };
  /// Taps (or places) [first, last) along one dim; `start` is what all of them count from.
  struct Range {
    Term start, first, last;
  };
  Range taps(const Axis& axis, Term place) const;
  Range places(const Axis& axis, Term at) const;
  std::vector<Range> ranges_of_taps(std::span<const Term> place) const;

  KernelWriter& w_;
  std::vector<Axis> axes_;
  bool has_padding_ = false;
};

}  // namespace rosin::kernels
