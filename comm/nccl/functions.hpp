// What the transport calls of NCCL and of CUDA's driver, by their public documentation (NCCL 2.10 and later). RCCL has
// the same functions and numbers. Read next: library.hpp.
#pragma once

#include <array>
#include <cstddef>

namespace rosin::transport::nccl {

using Comm = void*;     // ncclComm_t
using Stream = void*;   // cudaStream_t, CUstream, hipStream_t
using Context = void*;  // CUcontext

struct UniqueId {  // ncclUniqueId
  std::array<char, 128> bytes;
};

// ncclResult_t
inline constexpr int success = 0, invalid_usage = 5, remote_error = 6, in_progress = 7;
// ncclDataType_t
enum Type { int8 = 0, uint8, int32, uint32, int64, uint64, float16, float32, float64, bfloat16, no_type = -1 };
// ncclRedOp_t
enum Operation { sum = 0, product, maximum, minimum };

inline constexpr int oldest_version = 21000;  // the first with BFloat16
inline constexpr int most_grouped = 1024;     // calls of a group; NCCL takes 2048

struct Functions {
  int (*get_version)(int* version);
  int (*get_unique_id)(UniqueId* id);
  int (*comm_init_rank)(Comm* comm, int ranks, UniqueId id, int rank);
  int (*comm_destroy)(Comm comm);
  int (*comm_abort)(Comm comm);
  int (*comm_get_async_error)(Comm comm, int* result);
  const char* (*get_error_string)(int result);
  const char* (*get_last_error)(Comm comm);  // from 2.13 on; else null
  int (*group_start)();
  int (*group_end)();
  int (*all_reduce)(const void* send, void* receive, size_t count, int type, int operation, Comm, Stream);
  int (*reduce)(const void* send, void* receive, size_t count, int type, int operation, int root, Comm, Stream);
  int (*broadcast)(const void* send, void* receive, size_t count, int type, int root, Comm, Stream);
  int (*all_gather)(const void* send, void* receive, size_t send_count, int type, Comm, Stream);
  int (*reduce_scatter)(const void* send, void* receive, size_t receive_count, int type, int operation, Comm, Stream);
  int (*send)(const void* send, size_t count, int type, int peer, Comm, Stream);
  int (*receive)(void* receive, size_t count, int type, int peer, Comm, Stream);
};

struct Driver {
  int (*stream_context)(Stream stream, Context* context);
  int (*push)(Context context);
  int (*pop)(Context* context);
};

}  // namespace rosin::transport::nccl
