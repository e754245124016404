// The types of Darwin's C library, on arm64, as far as rosin and libc++ name them. All headers here are our own words
// for what Apple documents: enough for a compiler to check calls (tools/lint/check_darwin.py), nothing to link with.
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef uint32_t __uint32_t;
typedef long ssize_t;
typedef long long off_t;
typedef unsigned short mode_t;
typedef unsigned short nlink_t;
typedef int pid_t;
typedef unsigned int uid_t;
typedef unsigned int gid_t;
typedef int dev_t;
typedef unsigned long long ino_t;
typedef long time_t;
typedef unsigned long clock_t;
typedef int suseconds_t;
typedef struct _xlocale* locale_t;

#ifdef __cplusplus
#define DARWIN_C_BEGIN extern "C" {
#define DARWIN_C_END }
#else
#define DARWIN_C_BEGIN
#define DARWIN_C_END
#endif
