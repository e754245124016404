// What tests call by its POSIX name and Windows has under another; every file of the unit tests begins with it there
// (cmake/tests.cmake). Tests of what Windows does not have are left out by name.
#pragma once

#include <direct.h>
#include <io.h>
#include <process.h>
#include <stdlib.h>
#include <string.h>

#include <cstdio>

inline int setenv(const char* name, const char* value, int) { return _putenv_s(name, value); }
inline int unsetenv(const char* name) { return _putenv_s(name, ""); }

/// Makes a folder of a name that ends with XXXXXX, which is changed.
inline char* mkdtemp(char* name) {
  static unsigned next = static_cast<unsigned>(_getpid()) * 100;
  char* const end = name + strlen(name) - 6;
  do std::snprintf(end, 7, "%06u", next++ % 1000000);
  while (_mkdir(name) != 0 && errno == EEXIST);
  return name;
}

constexpr int _SC_PAGESIZE = 0;
inline long sysconf(int) { return 4096; }
