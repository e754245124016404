// Files that are cut off or changed: each is read, or refused with an Error, and no more memory is taken than files of
// their size justify. By default some places of each file; with ROSIN_ALL_DAMAGE=1 all bits of the first 4 KiB, and all
// lengths but those that end amid the elements of large arrays.
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <rosin/chain.hpp>
#include <rosin/conv_layers.hpp>
#include <rosin/create.hpp>
#include <rosin/dense.hpp>
#include <rosin/io.hpp>
#include <rosin/normalise_layers.hpp>
#include <rosin/npy.hpp>

#include "../tests/sanitizer_testing.hpp"
#include "io/real_files_testing.hpp"
#include "io/torch_testing.hpp"

namespace rosin {
namespace {

using namespace rosin::testing;

/// Most memory that this process ever had, in MiB.
int64_t peak_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;
}

class DamagedFiles : public ScratchFolder {
 protected:
  /// What reading the file does; anything but an Error of the reader passes through and fails the test.
  void read_all(const std::string& file) {
    try {
      list_file(file);
      load(file);
    } catch (const Error& error) {
      const bool says_so =
          error.kind() == ErrorKind::io || error.kind() == ErrorKind::dtype || error.kind() == ErrorKind::shape;
      EXPECT_TRUE(says_so) << error.what();
      ++refused_;
    }
  }

  /// `tries` places of the file, or all.
  static uint64_t step_for(uint64_t places, uint64_t tries) {
    const char* all = std::getenv("ROSIN_ALL_DAMAGE");
    return all && all[0] == '1' ? 1 : std::max<uint64_t>(1, places / tries);
  }

  /// How much shorter than `length` the next file is that is cut off.
  static uint64_t cut_for(uint64_t length, uint64_t size, uint64_t tries) {
    constexpr uint64_t near = 8192;
    const uint64_t step = step_for(size, tries);
    const bool amid = step == 1 && length > near && size - length > near;
    return std::min(length, amid ? std::max<uint64_t>(1, size / 1000) : step);
  }

  void damage(const std::string& original, uint64_t tries) {
    SCOPED_TRACE(original);
    const std::string file = path("damaged" + std::filesystem::path(original).extension().string());
    std::filesystem::copy_file(original, file, std::filesystem::copy_options::overwrite_existing);
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
    const uint64_t size = std::filesystem::file_size(file);
    const int descriptor = open(file.c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_GE(descriptor, 0);
    const uint64_t bits = 8 * std::min<uint64_t>(size, 4096), step = step_for(bits, tries);
    for (uint64_t bit = 0; bit < bits; bit += step) {
      const auto place = static_cast<off_t>(bit / 8);
      unsigned char byte = 0;
      ASSERT_EQ(pread(descriptor, &byte, 1, place), 1);
      const auto changed = static_cast<unsigned char>(byte ^ 1u << bit % 8);
      ASSERT_EQ(pwrite(descriptor, &changed, 1, place), 1);
      read_all(file);
      ASSERT_EQ(pwrite(descriptor, &byte, 1, place), 1);
    }
    const int before = refused_;
    int cut = 0;
    for (uint64_t length = size; length > 0; ++cut) {
      length -= cut_for(length, size, tries);
      ASSERT_EQ(ftruncate(descriptor, static_cast<off_t>(length)), 0);
      read_all(file);
    }
    EXPECT_EQ(refused_ - before, cut) << "a file that is cut off was read";
    close(descriptor);
  }

  int refused_ = 0;
};

TEST_F(DamagedFiles, OfOurOwnAreRefused) {
  const Chain model(Conv({3, 3}, 1, 2), BatchNorm(2), Dense(4, 3));
  const int64_t before = peak_memory();
  std::vector<std::string> names{"m.bson", "m.jld2", "m.npz"};
#ifdef ROSIN_HAVE_JSON
  names.push_back("m.safetensors");
#endif
  for (const std::string& name : names) {
    save(path(name), {{"model", model}, {"step", 3}});
    damage(path(name), 400);
  }
  save_npy(path("x.npy"), ones({3, 4}));
  damage(path("x.npy"), 400);
  write_torch_file(path("m.pt"), "}(" + pickled_text("a") + pickled_tensor("Float", "0", 6, 2, {2, 2}, {1, 2}) + "u.",
                   {{"data/0", std::string(24, '\1')}});
  damage(path("m.pt"), 400);
  EXPECT_GT(refused_, 1300);
  if (counts_memory) {
    EXPECT_LT(peak_memory() - before, 64);
  }
}

TEST_F(DamagedFiles, OfOthersAreRefused) {
  if (!std::filesystem::exists(real_files(""))) GTEST_SKIP() << "no " << real_files("") << " (set ROSIN_FILES)";
  const int64_t before = peak_memory();
  for (const char* folder : {"bson", "jld2", "npy", "safetensors"}) {
    for (const auto& entry : std::filesystem::directory_iterator(real_files(folder))) {
      const std::string extension = entry.path().extension();
      if (!entry.is_regular_file() || extension == ".tsv" || entry.path().filename() == "cnpy_out.npy") continue;
      damage(entry.path(), entry.file_size() < 300000 ? 60 : 6);
    }
  }
  if (counts_memory) {
    EXPECT_LT(peak_memory() - before, 128);
  }
}

std::string little(int32_t value) { return std::string(reinterpret_cast<const char*>(&value), 4); }

TEST_F(DamagedFiles, DeepBsonIsRefused) {
  std::string document = little(5) + std::string(1, '\0');
  for (int i = 0; i < 2000; ++i) {
    const auto size = static_cast<int32_t>(document.size() + 4 + 3 + 1);
    document = little(size) + "\3a" + std::string(1, '\0') + document + std::string(1, '\0');
  }
  write("deep.bson", document);
  EXPECT_NE(error_here([&] { load(path("deep.bson")); }).find("documents are nested at most 500 deep"),
            std::string::npos);
}

TEST_F(DamagedFiles, BytesOfAnotherTypeAreNamed) {
  write("m.bson", std::string("\x08\0\0\0\x07"
                              "a\0\0",
                              8));
  EXPECT_EQ(error_here([&] { load(path("m.bson")); }),
            "load: elements have the types that BSON.jl writes; 'DIR/m.bson' at byte 6: one has type 7; the file is "
            "damaged or of another kind: write or fetch it again");
  write("7JL.bson", "7JL\x01" + std::string(50, '\0'));
  EXPECT_NE(error_here([&] { load(path("7JL.bson")); }).find("length must agree"), std::string::npos);
}

TEST_F(DamagedFiles, AZipBombIsRefused) {
  // An entry that says it unpacks to 1 GiB from 2 bytes.
  const auto number = [](uint64_t value, int width) {
    std::string text;
    for (int i = 0; i < width; ++i) text.push_back(static_cast<char>(value >> (8 * i)));
    return text;
  };
  const std::string sizes = number(2, 4) + number(1 << 30, 4);
  const std::string local = number(0x04034b50, 4) + number(20, 2) + number(0, 2) + number(8, 2) + number(0, 8) + sizes +
                            number(5, 2) + number(0, 2) + "x.npy" + "\3" + std::string(1, '\0');
  const std::string central = number(0x02014b50, 4) + number(20, 2) + number(20, 2) + number(0, 2) + number(8, 2) +
                              number(0, 8) + sizes + number(5, 2) + number(0, 8) + number(0, 8) + "x.npy";
  const std::string end = number(0x06054b50, 4) + number(0, 4) + number(1, 2) + number(1, 2) +
                          number(central.size(), 4) + number(local.size(), 4) + number(0, 2);
  write("bomb.npz", local + central + end);
  EXPECT_NE(error_here([&] { load(path("bomb.npz")); }).find("an entry unpacks to what it says; 'DIR/bomb.npz'"),
            std::string::npos);
}

}  // namespace
}  // namespace rosin
