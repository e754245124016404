// Tests of the names of back ends: those that are known, and those of files in the folders that are searched.
#include "devices/backends.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <rosin/device.hpp>

#include "../tests/error_testing.hpp"
#include "devices/plugin.hpp"

namespace rosin {
namespace {

class Backends : public testing::Test {
 protected:
  void SetUp() override {
    if (const char* before = std::getenv("ROSIN_PLUGIN_PATH")) before_ = before;
    char name[] = "/tmp/rosin_backends_XXXXXX";
    folder_ = mkdtemp(name);
    setenv("ROSIN_PLUGIN_PATH", folder_.c_str(), 1);
  }
  void TearDown() override {
    if (before_.empty()) unsetenv("ROSIN_PLUGIN_PATH");
    else setenv("ROSIN_PLUGIN_PATH", before_.c_str(), 1);
    std::filesystem::remove_all(folder_);
  }
  void put(const std::string& file) { std::ofstream(folder_ / file) << "no library\n"; }

  std::filesystem::path folder_;
  std::string before_;
};

TEST_F(Backends, AnyPluginFileThatLiesInASearchedFolderIsOne) {
  EXPECT_EQ(find_backend("Quince"), nullptr);
  put("librosin_quince.so");
  ASSERT_NE(find_backend("Quince"), nullptr);
  EXPECT_EQ(backend_named("QUINCE").name, "quince");
  EXPECT_FALSE(functional("Quince"));
  EXPECT_NE(why_not("quince").find((folder_ / "librosin_quince.so").string() + ": "), std::string::npos)
      << why_not("quince");
  for (const std::string& listed : supported_devices()) EXPECT_NE(listed, "quince");
}

TEST_F(Backends, AWrongNameGetsTheNearestFileName) {
  put("librosin_medlar.so");
  EXPECT_EQ(error_of([] { get_device("Medler"); }, ErrorKind::argument),
            "Unsupported backend: Medler. Did you mean \"medlar\"? Supported backends are (\"CUDA\", \"AMDGPU\", "
            "\"Metal\", \"OpenCL\", \"CPU\").");
}

TEST_F(Backends, OnlyNamesOfPluginFilesAreLookedFor) {
  std::filesystem::create_directory(folder_ / "librosin_x");
  put("librosin_x/y.so");
  put("librosin_.so");
  put("librosin_comm_plum.so");
  for (const char* name : {"x/y", "", "../x", "a b", "comm_plum"}) EXPECT_EQ(find_backend(name), nullptr) << name;
  EXPECT_EQ(name_in_plugin_file("librosin_cuda.so"), "cuda");
  for (const char* file : {"librosin_.so", "librosin_CUDA.so", "librosin_cuda.so.0", "librosin.so", "libcuda.so",
                           "librosin_comm_mpi.so"}) {
    EXPECT_EQ(name_in_plugin_file(file), "") << file;
  }
}

TEST_F(Backends, APluginSaysHowItsNameIsWritten) {
  put("librosin_sorb.so");
  EXPECT_EQ(backend_named("SORB").name, "sorb");
  EXPECT_EQ(backend_as_loaded("Sorb").name, "Sorb");
  EXPECT_EQ(&backend_named("sorb"), &backend_as_loaded("Sorb"));
  EXPECT_EQ(backend_as_loaded("cuda").name, "CUDA");
}

}  // namespace
}  // namespace rosin
