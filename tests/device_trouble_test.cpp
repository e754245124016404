// Trouble with devices and the cache of kernels, each in a process of its own, whose environment makes the trouble:
// this program runs itself, with one of the tests that are switched off here. Read first: test_device.hpp.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <thread>

#include <rosin/activation.hpp>
#include <rosin/approx.hpp>
#include <rosin/compose.hpp>
#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/move.hpp>
#include <rosin/random.hpp>
#include <rosin/reduce.hpp>

#include "graph/context.hpp"
#include "graph/op.hpp"
#include "op_suite.hpp"
#include "run_itself.hpp"

namespace rosin {
namespace {

namespace fs = std::filesystem;

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

/// A folder of its own for each test.
fs::path fresh_folder() {
  const auto* test = testing::UnitTest::GetInstance()->current_test_info();
  const fs::path folder = fs::temp_directory_path() / ("rosin-" + std::to_string(getpid()) + test->name());
  fs::remove_all(folder);
  fs::create_directories(folder);
  return folder;
}

Array values(const Device& device) { return Array({1.0f, 2.0f, 3.0f}, {3}) | device; }

// ---- Faults ----

TEST(DISABLED_Inside, AFault) {
  const Device first = get_device("reference", 0), second = get_device("reference", 1);
  const Array x = values(first), y = values(second);
  std::string text;
  for (int i = 0; i < 3 && text.empty(); ++i) {
    try {
      (exp(x) + i).to_vector<float>();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::backend);
      text = error.what();
    }
  }
  EXPECT_NE(text.find("reference:0"), std::string::npos) << text;
  EXPECT_NE(text.find("exp"), std::string::npos) << text;  // what was in flight
  EXPECT_THROW((x * 2).to_vector<float>(), Error);
  EXPECT_EQ((y * 2).to_vector<float>(), (std::vector<float>{2, 4, 6}));
  EXPECT_EQ((values(Device()) * 2).to_vector<float>(), (std::vector<float>{2, 4, 6}));
}

TEST(DeviceTrouble, AFaultPoisonsItsDeviceAlone) {
  // The number counts launches of one device; the second one never gets there.
  expect_success(run_itself("AFault", "ROSIN_REFERENCE=devices=2,fault=1"));
}

TEST(DISABLED_Inside, OneAllocationFails) {
  const Device device = get_device("reference", 0);
  Array x = values(device);
  for (int i = 0; i < 10; ++i) {
    x = x + ones({3}).to_vector<float>()[0];
    eval(x);
  }
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{11, 12, 13}));
}

TEST(DeviceTrouble, AnAllocationThatFailsIsTriedOnceMore) {
  expect_success(run_itself("OneAllocationFails", "ROSIN_REFERENCE=devices=1,alloc_fail=1"));
}

TEST(DISABLED_Inside, SmallMemory) {
  const Device device = get_device("reference", 0);
  std::vector<Array> kept;
  try {
    for (int i = 0; i < 100; ++i) {
      kept.push_back((ones({250000}) | device) + i);
      eval(kept.back());
    }
    ADD_FAILURE() << "there was memory";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::memory);
    EXPECT_NE(std::string(error.what()).find("out of memory on reference:0"), std::string::npos) << error.what();
  }
  const size_t many = kept.size();
  EXPECT_GT(many, 2u);
  kept.resize(1);
  EXPECT_EQ(kept[0].to_vector<float>()[0], 1);
  eval((ones({250000}) | device) + 1);
}

TEST(DeviceTrouble, ADeviceWithoutMemoryLeftSaysSoAndWorksOn) {
  expect_success(run_itself("SmallMemory", "ROSIN_REFERENCE=devices=1,memory=16M"));
}

TEST(DISABLED_Inside, ThreeDevices) {
  std::vector<Array> results;
  for (int id = 0; id < 3; ++id) {
    const Array x = values(get_device("reference", id)) * id;
    results.push_back(x + 1);
  }
  for (int id = 0; id < 3; ++id) {
    const float by = static_cast<float>(id);
    EXPECT_EQ(results[static_cast<size_t>(id)].to_vector<float>(),
              (std::vector<float>{by + 1, 2 * by + 1, 3 * by + 1}));
    EXPECT_EQ(results[static_cast<size_t>(id)].device().id(), id);
  }
  EXPECT_EQ((results[1] | get_device("reference", 2)).to_vector<float>(), (std::vector<float>{2, 3, 4}));
  try {
    results[0] + results[1];
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::device);
    EXPECT_NE(std::string(error.what()).find("reference:0 and reference:1"), std::string::npos) << error.what();
  }
  EXPECT_THROW(get_device("reference", 3), Error);
}

TEST(DeviceTrouble, ThreeDevicesWorkInOneProcess) {
  expect_success(run_itself("ThreeDevices", "ROSIN_REFERENCE=devices=3"));
}

TEST(DISABLED_Inside, WithoutFloat64) {
  const Device device = get_device("reference", 0);
  const Array wide({1.0, 2.0}, {2});
  EXPECT_EQ((wide | device).dtype(), Float32);
  for (const auto& call : {std::function<void()>([&] { eval(wide | device.with(keep)); }),
                           std::function<void()>([&] { eval(cast(values(device), Float64) + 1); })}) {
    try {
      call();
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::dtype);
      EXPECT_NE(std::string(error.what()).find("policy"), std::string::npos) << error.what();
    }
  }
}

TEST(DeviceTrouble, Float64IsRefusedWhereTheDeviceLacksIt) {
  expect_success(run_itself("WithoutFloat64", "ROSIN_REFERENCE=devices=1,fp64=0"));
}

TEST(DISABLED_Inside, Float32WithoutFloat64) {
  const Device device = get_device("reference", 0);
  const Array here({-1.5f, 0.25f, 0.75f, 3.0f, -2e5f, 0x1.f37a1ap+95f}, {6});
  const Array there = here | device;
  for (const auto& function : {sin, cos, tan})  // one body, so the same bits
    EXPECT_EQ(function(there).to_vector<float>(), function(here).to_vector<float>());
  const auto small = [](const Array& x) { return clamp(x, -4, 4); };
  for (const auto& function : {exp, tanh, erf, gelu, gelu_erf, swish, mish, softplus})
    EXPECT_TRUE(allclose(function(small(there)) | cpu_device(), function(small(here))));
  EXPECT_TRUE(allclose(softmax(small(there)) | cpu_device(), softmax(small(here))));
  EXPECT_TRUE(allclose(logsoftmax(small(there)) | cpu_device(), logsoftmax(small(here))));
  Rng first(7), second(7);
  const Array expected = normal(second, {6}, 1, 2);
  const DeviceScope scope(*there.node());
  EXPECT_TRUE(allclose(normal(first, {6}, 1, 2) | cpu_device(), expected));
}

/// The outputs of a case, and its gradients by its inputs where all of these are floats and it has gradients.
suite::Arrays results_of(const suite::OpEntry& row, const suite::OracleCase& entry, const suite::Arrays& inputs) {
  suite::Arrays results = row.call(entry, inputs);
  const auto real = [](const Array& x) { return is_float(x.dtype()); };
  if (!std::all_of(results.begin(), results.end(), real) || !std::all_of(inputs.begin(), inputs.end(), real)) {
    return results;
  }
  const Op* const op = find_op(entry.op);
  if (results.empty() || op == nullptr || !op->gradient) return results;
  suite::Arrays cotangents;
  for (const Array& result : results) cotangents.push_back(ones_like(result));
  const auto function = [&](const suite::Arrays& x) { return row.call(entry, x); };
  for (const Array& slope : suite::gradients_of(function, inputs, cotangents))
    if (!slope.is_nothing()) results.push_back(slope);
  return results;
}

std::vector<int64_t> integers_of(const Array& x) {
  return is_integer(x.dtype()) ? cast(x, Int64).to_vector<int64_t>() : std::vector<int64_t>{};
}

/// Results on the device beside those of the CPU: elementwise ops have one body, so the same bits.
void expect_the_same_here(const suite::OpEntry& row, const suite::OracleCase& entry, const std::string& where) {
  const suite::Arrays inputs = suite::inputs_of(entry), far = results_of(row, entry, inputs);
  suite::Arrays moved;
  for (const Array& input : inputs) moved.push_back(on_cpu(input));
  const suite::Arrays near = results_of(row, entry, moved);
  const Op* const op = find_op(entry.op);
  oracles::OracleTolerance tolerance{.ulp = 32, .atol = 1e-5};
  if (op != nullptr && op->kind == Kind::elementwise) tolerance = {.exact = true};
  ASSERT_EQ(far.size(), near.size()) << where;
  for (size_t i = 0; i < near.size(); ++i) {
    const suite::OracleArray want{"result " + std::to_string(i), to_string(near[i].dtype()), suite::sizes_of(near[i]),
                                  oracles::values_of(near[i]), integers_of(near[i])};
    EXPECT_EQ(suite::difference(far[i], want, tolerance), "") << where;
  }
}

TEST(DISABLED_Inside, OpsWithoutFloat64) {
  ASSERT_FALSE(has_type_there(Float64));
  suite::for_each_case(suite::op_oracle_files(), expect_the_same_here);
}

TEST(DeviceTrouble, Float32NeedsNoFloat64) {
  expect_success(run_itself("Float32WithoutFloat64", "ROSIN_REFERENCE=devices=1,fp64=0"));
  expect_success(run_itself("OpsWithoutFloat64", "ROSIN_TEST_DEVICE=reference:0 ROSIN_REFERENCE=devices=1,fp64=0"));
}

// ---- The cache of kernels: on devices that compile ----

TEST(DISABLED_Inside, Computes) {
  const Array x = values(get_device("OpenCL", 0));
  EXPECT_EQ((x * 2 + 1).to_vector<float>(), (std::vector<float>{3, 5, 7}));
  EXPECT_EQ(sum(x).item(), 6);
}

class KernelCache : public testing::Test {
 protected:
  void SetUp() override {
    // (Asked in another process: what drivers load stays in this one, and not all compilers bear each other.)
    static const Outcome probe = run_itself("Computes", "ROSIN_LOG=none");
    if (probe.status != 0) GTEST_SKIP() << "no device compiles kernels:\n" << probe.text;
  }
  static Outcome compute(const fs::path& folder, const std::string& more = {}) {
    return run_itself("Computes", "ROSIN_CACHE_DIR='" + folder.string() + "' " + more);
  }
  static std::vector<fs::path> files_in(const fs::path& folder) {
    std::vector<fs::path> files;
    if (!fs::exists(folder / "kernels")) return files;
    for (const auto& file : fs::directory_iterator(folder / "kernels")) files.push_back(file.path());
    return files;
  }
};

TEST_F(KernelCache, FilesThatAreDamagedOrForeignAreWrittenAnew) {
  const fs::path folder = fresh_folder();
  expect_success(compute(folder));
  const std::vector<fs::path> files = files_in(folder);
  ASSERT_FALSE(files.empty());
  for (size_t i = 0; i < files.size(); ++i) {
    const auto size = fs::file_size(files[i]);
    if (i % 3 == 0) fs::resize_file(files[i], size / 2);
    if (i % 3 == 1) std::ofstream(files[i], std::ios::binary) << "something else";
    if (i % 3 == 2) {
      std::fstream file(files[i], std::ios::binary | std::ios::in | std::ios::out);
      file.seekp(static_cast<std::streamoff>(size) - 10);
      file.put('x').put('y');
    }
  }
  expect_success(compute(folder));
  for (const fs::path& file : files) EXPECT_GT(fs::file_size(file), 100u) << file;
  fs::remove_all(folder);
}

TEST_F(KernelCache, AFolderThatCannotBeWrittenIsWarnedOfOnce) {
  const fs::path folder = fresh_folder();
  std::ofstream(folder / "file") << "not a folder";  // (root may write everywhere, but not into a file)
  const Outcome outcome = compute(folder / "file");
  expect_success(outcome);
  EXPECT_EQ(count_of(outcome.text, "compiled kernels are not kept"), 1u) << outcome.text;
  fs::remove_all(folder);
}

TEST(DISABLED_Inside, ComputesWithoutSpace) {
  signal(SIGXFSZ, SIG_IGN);
  const Device device = get_device("OpenCL", 0);
  const rlimit none{64, 64};  // bytes of a file: as on a full disk, every write fails
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &none), 0);
  EXPECT_EQ((values(device) * 2 + 1).to_vector<float>(), (std::vector<float>{3, 5, 7}));
}

TEST_F(KernelCache, AFullDiskIsWarnedOfOnceAndLeavesNoFile) {
  const fs::path folder = fresh_folder();
  expect_success(compute(folder / "first"));  // what the driver keeps itself is there from now on
  const Outcome outcome = run_itself("ComputesWithoutSpace", "ROSIN_CACHE_DIR='" + folder.string() + "'");
  EXPECT_LE(count_of(outcome.text, "compiled kernels are not kept"), 1u) << outcome.text;
  EXPECT_TRUE(files_in(folder).empty());
  fs::remove_all(folder);
}

TEST_F(KernelCache, ProcessesShareAFolder) {
  const fs::path folder = fresh_folder();
  std::vector<Outcome> outcomes(4);
  std::vector<std::thread> threads;
  for (Outcome& outcome : outcomes) threads.emplace_back([&] { outcome = compute(folder); });
  for (std::thread& thread : threads) thread.join();
  for (const Outcome& outcome : outcomes) expect_success(outcome);
  for (const fs::path& file : files_in(folder)) EXPECT_EQ(file.extension(), ".bin") << "left behind: " << file;
  expect_success(compute(folder));
  fs::remove_all(folder);
}

TEST(DISABLED_Inside, DoesNotCompile) {
  OpenDevice& device = DeviceTable::instance().open(get_device("OpenCL", 0).position());
  kernels::KernelWriter writer("broken", 64, ScalarType::int32);
  kernels::Launch launch = writer.finish(1);
  launch.code.name = "broken kernel";  // no name in C
  launch.what = "an op";
  try {
    device.kernels.kernels_for(std::span<const kernels::Launch>(&launch, 1));
    ADD_FAILURE() << "it compiles";
  } catch (const Error& error) {
    const std::string text = error.what(), kept = "the source is kept in ";
    EXPECT_EQ(error.kind(), ErrorKind::backend);
    for (const char* part : {"an op: ", "OpenCL:0", "error: "})
      EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
    ASSERT_NE(text.find(kept), std::string::npos) << text;
    const std::string path = text.substr(text.find(kept) + kept.size());
    EXPECT_TRUE(fs::exists(path.substr(0, path.find('\n')))) << path;
  }
}

TEST_F(KernelCache, AKernelThatDoesNotCompileSaysWhyAndKeepsItsSource) {
  const fs::path folder = fresh_folder();
  expect_success(run_itself("DoesNotCompile", "ROSIN_CACHE_DIR='" + folder.string() + "'"));
  fs::remove_all(folder);
}

}  // namespace
}  // namespace rosin
