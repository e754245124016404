#pragma once
#include "../types.h"
DARWIN_C_BEGIN
int sysctlbyname(const char*, void*, size_t*, void*, size_t);
DARWIN_C_END
