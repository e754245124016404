// Tests of the reports: what is looked for, what decides, what is remembered of a probe.
#include <rosin/diagnostics.hpp>

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <rosin/error.hpp>

#include "devices/plugin_record.hpp"

namespace rosin {
namespace {

/// Sets a variable, and brings back what was there.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    const char* before = std::getenv(name);
    was_set_ = before != nullptr;
    if (was_set_) before_ = before;
    setenv(name, value.c_str(), 1);
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() { was_set_ ? setenv(name_, before_.c_str(), 1) : unsetenv(name_); }

 private:
  const char* name_;
  bool was_set_ = false;
  std::string before_;
};

class Diagnostics : public testing::Test {
 protected:
  Diagnostics()
      : folder_(std::filesystem::temp_directory_path() / ("rosin-diagnostics-" + std::to_string(getpid()))),
        cache_("ROSIN_CACHE_DIR", folder_ / "cache"), path_("ROSIN_PLUGIN_PATH", folder_ / "plug-ins"),
        backend_("ROSIN_GPU_BACKEND", "") {
    std::filesystem::create_directories(folder_ / "plug-ins");
  }
  ~Diagnostics() override { std::filesystem::remove_all(folder_); }

  std::string file(const std::string& name, const std::string& content) const {
    const std::string path = folder_ / "plug-ins" / name;
    std::ofstream(path) << content;
    return path;
  }

  std::filesystem::path folder_;
  Variable cache_, path_, backend_;
};

TEST_F(Diagnostics, TheCpuNeedsNoFileAndHasOneDevice) {
  const BackendReport report = backend_report("cpu");
  EXPECT_EQ(report.backend, "CPU");
  EXPECT_EQ(report.reason, "");
  EXPECT_TRUE(report.tried.empty());
  ASSERT_EQ(report.devices.size(), 1u);
  EXPECT_EQ(report.devices[0].device, cpu_device());
  EXPECT_TRUE(report.devices[0].float64);
  EXPECT_TRUE(detail::plugin_files("CPU").empty());
}

TEST_F(Diagnostics, PlugInFilesAreNamedAfterTheBackEndInTheOrderOfTheFolders) {
  const std::vector<std::string> files = detail::plugin_files("rocm"), folders = library_report().plugin_folders;
  ASSERT_EQ(files.size(), folders.size());
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[0], (folder_ / "plug-ins/librosin_amdgpu.so").string());
  EXPECT_EQ(files[1], folders[1] + "/librosin_amdgpu.so");
}

TEST_F(Diagnostics, AnUnknownBackEndIsAnError) {
  EXPECT_THROW(backend_report("CUDO"), Error);
  EXPECT_THROW(detail::plugin_files("CUDO"), Error);
}

TEST_F(Diagnostics, AProbeSaysWhyAFileIsNoPlugIn) {
  const std::string odd = file("plugin.so", "text");
  EXPECT_EQ(detail::probe_plugin(odd).reason, "has not the name of a plug-in, such as librosin_cuda.so");
  const detail::PluginProbe probe = detail::probe_plugin(file("librosin_metal.so", "text"));
  EXPECT_FALSE(probe.loaded);
  EXPECT_NE(probe.reason.find("librosin_metal.so"), std::string::npos) << probe.reason;
}

TEST_F(Diagnostics, AFileThatCrashedIsRememberedUntilAProbeGoesWell) {
  const std::string path = file("librosin_metal.so", "text");
  EXPECT_FALSE(crashed_in_last_probe(path));
  detail::note_probe(path, true);
  EXPECT_TRUE(crashed_in_last_probe(path));
  EXPECT_FALSE(std::filesystem::is_empty(folder_ / "cache/probes"));
  detail::note_probe(path, false);
  EXPECT_FALSE(crashed_in_last_probe(path));
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "cache/probes"));
}

TEST_F(Diagnostics, NotesInAFolderThatOthersMayWriteDoNotCount) {
  const std::string path = file("librosin_metal.so", "text"), other = file("librosin_cuda.so", "text");
  detail::note_probe(path, true);
  const auto notes = folder_ / "cache/probes";
  EXPECT_EQ(std::filesystem::status(notes).permissions(), std::filesystem::perms(0700));
  std::filesystem::permissions(notes, std::filesystem::perms(0777));
  detail::note_probe(other, true);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(notes), std::filesystem::directory_iterator()), 1);
  EXPECT_TRUE(crashed_in_last_probe(other));  // in this process all the same
  for (const std::string& noted : {path, other}) detail::note_probe(noted, false);
}

TEST_F(Diagnostics, ACrashIsRememberedInThisProcessWhereNothingCanBeWritten) {
  const Variable cache("ROSIN_CACHE_DIR", "/proc/nowhere");
  const std::string path = file("librosin_metal.so", "text");
  detail::note_probe(path, true);
  EXPECT_TRUE(crashed_in_last_probe(path));
  detail::note_probe(path, false);
  EXPECT_FALSE(crashed_in_last_probe(path));
}

TEST_F(Diagnostics, TheDecisionNamesTheVariableOrTheLineOfTheFile) {
  const std::string file_path = folder_ / "p.toml";
  std::ofstream(file_path) << "# a comment\n[Flux]\ngpu_backend = \"Metal\"\n";
  const Variable preferences("ROSIN_PREFERENCES", file_path);
  const BackendDecision by_file = backend_decision();
  EXPECT_EQ(by_file.by, DecidedBy::file);
  EXPECT_EQ(by_file.backend, "Metal");
  EXPECT_EQ(by_file.file, file_path);
  EXPECT_EQ(by_file.line, 3);
  EXPECT_EQ(by_file.table, "Flux");
  EXPECT_EQ(library_report().preference_file, file_path);
  const Variable named("ROSIN_GPU_BACKEND", "OpenCL");
  EXPECT_EQ(backend_decision().by, DecidedBy::environment);
  EXPECT_EQ(backend_decision().backend, "OpenCL");
}

TEST_F(Diagnostics, TheEnvironmentIsReportedWithItsValues) {
  bool found = false;
  for (const VariableReport& variable : environment_report()) {
    EXPECT_FALSE(variable.meaning.empty()) << variable.name;
    if (variable.name != "ROSIN_PLUGIN_PATH") continue;
    found = true;
    EXPECT_EQ(variable.value, (folder_ / "plug-ins").string());
  }
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace rosin
