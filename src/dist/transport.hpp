// Transports: plug-ins that join processes, found where those of devices are. Read first: include/rosin/comm.h.
// Read next: group.hpp.
#pragma once

#include <string>
#include <string_view>

#include <rosin/comm.h>

namespace rosin::distributed {

/// "librosin_comm_mpi.so" of "MPI".
std::string transport_file_name(std::string_view transport);
/// Loads it; it stays for ever. Error (distributed): it is not there, or no transport of this version.
const rosin_comm_transport& load_transport(std::string_view transport);

}  // namespace rosin::distributed
