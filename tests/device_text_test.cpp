// Kernels as text, compiled for GPUs that are not here: those of every op of the oracles with its gradient, and samples
// of every primitive with every type. A compiler that is not installed is a skipped test. Each target gets a sixteenth
// of them; with ROSIN_ALL_TEXT=1 each gets all. Read first: device_compilers.hpp, kernel_samples.hpp, kernels/text.hpp.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string_view>

#include <rosin/random.hpp>
#include <rosin/stats.hpp>

#include "device_compilers.hpp"
#include "kernel_samples.hpp"
#include "kernels/launches.hpp"
#include "kernels/target.hpp"
#include "op_suite.hpp"
#include "plan/device.hpp"
#include "run/device_table.hpp"
#include "test_device.hpp"

namespace rosin::suite {
namespace {

using kernels::KernelCode;

/// Every result is zero: a value that the host may look at, such as an index of select, is a good one.
class Zeros final : public plan::Prepared {
 public:
  explicit Zeros(std::shared_ptr<const plan::Layout> layout) : layout_(std::move(layout)) {}
  void run(const plan::RunMemory& memory) const override {
    for (const plan::Output& output : layout_->outputs) std::memset(memory.values[output.value], 0, output.bytes);
  }
  size_t bytes() const override { return sizeof *this; }

 private:
  std::shared_ptr<const plan::Layout> layout_;
};

/// A device that keeps the codes of the kernels that it is asked for, and runs none.
class Collector final : public plan::DeviceExecutor {
 public:
  Collector() : host_(DeviceTable::instance().executor(0)) {
    set_plan_cache(false);  // so that every program is prepared
    DeviceTable::instance().set_cpu(*this);
  }
  ~Collector() override {
    DeviceTable::instance().set_cpu(host_);
    set_plan_cache(true);
  }

  const plan::Target& target() const override { return target_; }
  std::unique_ptr<const plan::Prepared> prepare(plan::Compiled&, std::shared_ptr<const plan::Layout> layout) override {
    for (const kernels::Launch& launch : kernels::write_launches(*layout, {16, 32, true, 65536}).launches)
      kernels.emplace(launch.code.name, launch.code);
    return std::make_unique<Zeros>(std::move(layout));
  }
  Memory* allocate(size_t bytes) override { return host_.allocate(bytes); }

  std::map<std::string, KernelCode> kernels;  // by their names

 private:
  kernels::KernelTarget target_;
  plan::DeviceExecutor& host_;
};

void eval_all(const Arrays& arrays) {
  for (const Array& array : arrays)
    if (!array.is_nothing()) eval(array);
}

void record_case(const OpEntry& row, const OracleCase& entry) {
  if (row.call(entry, inputs_of(entry)).empty()) return;
  eval_all(row.call(entry, inputs_of(entry)));
  if (entry.dtype == "Float32") eval_all(row.call(entry, inputs_of(entry, Layout::strided)));
  if (entry.cotangents.empty()) return;
  const Function f = [&](const Arrays& x) { return row.call(entry, x); };
  eval_all(gradients_of(f, inputs_of(entry), cotangents_of(entry)));
}

void record_random() {
  Rng rng(1);
  const Shape shape{3, 5};
  for (const DType type : {Float16, Float32, Float64})
    eval_all({uniform(rng, shape, 0, 1, type), normal(rng, shape, 0, 1, type)});
  // Each by itself: kernels whose items work alone share launches.
  eval(bernoulli(rng, 0.5, shape));
  eval(randint(rng, 0, 10, shape));
  eval(permutation(rng, 15));
}

/// The kernels of every case of every oracle, and the samples.
const std::vector<KernelCode>& all_kernels() {
  static const std::vector<KernelCode> list = [] {
    eval();
    Collector collector;
    for_each_case(op_oracle_files(),
                  [](const OpEntry& row, const OracleCase& entry, const std::string&) { record_case(row, entry); });
    record_random();
    for (const samples::PrimitiveSample& sample : samples::primitive_samples())
      collector.kernels.emplace(sample.kernel.name, sample.kernel);
    for (const KernelCode& kernel : samples::control_samples()) collector.kernels.emplace(kernel.name, kernel);
    std::vector<KernelCode> kernels;
    for (const auto& [name, kernel] : collector.kernels) kernels.push_back(kernel);
    return kernels;
  }();
  return list;
}

constexpr size_t kernels_of_program = 50;
constexpr int seconds_of_program = 120;

struct Job {
  const compilers::Compiler* compiler;
  const char* target;
  size_t turn;  // the first program of its targets, which take turns where not all are wanted
};

bool all_are_wanted() {
  const char* said = std::getenv("ROSIN_ALL_TEXT");
  return said && std::string_view(said) == "1";
}

class SlowDeviceText : public testing::TestWithParam<Job> {};

TEST_P(SlowDeviceText, Compiles) {
  if (on_other_device()) GTEST_SKIP() << "compiles what the CPU is asked for";
  const Job job = GetParam();
  const std::string missing = job.compiler->missing(job.target);
  if (!missing.empty()) GTEST_SKIP() << missing;
  std::vector<KernelCode> kernels = all_kernels();
  if (job.compiler->language == kernels::Language::metal) std::erase_if(kernels, samples::uses_float64);
  const size_t step = all_are_wanted() ? 1 : 16, start = all_are_wanted() ? 0 : 2 * job.turn;
  for (size_t first = start * kernels_of_program; first < kernels.size(); first += step * kernels_of_program) {
    const size_t count = std::min(kernels_of_program, kernels.size() - first);
    const std::string text = kernel_text(job.compiler->language, std::span(kernels).subspan(first, count));
    const std::string problem =
        compilers::in_child([&] { return job.compiler->compile(text, job.target); }, seconds_of_program);
    ASSERT_EQ(problem, "") << "kernels " << first << " to " << first + count << ", from " << kernels[first].name;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Targets, SlowDeviceText,
    testing::Values(Job{&compilers::nvrtc_compiler, "sm_75", 0}, Job{&compilers::nvrtc_compiler, "sm_90", 4},
                    Job{&compilers::hiprtc_compiler, "gfx90a", 1}, Job{&compilers::hiprtc_compiler, "gfx1030", 5},
                    Job{&compilers::clang_compiler, "gfx942", 2}, Job{&compilers::clang_compiler, "gfx1100", 6},
                    Job{&compilers::metal_compiler, "apple", 3}),
    [](const auto& job) { return std::string(job.param.compiler->name) + "_" + job.param.target; });

TEST(SlowDeviceText, HasKernelsOfEveryKindOfOp) {
  if (on_other_device()) GTEST_SKIP() << "collects what the CPU is asked for";
  std::set<std::string> kinds;
  for (const KernelCode& kernel : all_kernels()) kinds.insert(kernel.name.substr(0, kernel.name.rfind('_')));
  for (const char* kind : {"elements", "rows", "sums", "concat", "gather", "scatter_add", "matmul", "convolution",
                           "maxpool_gradient", "argsort", "cumsum", "randint"})
    EXPECT_TRUE(kinds.count(kind)) << kind;
}

}  // namespace
}  // namespace rosin::suite
