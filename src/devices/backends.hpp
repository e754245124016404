// The back ends that rosin knows by name, and how names are matched. Read next: device.cpp, device_choice.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace rosin {

struct BackendName {
  const char* name;
  bool listed;  // among supported_devices(); the others serve tests and are taken by name only
};

/// In the order of automatic choice; the CPU is the last that is listed.
std::span<const BackendName> backend_names();
bool is_cpu(const BackendName& backend);

/// The back end of that name (without case; cuda, rocm, hip, amd), or null. "AMD" warns that it is deprecated.
const BackendName* find_backend(std::string_view name);
/// Throws Error (argument) `Unsupported backend: ...` where there is none.
const BackendName& backend_named(std::string_view name);
/// `("CUDA", "AMDGPU", ...)`.
std::string listed_backends();
/// ` Did you mean "CUDA"?`, or nothing.
std::string meant_backend(std::string_view wrong);

}  // namespace rosin
