// Tests of preferences: which place wins, what wrong files say, and that writing spoils nothing, with real files in a
// working folder and a home of their own.
#include "devices/preferences.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <rosin/error.hpp>
#include <rosin/log.hpp>

#include "../tests/error_testing.hpp"
#include "devices/preference_file.hpp"
#include "devices/toml_text.hpp"

namespace rosin {
namespace {

namespace fs = std::filesystem;

constexpr const char* variables[] = {"ROSIN_PREFERENCES", "ROSIN_GPU_BACKEND", "ROSIN_AUTOLOAD"};

class PreferencesTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!can_read_toml()) GTEST_SKIP() << "this build has no toml++";
    std::string name = (fs::temp_directory_path() / "rosin-preferences-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    before_ = fs::current_path();
    fs::create_directories(folder_ / "here");
    fs::create_directories(folder_ / "config/rosin");
    fs::current_path(folder_ / "here");
    for (const char* variable : variables) unsetenv(variable);
    const char* config = std::getenv("XDG_CONFIG_HOME");
    if (config) config_before_ = config;
    setenv("XDG_CONFIG_HOME", (folder_ / "config").c_str(), 1);
    forget_said();
    set_log_sink(
        [](const LogMessage& m, void* said) { static_cast<std::vector<std::string>*>(said)->emplace_back(m.text); },
        &said_);
  }
  void TearDown() override {
    if (folder_.empty()) return;
    set_log_sink(nullptr);
    for (const char* variable : variables) unsetenv(variable);
    if (config_before_) setenv("XDG_CONFIG_HOME", config_before_->c_str(), 1);
    else unsetenv("XDG_CONFIG_HOME");
    fs::current_path(before_);
    fs::remove_all(folder_);
  }

  static void put(const fs::path& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }
  static std::string content(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
  static std::string backend() {
    const auto found = gpu_backend_preference();
    return found ? found->value + " from " + found->table : "none";
  }
  fs::path user_file() const { return folder_ / "config/rosin/LocalPreferences.toml"; }

  const fs::path file_ = "LocalPreferences.toml";
  fs::path folder_, before_;
  std::optional<std::string> config_before_;
  std::vector<std::string> said_;
};

// --- Reading. ---

TEST_F(PreferencesTest, NothingIsPreferredWithoutFileAndEnvironment) {
  EXPECT_FALSE(gpu_backend_preference());
  EXPECT_TRUE(autoload_preference());
  EXPECT_FALSE(mpi_gpu_aware_preference());
  EXPECT_TRUE(said_.empty());
}

TEST_F(PreferencesTest, TheFirstPlaceThatExistsWins) {
  put(user_file(), "[rosin]\ngpu_backend = 'Metal'\n");
  EXPECT_EQ(gpu_backend_preference()->file, user_file());
  put(file_, "\n[rosin]\ngpu_backend = 'AMDGPU'\n");
  EXPECT_EQ(gpu_backend_preference()->value, "AMDGPU");
  EXPECT_EQ(gpu_backend_preference()->file, "LocalPreferences.toml");
  EXPECT_EQ(gpu_backend_preference()->line, 3);
  put("named.toml", "[rosin]\ngpu_backend = 'CPU'\n");
  setenv("ROSIN_PREFERENCES", "named.toml", 1);
  EXPECT_EQ(gpu_backend_preference()->value, "CPU");
  setenv("ROSIN_GPU_BACKEND", "OpenCL", 1);
  const auto stated = gpu_backend_preference();
  EXPECT_EQ(stated->value + stated->file + stated->table, "OpenCLROSIN_GPU_BACKEND");
  EXPECT_TRUE(said_.empty());
}

TEST_F(PreferencesTest, ANamedFileThatDoesNotExistIsWarnedAbout) {
  setenv("ROSIN_PREFERENCES", "nowhere.toml", 1);
  put(file_, "[rosin]\ngpu_backend = 'AMDGPU'\n");
  EXPECT_EQ(backend(), "AMDGPU from rosin");
  EXPECT_EQ(said_, std::vector<std::string>{"preferences: ROSIN_PREFERENCES must name a file; nowhere.toml does not "
                                            "exist; LocalPreferences.toml is read"});
}

TEST_F(PreferencesTest, TheTablesAreAskedInTheirOrder) {
  std::string text;
  for (const char* table : {"LuxDeviceUtils", "Lux", "Flux", "MLDataDevices", "rosin"}) {
    text.append("[").append(table).append("]\ngpu_backend = \"CUDA\"\n");
    put(file_, text);
    EXPECT_EQ(backend(), std::string("CUDA from ") + table);
  }
}

TEST_F(PreferencesTest, AnUnknownNameInAForeignTableIsPassedOverWithOneWarning) {
  put(file_, "[MLDataDevices]\ngpu_backend = 'Reactant'\n[Flux]\ngpu_backend = 3\n[Lux]\ngpu_backend = 'cuda'\n");
  EXPECT_EQ(backend(), "cuda from Lux");
  EXPECT_EQ(backend(), "cuda from Lux");
  EXPECT_EQ(said_, (std::vector<std::string>{
                       "preferences: LocalPreferences.toml:2: gpu_backend = \"Reactant\" in [MLDataDevices] is no back "
                       "end of rosin; the line is passed over",
                       "preferences: LocalPreferences.toml:4: gpu_backend in [Flux] must be a string; got a value of "
                       "type integer; the line is passed over"}));
}

TEST_F(PreferencesTest, AnUnknownNameInOurTableIsForTheCallerToJudge) {
  put(file_, "[rosin]\ngpu_backend = 'CUDO'\n[Flux]\ngpu_backend = 'CPU'\n");
  EXPECT_EQ(backend(), "CUDO from rosin");
  EXPECT_TRUE(said_.empty());
}

TEST_F(PreferencesTest, AWrongTypeInOurTableIsAnErrorWithFileAndLine) {
  put(file_, "# A\n[rosin]\ngpu_backend = 3\nautoload = 'no'\n");
  EXPECT_EQ(error_of([] { gpu_backend_preference(); }, ErrorKind::argument),
            "preferences: LocalPreferences.toml:3: gpu_backend in [rosin] must be a string; got a value of type "
            "integer; correct the line");
  EXPECT_EQ(error_of([] { autoload_preference(); }, ErrorKind::argument),
            "preferences: LocalPreferences.toml:4: autoload in [rosin] must be a boolean; got a value of type string; "
            "correct the line");
  put(file_, "rosin = 'CUDA'\n");
  EXPECT_EQ(error_of([] { gpu_backend_preference(); }, ErrorKind::argument),
            "preferences: LocalPreferences.toml:1: rosin must be a table; got a value of type string; write [rosin]");
}

TEST_F(PreferencesTest, AMalformedOrUnreadableFileIsAnErrorUnlessTheEnvironmentDecides) {
  put(file_, "[rosin]\ngpu_backend = \n");
  EXPECT_EQ(error_of([] { gpu_backend_preference(); }, ErrorKind::argument)
                .find("preferences: LocalPreferences.toml:2: not valid TOML; "),
            0u);
  fs::remove(file_);
  fs::create_directory(file_);
  EXPECT_EQ(error_of([] { gpu_backend_preference(); }, ErrorKind::io),
            "read: the file must be readable; 'LocalPreferences.toml': it is a directory; check the path");
  setenv("ROSIN_GPU_BACKEND", "CPU", 1);
  EXPECT_EQ(backend(), "CPU from ROSIN_GPU_BACKEND");
}

TEST_F(PreferencesTest, AnUnknownKeyInOurTableIsNamedWithTheNearestKnownOne) {
  put(file_, "[rosin]\ngpu_backnd = 'CUDA'\nplugin = '/x/y.so'\n[Flux]\nanything = 1\n");
  EXPECT_EQ(backend(), "none");
  EXPECT_EQ(said_, (std::vector<std::string>{"preferences: LocalPreferences.toml:2: rosin reads no key gpu_backnd; did "
                                             "you mean gpu_backend?",
                                             "preferences: LocalPreferences.toml:3: rosin reads no key plugin"}));
}

TEST_F(PreferencesTest, AutoloadIsReadFromTheEnvironmentBeforeTheFile) {
  put(file_, "[rosin]\nautoload = false\n");
  EXPECT_FALSE(autoload_preference());
  setenv("ROSIN_AUTOLOAD", "1", 1);
  EXPECT_TRUE(autoload_preference());
  setenv("ROSIN_AUTOLOAD", "perhaps", 1);
  EXPECT_FALSE(autoload_preference());
  EXPECT_EQ(said_,
            std::vector<std::string>{"environment: ROSIN_AUTOLOAD must be 0 or 1; got \"perhaps\", which is ignored"});
}

TEST_F(PreferencesTest, FluxsKeyForMpiIsReadWhereOursIsNotSet) {
  put(file_, "[Flux]\nFluxDistributedMPICUDAAware = true\n");
  EXPECT_TRUE(mpi_gpu_aware_preference());
  put(file_, "[Flux]\nFluxDistributedMPICUDAAware = true\n[rosin]\nmpi_gpu_aware = false\n");
  EXPECT_FALSE(mpi_gpu_aware_preference());
}

// --- Writing. ---

TEST_F(PreferencesTest, WhetherMpiTakesMemoryOfGpusIsWritten) {
  put(file_, "[Flux]\nFluxDistributedMPICUDAAware = true\n");
  write_mpi_gpu_aware_preference(false);
  EXPECT_EQ(content(file_), "[Flux]\nFluxDistributedMPICUDAAware = true\n\n[rosin]\nmpi_gpu_aware = false\n");
  EXPECT_FALSE(mpi_gpu_aware_preference());
  write_mpi_gpu_aware_preference(true);
  EXPECT_EQ(content(file_), "[Flux]\nFluxDistributedMPICUDAAware = true\n\n[rosin]\nmpi_gpu_aware = true\n");
  EXPECT_TRUE(mpi_gpu_aware_preference());
}

TEST_F(PreferencesTest, WritingMakesAFileWhereThereIsNone) {
  write_gpu_backend_preference(std::nullopt);
  EXPECT_FALSE(fs::exists(file_));
  write_gpu_backend_preference("AMDGPU");
  EXPECT_EQ(content(file_), "[rosin]\ngpu_backend = \"AMDGPU\"\n");
  EXPECT_EQ(backend(), "AMDGPU from rosin");
  setenv("ROSIN_PREFERENCES", (folder_ / "new/folder/p.toml").c_str(), 1);
  write_gpu_backend_preference("CPU");
  EXPECT_EQ(content(folder_ / "new/folder/p.toml"), "[rosin]\ngpu_backend = \"CPU\"\n");
  EXPECT_EQ(content(file_), "[rosin]\ngpu_backend = \"AMDGPU\"\n");
}

TEST_F(PreferencesTest, WritingChangesTheFileThatIsRead) {
  put(user_file(), "# mine\r\n[Flux]\r\ngpu_backend = 'CUDA'\r\n");
  write_gpu_backend_preference("CPU");
  EXPECT_FALSE(fs::exists(file_));
  EXPECT_EQ(content(user_file()),
            "# mine\r\n[Flux]\r\ngpu_backend = 'CUDA'\r\n\r\n[rosin]\r\ngpu_backend = \"CPU\"\r\n");
  EXPECT_EQ(backend(), "CPU from rosin");
  write_gpu_backend_preference(std::nullopt);
  EXPECT_EQ(backend(), "CUDA from Flux");
}

TEST_F(PreferencesTest, WritingWhatIsThereTouchesNothing) {
  put(file_, "[rosin]\ngpu_backend = 'CPU'\n");
  struct stat first {
  }, second{};
  ASSERT_EQ(stat(file_.c_str(), &first), 0);
  write_gpu_backend_preference("CPU");
  ASSERT_EQ(stat(file_.c_str(), &second), 0);
  EXPECT_EQ(first.st_ino, second.st_ino);
  EXPECT_EQ(content(file_), "[rosin]\ngpu_backend = 'CPU'\n");
}

TEST_F(PreferencesTest, AMalformedFileStaysAsItIs) {
  const std::string text = "[rosin]\ngpu_backend = \"CPU\n";
  put(file_, text);
  error_of([] { write_gpu_backend_preference("CUDA"); }, ErrorKind::argument);
  EXPECT_EQ(content(file_), text);
}

TEST_F(PreferencesTest, ALinkedFileStaysLinkedAndALinkToNowhereIsAnError) {
  put(folder_ / "real.toml", "[rosin]\n");
  fs::create_symlink("../real.toml", file_);
  write_gpu_backend_preference("CPU");
  EXPECT_TRUE(fs::is_symlink(file_));
  EXPECT_EQ(content(folder_ / "real.toml"), "[rosin]\ngpu_backend = \"CPU\"\n");
  fs::remove(folder_ / "real.toml");
  EXPECT_EQ(error_of([] { write_gpu_backend_preference("CPU"); }, ErrorKind::io),
            "preferences: cannot write 'LocalPreferences.toml'; it is a symbolic link that leads nowhere; remove or "
            "mend it");
  EXPECT_TRUE(fs::is_symlink(file_));
}

TEST_F(PreferencesTest, AFileFarTooLargeOrTooDeepIsAnErrorAndStays) {
  put(file_, "[rosin]\n");
  fs::resize_file(file_, uint64_t{1} << 42);  // more than memory holds: it is not tried
  error_of([] { gpu_backend_preference(); }, ErrorKind::io);
  error_of([] { write_gpu_backend_preference("CPU"); }, ErrorKind::io);
  std::string deep = "a";
  for (int i = 0; i < 200000; ++i) deep += ".a";
  put(file_, deep + " = 1\n");
  const std::string said =
      "preferences: LocalPreferences.toml:1: tables and lists may stand at most 16 deep; the line "
      "has more; shorten it or remove the file";
  EXPECT_EQ(error_of([] { gpu_backend_preference(); }, ErrorKind::argument), said);
  EXPECT_EQ(error_of([] { write_gpu_backend_preference("CPU"); }, ErrorKind::argument), said);
  EXPECT_EQ(content(file_), deep + " = 1\n");
}

TEST_F(PreferencesTest, AReadOnlyFileStaysAsItIs) {
  put(file_, "[rosin]\n");
  ASSERT_EQ(chmod(file_.c_str(), 0444), 0);
  const std::string said = error_of([] { write_gpu_backend_preference("CPU"); }, ErrorKind::io);
  EXPECT_NE(said.find("it is read-only; allow writing or choose another name"), std::string::npos) << said;
  EXPECT_EQ(content(file_), "[rosin]\n");
}

TEST_F(PreferencesTest, AFileInAReadOnlyFolderStaysAsItIs) {
  put(file_, "[rosin]\n");
  fs::permissions(folder_, fs::perms(0755));
  fs::permissions(file_, fs::perms(0666));
  fs::permissions(folder_ / "here", fs::perms(0555));
  const bool root = geteuid() == 0;  // may write everywhere, so somebody else tries
  if (root) {
    ASSERT_EQ(seteuid(65534), 0);
  }
  const std::string said = error_of([] { write_gpu_backend_preference("CPU"); }, ErrorKind::io);
  if (root) {
    ASSERT_EQ(seteuid(0), 0);
  }
  fs::permissions(folder_ / "here", fs::perms(0755));
  EXPECT_NE(said.find("cannot write '"), std::string::npos) << said;
  EXPECT_EQ(content(file_), "[rosin]\n");
}

TEST_F(PreferencesTest, NoWriteOfSeveralIsLost) {
  constexpr int writers = 8, rounds = 6;
  put(file_, "# kept");
  std::vector<std::thread> threads;
  for (int writer = 0; writer < writers; ++writer) {
    threads.emplace_back([writer] {
      for (int round = 0; round < rounds; ++round) {
        write_preference("key_" + std::to_string(writer) + "_" + std::to_string(round), "x");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(toml_entries("F", content(file_)).size(), size_t{writers * rounds});
  EXPECT_EQ(content(file_).find("# kept\n"), 0u);
  EXPECT_EQ(std::distance(fs::directory_iterator("."), fs::directory_iterator()), 1);
}

TEST_F(PreferencesTest, ADamagedFileIsChangedRightOrNotAtAll) {
  const std::string sound = "# A\n[Flux]\ngpu_backend = \"AMDGPU\" # B\n[rosin]\ngpu_backend = \"CUDA\"\n";
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::string text = sound;
    text[random() % text.size()] = static_cast<char>(random() % 256);
    put(file_, text);
    try {
      write_gpu_backend_preference("CPU");
      EXPECT_EQ(backend().substr(0, 4), "CPU ") << text;
      EXPECT_EQ(content(file_), with_toml_value("F", text, "rosin", "gpu_backend", "CPU"));
    } catch (const Error&) {
      EXPECT_EQ(content(file_), text);
    }
  }
}

}  // namespace
}  // namespace rosin
