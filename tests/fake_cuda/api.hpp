// How functions of libcuda's stand-in begin. Read first: machine.hpp. Read next: libcuda.cpp, graphs.cpp.
#pragma once

#include <functional>
#include <string>

#include "machine.hpp"

#ifdef FAKE_HIP  // whose functions call these, under names of their own
#define FAKE_CUDA_API extern "C" __attribute__((visibility("hidden"))) int
#else
#define FAKE_CUDA_API extern "C" __attribute__((visibility("default"))) int
#endif

namespace fake {

/// Runs f with the lock of the API held, unless FAKE_CUDA makes this call fail. The code of what it throws.
int call(const char* name, const std::function<void(Machine&)>& f);

/// While it lives, what the calling thread calls goes by another name: in counts, in errors, and where FAKE_CUDA (of
/// HIP: FAKE_HIP) makes it fail. A thread without a context gets that of device 0.
class Named {
 public:
  explicit Named(const char* name);
  ~Named();
  Named(const Named&) = delete;
  Named& operator=(const Named&) = delete;
};

/// What the calling thread was told last with this code; empty: nothing.
const char* said_of(int code);

/// Makes a device's context the calling thread's only one.
void set_context(Context& context);

/// The calling thread's context. Throws where it has none or was lost.
Context& context_now();

/// The stream, which must be of that context.
Stream& stream_now(Stream* stream);

/// The values of a launch's parameters; the addresses among them, which must lie in blocks of the device, are added.
std::vector<std::vector<unsigned char>> values_of(const Function& function, void** parameters,
                                                  std::vector<uint64_t>& addresses);

/// `shared`: bytes of shared memory that the launch names.
void check_grid(const Function& function, const unsigned (&grid)[3], const unsigned (&block)[3], unsigned shared);

}  // namespace fake
