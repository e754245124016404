// The seeds on choosing a device: what there is, preferences, device objects, hiding devices. Rows 1-6, 14, 22-25,
// 27-32, 34-37, 55-57, 59, 61 and cases D1-D6, D10, D21, D22, D27, D28, D31-D33, D39; see CASES.md.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string_view>

#include "seeds.hpp"

namespace rosin::seeds {
namespace {

using State = BackendFacts::State;

const std::string deleted =
    "Deleted the local preference for `gpu_backend`.\nDevices chosen from now on are chosen automatically.";
const std::string no_gpu_backend =
    "No functional GPU backend found! Defaulting to CPU. \"rosin devices\" says why. (No action is required if you "
    "want "
    "to run on the CPU.)";
const std::string gpu_stays =
    "gpu: no functional GPU; data stays on the CPU. \"rosin devices\" says why. (No action is required if you want to "
    "run on the CPU.)";

// --- Checking GPU availability

TEST_F(Seeds, Row01CudaIsFunctionalWhereItHasADevice) {
  using_backend("CUDA");
  EXPECT_EQ(functional("CUDA"), cuda().functional());
  EXPECT_EQ(loaded("CUDA"), cuda().loaded());
  EXPECT_EQ(why_not("CUDA"), cuda().why);
}

TEST_F(Seeds, Row02AmdgpuIsFunctionalAndSoIsItsLibraryMIOpen) {
  using_backend("AMDGPU");
  EXPECT_EQ(functional("AMDGPU"), here.at("AMDGPU").functional());
  EXPECT_EQ(why_not("AMDGPU"), here.at("AMDGPU").why);
  EXPECT_EQ(why_not("rocm"), here.at("AMDGPU").why);
  EXPECT_EQ(why_not("hip"), here.at("AMDGPU").why);
  // The plug-in of these tests brings no library of the vendor, and one of its own where that is asked for.
  EXPECT_FALSE(functional("AMDGPU", "MIOpen"));
  const char* options = std::getenv("ROSIN_REFERENCE_CUDA");
  const bool has_matmul = options && std::string_view(options).find("vendor=1") != std::string_view::npos;
  EXPECT_EQ(functional("CUDA", "Reference-Matmul"), has_matmul);
  EXPECT_FALSE(functional("CUDA", "reference"));
}

TEST_F(Seeds, Row03MetalIsNotFunctionalOffApple) {
  // It is where the plug-in finds what pretends to be Apple's.
  EXPECT_EQ(functional("Metal"), here.at("Metal").functional());
  EXPECT_EQ(why_not("Metal"), here.at("Metal").why);
}

// --- Selecting a GPU backend

TEST_F(Seeds, Row04SettingTheBackendWritesThePreference) {
  const OwnPreferences file;
  set_gpu_backend("AMDGPU");
  EXPECT_EQ(heard(), (Lines{"New GPU backend set: AMDGPU.\nDevices chosen from now on use it."}));
  EXPECT_EQ(file.text(), "[rosin]\ngpu_backend = \"AMDGPU\"\n");
  EXPECT_EQ(gpu_backend(), "AMDGPU");
  const Choice expected = here.choice("AMDGPU", true);
  EXPECT_EQ(text_of(get_device({.verbose = true})), expected.device);
  EXPECT_EQ(heard(), expected.said);
}

TEST_F(Seeds, Row05APreferenceWrittenByHandIsRead) {
  const OwnPreferences file("[Flux]\ngpu_backend = \"AMDGPU\"\n");
  EXPECT_EQ(gpu_backend(), "AMDGPU");
  const Choice expected = here.choice("AMDGPU", true);
  EXPECT_EQ(text_of(get_device({.verbose = true})), expected.device);
  EXPECT_EQ(heard(), expected.said);
}

TEST_F(Seeds, Row06TheBackendIsCudaWithoutPreference) {
  EXPECT_EQ(gpu_backend(), here.preference.empty() ? "CUDA" : here.preference);
  const OwnPreferences file;
  EXPECT_EQ(gpu_backend(), "CUDA");
}

TEST_F(Seeds, Row34SupportedDevicesStandInTheOrderOfTrial) {
  EXPECT_EQ(supported_devices(), (Lines{"CUDA", "AMDGPU", "Metal", "OpenCL", "CPU"}));
}

TEST_F(Seeds, Row56SupportedGpuBackendsAreTheSameWithoutTheCpu) {
  EXPECT_EQ(supported_gpu_backends(), (Lines{"CUDA", "AMDGPU", "Metal", "OpenCL"}));
}

// --- gpu without a GPU

TEST_F(Seeds, Row14GpuWithoutAGpuReturnsTheSameObjectWithOneLine) {
  const Array x = ones({3});
  const Dense m(2, 3);
  const Choice expected = here.choice(here.preference, false);
  const Array there = gpu(x);
  const Dense moved = m | gpu;
  EXPECT_EQ(text_of(there.device()), expected.device);
  EXPECT_EQ(same(there, x), expected.device == "CPU");
  EXPECT_EQ(same(moved.weight, m.weight), expected.device == "CPU");
  Lines said = expected.said;
  if (expected.device == "CPU" && here.preference != "CPU") said.push_back(gpu_stays);
  EXPECT_EQ(heard(), said);
}

TEST_F(Seeds, Row55GpuDoesNothingUntilAGpuLibraryIsThere) {
  const Array x = rand<double>({10});
  EXPECT_EQ(text_of(gpu(x).device()), gpu_text());
  using_backend("CUDA");
  EXPECT_EQ(text_of(gpu(x).device()), gpu_text());
  EXPECT_EQ(gpu(x).dtype(), gpu_text() == "CPU" ? Float64 : Float32);
}

// --- Hiding devices

TEST_F(Seeds, Row22HiddenDevicesAreNotFunctional) {
  using_backend("CUDA");
  EXPECT_EQ(functional("CUDA"), cuda().functional());
  EXPECT_EQ(devices("CUDA").size(), cuda().functional() ? cuda().devices : 0);
  EXPECT_EQ(why_not("CUDA"), cuda().why);
  const OwnPreferences file("[Flux]\ngpu_backend = \"CUDA\"\n");
  const Choice expected = here.choice("CUDA", false);
  EXPECT_EQ(text_of(get_device()), expected.device);
  EXPECT_EQ(heard(), expected.said);
  const Array x = ones({2});
  EXPECT_EQ(same(gpu(x), x), expected.device == "CPU");
}

TEST_F(Seeds, Row23VisibleDevicesAreNumberedFromZero) {
  for (const char* backend : {"CUDA", "AMDGPU"}) {
    using_backend(backend);
    const BackendFacts& facts = here.at(backend);
    const DeviceList list = devices(backend);
    ASSERT_EQ(list.size(), facts.functional() ? facts.devices : 0);
    for (int id = 0; id < list.size(); ++id) EXPECT_EQ(list[static_cast<size_t>(id)].id(), id);
  }
}

// --- Device objects

TEST_F(Seeds, Row24TheDeviceOfThePreferenceIsTakenWithOneLine) {
  using_backend("CUDA");
  const OwnPreferences file("[Flux]\ngpu_backend = \"CUDA\"\n");
  const Choice expected = here.choice("CUDA", true);
  const Device device = get_device({.verbose = true});
  EXPECT_EQ(text_of(device), expected.device);
  EXPECT_EQ(heard(), expected.said);
  // The seeds' situation, to the letter.
  if (cuda().functional()) {
    EXPECT_EQ(expected.said, Lines{"Using backend set in preferences: CUDA."});
  }
}

TEST_F(Seeds, Row25ADeviceShowsItsIdAndItsName) {
  for (const Device& device : gpus()) {
    EXPECT_EQ(to_string(device),
              std::string(device.backend()) + ":" + std::to_string(device.id()) + " (" + device.name() + ")");
    EXPECT_FALSE(device.name().empty());
  }
  if (cuda().functional()) {
    EXPECT_EQ(to_string(get_device("CUDA", 0)), "CUDA:0 (NVIDIA Reference GPU 0)");
  }
  EXPECT_EQ(to_string(cpu_device()), "CPU (" + cpu_device().name() + ")");
}

TEST_F(Seeds, Row27TheCpuCanBeThePreference) {
  const OwnPreferences file;
  set_gpu_backend("CPU");
  EXPECT_EQ(heard(), (Lines{"New GPU backend set: CPU.\nDevices chosen from now on use it."}));
  EXPECT_EQ(file.text(), "[rosin]\ngpu_backend = \"CPU\"\n");
}

TEST_F(Seeds, Row28APreferredCpuIsTakenThoughCudaIsThere) {
  const OwnPreferences file("[rosin]\ngpu_backend = \"CPU\"\n");
  using_backend("CUDA");
  const Device device = get_device({.verbose = true});
  EXPECT_EQ(heard(), Lines{"Using backend set in preferences: CPU."});
  EXPECT_EQ(device, CPUDevice());
  const Dense model(2, 3);
  const Dense moved = model | device;
  EXPECT_TRUE(same(moved.weight, model.weight));
  // gpu and gpu_device follow it without a word, as there is nothing to miss.
  EXPECT_EQ(text_of(gpu_device()), "CPU");
  EXPECT_TRUE(same(gpu(model.weight), model.weight));
  EXPECT_EQ(heard(), Lines{});
  EXPECT_EQ(
      error_of([] { gpu_device({.force = true}); }, ErrorKind::device),
      "gpu_device: the preference gpu_backend is CPU, and .force asks for a GPU; set_gpu_backend(\"\") removes the "
      "preference");
}

TEST_F(Seeds, Row29APreferredBackendThatIsNotLoadedIsNamedAndPassedOver) {
  const OwnPreferences file("[Flux]\ngpu_backend = \"CUDA\"\n");
  const Choice expected = here.choice("CUDA", true);
  EXPECT_EQ(text_of(get_device({.verbose = true})), expected.device);
  EXPECT_EQ(heard(), expected.said);
  if (cuda().state == State::unloaded && here.automatic() == "CPU") {
    EXPECT_EQ(expected.said,
              (Lines{"Using backend set in preferences: CUDA.",
                     "Trying to use backend: CUDA but its plug-in is not loaded. Call use(\"CUDA\") and call this "
                     "function again to respect the preferences backend.",
                     "Using backend: CPU."}));
  }
  using_backend("CUDA");
  const Choice again = here.choice("CUDA", true);
  EXPECT_EQ(text_of(get_device({.verbose = true})), again.device);
}

TEST_F(Seeds, Row30DevicesAreListedLineByLine) {
  using_backend("CUDA");
  const int count = cuda().functional() ? cuda().devices : 0;
  const DeviceList list = devices("CUDA");
  std::string expected = std::to_string(count) + (count == 1 ? " CUDA device" : " CUDA devices") + (count ? ":" : "");
  for (const Device& device : list) expected += "\n" + std::to_string(device.id()) + ". " + device.name();
  EXPECT_EQ(to_string(list), expected);
  if (count == 3) {
    EXPECT_EQ(to_string(list),
              "3 CUDA devices:\n0. NVIDIA Reference GPU 0\n1. NVIDIA Reference GPU 1\n2. NVIDIA Reference GPU 2");
  }
}

TEST_F(Seeds, Row35APreferredAmdgpuThatIsNotThereLeavesTheModelWhereItIs) {
  const OwnPreferences file("[Flux]\ngpu_backend = \"AMDGPU\"\n");
  const Dense model(2, 3);
  EXPECT_EQ(to_string(model), "Dense(2 => 3)       # 9 parameters");
  const Choice expected = here.choice("AMDGPU", true);
  const Device device = get_device({.verbose = true});
  EXPECT_EQ(heard(), expected.said);
  EXPECT_EQ(text_of(device), expected.device);
  const Dense moved = model | device;
  EXPECT_EQ(same(moved.weight, model.weight), expected.device == "CPU");
}

TEST_F(Seeds, Row36APreferredAmdgpuThatIsNotThereGivesWayToCuda) {
  const OwnPreferences file("[Flux]\ngpu_backend = \"AMDGPU\"\n");
  using_backend("CUDA");
  const Choice expected = here.choice("AMDGPU", true);
  const Device device = get_device({.verbose = true});
  EXPECT_EQ(heard(), expected.said);
  EXPECT_EQ(text_of(device), expected.device);
  const Dense model = Dense(2, 3) | device;
  EXPECT_EQ(text_of(device_of(model)), expected.device);
  EXPECT_EQ(to_string(model), "Dense(2 => 3)       # 9 parameters");
}

TEST_F(Seeds, Row37DevicesHaveTheirIdsAndTheCpuIsOne) {
  using_backend("CUDA");
  const int count = cuda().functional() ? cuda().devices : 0;
  for (int id = 0; id < count; ++id) {
    const Device device = get_device("CUDA", id);
    EXPECT_EQ(device.id(), id);
    EXPECT_EQ(device, CUDADevice(id));
    EXPECT_EQ(device, FluxCUDADevice(id));
    EXPECT_EQ(device, LuxCUDADevice(id));
  }
  EXPECT_EQ(get_device("CPU"), CPUDevice());
  EXPECT_EQ(get_device("CPU", -7), CPUDevice());
  if (count > 0) {
    EXPECT_EQ(error_of([&] { get_device("CUDA", count); }, ErrorKind::device),
              "get_device: CUDA has " + std::to_string(count) + (count == 1 ? " device" : " devices") + "; got id " +
                  std::to_string(count) + "; ids count from 0");
    EXPECT_EQ(error_of([&] { get_device("CUDA", -1); }, ErrorKind::device),
              "get_device: CUDA has " + std::to_string(count) + (count == 1 ? " device" : " devices") +
                  "; got id -1; ids count from 0");
  } else {
    EXPECT_EQ(error_of([] { get_device("CUDA", 0); }, ErrorKind::device),
              std::string("Unavailable backend: CUDA. ") +
                  (cuda().state == State::missing ? "Its plug-in is not installed (" : "It is not functional (") +
                  cuda().why +
                  (cuda().state == State::missing ? "); get_device() chooses among those that are there."
                                                  : "); get_device() chooses among those that are."));
  }
}

// --- Lux

TEST_F(Seeds, Row57TheCpuDeviceOfLuxIsTheCpu) {
  const Device cdev = cpu_device();
  EXPECT_EQ(cdev, LuxCPUDevice());
  EXPECT_EQ(to_string(cdev), "CPU (" + cdev.name() + ")");
}

TEST_F(Seeds, Row61DevicesCanBeChosenByHand) {
  using_backend("CUDA");
  using_backend("AMDGPU");
  const Device cdev = LuxCPUDevice();
  const Array x_cpu = randn({3, 2});
  Array x_gpu;
  if (functional("CUDA")) {
    const Device gdev = LuxCUDADevice();
    x_gpu = x_cpu | gdev;
  } else if (functional("AMDGPU")) {
    const Device gdev = LuxAMDGPUDevice();
    x_gpu = x_cpu | gdev;
  } else {
    inform("No GPU is available. Using CPU.");
    x_gpu = x_cpu;
  }
  expect_equal(x_gpu | cdev, x_cpu);
  const bool has_one_of_both = cuda().functional() || here.at("AMDGPU").functional();
  EXPECT_EQ(text_of(x_gpu.device()), has_one_of_both ? here.automatic() : "CPU");
  EXPECT_EQ(heard(), has_one_of_both ? Lines{} : Lines{"No GPU is available. Using CPU."});
}

// --- Cases of the upstream suites

TEST_F(Seeds, D01GpuOfAnArrayWithoutAGpuIsTheArray) {
  const Array x = ones({5, 5});
  EXPECT_EQ(same(gpu(x), x), gpu_text() == "CPU");
}

TEST_F(Seeds, D02BackendsAreLoadedAsTheSituationSays) {
  for (const BackendFacts& backend : here.backends) {
    EXPECT_EQ(loaded(backend.name), backend.loaded()) << backend.name;
    EXPECT_EQ(functional(backend.name), backend.functional()) << backend.name;
    EXPECT_EQ(why_not(backend.name), backend.why);
    EXPECT_EQ(devices(backend.name).size(), backend.functional() ? backend.devices : 0);
  }
  EXPECT_EQ(heard(), Lines{});
}

TEST_F(Seeds, D03TheChosenDeviceIsTheOneThatTheTableStates) {
  const Choice expected = here.choice(here.preference, true);
  EXPECT_EQ(expected.device, here.stated.device);
  EXPECT_EQ(expected.said, here.stated.said);
  const Device dev = get_device({.verbose = true});
  EXPECT_EQ(text_of(dev), here.stated.device);
  EXPECT_EQ(heard(), here.stated.said);
  const Array x = randn({5, 5});
  expect_equal(dev(x) | cpu, x);
  const Lines names = supported_devices();
  EXPECT_NE(std::find(names.begin(), names.end(), dev.backend()), names.end());
}

TEST_F(Seeds, D04TheCpuByNameIsTheCpu) {
  EXPECT_EQ(get_device("CPU"), FluxCPUDevice());
  EXPECT_EQ(get_device("cpu", 3), FluxCPUDevice());
}

TEST_F(Seeds, D05ABackendThatIsFunctionalHasADeviceWithAnId) {
  using_backend("CUDA");
  using_backend("AMDGPU");
  for (const BackendFacts& backend : here.backends) {
    if (!backend.functional()) continue;
    const Device device = devices(backend.name)[0];
    EXPECT_EQ(device.backend(), backend.name);
    EXPECT_EQ(device.id(), 0);
    EXPECT_EQ(device.is_gpu(), backend.name != "OpenCL");
  }
}

TEST_F(Seeds, D06TheDeviceThatIsChosenIsOfASupportedBackend) {
  using_backend("CUDA");
  const Device device = get_device();
  EXPECT_EQ(text_of(device), gpu_text());
  EXPECT_EQ(device.id(), 0);
}

TEST_F(Seeds, D10MetalHasOneDeviceOnApple) {
  if (functional("Metal")) {
    EXPECT_EQ(devices("Metal").size(), 1u);
    for (const Device& device : {get_device("Metal"), get_device("Metal", 0), MetalDevice(), LuxMetalDevice()}) {
      EXPECT_EQ(text_of(device), "Metal:0");
      EXPECT_EQ((rand({2, 3}) | device).device(), device);
    }
    EXPECT_NE(error_of([] { get_device("Metal", 1); }, ErrorKind::device), "");
    return;
  }
  const std::string text = error_of([] { get_device("Metal", 0); }, ErrorKind::device);
  EXPECT_EQ(error_of([] { get_device("Metal"); }, ErrorKind::device), text);
  EXPECT_EQ(error_of([] { MetalDevice(); }, ErrorKind::device), text);
  EXPECT_EQ(error_of([] { LuxMetalDevice(); }, ErrorKind::device), text);
  const BackendFacts& metal = here.at("Metal");
  const bool is_loaded = metal.state == BackendFacts::State::broken;
  const std::string said = is_loaded ? "It is not functional (" + metal.why + ")" : "Its plug-in is not ";
  EXPECT_TRUE(text.starts_with("Unavailable backend: Metal. " + said)) << text;
}

TEST_F(Seeds, D21WithoutAGpuTheCpuIsTakenAndForcingThrows) {
  const std::string device = gpu_text();
  const Choice expected = here.choice(here.preference, false);
  EXPECT_EQ(text_of(gpu_device()), device);
  Lines said = expected.said;
  if (device == "CPU" && here.preference != "CPU") said.push_back(no_gpu_backend);
  EXPECT_EQ(heard(), said);
  if (device != "CPU") {
    EXPECT_EQ(text_of(gpu_device({.force = true})), device);
  } else if (here.preference != "CPU") {
    EXPECT_EQ(
        error_of([] { gpu_device({.force = true}); }, ErrorKind::device),
        "gpu_device: No functional GPU device found! \"rosin devices\" says why; without .force the CPU is taken");
  }
  EXPECT_EQ(&default_device_rng(gpu_device()), &default_rng());
  forget_said();
  set_device("CUDA", 0);
  EXPECT_EQ(heard(), cuda().functional() ? Lines{}
                                         : Lines{"set_device: CUDA is not functional (" + cuda().why +
                                                 "). Ignoring the device setting."});
  set_device("CPU", 0);
  EXPECT_EQ(heard(), Lines{"set_device: setting a device of the CPU makes no sense. Ignoring the device setting."});
}

TEST_F(Seeds, D22TheChoiceOfGpuDeviceIsRemembered) {
  using_backend("CUDA");
  const Device first = gpu_device();
  EXPECT_EQ(text_of(first), gpu_text());
  {
    const OwnPreferences file("[Lux]\ngpu_backend = \"CPU\"\n");
    EXPECT_EQ(text_of(gpu_device()), "CPU");
  }
  EXPECT_EQ(gpu_device(), first);
  EXPECT_EQ(text_of(gpu_device({.force = false})), gpu_text());
}

TEST_F(Seeds, D27EveryIdOfGpuDeviceGivesThatDeviceAndIsRemembered) {
  using_backend("CUDA");
  const Device first = gpu_device();
  const int count = static_cast<int>(devices(first.backend()).size());
  const Array x = randn({4, 3});
  for (int id = 0; first != CPUDevice() && id < count; ++id) {
    const Device device = gpu_device(id);
    EXPECT_EQ(device.id(), id);
    EXPECT_EQ(device.backend(), first.backend());
    EXPECT_EQ(gpu_device(), device);
    EXPECT_EQ(gpu(x).device(), device);
    expect_equal(device(x) | cpu, x);
  }
  if (first != CPUDevice()) {
    EXPECT_EQ(error_of([&] { gpu_device(count); }, ErrorKind::argument),
              "gpu_device: id = " + std::to_string(count) + " does not exist; " + std::string(first.backend()) +
                  " has " + std::to_string(count) + (count == 1 ? " device" : " devices") + "; ids count from 0");
    EXPECT_EQ(gpu_device().id(), count - 1);
  } else {
    EXPECT_EQ(gpu_device(5), CPUDevice());
  }
}

TEST_F(Seeds, D28SettingADeviceByRankNeverWarnsWhereThereIsOne) {
  using_backend("CUDA");
  for (int rank = 0; rank < 10; ++rank) {
    forget_said();
    set_device_by_rank("CUDA", rank);
    if (!cuda().functional()) {
      EXPECT_EQ(heard(),
                Lines{"set_device: CUDA is not functional (" + cuda().why + "). Ignoring the device setting."});
    } else {
      EXPECT_EQ(heard(), Lines{});
      EXPECT_EQ(gpu_device(), get_device("CUDA", rank % cuda().devices));
    }
  }
}

TEST_F(Seeds, D31SettingTheBackendSaysWhatHappened) {
  const OwnPreferences file;
  for (const std::string& name : supported_devices()) {
    set_gpu_backend(name);
    EXPECT_EQ(heard(), (Lines{"New GPU backend set: " + name + ".\nDevices chosen from now on use it."}));
    EXPECT_EQ(file.text(), "[rosin]\ngpu_backend = \"" + name + "\"\n");
    set_gpu_backend(name);
    EXPECT_EQ(heard(), (Lines{"GPU backend is already set to: " + name + ".\nNo need to do anything else."}));
    EXPECT_EQ(gpu_backend(), name);
  }
  set_gpu_backend("");
  EXPECT_EQ(heard(), Lines{deleted});
  EXPECT_EQ(gpu_backend(), "CUDA");
  EXPECT_EQ(text_of(gpu_device()), here.automatic());
  const std::string before = file.text();
  EXPECT_EQ(error_of([] { set_gpu_backend("CUDO"); }, ErrorKind::argument),
            "Unsupported GPU backend: CUDO. Did you mean \"CUDA\"? Supported backends are: (\"CUDA\", \"AMDGPU\", "
            "\"Metal\", \"OpenCL\", \"CPU\").");
  EXPECT_EQ(file.text(), before);
  heard();
  setenv("ROSIN_GPU_BACKEND", "CPU", 1);
  set_gpu_backend("Metal");
  EXPECT_EQ(heard(), (Lines{"New GPU backend set: Metal.\nROSIN_GPU_BACKEND=CPU goes before it while that variable is "
                            "set."}));
  EXPECT_EQ(gpu_backend(), "CPU");
}

TEST_F(Seeds, D32TheCpuIsLoadedAndFunctional) {
  EXPECT_TRUE(loaded("CPU") && functional("CPU") && why_not("CPU").empty());
}

TEST_F(Seeds, D33TheRuleForElementTypesConvertsFloatsOnly) {
  const Array wide = rand<double>({3}), whole = Array({1, 2, 3}, {3});
  const Array complex = cast(wide, ComplexF64);
  EXPECT_TRUE(same(cpu_device()(wide), wide));
  EXPECT_TRUE(same(cpu_device().with(keep)(wide), wide));
  EXPECT_EQ(cpu_device().with(Float32)(wide).dtype(), Float32);
  EXPECT_EQ(cpu_device().with(Float32)(complex).dtype(), ComplexF32);
  EXPECT_TRUE(same(cpu_device().with(Float32)(whole), whole));
  for (const Device& device : gpus()) {
    EXPECT_EQ(device(wide).dtype(), Float32);
    EXPECT_EQ(device.with(Float16)(wide).dtype(), Float16);
    if (here.float64) {
      EXPECT_EQ(device.with(keep)(wide).dtype(), Float64);
    } else {
      EXPECT_EQ(
          error_of([&] { device.with(keep)(wide); }, ErrorKind::dtype),
          "move: " + text_of(device) +
              " has no Float64; got Float64; move with the default policy, which makes it Float32 (x | device), or "
              "cast it");
    }
    const Chain half = Chain(Dense(3, 2), BatchNorm(2)) | device.with(Float16);
    for (const Array& x : fleaves(half)) EXPECT_EQ(x.dtype(), Float16);
    EXPECT_EQ(device(whole).dtype(), Int32);
    EXPECT_EQ(device.with(Float16)(whole).dtype(), Int32);
  }
  EXPECT_EQ(error_of([] { cpu_device().with(Int32); }, ErrorKind::argument),
            "with: the element type of a device must be a float type; got Int32; integers keep their type on every "
            "move");
}

TEST_F(Seeds, D39LuxFallsBackToTheCpu) {
  EXPECT_EQ(cpu_device(), LuxCPUDevice());
  EXPECT_EQ(text_of(gpu_device()), gpu_text());
}

}  // namespace
}  // namespace rosin::seeds
