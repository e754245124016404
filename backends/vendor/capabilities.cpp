// See capabilities.hpp.
#include "vendor/capabilities.hpp"

#include "vendor/blas.hpp"

namespace rosin::vendor {

rosin_device* FirstDevice::get() {
  if (!asked_) {
    rosin_device* opened = nullptr;
    if (driver::open(0, &opened) != ROSIN_OK) reason_ = plugin::error_text();
    device_.reset(opened);
    asked_ = true;
  }
  return device_.get();
}

void Capabilities::add(const char* name, const std::string& version, const std::string& reason) {
  const char* kept = texts_.emplace_back(version).c_str();
  list_.push_back({name, kept, texts_.emplace_back(reason).c_str()});
}

void Capabilities::add_blas(FirstDevice& first) {
  const BlasLibrary& library = blas_library();
  if (!library.reason.empty()) return add(library.name, library.version, library.reason);
  if (!first.get()) return add(library.name, library.version, first.reason());
  const Blas& blas = blas_of(*first.get());
  add(library.name, blas.version(), blas.reason());
}

void Capabilities::put(const rosin_capability** list, uint32_t* count) const {
  *list = list_.data();
  *count = static_cast<uint32_t>(list_.size());
}

}  // namespace rosin::vendor
