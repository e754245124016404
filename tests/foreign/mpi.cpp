// What the transport over MPI says of an MPI library beside that library's own header: constants are compared when this
// runs, and functions where it is compiled; ../mpi_headers_test.py adds a line for each that is looked up.
#include <mpi.h>

#include <cstdio>
#include <type_traits>

#include "same.hpp"

#include "common/trouble.cpp"
#include "mpi/library.cpp"

namespace {

using same::same_call;
namespace mpi = rosin::transport::mpi;

// A handle as the transport sees it.
using Handle = std::conditional_t<std::is_pointer_v<MPI_Comm>, void*, int>;
using Functions = mpi::Functions<Handle>;
static_assert(sizeof(MPI_Comm) == sizeof(Handle) && sizeof(MPI_Datatype) == sizeof(Handle) &&
              sizeof(MPI_Op) == sizeof(Handle) && sizeof(MPI_Request) == sizeof(Handle));
SAME_NUMBER(mpi::success, MPI_SUCCESS);
SAME_NUMBER(mpi::thread_serialized, MPI_THREAD_SERIALIZED);
static_assert(mpi::most_text >= MPI_MAX_LIBRARY_VERSION_STRING && mpi::most_text >= MPI_MAX_ERROR_STRING);

int differences = 0;

template <class Ours, class Theirs> void compare(const char* name, Ours ours, Theirs theirs) {
  if (ours == (Ours)theirs) return;
  std::printf("%s differs\n", name);
  ++differences;
}

}  // namespace

int main() {
  const mpi::Library program{dlopen(nullptr, RTLD_NOW), "this program", std::is_pointer_v<MPI_Comm>};
  const auto c = mpi::constants_of<Handle>(program);
  compare("world", c.world, MPI_COMM_WORLD);
  compare("info_null", c.info_null, MPI_INFO_NULL);
  compare("errors_return", c.errors_return, MPI_ERRORS_RETURN);
  compare("byte", c.byte, MPI_BYTE);
  const MPI_Datatype types[] = {MPI_BYTE,    MPI_UINT8_T,  MPI_INT8_T,  MPI_INT16_T,  MPI_UINT16_T,
                                MPI_INT32_T, MPI_UINT32_T, MPI_INT64_T, MPI_UINT64_T, MPI_BYTE,
                                MPI_BYTE,    MPI_FLOAT,    MPI_DOUBLE,  MPI_BYTE,     MPI_BYTE};
  for (size_t i = 0; i < c.types.size(); ++i) compare("a type", c.types[i], types[i]);
  compare("sum", c.sum, MPI_SUM);
  compare("product", c.product, MPI_PROD);
  compare("shared", c.shared, static_cast<int>(MPI_COMM_TYPE_SHARED));
  compare("in_place", c.in_place, MPI_IN_PLACE);
  compare("ignore_status", c.ignore_status, MPI_STATUS_IGNORE);
  std::puts(differences == 0 ? "all the same" : "");
  return differences;
}
