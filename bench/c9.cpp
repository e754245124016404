// C9: a chain of dependent ops on a handful of numbers: what an op costs beside its arithmetic. Read first: common.hpp.
#include "common.hpp"

namespace {

/// ops 0, 2, ... multiply, the others add.
rosin::Array chain(rosin::Array x, const rosin::Array& scale, const rosin::Array& shift, int64_t ops) {
  for (int64_t i = 0; i < ops; ++i) x = i % 2 ? x + shift : x * scale;
  return x;
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run(argc, argv, [](const bench::Options& options, const bench::Inputs& inputs) {
    const rosin::Array x = inputs["x"], scale = inputs["scale"], shift = inputs["shift"];
    const int64_t ops = inputs.sizes.at("ops");
    const auto record_ops = [&] { return chain(x, scale, shift, ops); };
    bench::Record record = bench::forward(options, record_ops);

    rosin::Array result;
    double recording = 0;
    for (int k = 0; k < options.steps; ++k) {
      recording += bench::milliseconds([&] { result = record_ops(); });
      rosin::eval();
    }
    record.record_ns = recording * 1e6 / static_cast<double>(options.steps * ops);
    return record;
  });
}
