// The file of cuDNN, and its objects as C++ has them. Nothing here needs a device.
// Read first: libraries.hpp, cudnn_types.hpp. Read next: cudnn_plan.hpp.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cuda/cudnn_types.hpp"
#include "cuda/libraries.hpp"

namespace rosin::cuda {

/// The library, opened when it is first asked for. `driver_version`: what it is made of must run there.
class DnnLibrary {
 public:
  explicit DnnLibrary(int driver_version);

  /// Why it cannot be used; empty: it can.
  const std::string& reason() const { return reason_; }
  const std::string& version() const { return version_; }
  bool is_at_least(int major, int minor) const { return std::pair(major_, minor_) >= std::pair(major, minor); }
  const dnn::Functions& functions() const { return functions_; }
  /// Null where this version lacks some of them.
  const dnn::RecurrentFunctions* recurrent() const { return has_recurrent_ ? &recurrent_ : nullptr; }
  /// Throws what a status means; `what` is what was asked for.
  void check(int status, const char* what) const;

 private:
  void find_version(const Library& library, int driver_version);
  void check_runtime(const Library& library, int driver_version);
  void find_functions(const Library& library);
  void find_recurrent(const Library& library);

  dnn::Functions functions_{};
  dnn::RecurrentFunctions recurrent_{};
  bool has_recurrent_ = false;
  int major_ = 0, minor_ = 0;
  std::string reason_, version_;
};

/// The one library, for the version of the driver.
const DnnLibrary& dnn_library();

/// An object of cuDNN: it gets its attributes, then it is finished.
class DnnDescriptor {
 public:
  DnnDescriptor(const DnnLibrary& library, dnn::Kind kind);
  ~DnnDescriptor();
  DnnDescriptor(DnnDescriptor&& from) noexcept
      : library_(from.library_), descriptor_(std::exchange(from.descriptor_, nullptr)) {}
  DnnDescriptor& operator=(DnnDescriptor&& from) noexcept {
    std::swap(library_, from.library_);
    std::swap(descriptor_, from.descriptor_);
    return *this;
  }

  template <class T> void set(dnn::Attribute which, dnn::ValueType type, const std::vector<T>& values) const {
    set(which, type, static_cast<int64_t>(values.size()), values.data());
  }
  template <class T> void set(dnn::Attribute which, dnn::ValueType type, const T& value) const {
    set(which, type, 1, &value);
  }
  void set(dnn::Attribute which, const DnnDescriptor& other) const {
    set(which, dnn::ValueType::descriptor, other.get());
  }
  void set_text(dnn::Attribute which, const std::string& text) const {
    set(which, dnn::ValueType::text, static_cast<int64_t>(text.size()), text.data());
  }
  void finish(const char* what) const;
  dnn::Descriptor get() const { return descriptor_; }
  /// Up to `most` values of an attribute.
  template <class T> std::vector<T> values(dnn::Attribute which, dnn::ValueType type, int64_t most) const {
    std::vector<T> all(static_cast<size_t>(most));
    all.resize(static_cast<size_t>(get(which, type, most, all.data())));
    return all;
  }
  std::string text(dnn::Attribute which) const;
  /// Those of an attribute that are objects of this kind, finished.
  std::vector<DnnDescriptor> parts(dnn::Attribute which, dnn::Kind kind) const;

 private:
  void set(dnn::Attribute which, dnn::ValueType type, int64_t count, const void* values) const;
  int64_t get(dnn::Attribute which, dnn::ValueType type, int64_t most, void* values) const;

  const DnnLibrary* library_;
  dnn::Descriptor descriptor_ = nullptr;
};

}  // namespace rosin::cuda
