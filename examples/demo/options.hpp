// What the demo is asked to do on its command line. Read next: main.cpp.
#pragma once

#include <cstdint>
#include <string>

namespace demo {

struct Options {
  bool help = false;
  std::string data;  // a folder of idx files; empty: digits that rosin draws
  std::string model = "mlp";
  int64_t epochs = 0;  // 0: the model's own number
  int64_t batchsize = 64;
  std::string device;  // a back end; empty: chosen by rosin
  int device_id = 0;   // among the devices of the back end
  uint64_t seed = 1;
  std::string save;  // empty: MODEL.safetensors; none: neither model nor curve
};

/// Throws std::invalid_argument with one line that names the option.
Options parse_options(int count, const char* const* arguments);

extern const char* const help_text;

}  // namespace demo
