// See status.hpp.
#include "run/status.hpp"

#include <rosin/error.hpp>

namespace rosin {

void throw_status(const rosin_backend& functions, rosin_status status, std::string_view what, std::string_view device) {
  const char* said = functions.error_text();
  std::string text(what);
  text.append(": failed on ").append(device).append("; ");
  text.append(said && *said ? said : "the back end gives no reason");
  const bool memory = status == ROSIN_OUT_OF_MEMORY;
  if (memory) text.append("; use a smaller batch or drop arrays that are no longer needed");
  throw Error(memory ? ErrorKind::memory : ErrorKind::backend, text);
}

}  // namespace rosin
