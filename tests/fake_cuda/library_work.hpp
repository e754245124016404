// What stand-ins of the vendors' libraries take from the driver's: they are libraries of their own, and their work
// waits in its streams. Read first: machine.hpp. Read next: cublaslt.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "machine.hpp"

namespace fake {

struct LibraryWork {
  /// Runs f with the lock of the API held, unless FAKE_CUDA (of HIP: FAKE_HIP) makes this call fail. The driver's code
  /// of what it throws; `said` gets its text.
  int (*call)(const char* name, const std::function<void()>& f, std::string* said);

  // Within call:

  /// The calling thread's context, by its address. Throws where it has none or was lost.
  const void* (*thread_context)();
  /// Throws unless this range lies in one block of the context's device.
  void (*check_memory)(uint64_t address, uint64_t bytes);
  /// Whether the thread captures a stream.
  bool (*thread_captures)();
  /// What FAKE_CUDA asks for.
  const Options& (*options)();
  /// Gives work to a stream of the context.
  void (*give)(void* stream, Work work);
};

/// The one function that libcuda's stand-in exports beside its API.
using LibraryWorkFunction = const LibraryWork* (*)();
constexpr const char* library_work_function = "fake_library_work";

}  // namespace fake
