// Ends of threads on Windows. MinGW-w64 keeps thread_local objects in memory that one key of its threads frees, and
// calls their destructors by another key; at the end of a thread keys go in the order in which they were made. The key
// of the destructors is therefore made first, before any thread_local object is touched: else they would see freed
// memory.
#include <cxxabi.h>

namespace rosin::platform {
namespace {

[[gnu::constructor(101)]] void make_key_of_destructors() {
  abi::__cxa_thread_atexit([](void*) {}, nullptr, nullptr);
}

}  // namespace
}  // namespace rosin::platform
