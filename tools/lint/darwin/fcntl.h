#pragma once
#include "types.h"
#define O_RDONLY 0x0000
#define O_WRONLY 0x0001
#define O_RDWR 0x0002
#define O_NONBLOCK 0x00000004
#define O_APPEND 0x00000008
#define O_NOFOLLOW 0x00000100
#define O_CREAT 0x00000200
#define O_TRUNC 0x00000400
#define O_EXCL 0x00000800
#define O_DIRECTORY 0x00100000
#define O_CLOEXEC 0x01000000
#define AT_FDCWD (-2)
#define AT_EACCESS 0x0010
DARWIN_C_BEGIN
int open(const char*, int, ...);
int fcntl(int, int, ...);
DARWIN_C_END
#define F_FULLFSYNC 51
