#pragma once
#include "types.h"
#define F_OK 0
#define X_OK 1
#define W_OK 2
#define R_OK 4
#define _SC_PAGESIZE 29
#define _SC_NPROCESSORS_ONLN 58
DARWIN_C_BEGIN
int access(const char*, int);
int faccessat(int, const char*, int, int);
int close(int);
int fchown(int, uid_t, gid_t);
int fsync(int);
int ftruncate(int, off_t);
uid_t geteuid(void);
pid_t getpid(void);
int isatty(int);
int issetugid(void);
ssize_t pread(int, void*, size_t, off_t);
ssize_t read(int, void*, size_t);
long sysconf(int);
int unlink(const char*);
ssize_t write(int, const void*, size_t);
DARWIN_C_END
