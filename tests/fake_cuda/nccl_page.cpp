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

Page& open_page(const UniqueId& id) {
  const int file = open(id.bytes.data(), O_RDWR | O_CLOEXEC);
  if (file < 0) throw fake::Trouble{fake::invalid_value, std::string("no unique id: ") + id.bytes.data()};
  void* const memory = mmap(nullptr, Page::bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  close(file);
  if (memory == MAP_FAILED) throw fake::Trouble{fake::operating_system, "no room for the memory"};
  return *static_cast<Page*>(memory);
}

void wait_for_all(Page& page, int ranks) {
  page.joined.fetch_add(1);
  while (page.joined.load() < ranks) std::this_thread::sleep_for(std::chrono::microseconds(100));
  if (made_file >= 0) close(made_file);
  made_file = -1;
}

}  // namespace fake_nccl
