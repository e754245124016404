// See library.hpp and functions.hpp.
#include "mpi/library.hpp"

#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>
#include <vector>

#include "common/trouble.hpp"
#include "mpi/functions.hpp"

namespace rosin::transport::mpi {
namespace {

// By the names under which distributions install them: 40 is Open MPI's, 12 that of MPICH and its relatives.
constexpr const char* open_mpi_files[] = {"libmpi.so.40", "libmpi.so"};
constexpr const char* mpich_files[] = {"libmpich.so.12", "libmpi.so.12", "libmpich.so", "libmpi.so"};

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value && *value;
}

Library described(void* handle, std::string name) {
  const bool is_open_mpi = dlsym(handle, "ompi_mpi_comm_world") != nullptr;
  return {handle, std::move(name), is_open_mpi};
}

bool is_initialized(void* handle) {
  const auto ask = reinterpret_cast<int (*)(int*)>(dlsym(handle, "MPI_Initialized"));
  int yes = 0;
  return ask && ask(&yes) == success && yes != 0;
}

/// One that the program has loaded already: linked to, or opened by a part of it.
std::optional<Library> loaded() {
  void* program = dlopen(nullptr, RTLD_NOW);
  if (program && dlsym(program, "MPI_Init_thread")) return described(program, "the program's own MPI");
  for (const char* file : {"libmpi.so.40", "libmpich.so.12", "libmpi.so.12"}) {
    void* handle = dlopen(file, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
    if (handle) return described(handle, file);
  }
  return std::nullopt;
}

Library opened(const std::vector<const char*>& files, const std::string& why) {
  std::string tried;
  for (const char* file : files) {
    void* handle = dlopen(file, RTLD_NOW | RTLD_GLOBAL);  // the parts of Open MPI look for it globally
    if (handle) return described(handle, file);
    const char* error = dlerror();
    tried.append(tried.empty() ? "" : "; ").append(error ? error : file);
  }
  throw Trouble{ROSIN_COMM_UNSUPPORTED, why + tried};
}

/// Slurm sets this for tasks that srun starts; without its MPI each of them would train on its own, unnoticed.
void refuse_slurm_without_mpi() {
  const char* tasks = std::getenv("SLURM_STEP_NUM_TASKS");
  if (!tasks || std::atoi(tasks) <= 1) return;
  throw Trouble{ROSIN_COMM_UNSUPPORTED, std::string("srun has started ") + tasks +
                                            " tasks without MPI; write srun --mpi=pmix, or --mpi=pmi2 for MPICH"};
}

}  // namespace

void* Library::address(const char* symbol) const {
  void* found = dlsym(handle, symbol);
  if (found) return found;
  throw Trouble{ROSIN_COMM_UNSUPPORTED, name + " has no " + symbol + "; it is no MPI of version 3 or later"};
}

std::optional<Library> find_library() {
  if (is_set("ROSIN_MPI_LIBRARY")) return opened({std::getenv("ROSIN_MPI_LIBRARY")}, "");
  const bool by_open_mpi = is_set("OMPI_COMM_WORLD_SIZE") || is_set("PMIX_RANK");
  const bool by_mpich = is_set("PMI_RANK") || is_set("PMI_SIZE") || is_set("MPI_LOCALNRANKS");
  const std::optional<Library> there = loaded();
  if (there && (by_open_mpi || by_mpich || is_initialized(there->handle))) return there;
  const std::string why = "a launcher of MPI has started this process, but its library is not found (";
  if (by_open_mpi) return opened({std::begin(open_mpi_files), std::end(open_mpi_files)}, why + "Open MPI): ");
  if (by_mpich) return opened({std::begin(mpich_files), std::end(mpich_files)}, why + "MPICH): ");
  refuse_slurm_without_mpi();
  return std::nullopt;
}

template <class H> Functions<H> functions_of(const Library& library) {
  Functions<H> f{};
  library.find(f.init_thread, "MPI_Init_thread");
  library.find(f.initialized, "MPI_Initialized");
  library.find(f.finalized, "MPI_Finalized");
  library.find(f.query_thread, "MPI_Query_thread");
  library.find(f.finalize, "MPI_Finalize");
  library.find(f.abort, "MPI_Abort");
  library.find(f.library_version, "MPI_Get_library_version");
  library.find(f.error_string, "MPI_Error_string");
  library.find(f.comm_rank, "MPI_Comm_rank");
  library.find(f.comm_size, "MPI_Comm_size");
  library.find(f.comm_dup, "MPI_Comm_dup");
  library.find(f.comm_split_type, "MPI_Comm_split_type");
  library.find(f.comm_set_errhandler, "MPI_Comm_set_errhandler");
  library.find(f.comm_free, "MPI_Comm_free");
  library.find(f.op_create, "MPI_Op_create");
  library.find(f.barrier, "MPI_Ibarrier");
  library.find(f.broadcast, "MPI_Ibcast");
  library.find(f.allreduce, "MPI_Iallreduce");
  library.find(f.reduce, "MPI_Ireduce");
  library.find(f.allgather, "MPI_Iallgather");
  library.find(f.reduce_scatter, "MPI_Ireduce_scatter_block");
  library.find(f.send, "MPI_Isend");
  library.find(f.receive, "MPI_Irecv");
  library.find(f.test, "MPI_Test");
  f.query_cuda = reinterpret_cast<int (*)()>(dlsym(library.handle, "MPIX_Query_cuda_support"));
  f.query_rocm = reinterpret_cast<int (*)()>(dlsym(library.handle, "MPIX_Query_rocm_support"));
  return f;
}

// In the order of rosin_comm_type; what is not reduced is moved as bytes.

template <> Constants<void*> constants_of<void*>(const Library& library) {
  constexpr const char* types[] = {"byte",    "uint8_t",  "int8_t",  "int16_t",  "uint16_t",
                                   "int32_t", "uint32_t", "int64_t", "uint64_t", "byte",
                                   "byte",    "float",    "double",  "byte",     "byte"};
  static_assert(std::size(types) == type_count);
  const auto get = [&](const char* name) { return library.address((std::string("ompi_mpi_") + name).c_str()); };
  Constants<void*> c{};
  c.world = get("comm_world");
  c.info_null = get("info_null");
  c.errors_return = get("errors_return");
  c.byte = get("byte");
  for (int i = 0; i < type_count; ++i) c.types[static_cast<size_t>(i)] = get(types[i]);
  c.sum = get("op_sum");
  c.product = get("op_prod");
  c.shared = 0;
  c.in_place = reinterpret_cast<void*>(1);
  c.ignore_status = nullptr;
  return c;
}

template <> Constants<int> constants_of<int>(const Library&) {
  constexpr int byte = 0x4c00010d;
  return {.world = 0x44000000,
          .info_null = 0x1c000000,
          .errors_return = 0x54000001,
          .byte = byte,
          .types = {byte, 0x4c00013b, 0x4c000137, 0x4c000238, 0x4c00023c, 0x4c000439, 0x4c00043d, 0x4c00083a,
                    0x4c00083e, byte, byte, 0x4c00040a, 0x4c00080b, byte, byte},
          .sum = 0x58000003,
          .product = 0x58000004,
          .shared = 1,
          .in_place = reinterpret_cast<void*>(static_cast<intptr_t>(-1)),
          .ignore_status = reinterpret_cast<void*>(1)};
}

template Functions<void*> functions_of<void*>(const Library&);
template Functions<int> functions_of<int>(const Library&);

}  // namespace rosin::transport::mpi
