// See backends.hpp.
#include "devices/backends.hpp"

#include <algorithm>
#include <vector>

#include <rosin/error.hpp>
#include <rosin/log.hpp>

#include "base/nearest.hpp"

namespace rosin {
namespace {

constexpr BackendName names[] = {{"CUDA", true}, {"AMDGPU", true},     {"Metal", true}, {"OpenCL", true},
                                 {"CPU", true},  {"reference", false}, {"null", false}};

}  // namespace

std::span<const BackendName> backend_names() { return names; }

bool is_cpu(const BackendName& backend) { return std::string_view(backend.name) == "CPU"; }

const BackendName* find_backend(std::string_view name) {
  if (equal_without_case(name, "rocm") || equal_without_case(name, "hip")) name = "AMDGPU";
  if (name == "AMD") {
    warn_once("deprecated-backend", "\"AMD\" backend is deprecated. Please use \"AMDGPU\" instead.");
    name = "AMDGPU";
  }
  const auto* found = std::find_if(std::begin(names), std::end(names), [name](const BackendName& backend) {
    return equal_without_case(backend.name, name);
  });
  return found == std::end(names) ? nullptr : found;
}

std::string listed_backends() {
  std::string text;
  for (const BackendName& backend : names) {
    if (backend.listed) text.append(text.empty() ? "(\"" : ", \"").append(backend.name).append("\"");
  }
  return text.append(")");
}

std::string meant_backend(std::string_view wrong) {
  std::vector<std::string_view> listed;
  for (const BackendName& backend : names) {
    if (backend.listed) listed.emplace_back(backend.name);
  }
  const std::string_view meant = nearest_name(wrong, listed);
  return meant.empty() ? std::string() : " Did you mean \"" + std::string(meant) + "\"?";
}

const BackendName& backend_named(std::string_view name) {
  if (const BackendName* found = find_backend(name)) return *found;
  throw Error(ErrorKind::argument, "Unsupported backend: " + std::string(name) + "." + meant_backend(name) +
                                       " Supported backends are " + listed_backends() + ".");
}

}  // namespace rosin
