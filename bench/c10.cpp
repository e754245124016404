// C10: the first step of C4 in a process that has used the library for something else before. Read first: training.hpp.
#include "training.hpp"

namespace {

/// Loads what any first use loads, so that the time of the first step is that of the step.
void warm_up() {
  const rosin::Array x = rosin::ones({4, 4});
  const rosin::Array gradient =
      rosin::gradient([](const rosin::Array& a) { return rosin::sum(rosin::relu(rosin::matmul(a, a))); }, x);
  rosin::eval(gradient);
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run(argc, argv, [](const bench::Options&, const bench::Inputs& inputs) {
    warm_up();
    const rosin::Array x = inputs["x"], y = inputs["y"];
    bench::Training training(bench::mlp(inputs),
                             [=](const bench::MLP& m) { return rosin::logitcrossentropy(m(x), y); });
    bench::Record record;
    rosin::reset_stats();
    const double before = bench::usage().cpu_ms;
    bench::time_first(record, [&] { record.losses = bench::losses(training, 1); });
    record.ms = {record.first_ms};
    record.cpu_ms = {bench::usage().cpu_ms - before};
    record.launches = bench::launches_per_step(1);
    const auto later = bench::losses(training, inputs.compared - 1);
    record.losses.insert(record.losses.end(), later.begin(), later.end());
    return record;
  });
}
