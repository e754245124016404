// Names of back ends, and how they are matched. A few are known, as they are chosen by themselves, in an order; every
// other plug-in file that lies in a folder which is searched is a back end too, taken by name only.
// Read next: plugin.hpp (the files), device.cpp, device_choice.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace rosin {

struct BackendName {
  std::string name;  // of one that was found: as its file has it until it is loaded, then as it calls itself
};

/// The known ones, supported_devices(), in the order of automatic choice; the CPU is the last.
std::span<const BackendName> backend_names();
bool is_cpu(const BackendName& backend);

/// The back end of that name (without case; cuda, rocm, hip, amd), or null: it is neither known nor is there a file of
/// its name. No plug-in is opened. What is returned stays for ever. "AMD" warns that it is deprecated.
const BackendName* find_backend(std::string_view name);
/// Throws Error (argument) `Unsupported backend: ...` where there is none.
const BackendName& backend_named(std::string_view name);
/// The back end of a plug-in that was loaded, which knows how its name is written.
const BackendName& backend_as_loaded(std::string_view own_name);
/// `("CUDA", "AMDGPU", ...)`.
std::string listed_backends();
/// ` Did you mean "CUDA"?`, or nothing. Names of files are known as well.
std::string meant_backend(std::string_view wrong);

}  // namespace rosin
