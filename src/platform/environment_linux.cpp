// environment.hpp: what only Linux says so.
#include "platform/environment.hpp"

#include <sys/auxv.h>

namespace rosin::platform {

bool has_more_rights_than_its_user() { return getauxval(AT_SECURE) != 0; }

}  // namespace rosin::platform
