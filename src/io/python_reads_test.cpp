// Files that we write, read by Python: the package safetensors where it is installed (PYTHON names the
// interpreter), else the format's definition in tests/read_safetensors.py.
#include <gtest/gtest.h>

#include <cstdio>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/io.hpp>
#include <rosin/movement.hpp>

#include "io/real_files_testing.hpp"

#ifdef ROSIN_HAVE_JSON

namespace rosin {
namespace {

using namespace rosin::testing;

std::string output_of(const std::string& command) {
  std::string text;
  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) return text;
  char part[4096];
  for (size_t n; (n = std::fread(part, 1, sizeof part, pipe)) > 0;) text.append(part, n);
  return pclose(pipe) == 0 ? text : "failed: " + text;
}

class PythonReads : public ScratchFolder {};

TEST_F(PythonReads, WhatWeWrite) {
  const char* named = std::getenv("PYTHON");
  const std::string python = named ? named : "python3";
  if (output_of(python + " -c 'print(1)'") != "1\n") GTEST_SKIP() << "no " << python << " (set PYTHON)";
  struct Model {
    Array weight = reshape(arange(0.0, 6.0, 1.0), {2, 3});  // row-major: 0 2 4 1 3 5
    Array image = reshape(arange(24), {2, 3, 4});
    Array half = cast(linspace(0.0, 1.0, 3), Float16);
    Array flags = Array({0.0f, 1.0f}, {2}) > 0;
    Array wide = cast(arange(0.0, 1.0, 0.25), Float64);
  } model;
  save(path("m.safetensors"), {{"m", model}, {"step", 12345678901}, {"empty", zeros({0, 3})}});
  const std::string script = std::string(ROSIN_SOURCE_DIR) + "/tests/read_safetensors.py";
  std::string text = output_of(python + " " + script + " " + path("m.safetensors"));
  text = text.substr(text.find('\n') + 1);
  EXPECT_EQ(text,
            "empty F32 0x3 0.0 - -\n"
            "m.flags BOOL 2 1.0 0.0 1.0\n"
            "m.half F16 3 1.5 0.0 1.0\n"
            "m.image I32 2x3x4 276.0 0.0 23.0\n"
            "m.weight F32 2x3 15.0 0.0 5.0\n"
            "m.wide F64 4 1.5 0.0 0.75\n"
            "step I64 scalar 12345678901.0 12345678901.0 12345678901.0\n");
}

}  // namespace
}  // namespace rosin

#endif
