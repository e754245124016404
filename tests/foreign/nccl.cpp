// What the transport over NCCL says of functions, types and constants, against NVIDIA's headers, and with WITH_RCCL
// against AMD's; see ../nccl_headers_test.py, which adds a line for each function.
#ifdef WITH_RCCL
#include <hip/hip_runtime_api.h>
#include <rccl/rccl.h>
#else
#include <cuda.h>
#include <nccl.h>
#endif

#include "same.hpp"

#include "nccl/functions.hpp"
#ifdef WITH_RCCL
#include "nccl/rocm.cpp"
using Hip = rosin::transport::nccl::Hip;
#endif

namespace nccl = rosin::transport::nccl;
using nccl::Driver;
using nccl::Functions;
using same::same_call;

SAME_NUMBER(nccl::success, ncclSuccess);
SAME_NUMBER(nccl::remote_error, ncclRemoteError);
SAME_NUMBER(nccl::in_progress, ncclInProgress);
SAME_NUMBER(nccl::int8, ncclInt8);
SAME_NUMBER(nccl::uint8, ncclUint8);
SAME_NUMBER(nccl::int32, ncclInt32);
SAME_NUMBER(nccl::uint32, ncclUint32);
SAME_NUMBER(nccl::int64, ncclInt64);
SAME_NUMBER(nccl::uint64, ncclUint64);
SAME_NUMBER(nccl::float16, ncclFloat16);
SAME_NUMBER(nccl::bfloat16, ncclBfloat16);
SAME_NUMBER(nccl::float32, ncclFloat32);
SAME_NUMBER(nccl::float64, ncclFloat64);
SAME_NUMBER(nccl::sum, ncclSum);
SAME_NUMBER(nccl::product, ncclProd);
SAME_NUMBER(nccl::maximum, ncclMax);
SAME_NUMBER(nccl::minimum, ncclMin);
static_assert(sizeof(nccl::UniqueId) == sizeof(ncclUniqueId));
