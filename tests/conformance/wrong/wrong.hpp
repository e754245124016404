// What the files of the wrong plug-in share. Read next: wrong.cpp, wrong_calls.cpp.
#pragma once

#include <span>

#include <rosin/backend.h>

/// The plug-in behind, and the functions that the conformance program gets: the same but for what a way changes.
extern rosin_backend real;
extern rosin_backend wrong;

/// A way of being wrong; `take` puts its functions into `wrong`.
struct Way {
  const char* name;
  void (*take)();
};

extern const std::span<const Way> call_ways;  // wrong_calls.cpp
