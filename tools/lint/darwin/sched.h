#pragma once
#include "types.h"
struct timespec;
DARWIN_C_BEGIN
int sched_yield(void);
DARWIN_C_END
