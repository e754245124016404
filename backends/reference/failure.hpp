// Failure: how a function of the plug-in fails inside; guarded() turns it into a status at the border.
#pragma once

#include <algorithm>
#include <new>
#include <stdexcept>
#include <string>

#include <rosin/backend.h>

namespace rosin::reference {

struct Failure : std::runtime_error {
  Failure(rosin_status kind, const std::string& text) : std::runtime_error(text), status(kind) {}
  rosin_status status;
};

inline void need(bool holds, const char* what) {
  if (!holds) throw Failure(ROSIN_INVALID, what);
}

/// The text of the calling thread's last failure.
inline std::string& error_text() {
  thread_local std::string text;
  return text;
}

template <class F> rosin_status guarded(F&& f) noexcept {
  try {
    error_text().clear();
    f();
    return ROSIN_OK;
  } catch (const Failure& failure) {
    error_text() = failure.what();
    return failure.status;
  } catch (const std::bad_alloc&) {
    error_text() = "out of memory on the host";
    return ROSIN_OUT_OF_MEMORY;
  } catch (const std::exception& error) {
    error_text() = error.what();
    return ROSIN_INVALID;
  }
}

/// A struct that came by address, with the fields that its sender does not know as zero.
template <class T> T taken(const T* from) {
  need(from != nullptr && from->size >= sizeof(from->size), "a struct without its size");
  T all{};
  const auto* bytes = reinterpret_cast<const char*>(from);
  std::copy(bytes, bytes + std::min(from->size, sizeof(T)), reinterpret_cast<char*>(&all));
  return all;
}

}  // namespace rosin::reference
