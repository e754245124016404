// Programs of Python that check what we write.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

namespace rosin::testing {

/// What a command prints; "failed: ..." where it fails.
inline std::string output_of(const std::string& command) {
  std::string text;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (!pipe) return text;
  char part[4096];
  for (size_t n; (n = std::fread(part, 1, sizeof part, pipe)) > 0;) text.append(part, n);
  return pclose(pipe) == 0 ? text : "failed: " + text;
}

/// An interpreter that can import this module (PYTHON, else that of build/venv, Debian's, the first in PATH); empty:
/// none.
inline std::string python_with(const std::string& module) {
  const char* named = std::getenv("PYTHON");
  for (const std::string& python :
       {std::string(named ? named : ""), std::string(ROSIN_SOURCE_DIR "/build/venv/bin/python"),
        std::string("/usr/bin/python3"), std::string("python3")}) {
    if (!python.empty() && output_of(python + " -c 'import " + module + "; print(1)'") == "1\n") return python;
  }
  return "";
}

}  // namespace rosin::testing
