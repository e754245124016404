#pragma once
#include <time.h>
#include "../types.h"
struct stat {
  dev_t st_dev;
  mode_t st_mode;
  nlink_t st_nlink;
  ino_t st_ino;
  uid_t st_uid;
  gid_t st_gid;
  dev_t st_rdev;
  struct timespec st_atimespec, st_mtimespec, st_ctimespec, st_birthtimespec;
  off_t st_size;
  long long st_blocks;
  int st_blksize;
  unsigned st_flags, st_gen;
  int st_lspare;
  long long st_qspare[2];
};
#define S_IFMT 0170000
#define S_ISDIR(m) (((m)&S_IFMT) == 0040000)
#define S_ISREG(m) (((m)&S_IFMT) == 0100000)
#define S_ISLNK(m) (((m)&S_IFMT) == 0120000)
DARWIN_C_BEGIN
int fchmod(int, mode_t);
int fstat(int, struct stat*);
int lstat(const char*, struct stat*);
int mkdir(const char*, mode_t);
int stat(const char*, struct stat*);
DARWIN_C_END
