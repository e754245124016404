// processes.hpp on POSIX.
#include "platform/processes.hpp"

#include <pthread.h>
#include <unistd.h>

namespace rosin::platform {

unsigned long process_number() { return static_cast<unsigned long>(getpid()); }

void at_fork(void (*before)(), void (*in_parent)(), void (*in_child)()) { pthread_atfork(before, in_parent, in_child); }

}  // namespace rosin::platform
