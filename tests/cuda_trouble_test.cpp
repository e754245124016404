// Trouble with GPUs of NVIDIA, on the pretended ones of tests/fake_cuda: libraries of another version, memory that runs
// out, a device that is lost beside one that works, kernels on disk that the driver does not take, facts, peers.
// Read first: run_itself.hpp, fake_cuda/README.md.
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <rosin/create.hpp>
#include <rosin/device.hpp>
#include <rosin/diagnostics.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/matmul.hpp>
#include <rosin/model.hpp>
#include <rosin/move.hpp>
#include <rosin/reduce.hpp>

#include "run_itself.hpp"

namespace rosin {
namespace {

namespace fs = std::filesystem;

fs::path libraries() { return fs::read_symlink("/proc/self/exe").parent_path() / "fake_cuda"; }

class CudaTrouble : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(libraries() / "libcuda.so.1")) GTEST_SKIP() << "the build has no pretended CUDA";
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::temp_directory_path() / ("rosin-" + std::to_string(getpid()) + test->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    fs::permissions(folder_, fs::perms::owner_all);
  }
  void TearDown() override { fs::remove_all(folder_); }

  Outcome run(const std::string& test, const std::string& options, const std::string& more = "") const {
    return run_itself(test, "ROSIN_CUDA_LIBRARIES='" + libraries().string() + "' FAKE_CUDA=" + options + " " + more);
  }

  fs::path folder_;
};

std::string text_of_error(const std::function<void()>& f, ErrorKind kind) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return {};
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

// ---- Libraries.

TEST(DISABLED_Inside, CudaWithoutItsLibraryOfProducts) {
  ASSERT_EQ(why_not("CUDA"), "");
  const std::string reason = why_not("CUDA", "cuBLASLt");
  if (reason.empty()) return;  // this machine has one of that version
  EXPECT_FALSE(functional("CUDA", "cuBLASLt"));
  EXPECT_TRUE(has(reason, "libcublasLt.so.12")) << reason;
  EXPECT_FALSE(has(reason, "libcublasLt.so.13")) << reason;
  EXPECT_TRUE(functional("CUDA", "nvrtc"));
  EXPECT_TRUE(has(why_not("CUDA", "cuFFT"), "CUDA looks for no library cuFFT; it knows driver, NVRTC"));
  const Device device = get_device("CUDA", 0);
  const Array x = Array({1.0f, 2.0f, 3.0f, 4.0f}, {2, 2}) | device;
  EXPECT_EQ(matmul(x, x).to_vector<float>(), (std::vector<float>{7, 10, 15, 22}));
}

TEST_F(CudaTrouble, ALibraryOfALaterMajorVersionThanTheDriverIsNotTaken) {
  for (const char* entry : {"libcuda.so.1", "libcublasLt.so.13"}) {
    fs::create_symlink(libraries() / entry, folder_ / entry);
  }
  fs::create_symlink(libraries() / "libnvrtc.so.13", folder_ / "libnvrtc.so.12");
  expect_success(run_itself("CudaWithoutItsLibraryOfProducts",
                            "ROSIN_CUDA_LIBRARIES='" + folder_.string() + "' FAKE_CUDA=driver=12080"));
}

TEST(DISABLED_Inside, CudaIsHidden) {
  EXPECT_FALSE(functional("CUDA"));
  EXPECT_EQ(why_not("CUDA"), "all devices are hidden by CUDA_VISIBLE_DEVICES=\"\"");
  EXPECT_EQ(why_not("CUDA", "cuBLASLt"), why_not("CUDA"));
  EXPECT_TRUE(has(text_of_error([] { get_device("CUDA", 0); }, ErrorKind::device), "CUDA_VISIBLE_DEVICES"));
}

TEST_F(CudaTrouble, AnEmptyListHidesAllDevices) {
  expect_success(run("CudaIsHidden", "devices=2", "CUDA_VISIBLE_DEVICES="));
}

// ---- Memory.

struct Holders {
  std::vector<Array> parts;
};

TEST(DISABLED_Inside, CudaRunsOutOfMemory) {
  const Device device = get_device("CUDA", 0);
  Holders model;
  for (int64_t i = 1; i <= 12; ++i) model.parts.push_back(ones({100'000 * i}));
  model = model | device;
  const std::string text = text_of_error([&] { eval((ones({40'000'000}) | device) + 1); }, ErrorKind::memory);
  EXPECT_TRUE(has(text, "out of memory on CUDA:0")) << text;
  for (int place = 11; place >= 2; --place) {
    EXPECT_TRUE(has(text, "parts[" + std::to_string(place) + "]")) << place << " in " << text;
  }
  for (const int small : {0, 1}) EXPECT_FALSE(has(text, "parts[" + std::to_string(small) + "]")) << text;
  EXPECT_EQ(sum(model.parts[0] + 1).item(), 200'000);
}

TEST_F(CudaTrouble, MemoryThatRunsOutNamesTheTenLargestArraysByTheirPaths) {
  expect_success(run("CudaRunsOutOfMemory", "memory=134217728,checks=0"));
}

// ---- A device that is lost.

TEST(DISABLED_Inside, CudaLosesADevice) {
  const Device first = get_device("CUDA", 0), second = get_device("CUDA", 1);
  const Array x = Array({1.0f, 2.0f, 3.0f}, {3}) | first, y = Array({1.0f, 2.0f, 3.0f}, {3}) | second;
  EXPECT_EQ((y * 3).to_vector<float>(), (std::vector<float>{3, 6, 9}));  // the first launch of all
  const std::string text = text_of_error([&] { (exp(x) + 1).to_vector<float>(); }, ErrorKind::backend);
  EXPECT_TRUE(has(text, "CUDA:0")) << text;
  const std::string again = text_of_error([&] { (x * 2).to_vector<float>(); }, ErrorKind::backend);
  EXPECT_TRUE(has(again, "CUDA:0") && has(again, "failed before")) << again;
  EXPECT_EQ((y * 2).to_vector<float>(), (std::vector<float>{2, 4, 6}));
  EXPECT_EQ((Array({1.0f, 2.0f}, {2}) * 2).to_vector<float>(), (std::vector<float>{2, 4}));
}

TEST_F(CudaTrouble, AKernelThatFaultsPoisonsItsDeviceAndTheOtherGoesOn) {
  expect_success(run("CudaLosesADevice", "devices=2,code=700,fail=cuLaunchKernel:2"));
}

// ---- Kernels on disk.

TEST(DISABLED_Inside, CudaComputes) {
  const Array x = Array({1.0f, 2.0f, 3.0f}, {3}) | get_device("CUDA", 0);
  EXPECT_EQ((x * 2 + 1).to_vector<float>(), (std::vector<float>{3, 5, 7}));
}

class CudaKernelFiles : public CudaTrouble {
 protected:
  std::string cache() const { return "ROSIN_CACHE_DIR='" + folder_.string() + "'"; }
  std::vector<fs::path> files() const {
    std::vector<fs::path> all;
    for (const auto& entry : fs::recursive_directory_iterator(folder_)) {
      if (entry.path().extension() == ".bin") all.push_back(entry.path());
    }
    std::sort(all.begin(), all.end());
    return all;
  }
};

TEST_F(CudaKernelFiles, ThoseOfAnotherArchitectureAreNotTaken) {
  expect_success(run("CudaComputes", "arch=90", cache()));
  const std::vector<fs::path> first = files();
  ASSERT_FALSE(first.empty());
  expect_success(run("CudaComputes", "arch=80", cache()));
  EXPECT_EQ(files().size(), 2 * first.size());
  expect_success(run("CudaComputes", "arch=90", cache()));
  EXPECT_EQ(files().size(), 2 * first.size());
}

TEST_F(CudaKernelFiles, ThoseThatTheDriverDoesNotTakeAreCompiledAgain) {
  expect_success(run("CudaComputes", "devices=1", cache()));
  const std::vector<fs::path> before = files();
  ASSERT_FALSE(before.empty());
  expect_success(run("CudaComputes", "devices=1,code=209,fail=cuModuleLoadData:1", cache()));  // no binary for it
  EXPECT_EQ(files(), before);
}

TEST_F(CudaKernelFiles, ThoseThatAreDamagedAreReplaced) {
  expect_success(run("CudaComputes", "devices=1", cache()));
  const std::vector<fs::path> before = files();
  ASSERT_FALSE(before.empty());
  const auto size = fs::file_size(before[0]);
  fs::resize_file(before[0], size / 2);
  expect_success(run("CudaComputes", "devices=1", cache()));
  EXPECT_EQ(fs::file_size(before[0]), size);
}

// ---- Facts.

TEST(DISABLED_Inside, CudaTellsItsFacts) {
  const BackendReport report = backend_report("CUDA");
  ASSERT_EQ(report.devices.size(), 2u);
  std::vector<std::string> names;
  std::string peers, vector_bytes;
  for (const DeviceFact& fact : report.devices[0].facts) {
    names.push_back(fact.name);
    if (fact.name == "copies straight from") peers = fact.value;
    if (fact.name == "vector bytes") vector_bytes = fact.value;
  }
  for (const char* name : {"units", "warp", "cache bytes", "largest shared bytes", "registers", "matrix types"}) {
    EXPECT_NE(std::find(names.begin(), names.end(), name), names.end()) << name;
  }
  EXPECT_EQ(peers, "CUDA:1");
  EXPECT_EQ(vector_bytes, "16");
}

TEST_F(CudaTrouble, DevicesTellTheirFactsAndTheirPeers) { expect_success(run("CudaTellsItsFacts", "devices=2")); }

}  // namespace
}  // namespace rosin
