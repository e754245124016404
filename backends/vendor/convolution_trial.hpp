// The convolution that a library computes first, to see whether it is right: of small integers, which are exact.
// Read first: convolution.hpp.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "vendor/convolution.hpp"
#include "vendor/scratch.hpp"

namespace rosin::vendor {

/// Images of 5 x 6 in 8 channels, and 16 filters of 3 x 3.
class ConvolutionTrial {
 public:
  /// `images`, `weights`: how their dims follow each other.
  ConvolutionTrial(DimOrder images, DimOrder weights, bool flipped);

  /// `with_epilogue`: a bias, which is 1 everywhere, and relu behind it.
  Convolution convolution(bool with_epilogue) const;
  /// What must come out without epilogue.
  std::vector<float> wanted() const;

  std::vector<float> x, w, bias;

 private:
  float element(int64_t image, int64_t filter, int64_t row, int64_t column) const;

  Convolution plain_;
};

/// What the library makes of it. With the device's context current.
template <class Library>
std::vector<float> computed(Library& library, const ConvolutionTrial& trial, bool with_epilogue) {
  constexpr uint64_t most_room = uint64_t{16} << 20;
  const auto ways = library.ways_of(trial.convolution(with_epilogue), most_room);
  const size_t way = ways->first();
  std::vector<float> got(trial.wanted().size());
  const auto bytes = [](const std::vector<float>& all) { return all.size() * sizeof(float); };
  const ScratchMemory x(bytes(trial.x)), w(bytes(trial.w)), y(bytes(got)), bias(bytes(trial.bias)),
      room(std::max<uint64_t>(ways->workspace(way), 1));
  ScratchStream stream;
  stream.copy_in(x, trial.x.data());
  stream.copy_in(w, trial.w.data());
  stream.copy_in(bias, trial.bias.data());
  const driver::Address arrays[] = {x.address(), w.address(), y.address(), bias.address()};
  library.run(stream.stream(), *ways, way, arrays, ways->workspace(way) > 0 ? room.address() : 0);
  stream.copy_out(got.data(), y);
  stream.sync();
  return got;
}

}  // namespace rosin::vendor
