// What the transport calls of MPI, and MPI's constants. A handle (communicator, type, operation, request, ...) is a
// pointer in Open MPI and a number in MPICH, so all of it stands once, as templates over the handle. The two sets of
// constants are in library.cpp; tests/mpi_headers_test.py compares all with the real headers. Read next: ranks.hpp.
#pragma once

#include <array>

#include "mpi/library.hpp"

namespace rosin::transport::mpi {

inline constexpr int success = 0, thread_serialized = 2;  // the same number in both
inline constexpr int most_text = 8192;                    // bytes of the longest text that either writes
inline constexpr int type_count = ROSIN_COMM_COMPLEX64 + 1, operation_count = ROSIN_COMM_MAXIMUM + 1;

template <class H> struct Functions {
  using Combine = void (*)(void* in, void* all, int* count, H* type);

  int (*init_thread)(int*, char***, int, int*);
  int (*initialized)(int*);
  int (*finalized)(int*);
  int (*query_thread)(int*);
  int (*finalize)();
  int (*abort)(H, int);
  int (*library_version)(char*, int*);
  int (*error_string)(int, char*, int*);
  int (*comm_rank)(H, int*);
  int (*comm_size)(H, int*);
  int (*comm_dup)(H, H*);
  int (*comm_split_type)(H, int, int, H, H*);
  int (*comm_set_errhandler)(H, H);
  int (*comm_free)(H*);
  int (*op_create)(Combine, int, H*);
  int (*barrier)(H, H*);
  int (*broadcast)(void*, int, H, int, H, H*);
  int (*allreduce)(const void*, void*, int, H, H, H, H*);
  int (*reduce)(const void*, void*, int, H, H, int, H, H*);
  int (*allgather)(const void*, int, H, void*, int, H, H, H*);
  int (*reduce_scatter)(const void*, void*, int, H, H, H, H*);
  int (*send)(const void*, int, H, int, int, H, H*);
  int (*receive)(void*, int, H, int, int, H, H*);
  int (*test)(H*, int*, void*);
  // Whether it takes memory of devices; null where it does not know of such.
  int (*query_cuda)();
  int (*query_rocm)();
};

template <class H> struct Constants {
  H world, info_null, errors_return, byte;
  std::array<H, type_count> types;  // of what is reduced; of the rest: byte
  H sum, product;
  int shared;  // the kind of split that gives the processes of one machine
  void* in_place;
  void* ignore_status;
};

/// Everything of an open library; throws Trouble where something is missing.
template <class H> Functions<H> functions_of(const Library& library);
/// The constants of Open MPI, where H is a pointer, or those of MPICH.
template <class H> Constants<H> constants_of(const Library& library);
template <> Constants<void*> constants_of<void*>(const Library& library);
template <> Constants<int> constants_of<int>(const Library& library);

}  // namespace rosin::transport::mpi
