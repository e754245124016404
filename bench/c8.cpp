// C8: gelu(x + b), written out as ten elementwise ops on a long vector. Read first: common.hpp.
#include "common.hpp"

namespace {

rosin::Array chain(const rosin::Array& x, const rosin::Array& b) {
  const rosin::Array z = x + b;
  return (rosin::tanh((z * z * z * 0.044715 + z) * 0.7978845608) + 1) * z * 0.5;
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run(argc, argv, [](const bench::Options& options, const bench::Inputs& inputs) {
    return bench::forward(options, [x = inputs["x"], b = inputs["b"]] { return chain(x, b); });
  });
}
