// See seeds.hpp.
#include "seeds.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

namespace rosin::seeds {
namespace {

std::string variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value ? value : "";
}

void set_variable(const char* name, const std::string& value) {
  if (value.empty()) unsetenv(name);
  else setenv(name, value.c_str(), 1);
}

/// "STATE DEVICES WHY", as seeds_test.py states a back end.
BackendFacts read_backend(const std::string& name, const std::string& text) {
  using State = BackendFacts::State;
  const std::map<std::string, State> states = {{"functional", State::functional},
                                               {"broken", State::broken},
                                               {"missing", State::missing},
                                               {"unloaded", State::unloaded}};
  std::istringstream words(text);
  std::string state;
  BackendFacts facts{name, State::missing, 0, {}};
  words >> state >> facts.devices;
  facts.state = states.at(state);
  std::getline(words >> std::ws, facts.why);
  return facts;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\x1f', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

Situation stated_situation() {
  Situation here;
  for (const auto& [name, facts] : {std::pair<const char*, const char*>{"CUDA", "SEEDS_CUDA"},
                                    {"AMDGPU", "SEEDS_AMDGPU"},
                                    {"Metal", "SEEDS_METAL"},
                                    {"OpenCL", "SEEDS_OPENCL"}}) {
    here.backends.push_back(read_backend(name, variable(facts)));
  }
  here.preference = variable("SEEDS_PREFERENCE");
  here.stated = {variable("SEEDS_CHOSEN"), lines_of(variable("SEEDS_SAID"))};
  here.float64 = variable("SEEDS_FLOAT64") == "1";
  return here;
}

}  // namespace

std::string BackendFacts::refusal() const {
  switch (state) {
    case State::functional: return {};
    case State::broken:
      return "Backend: " + name + " from the set preferences is not functional (" + why +
             "). Defaulting to automatic device selection.";
    case State::missing:
      return "Trying to use backend: " + name + " but its plug-in is not installed (" + why +
             "). Choosing automatically.";
    case State::unloaded: break;
  }
  return "Trying to use backend: " + name + " but its plug-in is not loaded. Call use(\"" + name +
         "\") and call this function again to respect the preferences backend.";
}

BackendFacts& Situation::at(std::string_view name) {
  return *std::find_if(backends.begin(), backends.end(), [&](const BackendFacts& b) { return b.name == name; });
}

std::string Situation::automatic() const {
  for (const BackendFacts& backend : backends) {
    // The OpenCL devices of these tests are processors, which are taken by name only.
    if (backend.functional() && backend.name != "OpenCL") return backend.name + ":0";
  }
  return "CPU";
}

Choice Situation::choice(const std::string& wanted, bool verbose) const {
  Choice choice{automatic(), {}};
  if (wanted.empty()) {
    if (verbose) choice.said.push_back("Using backend: " + choice.device.substr(0, choice.device.find(':')) + ".");
    return choice;
  }
  if (verbose) choice.said.push_back("Using backend set in preferences: " + wanted + ".");
  if (wanted == "CPU") return {"CPU", choice.said};
  const auto named = std::find_if(backends.begin(), backends.end(),
                                  [&](const BackendFacts& backend) { return backend.name == wanted; });
  if (named->functional()) return {wanted + ":0", choice.said};
  choice.said.push_back(named->refusal());
  if (verbose) choice.said.push_back("Using backend: " + choice.device.substr(0, choice.device.find(':')) + ".");
  return choice;
}

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "rosin_seeds_XXXXXX").string();
  if (mkdtemp(pattern.data())) path_ = pattern;
}
TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

OwnPreferences::OwnPreferences(const std::string& text)
    : folder_(std::filesystem::temp_directory_path() / "rosin_seeds_XXXXXX"),
      backend_before_(variable("ROSIN_GPU_BACKEND")), file_before_(variable("ROSIN_PREFERENCES")),
      autoload_before_(variable("ROSIN_AUTOLOAD")) {
  if (!mkdtemp(folder_.data())) ADD_FAILURE() << "no temporary folder";
  file_ = folder_ + "/LocalPreferences.toml";
  std::ofstream(file_) << text;
  unsetenv("ROSIN_GPU_BACKEND");
  setenv("ROSIN_PREFERENCES", file_.c_str(), 1);
  setenv("ROSIN_AUTOLOAD", variable("SEEDS_AUTOLOAD").c_str(), 1);
  reset_gpu_device();
}
OwnPreferences::~OwnPreferences() {
  set_variable("ROSIN_GPU_BACKEND", backend_before_);
  set_variable("ROSIN_PREFERENCES", file_before_);
  set_variable("ROSIN_AUTOLOAD", autoload_before_);
  reset_gpu_device();
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}
std::string OwnPreferences::text() const {
  std::ifstream file(file_);
  return {std::istreambuf_iterator<char>(file), {}};
}

void Seeds::SetUp() {
  if (variable("SEEDS_CUDA").empty()) GTEST_SKIP() << "tests/seeds/seeds_test.py runs these tests in each situation";
  here = stated_situation();
  forget_said();
  reset_gpu_device();
  set_log_sink(
      [](const LogMessage& m, void* said) { static_cast<std::vector<std::string>*>(said)->emplace_back(m.text); },
      &said_);
  seed(42);
}

void Seeds::TearDown() {
  set_log_sink(nullptr);
  allowscalar(false);
}

void Seeds::using_backend(std::string_view name) {
  BackendFacts& backend = here.at(name);
  if (backend.state != BackendFacts::State::unloaded) return;
  use(name);
  backend.state = BackendFacts::State::functional;
  backend.why.clear();
}

std::vector<Device> Seeds::gpus() const {
  std::vector<Device> found;
  for (const BackendFacts& backend : here.backends) {
    for (int id = 0; backend.functional() && id < backend.devices; ++id) found.push_back(get_device(backend.name, id));
  }
  return found;
}

std::vector<std::string> Seeds::heard() { return std::exchange(said_, {}); }

bool Seeds::cu_works() {
  using_backend("CUDA");
  if (cuda().functional()) return true;
  EXPECT_EQ(error_of([] { cu(ones({2})); }, ErrorKind::device),
            "cu: CUDA is not functional (" + cuda().why + "); use gpu(x) to fall back to the CPU");
  return false;
}

std::string text_of(const Device& device) {
  std::string text(device.backend());
  return text == "CPU" ? text : text + ":" + std::to_string(device.id());
}

void expect_close(const Array& x, const Array& y, double tolerance) {
  ASSERT_EQ(to_string(x.shape()), to_string(y.shape()));
  const std::vector<double> a = x.to_vector<double>(), b = y.to_vector<double>();
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_LE(std::abs(a[i] - b[i]), tolerance * std::max(1.0, std::abs(b[i]))) << "element " << i << ": " << a[i];
  }
}

void expect_equal(const Array& x, const Array& y) {
  EXPECT_EQ(x.dtype(), y.dtype());
  expect_close(x, y, 0);
}

}  // namespace rosin::seeds
