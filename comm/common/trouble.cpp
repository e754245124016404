// See trouble.hpp.
#include "common/trouble.hpp"

#include <new>
#include <utility>

namespace rosin::transport {
namespace {

std::string& text_of_thread() {
  thread_local std::string text;
  return text;
}

}  // namespace

const char* error_text() { return text_of_thread().c_str(); }

rosin_comm_status caught() noexcept {
  try {
    throw;
  } catch (Trouble& trouble) {
    text_of_thread() = std::move(trouble.text);
    return trouble.status;
  } catch (const std::bad_alloc&) {
    text_of_thread() = "no memory";  // short enough to need none
    return ROSIN_COMM_FAILED;
  } catch (...) {
    text_of_thread() = "the call failed inside the transport";
    return ROSIN_COMM_FAILED;
  }
}

}  // namespace rosin::transport
