// What is said about devices: each notice with its id, once per process, to be switched off.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "seeds.hpp"

namespace rosin::seeds {
namespace {

/// Hears the notices of a call by id; those that are asked for have none.
template <class F> std::map<std::string, Lines> notices_of(F f) {
  std::map<std::string, Lines> notices;
  set_log_sink(
      [](const LogMessage& m, void* data) {
        (*static_cast<std::map<std::string, Lines>*>(data))[std::string(m.id)].emplace_back(m.text);
      },
      &notices);
  f();
  set_log_sink(nullptr);
  return notices;
}

/// Everything that says something about devices, twice.
void provoke() {
  for (int time = 0; time < 2; ++time) {
    const OwnPreferences wrong("[rosin]\ngpu_backend = \"Reactant\"\n[Flux]\ngpu_backend = \"CPU\"\n");
    get_device();
    const OwnPreferences foreign("[Flux]\ngpu_backend = \"oneAPI\"\n[Lux]\ngpu_backend = \"Metal\"\n");
    get_device();
    const OwnPreferences none;
    functional("AMD");
    gpu(ones({2}, Float64));
    gpu_device();
    set_device("Metal", 0);
    set_device("CPU", 1);
  }
}

TEST_F(Seeds, EveryNoticeHasAnIdAndIsSaidOnce) {
  const auto notices = notices_of(provoke);
  std::map<std::string, Lines> expected = {
      {"unknown-backend",
       {"`gpu_backend` preference is set to Reactant, which is not allowed.\nDefaulting to automatic device "
        "selection."}},
      {"deprecated-backend", {"\"AMD\" backend is deprecated. Please use \"AMDGPU\" instead."}},
      {"device-setting", {"set_device: setting a device of the CPU makes no sense. Ignoring the device setting."}},
  };
  if (const BackendFacts& metal = here.at("Metal"); !metal.functional()) {
    expected["backend-unavailable"] = {metal.refusal()};
    Lines& said = expected["device-setting"];
    said.insert(said.begin(), "set_device: Metal is not functional (" + metal.why + "). Ignoring the device setting.");
  }
  if (here.automatic() == "CPU") {
    expected["gpu-not-functional"] = {
        "gpu: no functional GPU; data stays on the CPU. \"rosin devices\" says why. (No action is required if you want "
        "to run on the CPU.)"};
    expected["no-gpu"] = {
        "No functional GPU backend found! Defaulting to CPU. \"rosin devices\" says why. (No action is required if you "
        "want to run on the CPU.)"};
  } else {
    expected["float64-moved"] = {
        "Float64 arrays become Float32 when they are moved to a GPU; device.with(keep) keeps their type."};
  }
  ASSERT_EQ(notices.count("foreign-preference"), 1u);
  EXPECT_EQ(notices.at("foreign-preference").size(), 2u);  // of two files
  for (const auto& [id, said] : notices) {
    if (id == "foreign-preference") continue;
    EXPECT_EQ(expected[id], said) << id;
  }
  EXPECT_EQ(notices.size(), expected.size() + 1);
}

TEST_F(Seeds, EveryNoticeCanBeSwitchedOff) {
  const auto notices = notices_of(provoke);
  for (const auto& [id, said] : notices) set_log_enabled(id, false);
  forget_said();
  EXPECT_TRUE(notices_of(provoke).empty());
  for (const auto& [id, said] : notices) set_log_enabled(id, true);
  EXPECT_EQ(notices_of(provoke).size(), notices.size());
}

TEST_F(Seeds, APreferenceThatIsNoBackendIsPassedOver) {
  const OwnPreferences file("[rosin]\ngpu_backend = \"CUDO\"\n");
  const Choice expected = here.choice("", true);
  EXPECT_EQ(text_of(get_device({.verbose = true})), expected.device);
  Lines said = {
      "`gpu_backend` preference is set to CUDO, which is not allowed.\nDefaulting to automatic device selection."};
  said.insert(said.end(), expected.said.begin(), expected.said.end());
  EXPECT_EQ(heard(), said);
}

TEST_F(Seeds, AVariableGoesBeforeEveryFileAndAnArgumentBeforeAll) {
  const OwnPreferences file("[rosin]\ngpu_backend = \"AMDGPU\"\n");
  setenv("ROSIN_GPU_BACKEND", "CPU", 1);
  EXPECT_EQ(text_of(get_device()), "CPU");
  for (const BackendFacts& backend : here.backends) {
    if (!backend.functional()) continue;
    EXPECT_EQ(text_of(get_device(backend.name)), backend.name + ":0");
  }
  unsetenv("ROSIN_GPU_BACKEND");
  EXPECT_EQ(text_of(get_device()), here.choice("AMDGPU", false).device);
}

}  // namespace
}  // namespace rosin::seeds
