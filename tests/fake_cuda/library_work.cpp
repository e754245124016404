// See library_work.hpp.
#include "library_work.hpp"

#include <utility>

#include "api.hpp"

namespace fake {
namespace {

int library_call(const char* name, const std::function<void()>& f, std::string* said) {
#ifdef FAKE_HIP
  const Named named(name);
#endif
  return call(name, [&](Machine&) {
    try {
      f();
    } catch (const Trouble& trouble) {
      *said = trouble.text;
      throw;
    }
  });
}

const void* thread_context() { return &context_now(); }

thread_local uint64_t checked = 0;  // bytes of the operands of the next work

void check_memory(uint64_t address, uint64_t bytes) {
  Machine::instance().check_range(context_now(), address, bytes);
  checked += bytes;
}

bool thread_captures() { return Machine::instance().captures(); }

const Options& options() { return Machine::instance().options; }

/// An idle machine does small work, so that plug-ins that try a library with some find that it computes.
void give(void* stream, Work work) {
  constexpr uint64_t small = 512 << 10;
  if (std::exchange(checked, 0) > small && options().idle) work.run = [] {};
  Machine::instance().give(stream_now(static_cast<Stream*>(stream)), std::move(work));
}

}  // namespace
}  // namespace fake

extern "C" __attribute__((visibility("default"))) const fake::LibraryWork* fake_library_work() {
  static const fake::LibraryWork work{fake::library_call,    fake::thread_context, fake::check_memory,
                                      fake::thread_captures, fake::options,        fake::give};
  return &work;
}
