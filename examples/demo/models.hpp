// The demo's two networks: plain structs of layers.
#pragma once

#include <rosin/rosin.hpp>

namespace demo {

/// 784-256-10.
struct MLP {
  rosin::Dense hidden{784, 256, rosin::relu};
  rosin::Dense out{256, 10};

  /// x is (28, 28, 1, batch) -> (10, batch).
  rosin::Array operator()(const rosin::Array& x) const { return out(hidden(rosin::flatten(x))); }
};

/// LeNet-5 with relu and max pooling. Source: LeCun, Bottou, Bengio, Haffner: Gradient-Based Learning Applied to
/// Document Recognition (1998).
struct LeNet {
  rosin::Conv first{{5, 5}, 1, 6, rosin::relu};
  rosin::Conv second{{5, 5}, 6, 16, rosin::relu};
  rosin::Dense wide{256, 120, rosin::relu};
  rosin::Dense narrow{120, 84, rosin::relu};
  rosin::Dense out{84, 10};

  /// x is (28, 28, 1, batch) -> (10, batch).
  rosin::Array operator()(const rosin::Array& x) const {
    const rosin::Array edges = rosin::maxpool(first(x), 2);       // (12, 12, 6, batch)
    const rosin::Array parts = rosin::maxpool(second(edges), 2);  // (4, 4, 16, batch)
    return out(narrow(wide(rosin::flatten(parts))));
  }
};

}  // namespace demo
