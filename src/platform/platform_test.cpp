// Tests of what the system says and does, as far as no room above asks for it in tests of its own (files: base).
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "platform/environment.hpp"
#include "platform/executable_memory.hpp"
#include "platform/libraries.hpp"
#include "platform/paths.hpp"
#include "platform/processor.hpp"

#include "../tests/sanitizer_testing.hpp"

namespace rosin::platform {
namespace {

TEST(Paths, KeepEveryByteOfTheirNames) {
  for (const char* name : {"a/b.txt", "ärger/чай/茶.npz", ""}) EXPECT_EQ(name_of(path_of(name)), name);
  EXPECT_TRUE(is_absolute(name_of(std::filesystem::temp_directory_path())));
  EXPECT_FALSE(is_absolute("a/b"));
  EXPECT_FALSE(is_absolute(""));
  EXPECT_TRUE(is_there(ROSIN_SOURCE_DIR "/docs"));
  EXPECT_FALSE(is_there(ROSIN_SOURCE_DIR "/no such folder"));
}

TEST(Variables, AreThoseOfTheEnvironment) {
  const std::vector<std::string> names = environment_names();
  ASSERT_FALSE(names.empty());
  const auto has_value = [](const std::string& name) { return environment_value(name.c_str()).has_value(); };
  EXPECT_TRUE(std::any_of(names.begin(), names.end(), has_value));
  EXPECT_FALSE(environment_value("ROSIN_TEST_NO_SUCH_VARIABLE"));
}

TEST(Processor, HasANameThreadsAndMemory) {
  EXPECT_FALSE(processor_name().empty());
  EXPECT_GE(available_threads(), 1);
  EXPECT_LE(available_threads(), static_cast<int>(std::thread::hardware_concurrency()));
  EXPECT_GT(memory_bytes(), int64_t{1} << 24);
}

/// What the system notes of the memory at a place: the line VmFlags of its mapping.
std::string flags_of_memory(const void* place) {
  std::ifstream maps("/proc/self/smaps");
  bool here = false;
  for (std::string line; std::getline(maps, line);) {
    unsigned long first = 0, last = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx", &first, &last) == 2) {
      const auto at = reinterpret_cast<uintptr_t>(place);
      here = first <= at && at < last;
    }
    if (here && line.starts_with("VmFlags:")) return line + " ";
  }
  return {};
}

TEST(LargePages, AreAskedForAndKeepWhatIsWritten) {
  constexpr size_t bytes = size_t{9} << 20;  // the middle lies in a whole one
  std::vector<unsigned char> memory(bytes, 7);
  prefer_large_pages(memory.data(), bytes);
  prefer_large_pages(memory.data(), 100);  // holds none
  prefer_large_pages(nullptr, 0);
  EXPECT_EQ(std::count(memory.begin(), memory.end(), 7), static_cast<ptrdiff_t>(bytes));
  if (emulated) GTEST_SKIP() << "emulators ask the system for no large pages";
  const std::string flags = flags_of_memory(memory.data() + bytes / 2);
  if (flags.empty() || !std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled")) GTEST_SKIP() << "no large pages";
  EXPECT_NE(flags.find(" hg "), std::string::npos) << flags;
}

TEST(Libraries, ThatCannotBeOpenedSayWhy) {
  std::string reason;
  EXPECT_EQ(open_library(ROSIN_SOURCE_DIR "/docs/no_library.so", reason), nullptr);
  EXPECT_FALSE(reason.empty());
  EXPECT_TRUE(is_there(file_of_this_library()));
}

// (Objects of two sizes, since freed memory of one may look as it did.)
TEST(ThreadLocalObjects, AreWholeWhenTheirThreadEnds) {
  static std::atomic<int> whole{0};
  struct Kept {
    std::vector<int> values;
    int mark = 42;
    ~Kept() { whole += mark == 42 && values == std::vector<int>(values.size(), 7); }
  };
  struct KeptMore : Kept {
    int more[200] = {};
  };
  for (const size_t count : {10, 1000}) {
    std::thread([count] {
      static thread_local Kept kept;
      static thread_local KeptMore kept_more;
      kept.values.assign(count, 7);
      kept_more.values.assign(count + 1, 7);
    }).join();
  }
  EXPECT_EQ(whole, 4);
}

#if defined(__x86_64__)
TEST(ExecutableMemory, RunsWhatWasCopiedIntoIt) {
  const unsigned char seven[] = {0xb8, 7, 0, 0, 0, 0xc3};  // mov eax, 7; ret
  const ExecutableMemory memory(seven, sizeof seven);
  ASSERT_NE(memory.code(), nullptr);
  EXPECT_GE(memory.bytes(), sizeof seven);
  EXPECT_EQ(reinterpret_cast<int (*)()>(memory.code())(), 7);
}
#endif

}  // namespace
}  // namespace rosin::platform
