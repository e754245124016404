/* backend.h: what a plug-in offers so that rosin can use its devices. This page is the specification; the conformance
 * test (tests/conformance) checks it on any plug-in. Read next: docs/how_to_add_backend.md.
 *
 * A plug-in is one shared library, librosin_<name in lower case>.so, that exports one C function, rosin_backend_open.
 * It links nothing of rosin. What rosin keeps in one place for all of them stays out of it: memory pool, kernel cache,
 * streams, fusion, fallback, the text of kernels.
 *
 * Rules that hold for every function unless its comment says otherwise
 *   results    ROSIN_OK, or another status; then error_text() of the calling thread says what happened, as one or more
 *              lines of text, until the next call of that thread. A function that fails has changed nothing and gives
 *              nothing out. No exception, signal, exit or output to the terminal leaves a plug-in.
 *   threads    any function may be called from any thread. Calls on one stream, and calls on one event, are never
 *              made at the same time; calls on different streams of one device are.
 *   ownership  who is given an object by a function gives it back by its partner (open/close, alloc/release, ...),
 *              exactly once, before the device is closed. Nothing is given back while work on a stream still uses it.
 *   structs    every struct that rosin and a plug-in exchange by address begins with its size in bytes. Who reads one
 *              takes fields beyond that size as zero (functions: not offered). Structs without a size stand in lists or
 *              within others and never change.
 *   numbers    counts from 0; bytes unless said otherwise.
 * Functions marked (optional) may be null; those that belong together are offered together or not at all.
 *
 * Versions. From version 1 on this page only grows, at the ends of structs, lists and of the table of functions: what
 * it says of what was there before stays. So rosin takes plug-ins that were built for an earlier page of version 1,
 * whose tables are smaller (what they lack is null), and for a later one, of which it reads what it knows. A table
 * reaches to `launch` at least (ROSIN_BACKEND_SMALLEST). Another number would mean that plug-ins must be written anew.
 *   1  rosin 0.1
 * Instructions that the first page of version 1 did not know stand in kernels only where a device says that it takes
 * them (rosin_instruction_set, in the order in which they came), so a plug-in that has never heard of them sees none.
 */
#ifndef ROSIN_BACKEND_H
#define ROSIN_BACKEND_H

#include <stddef.h>
#include <stdint.h>

#include <rosin/backend_calls.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this page. */
#define ROSIN_BACKEND_ABI 1

typedef enum rosin_status {
  ROSIN_OK = 0,
  ROSIN_NOT_READY = 1,      /* event_query: the work before the event has not ended */
  ROSIN_OUT_OF_MEMORY = 2,  /* the device (or the host, for pinned memory) has no such block left */
  ROSIN_UNSUPPORTED = 3,    /* this device or this plug-in does not do that; another way must be taken */
  ROSIN_INVALID = 4,        /* the arguments break this page */
  ROSIN_COMPILE_FAILED = 5, /* error_text() is the compiler's log */
  ROSIN_DEVICE_FAULT = 6    /* the device is lost: all later calls on it may fail; other devices go on */
} rosin_status;

/* Types of elements in memory. Bool is one byte, 0 or 1. */
typedef enum rosin_type {
  ROSIN_BOOL,
  ROSIN_UINT8,
  ROSIN_INT8,
  ROSIN_INT16,
  ROSIN_UINT16,
  ROSIN_INT32,
  ROSIN_UINT32,
  ROSIN_INT64,
  ROSIN_UINT64,
  ROSIN_FLOAT16,
  ROSIN_BFLOAT16,
  ROSIN_FLOAT32,
  ROSIN_FLOAT64,
  ROSIN_COMPLEX32,
  ROSIN_COMPLEX64
} rosin_type;

/* Types that kernels compute in. */
typedef enum rosin_scalar_type {
  ROSIN_SCALAR_BOOL,
  ROSIN_SCALAR_INT32,
  ROSIN_SCALAR_UINT32,
  ROSIN_SCALAR_INT64,
  ROSIN_SCALAR_UINT64,
  ROSIN_SCALAR_FLOAT32,
  ROSIN_SCALAR_FLOAT64
} rosin_scalar_type;

/* Languages in which rosin writes the text of kernels. */
typedef enum rosin_language {
  ROSIN_LANGUAGE_NONE,   /* no text: the plug-in runs the code of the kernels (see rosin_instruction) */
  ROSIN_LANGUAGE_OPENCL, /* OpenCL C 1.2; 64-bit floats only where the device has them */
  ROSIN_LANGUAGE_CUDA,   /* CUDA C++ without headers, for NVRTC */
  ROSIN_LANGUAGE_HIP,    /* HIP C++ without headers, for hipRTC and clang */
  ROSIN_LANGUAGE_METAL   /* Metal Shading Language 3.0 */
} rosin_language;

typedef enum rosin_device_kind { ROSIN_DEVICE_GPU, ROSIN_DEVICE_CPU, ROSIN_DEVICE_OTHER } rosin_device_kind;

typedef struct rosin_device rosin_device; /* one opened device */
typedef struct rosin_memory rosin_memory; /* one block of device memory */
typedef struct rosin_stream rosin_stream; /* work that runs in the order in which it was given */
typedef struct rosin_event rosin_event;   /* a point on a stream */
typedef struct rosin_module rosin_module; /* compiled kernels, loaded on a device */
typedef struct rosin_kernel rosin_kernel; /* one of them */
typedef struct rosin_graph rosin_graph;   /* work in a known order that is launched as one */

typedef struct rosin_device_info {
  size_t size;
  char name[128];              /* of the hardware: "NVIDIA GeForce GTX 1650" */
  char driver[128];            /* driver and its version */
  char capability[64];         /* what compilers call it: "sm_75", "gfx1030", "OpenCL 3.0" */
  char pci[32];                /* "0000:65:00.0", or empty */
  char target[64];             /* for compile() */
  uint64_t memory;             /* bytes of the device */
  uint64_t largest_allocation; /* bytes of one block at most */
  int32_t kind;                /* rosin_device_kind; only GPUs are chosen by themselves */
  int32_t language;            /* rosin_language */
  int32_t float64;             /* 1: kernels may use ROSIN_SCALAR_FLOAT64 and 64-bit float elements */
  int32_t largest_group;       /* items of a group at most; at least 256 */
  int64_t shared_bytes;        /* shared memory of a group; at least 16384 */
  int32_t alignment;           /* of blocks; a power of two from 64 to 256. Offsets into them are multiples of 64 */
  /* What follows may be 0 or empty: unknown, or none of that kind. */
  int32_t units;          /* that run groups side by side: multiprocessors, compute units */
  int32_t warp;           /* items of a group that run in step and may exchange values */
  int64_t cache_bytes;    /* of the cache that all units share */
  int64_t largest_shared; /* shared memory of a group, where its kernel asks for more than shared_bytes */
  int32_t registers;      /* of 32 bits that a group has at most */
  int32_t argument_bytes; /* of a launch at most: 8 for each buffer and parameter */
  int32_t vector_bytes;   /* that an item loads or stores at a time at best */
  uint32_t matrix_types;  /* bit n: matrix units multiply elements of rosin_type n */
  unsigned char uuid[16]; /* of the hardware, wherever it is plugged in */
  uint64_t instructions;  /* bits of rosin_instruction_set: what kernels may have beyond the first page */
  int32_t matrix_layout;  /* rosin_matrix_layout: how warps hold square matrices */
} rosin_device_info;

/* Whoever sets a bit takes all of its instructions, in the way of the device's language. */
typedef enum rosin_instruction_set {
  ROSIN_TAKES_VECTORS = 1,      /* LOAD_VECTOR, LANE, JOIN, STORE_VECTOR; vector_bytes is 4, 8, 16 or more */
  ROSIN_TAKES_READ_ONLY = 2,    /* READ_ONLY */
  ROSIN_TAKES_SHUFFLE = 4,      /* SHUFFLE; warp is a power of two from 2 to 128 */
  ROSIN_TAKES_LARGE_SHARED = 8, /* no instruction: the shared arrays of a kernel may take up to largest_shared bytes */
  ROSIN_TAKES_MATRICES = 16, /* PACK, SHARED_LOAD_VECTOR, SHARED_STORE_VECTOR, and MULTIPLY_MATRICES of those elements
                               of matrix_types that it is for; with vectors and shuffles; warp is 32 */
  ROSIN_TAKES_CHOICES = 32,  /* CHOOSE */
  ROSIN_TAKES_SQUARE_MATRICES = 64, /* as ROSIN_TAKES_MATRICES, which then is not set, of matrices with 16 columns,
                                     which lie as matrix_layout says; warp is what that says */
  ROSIN_TAKES_ARRIVALS = 128        /* ARRIVE */
} rosin_instruction_set;

/* How a warp has the square matrices of MULTIPLY_MATRICES, see there. The matrix units of AMD's GPUs have these ways:
 * v_mfma_f32_16x16x16 (CDNA), v_wmma_f32_16x16x16 of RDNA 3, and that of RDNA 4. */
typedef enum rosin_matrix_layout {
  ROSIN_LAYOUT_NONE = 0,
  ROSIN_LAYOUT_MFMA = 1,
  ROSIN_LAYOUT_WMMA11 = 2,
  ROSIN_LAYOUT_WMMA12 = 3
} rosin_matrix_layout;

/* ---- Kernels -------------------------------------------------------------------------------------------------------
 *
 * A kernel runs `groups[0] * groups[1] * groups[2]` groups of `group` items each. Items of a group can share memory and
 * wait for each other; groups run in any order and cannot.
 *
 * Its code is a list of instructions. The value of an instruction has its place in the list as its name; `operands` are
 * such places, before the instruction's own. Values are computed as rosin's primitives say (IEEE 754, rounded to
 * nearest even, nothing contracted, no flush of subnormal numbers to zero that the device can avoid; integers wrap
 * around). Instructions between LOOP and END_LOOP, IF and END_IF see values from outside, and theirs are not seen
 * there; only what ASSIGN put into a VARIABLE comes out.
 *
 * A read of memory that another item of the launch writes is defined only in shared memory with a BARRIER between, and
 * behind an ARRIVE. */
typedef enum rosin_operation {
  /* The primitives, with operands x, y, z; `type` is the result's. */
  ROSIN_INPUT,   /* not in kernels */
  ROSIN_LITERAL, /* the value whose bits are `immediate` (integers sign-extended, Bool 0 or 1) */
  ROSIN_ADD,
  ROSIN_SUBTRACT,
  ROSIN_MULTIPLY,
  ROSIN_DIVIDE, /* integers: rounded toward zero, x / 0 = 0, the lowest divided by -1 is itself */
  ROSIN_NEGATE,
  ROSIN_ABSOLUTE,
  ROSIN_MINIMUM, /* x if x < y or x is NaN, else y */
  ROSIN_MAXIMUM, /* x if x > y or x is NaN, else y */
  ROSIN_FLOOR,
  ROSIN_CEIL,
  ROSIN_TRUNC,
  ROSIN_ROUND_EVEN,
  ROSIN_SQRT,
  ROSIN_FMA, /* x * y + z, rounded once */
  ROSIN_LESS,
  ROSIN_LESS_EQUAL,
  ROSIN_EQUAL,
  ROSIN_NOT_EQUAL, /* Bool; false (not equal: true) where one is NaN */
  ROSIN_LOGICAL_AND,
  ROSIN_LOGICAL_OR,
  ROSIN_LOGICAL_NOT,
  ROSIN_SELECT, /* y where the Bool x is true, else z */
  ROSIN_BIT_AND,
  ROSIN_BIT_OR,
  ROSIN_BIT_XOR,
  ROSIN_SHIFT_LEFT,
  ROSIN_SHIFT_RIGHT,
  ROSIN_SHIFT_RIGHT_ZERO, /* y counts modulo the bits of the type */
  ROSIN_REINTERPRET,      /* the same bits: Float32 <-> Int32, Float64 <-> Int64 */
  ROSIN_CONVERT,          /* float to integer: toward zero, saturating, NaN to 0; to Bool: not equal to 0 */
  /* What kernels do beside computing. */
  ROSIN_ROUND,        /* x as an element of rosin_type `immediate` would come back from memory */
  ROSIN_PARAMETER,    /* parameter number `immediate` of the launch */
  ROSIN_GROUP,        /* this group's place along dim `immediate`, 0 to 2; Int32 or Int64 */
  ROSIN_ITEM,         /* this item's place in its group, 0 to group - 1; Int32 */
  ROSIN_LOAD,         /* element x (Int32 or Int64) of buffer `immediate`, in the scalar type of its elements */
  ROSIN_STORE,        /* element x of buffer `immediate` becomes y, which has the scalar type of its elements */
  ROSIN_SHARED_LOAD,  /* element x of shared array `immediate` */
  ROSIN_SHARED_STORE, /* element x of shared array `immediate` becomes y */
  ROSIN_BARRIER,      /* every item of the group reaches it, the same number of times */
  ROSIN_VARIABLE,     /* a variable that starts as x; as an operand it stands for what it holds then */
  ROSIN_ASSIGN,       /* the variable x becomes y */
  ROSIN_LOOP,         /* for (value = x; value < y; value += z), z > 0; x, y, z are read once */
  ROSIN_END_LOOP,
  ROSIN_IF, /* where the Bool x holds */
  ROSIN_ELSE,
  ROSIN_END_IF,
  ROSIN_MULTIPLY_HIGH, /* the upper half of the bits of the product of x and y; integers */
  /* Float32, computed quickly: wrong by 2^-20 of the value at most; what is below 2^-126 may count as 0. */
  ROSIN_EXP2_APPROXIMATE,       /* 2^x */
  ROSIN_RECIPROCAL_APPROXIMATE, /* 1 / x */
  ROSIN_TANH_APPROXIMATE,       /* tanh x, wrong by 2^-10 at most */
  /* Only where rosin_device_info::instructions says so. A vector is 2, 4, 8 or 16 values of one type, its lanes, which
   * are counted from 0; it is an operand where these lines name one, and nowhere else. */
  ROSIN_LOAD_VECTOR, /* the elements x, x + 1, ... of the buffer that the lower 32 bits of `immediate` say, as LOAD; the
                        upper ones say how many. x is a multiple of that */
  ROSIN_LANE,        /* lane `immediate` of the vector x */
  ROSIN_JOIN,        /* the vector of the lanes of x, then those of y: two values, or two vectors of equally many */
  ROSIN_STORE_VECTOR, /* the elements x, x + 1, ... become the lanes of the vector y; else as LOAD_VECTOR */
  ROSIN_READ_ONLY,    /* no value: during the launch no item writes what the launch loads from buffer `immediate` */
  ROSIN_SHUFFLE,      /* what x (no Bool) is for item y (Int32) of this item's warp */
  ROSIN_PACK, /* UInt32: x in the low half and y in the high one, Float32 as elements of rosin_type `immediate`, which
                 is a 16-bit float */
  ROSIN_SHARED_LOAD_VECTOR,  /* as LOAD_VECTOR, of a shared array of Int32, UInt32 or Float32 */
  ROSIN_SHARED_STORE_VECTOR, /* as STORE_VECTOR, likewise */
  ROSIN_MULTIPLY_MATRICES,   /* the warp's x * y + z, see below; elements of x and y: rosin_type `immediate` */
  ROSIN_CHOOSE, /* no value: from here on buffer number ROSIN_CHOSEN_BUFFER + the upper 32 bits of `immediate` is the
                   buffer that the lower ones say, in all items of the group */
  ROSIN_ARRIVE  /* Bool: whether this group is the last of y (Int32) that arrive at element x of buffer `immediate`, see
                   below */
} rosin_operation;

/* Vectors in memory have elements of 1, 2 or 4 bytes, 4, 8 or 16 bytes together, and at most vector_bytes.
 *
 * A warp is `warp` items of a group that follow each other, the first from item 0 on; y counts from 0 in it. Every item
 * of the warp reaches a SHUFFLE, the same number of times. Groups of kernels with SHUFFLE are made of whole warps.
 *
 * MULTIPLY_MATRICES: a warp of 32 items has three matrices in vectors, each item a part of each, and gets a fourth one
 * like the third: X (16 rows, k columns) * Y (k rows, 8 columns) + Z (16 rows, 8 columns). The vectors x (4 lanes) and
 * y (2) are words, UInt32, of e elements with neighbouring k, the lower k in the lower bits: Float16 and BFloat16 have
 * e = 2 and k = 16; of Float32, e = 1 and k = 8, the upper 19 bits count (TF32). z and the value have 4 lanes of
 * Float32. Item i of the warp, with g = i / 4 and t = i % 4, has
 *   lane n of x   row g + 8 * (n % 2),  columns from e * (t + 4 * (n / 2)) on
 *   lane n of y   rows from e * (t + 4 * n) on,  column g
 *   lane n of z, and of the value   row g + 8 * (n / 2),  column 2 * t + n % 2
 * Products are exact, and summed in any order with the precision of Float32, or a little less; numbers of 16 bits below
 * the normal ones may count as 0. Every item of the warp reaches it, as a SHUFFLE.
 *
 * With ROSIN_TAKES_SQUARE_MATRICES, Y, Z and the value have 16 columns instead, and of Float32 all bits count. Item i,
 * with g = i % 16 and t = i / 16, has
 *   lane n of x   row g,  columns from e * (n + w * t) on
 *   lane n of y   rows from e * (n + w * t) on,  column g
 *   lane n of z, and of the value   row u * n + v * t,  column g
 * where
 *                         warp   lanes of x, y: w   lanes of z   u   v
 *   ROSIN_LAYOUT_MFMA     64     2                  4            1   4
 *   ROSIN_LAYOUT_WMMA11   32     8; t counts as 0   8            2   1
 *   ROSIN_LAYOUT_WMMA12   32     4                  8            1   8
 * (Items i and i + 16 of ROSIN_LAYOUT_WMMA11 have the same x and y.)
 *
 * Buffers that are chosen have one type, whichever they are; loads and stores, of vectors too, name them as others. For
 * each, the first CHOOSE stands outside of all LOOPs and IFs.
 *
 * ARRIVE: every item of the group reaches it, as a BARRIER, which it is as well; all get the same value. The element
 * (Int32) counts the groups that have arrived: it is 0 before the first arrives and once the last has, and nothing else
 * touches it. What groups stored before they arrived, the last one reads as it was stored.
 *
 * Vectors of shared arrays have elements of 4 bytes, 8 or 16 bytes together; in the text such arrays begin at multiples
 * of 16 bytes.
 *
 * Shared arrays that take more than shared_bytes together, each counted from a multiple of 16 bytes, stand in the text
 * one after another like that, from the beginning of the memory whose size a launch names (CUDA, HIP: extern, one array
 * of bytes). In other languages they are arrays as always. */

#define ROSIN_CHOSEN_BUFFER (1 << 30)

/* The scalar type of elements in memory: Bool: Bool; 8- and 16-bit integers and Int32: Int32; UInt32: UInt32; Int64 and
 * UInt64: Int64; 16-bit floats and Float32: Float32; Float64: Float64. Complex elements are not loaded. A store rounds
 * to nearest even (floats) or keeps the low bits (integers). */
typedef struct rosin_instruction {
  uint16_t operation;   /* rosin_operation */
  uint16_t type;        /* rosin_scalar_type of the value */
  uint32_t operands[3]; /* x, y, z */
  int64_t immediate;
} rosin_instruction;

typedef struct rosin_shared_array {
  int32_t type;  /* rosin_scalar_type */
  int32_t count; /* elements */
} rosin_shared_array;

typedef struct rosin_kernel_code {
  size_t size;
  const char* name; /* in the text, and for kernel() */
  int32_t group;    /* items of a group, at most largest_group */
  uint32_t buffer_count;
  const int32_t* buffers; /* rosin_type of each */
  uint32_t parameter_count;
  const int32_t* parameters; /* rosin_scalar_type of each; never Bool */
  uint32_t shared_count;
  const rosin_shared_array* shared;
  uint32_t instruction_count;
  const rosin_instruction* instructions;
} rosin_kernel_code;

/* Kernels that are compiled together. In the text, a kernel's arguments are its buffers and then its parameters, in
 * their order; OpenCL: each buffer is a pointer (the block) followed by a ulong (the byte offset). Metal: one constant
 * struct, buffer(0), of 8 bytes for each: the device's address of element 0, then each rosin_number as it is; for more
 * buffers than Metal binds, and since those that are bound must not overlap. */
typedef struct rosin_program {
  size_t size;
  const char* text; /* in the language of the target, or null for ROSIN_LANGUAGE_NONE */
  uint32_t kernel_count;
  const rosin_kernel_code* kernels;
} rosin_program;

/* Where element 0 of a buffer argument stands. */
typedef struct rosin_place {
  rosin_memory* memory;
  uint64_t offset;
} rosin_place;

typedef union rosin_number {
  int32_t int32;
  uint32_t uint32;
  int64_t int64;
  float float32;
  double float64;
} rosin_number;

typedef struct rosin_launch {
  size_t size;
  uint32_t groups[3];         /* each at least 1; [0] up to 2^31 - 1, others up to 65535 */
  const rosin_place* buffers; /* as many as the kernel has */
  const rosin_number* parameters;
} rosin_launch;

/* ---- Vendor calls: backend_calls.h, which belongs to this page ----------------------------------------------------
 */

/* ---- Graphs --------------------------------------------------------------------------------------------------------
 *
 * Work that a device does again and again, as one object: rosin makes it empty (graph_create), adds nodes (graph_add),
 * finishes it (graph_finish), and from then on launches it (graph_launch), updating the nodes whose arguments differ
 * from those of the launch before (graph_update).
 *
 *   order      a node runs after its dependencies, which have been added before it. Nodes without a path between them
 *              run in any order or at the same time. A launch runs after what was given to its stream before, and
 *              before what follows there, so also before the next launch of the graph.
 *   arguments  count when graph_add or graph_update is called: the structs may go when it returns. Pinned memory is
 *              written when the node runs.
 *   updates    are for launches given afterwards; those given before keep the arguments that they had. Places, groups,
 *              parameters, numbers, bytes and the value of a fill may change; kind, kernel, call and dependencies are
 *              those of graph_add, and the update names them again.
 *   calls      how work of a library gets into a graph is the plug-in's own: explicit nodes, or what it captures from
 *              a stream of its own inside of graph_add.
 *   lifetimes  a finished graph gets no more nodes. Modules, calls and memory that nodes name stay as long as
 *              launches may use them, modules and calls until the graph is destroyed. No launch of a graph that is
 *              destroyed is under way.
 *   threads    calls on one graph are never made at the same time. A call that stands in a graph may run on its own,
 *              on the stream that the graph is launched on.
 *
 * All of these but graph_destroy may answer ROSIN_UNSUPPORTED: rosin then runs the same work step by step.
 *
 * Kernels of devices that offer graphs may have up to 4096 bytes of arguments (8 for each buffer and parameter). */
typedef enum rosin_graph_node_kind {
  ROSIN_GRAPH_LAUNCH,   /* kernel, launch */
  ROSIN_GRAPH_CALL,     /* call, buffers, workspace, numbers, as in call_run */
  ROSIN_GRAPH_COPY,     /* to, from, bytes: within the device; the ranges do not overlap */
  ROSIN_GRAPH_COPY_OUT, /* host, from, bytes: to pinned memory */
  ROSIN_GRAPH_FILL      /* to, bytes, value: every byte becomes value */
} rosin_graph_node_kind;

/* Fields that the kind does not name are zero. */
typedef struct rosin_graph_node {
  size_t size;
  int32_t kind; /* rosin_graph_node_kind */
  uint32_t dependency_count;
  const uint32_t* dependencies; /* numbers of nodes: the first added has 0 */
  rosin_kernel* kernel;
  const rosin_launch* launch;
  rosin_call* call;
  const rosin_place* buffers;
  rosin_place workspace;
  rosin_place to;
  rosin_place from;
  void* host;
  uint64_t bytes;
  uint8_t value;
  const rosin_call_numbers* numbers;
} rosin_graph_node;

/* ---- The functions ----------------------------------------------------------------------------------------------- */

/* A library or ability that a plug-in found beside its driver, or looked for: "MIOpen", "3.1.0". */
typedef struct rosin_capability {
  const char* name;    /* printable ASCII */
  const char* version; /* the same without blanks, or empty */
  const char* reason;  /* why it cannot be used, as one line of text; null or empty: it can */
} rosin_capability;

/* What rosin does for a plug-in. It outlives the process's use of the plug-in; any thread may call its functions, from
 * within any function of the plug-in but attach. */
typedef enum rosin_log_level { ROSIN_LOG_INFO, ROSIN_LOG_WARNING } rosin_log_level;

typedef struct rosin_host rosin_host;
struct rosin_host {
  size_t size;
  /* A notice for the user of the program: one line of text, said once in a process. */
  void (*log)(const rosin_host* host, int32_t level, const char* text);
  /* What the plug-in keeps on disk from one process to the next, as far as there is room: plans and choices of a
   * library. A key is any text that names all that the bytes depend on (versions of libraries, the hardware); other
   * plug-ins, and other versions of this one, have keys of their own. Gives the count of the bytes, 0 where nothing is
   * kept, and copies them if there are at most `capacity`. They are as they were put. */
  uint64_t (*cache_get)(const rosin_host* host, const char* key, void* bytes, uint64_t capacity);
  /* Whether it can be kept or not is not said. */
  void (*cache_put)(const rosin_host* host, const char* key, const void* bytes, uint64_t count);
};

typedef enum rosin_priority { ROSIN_PRIORITY_LOW = -1, ROSIN_PRIORITY_USUAL, ROSIN_PRIORITY_HIGH } rosin_priority;

/* Bytes of a table that ends with `launch`. */
#define ROSIN_BACKEND_SMALLEST offsetof(rosin_backend, call_takes)

typedef struct rosin_backend {
  size_t size;
  uint32_t abi;        /* ROSIN_BACKEND_ABI */
  const char* name;    /* "CUDA": letters, digits, underscores; the plug-in's file has it in lower case */
  const char* version; /* of the plug-in, for people */

  const char* (*error_text)(void);

  /* How many devices there are. No device is a success with count 0 (error_text() may say why); a missing driver is
   * ROSIN_UNSUPPORTED with the reason as error text. Asked once. */
  rosin_status (*device_count)(int32_t* count);
  /* What was found beside the driver, each name once; asked after device_count() has succeeded. The list stays as it is
   * (optional: nothing). */
  rosin_status (*capabilities)(const rosin_capability** list, uint32_t* count);
  /* Fills at most info->size bytes; needs no open device and takes no memory of it. */
  rosin_status (*device_info)(int32_t device, rosin_device_info* info);
  rosin_status (*open)(int32_t device, rosin_device** out);
  void (*close)(rosin_device* device);

  /* A block of at least `bytes` > 0; its content is undefined. */
  rosin_status (*alloc)(rosin_device* device, uint64_t bytes, rosin_memory** out);
  void (*release)(rosin_device* device, rosin_memory* memory);
  /* Free and total bytes as the driver sees them now (optional). */
  rosin_status (*memory_left)(rosin_device* device, uint64_t* free_bytes, uint64_t* total_bytes);
  /* Host memory that copies run from and to without waiting. */
  rosin_status (*alloc_pinned)(rosin_device* device, uint64_t bytes, void** out);
  void (*release_pinned)(rosin_device* device, void* memory);

  rosin_status (*stream_create)(rosin_device* device, rosin_stream** out);
  void (*stream_destroy)(rosin_stream* stream);
  /* Waits until all work given so far has ended; reports a fault of it. */
  rosin_status (*stream_sync)(rosin_stream* stream);
  rosin_status (*event_create)(rosin_device* device, rosin_event** out);
  void (*event_destroy)(rosin_event* event);
  /* The event stands for all work given to the stream so far. */
  rosin_status (*event_record)(rosin_event* event, rosin_stream* stream);
  /* ROSIN_OK when that work has ended, ROSIN_NOT_READY before; an event never recorded has ended. */
  rosin_status (*event_query)(rosin_event* event);
  rosin_status (*event_sync)(rosin_event* event);
  /* Work given to the stream later starts after the event; any stream of this backend, also of another device. */
  rosin_status (*stream_wait)(rosin_stream* stream, rosin_event* event);

  /* Copies run on the stream. Host memory from alloc_pinned stays untouched by others until the copy has ended; other
   * host memory may be used again as soon as the function returns. */
  rosin_status (*copy_in)(rosin_stream* stream, rosin_place to, const void* from, uint64_t bytes);
  rosin_status (*copy_out)(rosin_stream* stream, void* to, rosin_place from, uint64_t bytes);
  /* Within one device; the ranges do not overlap. */
  rosin_status (*copy)(rosin_stream* stream, rosin_place to, rosin_place from, uint64_t bytes);
  /* Between two devices of this backend, on a stream of the target's (optional, may be ROSIN_UNSUPPORTED). */
  rosin_status (*copy_peer)(rosin_stream* stream, rosin_place to, rosin_device* from_device, rosin_place from,
                            uint64_t bytes);

  /* From a program to bytes that load() takes, for the target of any device of the same target. `device` may be null
   * where that works without one; else ROSIN_UNSUPPORTED. The bytes are given back with free_bytes. */
  rosin_status (*compile)(rosin_device* device, const char* target, const rosin_program* program, void** bytes,
                          uint64_t* count);
  void (*free_bytes)(void* bytes);
  /* Bytes that compile() did not make here (another driver, damaged): ROSIN_INVALID; rosin compiles again. */
  rosin_status (*load)(rosin_device* device, const void* bytes, uint64_t count, rosin_module** out);
  /* No launch of its kernels is under way. */
  void (*unload)(rosin_module* module);
  /* Belongs to the module. */
  rosin_status (*kernel)(rosin_module* module, const char* name, rosin_kernel** out);
  /* `launch` and what it points to may go when the function returns. */
  rosin_status (*launch)(rosin_stream* stream, rosin_kernel* kernel, const rosin_launch* launch);

  /* Vendor calls (optional, these four or none). Whether calls like this one, of any sizes, may be taken: ROSIN_OK or
   * ROSIN_UNSUPPORTED. orders[i], a rosin_order, is how rosin's own kernels read array i; the plug-in puts its wish
   * there. */
  rosin_status (*call_takes)(rosin_device* device, const rosin_call_description* description, int32_t* orders);
  /* ROSIN_UNSUPPORTED: rosin takes its own kernels. `workspace`: bytes of device memory that every run needs. */
  rosin_status (*call_prepare)(rosin_device* device, const rosin_call_description* description, rosin_call** out,
                               uint64_t* workspace);
  void (*call_destroy)(rosin_call* call);
  /* buffers: the places of the description's arrays, in their order. numbers: null where the call is neither scaled nor
   * has dropout. */
  rosin_status (*call_run)(rosin_stream* stream, rosin_call* call, const rosin_place* buffers, rosin_place workspace,
                           const rosin_call_numbers* numbers);
  /* Runs the ways that the library has for this call, a few times each, waits for them, and stays with the fastest.
   * What the call writes is undefined afterwards. `workspace` has `bytes`; `needed` receives what every run needs from
   * now on, at most that. The call stands in no graph yet, and the stream is not one that is being captured (optional,
   * both or none). */
  rosin_status (*call_tune)(rosin_stream* stream, rosin_call* call, const rosin_place* buffers, rosin_place workspace,
                            uint64_t bytes, const rosin_call_numbers* numbers, uint64_t* needed);
  /* The way that the call takes, for rosin_call_description::choice: rosin keeps it on disk. It belongs to the call;
   * no bytes where there is no choice. */
  rosin_status (*call_choice)(rosin_call* call, const void** bytes, uint64_t* count);

  /* Graphs (optional, all six or none); see above. */
  rosin_status (*graph_create)(rosin_device* device, rosin_graph** out);
  rosin_status (*graph_add)(rosin_graph* graph, const rosin_graph_node* node);
  rosin_status (*graph_finish)(rosin_graph* graph);
  rosin_status (*graph_update)(rosin_graph* graph, uint32_t node, const rosin_graph_node* arguments);
  rosin_status (*graph_launch)(rosin_stream* stream, rosin_graph* graph);
  void (*graph_destroy)(rosin_graph* graph);

  /* The vendor's own handles, for programs that mix rosin with the vendor's libraries: CUstream, cl_command_queue, ...
   * and CUdeviceptr (by address), cl_mem, ... (optional). */
  void* (*native_stream)(rosin_stream* stream);
  void* (*native_memory)(rosin_memory* memory);

  /* All that follows may answer ROSIN_UNSUPPORTED, where a driver is too old.
   *
   * What rosin does for the plug-in; called before device_count, once, if at all (optional). */
  void (*attach)(const rosin_host* host);
  /* What compiled programs depend on beside their text, the target, and the name and version of the plug-in: options,
   * a compiler whose code differs. rosin keeps bytes of compile() under it, also from another machine, so it leaves out
   * what load() can live with. A text that stays as long as the device is open (optional: the driver's text). */
  rosin_status (*compile_key)(rosin_device* device, const char** key);

  /* Every byte becomes `value`, on the stream (optional). */
  rosin_status (*fill)(rosin_stream* stream, rosin_place to, uint64_t bytes, uint8_t value);
  /* A block that work given to the stream from now on may use, and that others may use behind an event of it. Giving it
   * back is work of a stream too: what was given to that one before may use it still (optional, both or none). */
  rosin_status (*alloc_ordered)(rosin_stream* stream, uint64_t bytes, rosin_memory** out);
  rosin_status (*release_ordered)(rosin_stream* stream, rosin_memory* memory);
  /* Makes host memory that is there pinned, and what it was before. No copy from or to it is under way at unpin
   * (optional, both or none). */
  rosin_status (*pin)(rosin_device* device, void* memory, uint64_t bytes);
  void (*unpin)(rosin_device* device, void* memory);
  /* Whether copies from device number `other` go straight to this one: 1, or through the host: 0 (optional). */
  rosin_status (*peer)(rosin_device* device, int32_t other, int32_t* reaches);

  /* A stream whose work is done before or after that of others, where there is a choice; a rosin_priority (optional).
   */
  rosin_status (*stream_create_with)(rosin_device* device, int32_t priority, rosin_stream** out);
  /* A stream that is the vendor's own, as native_stream gives it. stream_destroy leaves that alone (optional). */
  rosin_status (*stream_adopt)(rosin_device* device, void* native, rosin_stream** out);
  /* An event that keeps the time, and seconds from one to another, both recorded and ended (optional, both or none). */
  rosin_status (*event_create_timed)(rosin_device* device, rosin_event** out);
  rosin_status (*event_elapsed)(rosin_event* from, rosin_event* to, double* seconds);
  /* Names what the calling thread does until range_end, in the vendor's tools; ranges nest (optional, both or none). */
  void (*range_begin)(rosin_device* device, const char* name);
  void (*range_end)(rosin_device* device);

  /* Bytes that ROSIN_ROLE_RESERVE has among the arrays of this call, which has sizes and may be without that array.
   * Recurrent layers are asked for where this is there and the call is taken; rosin has no kernel for one that
   * call_prepare refuses later (optional). */
  rosin_status (*call_reserve)(rosin_device* device, const rosin_call_description* description, uint64_t* bytes);
} rosin_backend;

/* The one exported function: the table of functions, valid for ever, or null when `abi` is not the plug-in's. It does
 * little and cannot fail otherwise; what may be missing is reported by device_count. A plug-in is never unloaded. */
typedef const rosin_backend* (*rosin_backend_open_function)(uint32_t abi);

#ifdef __cplusplus
}
#endif

#endif
