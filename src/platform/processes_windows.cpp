// processes.hpp on Windows, which has no fork.
#include "platform/processes.hpp"

#include <windows.h>

namespace rosin::platform {

unsigned long process_number() { return GetCurrentProcessId(); }

void at_fork(void (*)(), void (*)(), void (*)()) {}

}  // namespace rosin::platform
