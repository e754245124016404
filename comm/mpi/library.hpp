// The MPI library that is there: chosen by ROSIN_MPI_LIBRARY, by what the program has loaded, by the launcher. Nothing
// of MPI is linked. Read next: functions.hpp.
#pragma once

#include <optional>
#include <string>

#include <rosin/comm.h>

namespace rosin::transport::mpi {

/// An open library, which stays open.
struct Library {
  void* handle;
  std::string name;
  bool is_open_mpi;  // else one with the ABI of MPICH

  /// The address of a name; throws Trouble where there is none.
  void* address(const char* symbol) const;
  template <class F> void find(F& function, const char* symbol) const {
    function = reinterpret_cast<F>(address(symbol));
  }
};

/// The library to use; nothing where no launcher of MPI and no initialised MPI is seen: then this process is alone.
/// Throws Trouble where there should be one and is not.
std::optional<Library> find_library();

}  // namespace rosin::transport::mpi
