// environment.hpp: what only macOS says so.
#include "platform/environment.hpp"

#include <unistd.h>

namespace rosin::platform {

bool has_more_rights_than_its_user() { return issetugid() != 0; }

}  // namespace rosin::platform
