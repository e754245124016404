// Preferences: what the environment and the preference file say about devices, read anew at each call.
// Read next: preferences.cpp, preference_file.hpp (which file), toml_text.hpp (how it is changed).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace rosin {

/// A preference that is set, and where.
struct Preference {
  std::string value;
  std::string file;   // empty: it stands in the environment
  int line;           // counts from 1; 0 in the environment
  std::string table;  // "rosin", "Flux", ...; in the environment the variable, "ROSIN_GPU_BACKEND"
};

/// The back end to choose: ROSIN_GPU_BACKEND, else key gpu_backend of the first table that has it: [rosin],
/// [MLDataDevices], [Flux], [Lux], [LuxDeviceUtils]. The value of the variable and that of [rosin] may name no back
/// end, which is for the caller to say; such a value in a table of another program is passed over with a warning
/// (`foreign-preference`).
/// Errors (argument): the file is malformed, or the value in [rosin] is no string; (io): it cannot be read.
std::optional<Preference> gpu_backend_preference();

/// Writes gpu_backend of [rosin] (see write_preference), or removes it.
void write_gpu_backend_preference(std::optional<std::string_view> backend);

/// Whether plug-ins are loaded without `use`: ROSIN_AUTOLOAD, else key autoload of [rosin], else true.
bool autoload_preference();

/// Whether MPI takes device memory: ROSIN_MPI_GPU_AWARE, else key mpi_gpu_aware of [rosin], else
/// FluxDistributedMPICUDAAware of [Flux], else false.
bool mpi_gpu_aware_preference();

/// Writes mpi_gpu_aware of [rosin] (see write_preference).
void write_mpi_gpu_aware_preference(bool aware);

}  // namespace rosin
