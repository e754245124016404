// Tests of devices where there is no GPU: choosing, asking, moving, and what is said. tests/seeds does the same where
// there are some, in processes of their own.
#include <rosin/device.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/log.hpp>
#include <rosin/move.hpp>
#include <rosin/show.hpp>

#include "../tests/error_testing.hpp"
#include "devices/plugin.hpp"

namespace rosin {
namespace {

class DeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    forget_said();
    reset_gpu_device();
    unsetenv("ROSIN_GPU_BACKEND");
    if (devices().size() > 1) GTEST_SKIP() << "there is a GPU";
    set_log_sink(
        [](const LogMessage& m, void* said) { static_cast<std::vector<std::string>*>(said)->emplace_back(m.text); },
        &said_);
  }
  void TearDown() override {
    unsetenv("ROSIN_GPU_BACKEND");
    set_log_sink(nullptr);
  }
  std::vector<std::string> said_;
};

TEST_F(DeviceTest, TheCpuIsChosenWhereThereIsNoGpu) {
  EXPECT_EQ(get_device(), CPUDevice());
  EXPECT_EQ(get_device({.verbose = true}), cpu_device());
  EXPECT_EQ(said_, std::vector<std::string>{"Using backend: CPU."});
}

TEST_F(DeviceTest, TheCpuIgnoresItsId) {
  EXPECT_EQ(get_device("CPU", 0), CPUDevice());
  EXPECT_EQ(get_device("cpu", 7), CPUDevice());
  EXPECT_EQ(get_device("CPU", -1), CPUDevice());
}

TEST_F(DeviceTest, ThePreferredCpuIsTakenWithOneLine) {
  setenv("ROSIN_GPU_BACKEND", "CPU", 1);
  EXPECT_EQ(get_device({.verbose = true}), CPUDevice());
  EXPECT_EQ(said_, std::vector<std::string>{"Using backend set in preferences: CPU."});
}

TEST_F(DeviceTest, APreferredBackEndThatIsMissingIsNamedAndPassedOver) {
  setenv("ROSIN_GPU_BACKEND", "metal", 1);
  EXPECT_EQ(get_device(), CPUDevice());
  ASSERT_EQ(said_.size(), 1u);
  EXPECT_EQ(said_[0], loaded("Metal") ? "Backend: Metal from the set preferences is not functional (" +
                                            why_not("Metal") + "). Defaulting to automatic device selection."
                                      : "Trying to use backend: Metal but its plug-in is not installed (" +
                                            why_not("Metal") + "). Choosing automatically.");
}

TEST_F(DeviceTest, APreferenceThatIsNoBackEndIsPassedOver) {
  setenv("ROSIN_GPU_BACKEND", "Reactant", 1);
  EXPECT_EQ(get_device(), CPUDevice());
  ASSERT_EQ(said_.size(), 1u);
  EXPECT_EQ(
      said_[0],
      "`gpu_backend` preference is set to Reactant, which is not allowed.\nDefaulting to automatic device selection.");
}

TEST_F(DeviceTest, BackEndsStandInTheOrderOfTrial) {
  EXPECT_EQ(supported_devices(), (std::vector<std::string>{"CUDA", "AMDGPU", "Metal", "OpenCL", "CPU"}));
  EXPECT_EQ(supported_gpu_backends(), (std::vector<std::string>{"CUDA", "AMDGPU", "Metal", "OpenCL"}));
}

TEST_F(DeviceTest, ABackEndIsFunctionalOrSaysWhyItIsNot) {
  EXPECT_TRUE(functional("CPU") && loaded("CPU"));
  EXPECT_EQ(why_not("CPU"), "");
  for (const std::string& backend : supported_gpu_backends()) {
    EXPECT_EQ(functional(backend), why_not(backend).empty()) << backend;
    EXPECT_EQ(functional(backend), devices(backend).size() > 0) << backend;
    EXPECT_TRUE(loaded(backend) || !functional(backend)) << backend;
  }
  EXPECT_TRUE(why_not("Metal") == "Metal exists on Apple's systems only" ||
              why_not("Metal").starts_with(plugin_file_name("Metal") + ": not in "))
      << why_not("Metal");
  EXPECT_EQ(why_not("hip"), why_not("AMDGPU"));
  EXPECT_EQ(why_not("Metal", "MPS"), why_not("Metal"));
  EXPECT_EQ(why_not("CPU", "cuDNN"), "CPU looks for no library cuDNN");
  EXPECT_FALSE(functional("CPU", "cuDNN"));
  EXPECT_EQ(why_not("rocm"), why_not("AMDGPU"));
  EXPECT_TRUE(said_.empty());
  why_not("AMD");
  EXPECT_EQ(said_, std::vector<std::string>{"\"AMD\" backend is deprecated. Please use \"AMDGPU\" instead."});
}

TEST_F(DeviceTest, AnUnknownBackEndIsNamedWithTheNearestOne) {
  EXPECT_EQ(
      error_of([] { get_device("CUDO"); }, ErrorKind::argument),
      "Unsupported backend: CUDO. Did you mean \"CUDA\"? Supported backends are (\"CUDA\", \"AMDGPU\", \"Metal\", "
      "\"OpenCL\", \"CPU\").");
  EXPECT_EQ(error_of([] { functional("foo"); }, ErrorKind::argument),
            "Unsupported backend: foo. Supported backends are (\"CUDA\", \"AMDGPU\", \"Metal\", \"OpenCL\", \"CPU\").");
}

TEST_F(DeviceTest, ABackEndThatIsNotThereIsAnErrorWithItsReason) {
  EXPECT_EQ(error_of([] { get_device("Metal", 0); }, ErrorKind::device),
            "Unavailable backend: Metal. " +
                (loaded("Metal")
                     ? "It is not functional (" + why_not("Metal") + "); get_device() chooses among those that are."
                     : "Its plug-in is not installed (" + why_not("Metal") +
                           "); get_device() chooses among those that are there."));
  EXPECT_EQ(error_of([] { gpu_device({.force = true}); }, ErrorKind::device),
            "gpu_device: No functional GPU device found! \"rosin devices\" says why; without .force the CPU is taken");
  ASSERT_FALSE(functional("CUDA"));
  EXPECT_EQ(error_of([] { cu(ones({2})); }, ErrorKind::device),
            "cu: CUDA is not functional (" + why_not("CUDA") + "); use gpu(x) to fall back to the CPU");
}

TEST_F(DeviceTest, GpuLeavesDataWhereItIsAndSaysSoOnce) {
  const Array x = ones({2});
  EXPECT_TRUE(same(gpu(x), x));
  EXPECT_TRUE(same(x | gpu, x));
  EXPECT_EQ(said_,
            std::vector<std::string>{"gpu: no functional GPU; data stays on the CPU. \"rosin devices\" says why. (No "
                                     "action is required if you want to run on the CPU.)"});
}

TEST_F(DeviceTest, GpuDeviceFallsBackToTheCpuAndSaysSoOnce) {
  EXPECT_EQ(gpu_device(), CPUDevice());
  EXPECT_EQ(gpu_device(), CPUDevice());
  EXPECT_EQ(said_,
            std::vector<std::string>{"No functional GPU backend found! Defaulting to CPU. \"rosin devices\" says why. "
                                     "(No action is required if you want to run on the CPU.)"});
}

TEST_F(DeviceTest, TheCpuTellsAboutItself) {
  const Device device;
  EXPECT_EQ(device.backend(), "CPU");
  EXPECT_EQ(device.id(), 0);
  EXPECT_FALSE(device.name().empty());
  EXPECT_GT(device.memory(), int64_t{1} << 20);
  EXPECT_FALSE(device.is_gpu());
  EXPECT_EQ(to_string(device), "CPU (" + device.name() + ")");
}

TEST_F(DeviceTest, ListsOfDevicesArePrintedLineByLine) {
  EXPECT_EQ(devices().size(), 1);
  EXPECT_EQ(devices()[0], CPUDevice());
  EXPECT_EQ(to_string(devices("CPU")), "1 CPU device:\n0. " + Device().name());
  EXPECT_EQ(to_string(devices("Metal")), "0 Metal devices");
}

struct Pair {
  Array a, b;
};
struct Model {
  Pair pair;
  std::vector<Array> list;
  std::map<std::string, Array> named;
  std::unique_ptr<Pair> pointed;
  double rate = 0.5;
};

TEST_F(DeviceTest, AMoveToTheSameDeviceKeepsEveryHandle) {
  Model model{
      {ones({2}), zeros({3})}, {ones({4})}, {{"w", ones({5})}}, std::make_unique<Pair>(ones({6}), Array()), 0.25};
  const Model there = model | cpu;
  EXPECT_TRUE(same(there.pair.a, model.pair.a) && same(there.pair.b, model.pair.b));
  EXPECT_TRUE(same(there.list[0], model.list[0]) && same(there.named.at("w"), model.named.at("w")));
  EXPECT_TRUE(same(there.pointed->a, model.pointed->a) && there.pointed->b.is_nothing());
  EXPECT_NE(there.pointed.get(), model.pointed.get());
  EXPECT_EQ(there.rate, 0.25);
  EXPECT_TRUE(same(get_device()(model.pair).a, model.pair.a));
}

TEST_F(DeviceTest, ArraysAndModelsKnowTheirDevice) {
  EXPECT_EQ(ones({2}).device(), CPUDevice());
  EXPECT_EQ((ones({2}) + 1).device(), CPUDevice());
  EXPECT_EQ(device_of(Pair{ones({2}), Array()}), CPUDevice());
  EXPECT_EQ(device_of(Pair{}), CPUDevice());
  EXPECT_EQ(error_of([] { Array().device(); }, ErrorKind::argument),
            "device: the array is nothing (an empty handle); give it a value first");
}

template <class T>
concept MovesToCpu = requires(const T& x) { x | cpu; };
static_assert(MovesToCpu<Array> && MovesToCpu<Model> && MovesToCpu<std::tuple<Array, Pair>>);
// `std::cout << model | cpu` must not compile, nor the move of things that hold no arrays.
static_assert(!MovesToCpu<std::ostream> && !MovesToCpu<int> && !MovesToCpu<std::string> && !MovesToCpu<Device>);

}  // namespace
}  // namespace rosin
