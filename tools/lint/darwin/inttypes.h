#pragma once
#include "types.h"
#define PRId64 "lld"
#define PRIu64 "llu"
#define PRIx64 "llx"
