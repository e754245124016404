#pragma once
#include "types.h"
#define alloca(size) __builtin_alloca(size)
