// NCCL and CUDA's driver, opened at run time. Read first: functions.hpp. Read next: carrier.hpp.
#pragma once

#include <string>

#include "nccl/functions.hpp"

namespace rosin::transport::nccl {

struct Library {
  Functions nccl;
  Driver driver;
  int version;
};

/// Opens libnccl: the file that ROSIN_NCCL_LIBRARY names, else libnccl.so.2 in the folders of ROSIN_CUDA_LIBRARIES and
/// where the system's loader looks. Throws Trouble (unsupported): one of them is not there, or NCCL is too old.
Library open_libraries();

/// "2.21.5"
std::string version_text(int version);

}  // namespace rosin::transport::nccl
