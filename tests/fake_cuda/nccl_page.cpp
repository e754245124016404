// See nccl_page.hpp.
#include "nccl_page.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>

#include "machine.hpp"

namespace fake_nccl {
namespace {

/// Of pages that this process has made, until all ranks have come: its file goes then.
int made_file = -1;

}  // namespace

UniqueId make_page() {
  made_file = memfd_create("fake_nccl", MFD_CLOEXEC);
  if (made_file < 0 || ftruncate(made_file, static_cast<off_t>(Page::bytes())) != 0) {
    throw fake::Trouble{fake::operating_system, "no memory to share"};
  }
  UniqueId id{};
  std::snprintf(id.bytes.data(), id.bytes.size(), "/proc/%d/fd/%d", getpid(), made_file);
  return id;
}

Page& open_page(const UniqueId& id, int ranks) {
  const int file = open(id.bytes.data(), O_RDWR | O_CLOEXEC);
  if (file < 0) throw fake::Trouble{fake::invalid_value, std::string("no unique id: ") + id.bytes.data()};
  void* const memory = mmap(nullptr, Page::bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  close(file);
  if (memory == MAP_FAILED) throw fake::Trouble{fake::operating_system, "no room for the memory"};
  Page& page = *static_cast<Page*>(memory);
  page.joined.fetch_add(1);
  const auto begin = std::chrono::steady_clock::now();
  while (page.joined.load() < ranks) {
    if (std::chrono::steady_clock::now() - begin > std::chrono::seconds(60)) {
      throw fake::Trouble{fake::operating_system, "a rank did not come"};
    }
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  if (made_file >= 0) close(made_file);
  made_file = -1;
  return page;
}

}  // namespace fake_nccl
