// See failure.hpp.
#include "common/failure.hpp"

#include <new>
#include <utility>

namespace rosin::plugin {
namespace {

std::string& text_of_thread() {
  thread_local std::string text;
  return text;
}

}  // namespace

void set_error(std::string text) noexcept { text_of_thread() = std::move(text); }

const char* error_text() { return text_of_thread().c_str(); }

rosin_status caught() noexcept {
  try {
    throw;
  } catch (Failure& failure) {
    set_error(std::move(failure.text));
    return failure.status;
  } catch (const std::bad_alloc&) {
    set_error("host: no memory");  // short enough to need none
    return ROSIN_OUT_OF_MEMORY;
  } catch (...) {
    set_error("the call failed inside the plug-in");
    return ROSIN_INVALID;
  }
}

}  // namespace rosin::plugin
