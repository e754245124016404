// See backends.hpp.
#include "devices/backends.hpp"

#include <algorithm>
#include <deque>
#include <mutex>
#include <vector>

#include <rosin/error.hpp>
#include <rosin/log.hpp>

#include "base/nearest.hpp"
#include "devices/plugin.hpp"

namespace rosin {
namespace {

const std::vector<BackendName>& known() {
  static const auto* names = new std::vector<BackendName>{{"CUDA"}, {"AMDGPU"}, {"Metal"}, {"OpenCL"}, {"CPU"}};
  return *names;
}

const BackendName* find_known(std::string_view name) {
  const auto found = std::find_if(known().begin(), known().end(), [name](const BackendName& backend) {
    return equal_without_case(backend.name, name);
  });
  return found == known().end() ? nullptr : &*found;
}

/// Names of plug-ins that are not known but were found. Rows are added and never changed, so that readers need no lock.
class FoundNames {
 public:
  static FoundNames& instance() {
    static auto* one = new FoundNames;
    return *one;
  }
  /// The latest spelling.
  const BackendName* find(std::string_view name) {
    std::lock_guard guard(lock_);
    const auto found = std::find_if(names_.rbegin(), names_.rend(), [name](const BackendName& backend) {
      return equal_without_case(backend.name, name);
    });
    return found == names_.rend() ? nullptr : &*found;
  }
  const BackendName& add(std::string_view name) {
    std::lock_guard guard(lock_);
    return names_.emplace_back(BackendName{std::string(name)});
  }

 private:
  std::mutex lock_;
  std::deque<BackendName> names_;
};

}  // namespace

std::span<const BackendName> backend_names() { return known(); }

bool is_cpu(const BackendName& backend) { return backend.name == "CPU"; }

const BackendName* find_backend(std::string_view name) {
  if (equal_without_case(name, "rocm") || equal_without_case(name, "hip")) name = "AMDGPU";
  if (name == "AMD") {
    warn_once("deprecated-backend", "\"AMD\" backend is deprecated. Please use \"AMDGPU\" instead.");
    name = "AMDGPU";
  }
  if (const BackendName* backend = find_known(name)) return backend;
  if (const BackendName* backend = FoundNames::instance().find(name)) return backend;
  const std::string file = plugin_file_name(name);
  return has_plugin_file(file) ? &FoundNames::instance().add(name_in_plugin_file(file)) : nullptr;
}

const BackendName& backend_as_loaded(std::string_view own_name) {
  if (const BackendName* backend = find_known(own_name)) return *backend;
  const BackendName* found = FoundNames::instance().find(own_name);
  return found && found->name == own_name ? *found : FoundNames::instance().add(own_name);
}

std::string listed_backends() {
  std::string text;
  for (const BackendName& backend : known()) {
    text.append(text.empty() ? "(\"" : ", \"").append(backend.name).append("\"");
  }
  return text.append(")");
}

std::string meant_backend(std::string_view wrong) {
  std::vector<std::string_view> names;
  for (const BackendName& backend : known()) names.emplace_back(backend.name);
  const std::vector<std::string> found = names_of_plugin_files();
  names.insert(names.end(), found.begin(), found.end());
  const std::string_view meant = nearest_name(wrong, names);
  return meant.empty() ? std::string() : " Did you mean \"" + std::string(meant) + "\"?";
}

const BackendName& backend_named(std::string_view name) {
  if (const BackendName* found = find_backend(name)) return *found;
  throw Error(ErrorKind::argument, "Unsupported backend: " + std::string(name) + "." + meant_backend(name) +
                                       " Supported backends are " + listed_backends() + ".");
}

}  // namespace rosin
