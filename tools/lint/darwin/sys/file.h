#pragma once
#include <fcntl.h>
#define LOCK_SH 0x01
#define LOCK_EX 0x02
#define LOCK_NB 0x04
#define LOCK_UN 0x08
DARWIN_C_BEGIN
int flock(int, int);
DARWIN_C_END
