// C10: the first step of C4 in a process that has used the library for something else before. Read first: training.hpp.
#include "training.hpp"

int main(int argc, char** argv) {
  return bench::run(argc, argv, [](const bench::Options&, const bench::Inputs& inputs) {
    const rosin::Array x = inputs["x"], y = inputs["y"];
    bench::Training training(bench::mlp(inputs),
                             [=](const bench::MLP& m) { return rosin::logitcrossentropy(m(x), y); });
    bench::Record record;
    rosin::reset_stats();
    const double before = bench::cpu_ms();
    bench::time_first(record, [&] { record.losses = bench::losses(training, 1); });
    record.ms = {record.first_ms};
    record.cpu_ms = {bench::cpu_ms() - before};
    record.peak_bytes = bench::peak_bytes();
    record.launches = bench::launches_per_step(1);
    const auto later = bench::losses(training, inputs.compared - 1);
    record.losses.insert(record.losses.end(), later.begin(), later.end());
    return record;
  });
}
