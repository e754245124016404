/* comm.h: what a transport offers so that processes train together. This page is the specification; the conformance
 * program (tests/comm) checks it on any transport. Read next: backend.h (the same for devices), docs/distributed.md.
 *
 * A transport is one shared library, librosin_comm_<name in lower case>.so, that exports one C function,
 * rosin_comm_open. It links nothing of rosin, and opens what it stands on (MPI, NCCL) at run time.
 *
 * Rules that hold for every function unless its comment says otherwise
 *   results    ROSIN_COMM_OK, or another status; then error_text() of the calling thread says what happened, as one or
 *              more lines of text, until the next call of that thread. No exception, signal, exit or output to the
 *              terminal leaves a transport.
 *   threads    calls on one communicator are never made at the same time, but any thread may make the next one, and
 *              call abort() at any time.
 *   structs    every struct that is exchanged by address begins with its size in bytes. Who reads one takes fields
 *              beyond that size as zero (functions: not offered).
 *   numbers    counts from 0; bytes unless said otherwise; times in seconds.
 * Functions marked (optional) may be null.
 *
 * Versions. The number is 0: this page may still change. */
#ifndef ROSIN_COMM_H
#define ROSIN_COMM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ROSIN_COMM_ABI 0

typedef enum rosin_comm_status {
  ROSIN_COMM_OK = 0,
  ROSIN_COMM_UNSUPPORTED = 1, /* not here: a library is missing, a type or memory is not taken */
  ROSIN_COMM_INVALID = 2,     /* the arguments break this page */
  ROSIN_COMM_MISMATCH = 3,    /* ranks call different collectives: the text names both sides */
  ROSIN_COMM_TIMEOUT = 4,     /* a rank did not come in time: the text names it as far as that is known */
  ROSIN_COMM_LOST = 5,        /* a rank is gone: the text names it as far as that is known */
  ROSIN_COMM_ABORTED = 6,     /* abort() was called here or by another rank */
  ROSIN_COMM_FAILED = 7       /* anything else */
} rosin_comm_status;

/* Types of elements, as in backend.h. Bool and complex elements are moved but not reduced. */
typedef enum rosin_comm_type {
  ROSIN_COMM_BOOL,
  ROSIN_COMM_UINT8,
  ROSIN_COMM_INT8,
  ROSIN_COMM_INT16,
  ROSIN_COMM_UINT16,
  ROSIN_COMM_INT32,
  ROSIN_COMM_UINT32,
  ROSIN_COMM_INT64,
  ROSIN_COMM_UINT64,
  ROSIN_COMM_FLOAT16,
  ROSIN_COMM_BFLOAT16,
  ROSIN_COMM_FLOAT32,
  ROSIN_COMM_FLOAT64,
  ROSIN_COMM_COMPLEX32,
  ROSIN_COMM_COMPLEX64
} rosin_comm_type;

/* Sums of Float16 and BFloat16 are made in Float32 and rounded once. Integers wrap around. Minimum and maximum give NaN
 * where a rank has NaN. The order in which numbers of ranks are combined depends on the sizes and the number of ranks
 * only: the same values give the same bits, on every rank. (In memory of devices a library may round 16-bit sums more
 * often, and leave NaN out of minimum and maximum.) */
typedef enum rosin_comm_operation {
  ROSIN_COMM_SUM,
  ROSIN_COMM_PRODUCT,
  ROSIN_COMM_MINIMUM,
  ROSIN_COMM_MAXIMUM
} rosin_comm_operation;

typedef enum rosin_comm_kind {
  ROSIN_COMM_BARRIER,        /* no parts */
  ROSIN_COMM_BROADCAST,      /* root gives `send`; every other rank gets it in `receive` (root's is not touched) */
  ROSIN_COMM_ALLREDUCE,      /* every rank gives `send` and gets the result in `receive` */
  ROSIN_COMM_REDUCE,         /* the same, but only root gets it; `receive` of others may be null and is not touched */
  ROSIN_COMM_ALLGATHER,      /* every rank gives `count` elements and gets those of all, rank by rank */
  ROSIN_COMM_REDUCE_SCATTER, /* every rank gives `count` elements for each rank and gets its own, reduced */
  ROSIN_COMM_SEND,           /* to rank `root`, which receives at the same time */
  ROSIN_COMM_RECEIVE         /* from rank `root` */
} rosin_comm_kind;

/* One array, or a stretch of one. `send` and `receive` do not overlap, or one is in the place of the other: of
 * ALLGATHER, `send` is this rank's stretch of `receive`; of REDUCE_SCATTER, `receive` is this rank's stretch of `send`;
 * of all others both are the same. Where `count` is 0, both may be null. */
typedef struct rosin_comm_part {
  const void* send;
  void* receive;
  uint64_t count; /* elements */
} rosin_comm_part;

/* A collective: every rank of the communicator makes the same ones in the same order, with equal kind, operation, type,
 * root and counts; addresses differ. Several parts are done as one: what costs time is paid once. */
typedef struct rosin_comm_collective {
  size_t size;
  int32_t kind;      /* rosin_comm_kind */
  int32_t operation; /* rosin_comm_operation, where something is reduced */
  int32_t type;      /* rosin_comm_type */
  int32_t root;      /* a rank, where the kind names one */
  uint32_t part_count;
  const rosin_comm_part* parts;
  const char* name; /* what messages call it: "gradients 3"; at most 63 bytes are told to other ranks; not null */
  double timeout;   /* how long to wait for other ranks; 0: for ever */
  void* stream;     /* null: all has ended when run() returns. Else the vendor's stream, whose device has the memory:
                       the collective is work of the stream (optional: ROSIN_COMM_UNSUPPORTED) */
  int32_t memory;   /* rosin_comm_memory of all parts; with a stream: of its device */
  int32_t follows;  /* 1: work of a stream behind a collective that all ranks have made; they know that all of them make
                       this one next, so that it need not be compared with theirs (may be ignored) */
} rosin_comm_collective;

/* Memory of a device is named by its addresses there: CUdeviceptr, hipDeviceptr_t. COMMON is for ALLREDUCE without a
 * stream: `send` is memory of the host; `receive` stands in what common() gave, at the same place on all ranks, and is
 * written once for all of them. Other ranks may write there from the moment at which a rank begins the collective. */
typedef enum rosin_comm_memory { ROSIN_COMM_HOST, ROSIN_COMM_DEVICE, ROSIN_COMM_COMMON } rosin_comm_memory;

/* What a transport takes of memory of devices. */
typedef enum rosin_comm_devices {
  ROSIN_COMM_NO_DEVICES,  /* none; error_text() says why */
  ROSIN_COMM_WITH_STREAM, /* as work of a stream */
  ROSIN_COMM_AT_REST      /* without a stream: no work on the memory is under way */
} rosin_comm_devices;

typedef struct rosin_comm rosin_comm; /* a communicator: some processes, numbered by rank */

typedef struct rosin_comm_place {
  size_t size;
  int32_t rank;       /* of this process */
  int32_t ranks;      /* how many there are */
  int32_t node_rank;  /* of this process among those of its machine */
  int32_t node_ranks; /* how many run on its machine */
} rosin_comm_place;

typedef struct rosin_comm_transport {
  size_t size;
  uint32_t abi;        /* ROSIN_COMM_ABI */
  const char* name;    /* "MPI": letters, digits, underscores; the file has it in lower case */
  const char* version; /* of the transport and of what it stands on, for people; known after join() */

  const char* (*error_text)(void);

  /* Joins the other processes, as the environment of this one says; without a launcher: alone, as one rank. Waits for
   * them, `timeout` seconds at most (0: for ever). Called once, before anything else but error_text; ROSIN_COMM_
   * UNSUPPORTED when something is missing. A program that has initialised MPI itself keeps it: leave() does not end
   * what join() did not begin. */
  rosin_comm_status (*join)(double timeout);
  /* The communicator of all processes; it belongs to the transport. */
  rosin_comm_status (*world)(rosin_comm** out);
  /* Ends the membership; nothing else is called afterwards. Called when the process exits in good order. Other ranks
   * that wait for this one then learn that it is gone. */
  void (*leave)(void);

  rosin_comm_status (*place)(rosin_comm* comm, rosin_comm_place* out);
  /* Does one collective; see above. After a status other than OK, UNSUPPORTED and INVALID the communicator is broken:
   * what follows fails too, with the same text; and after TIMEOUT, a library that stands behind the transport may yet
   * write to what was to be received, so that this memory is kept until the process ends. SEND and RECEIVE are no
   * collectives: they are counted with none, and only their bytes are compared (optional: ROSIN_COMM_UNSUPPORTED). */
  rosin_comm_status (*run)(rosin_comm* comm, const rosin_comm_collective* collective);
  /* Makes run(), here and on all other ranks, return ROSIN_COMM_ABORTED (or end the processes, where a library knows no
   * other way). `why` is told to the others where that is possible: one line of text. */
  void (*abort)(rosin_comm* comm, const char* why);
  /* How run() takes memory of devices of this kind ("CUDA", "AMDGPU"); a rosin_comm_devices (optional: not at all).
   * It may answer ROSIN_COMM_UNSUPPORTED to a kind, an operation or a type, alike on all ranks; then nothing is done.
   */
  int32_t (*takes_devices)(rosin_comm* comm, const char* backend);
  /* What is known of collectives that were given to streams: ROSIN_COMM_OK unless one has failed, or was aborted. Then
   * their work on streams has ended or soon will, what they were to receive is worthless, and the communicator is
   * broken (optional: needed by ROSIN_COMM_WITH_STREAM). */
  rosin_comm_status (*check)(rosin_comm* comm);
  /* Memory of the host that all ranks have in common, `bytes` or more of it at multiples of 64: see rosin_comm_memory.
   * Every rank asks for as many bytes at the same time, and waits for the others as in a collective. `out` gets the
   * address in this process; what an earlier call gave is gone, unless it is given again, which it is where it is large
   * enough. ROSIN_COMM_UNSUPPORTED on every rank where there is none, or not so much (optional: there is none). */
  rosin_comm_status (*common)(rosin_comm* comm, uint64_t bytes, double timeout, void** out);
} rosin_comm_transport;

/* The one exported function: the table, valid for ever, or null when `abi` is not the transport's. */
typedef const rosin_comm_transport* (*rosin_comm_open_function)(uint32_t abi);

#ifdef __cplusplus
}
#endif

#endif
