// The program of libFuzzer: FUZZ_TARGET names the target that reads its inputs. An input fails where a reader ends
// otherwise than well or with an Error that tells of the file, where it holds more memory than the file's size
// justifies, and where a sanitizer speaks. `fuzz_files --seeds TARGET FOLDER` writes seeds and ends.
// Started by tools/fuzz.py. Read next: targets.cpp.
#include <fcntl.h>
#include <sanitizer/allocator_interface.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "targets.hpp"

namespace rosin::fuzz {
namespace {

const Target* target = nullptr;

const Target* target_called(const char* name) {
  for (const Target& each : targets()) {
    if (name && std::strcmp(each.name, name) == 0) return &each;
  }
  std::fprintf(stderr, "FUZZ_TARGET must name one of:");
  for (const Target& each : targets()) std::fprintf(stderr, " %s", each.name);
  std::fprintf(stderr, "\n");
  std::exit(1);
}

// --- The memory that is held, by all threads.

std::atomic<int64_t> held{0}, most{0};

void note_taken(const volatile void*, size_t bytes) {
  const int64_t now = held.fetch_add(static_cast<int64_t>(bytes)) + static_cast<int64_t>(bytes);
  for (int64_t before = most.load(); now > before && !most.compare_exchange_weak(before, now);) {}
}

void note_given(const volatile void* block) {
  const auto* known = const_cast<const void*>(block);
  if (known) held.fetch_sub(static_cast<int64_t>(__sanitizer_get_allocated_size(known)));
}

// --- The file: bytes in memory under a name with the right extension.

class InputOnDisk {
 public:
  explicit InputOnDisk(const char* extension) : descriptor_(memfd_create("rosin-fuzz", MFD_CLOEXEC)) {
    std::string pattern = (std::filesystem::temp_directory_path() / "rosin-fuzz-XXXXXX").string();
    if (descriptor_ < 0 || !mkdtemp(pattern.data())) std::abort();
    folder_ = pattern;
    path_ = folder_ + "/x." + extension;
    const std::string memory = "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(descriptor_);
    std::filesystem::create_symlink(memory, path_);
  }
  ~InputOnDisk() { std::filesystem::remove_all(folder_); }

  const std::string& holding(const FileBytes& bytes) const {
    const bool done = ftruncate(descriptor_, 0) == 0 &&
                      pwrite(descriptor_, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size());
    if (!done) std::abort();
    return path_;
  }

 private:
  int descriptor_;
  std::string folder_, path_;
};

void read_input(FileBytes bytes) {
  static const InputOnDisk input(target->extension);
  if (target->repair) target->repair(bytes);
  const std::string& path = input.holding(bytes);
  const int64_t before = held.load();
  most.store(before);
  target->read(path);
  const auto taken = static_cast<uint64_t>(most.load() - before);
  const uint64_t justified = target->fixed + target->share * bytes.size();
  if (taken <= justified) return;
  std::fprintf(stderr, "rosin-fuzz: %zu bytes of file made a reader hold %llu bytes; %llu are justified\n",
               bytes.size(), static_cast<unsigned long long>(taken), static_cast<unsigned long long>(justified));
  std::abort();
}

}  // namespace
}  // namespace rosin::fuzz

extern "C" int LLVMFuzzerInitialize(int* count, char*** texts) {
  using namespace rosin::fuzz;
  if (*count == 4 && std::strcmp((*texts)[1], "--seeds") == 0) {
    target_called((*texts)[2])->write_seeds((*texts)[3]);
    std::exit(0);
  }
  target = target_called(std::getenv("FUZZ_TARGET"));
  read_input({});  // what is made once is not counted
  __sanitizer_install_malloc_and_free_hooks(note_taken, note_given);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t count) {
  rosin::fuzz::read_input({bytes, bytes + count});
  return 0;
}
