// NumPy's files: arrays in .npy, and .npy files as data that is read batch by batch. (.npz: io.hpp.)
// Read next: io.hpp (save and load), data.hpp (what data is).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <tuple>
#include <utility>

#include <rosin/array.hpp>
#include <rosin/export.hpp>

namespace rosin {

/// The array of a .npy file, with the shape that NumPy gives it; either order of elements and of bytes. Errors: io (the
/// file breaks the format, or holds objects, texts or structures), shape (more than eight dims).
ROSIN_API Array load_npy(const std::string& path);
/// Writes x with its logical shape, row-major, as NumPy does. Errors: dtype (BFloat16, which NumPy lacks), io.
ROSIN_API void save_npy(const std::string& path, const Array& x);

/// A .npy file as data for a DataLoader: observation i is NumPy's x[i] and is read when a batch asks for it, so that
/// the file may be larger than the memory. A file that changes meanwhile is an Error, not a signal: it is read, not
/// mapped (the system's cache is the same). Copies share the open file; several threads may use it.
class ROSIN_API NpyData {
 public:
  /// Errors: as load_npy; shape (no dims).
  explicit NpyData(const std::string& path);
  NpyData(const NpyData& other) noexcept;
  NpyData(NpyData&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  NpyData& operator=(NpyData other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  ~NpyData();

  int64_t numobs() const;
  /// Of one observation.
  Shape shape() const;
  DType dtype() const;
  /// (shape..., at.size()). Error (argument): no such observation.
  Array getobs(std::span<const int64_t> at) const;

  static constexpr bool rosin_leaf = true;  // data, not a model

 private:
  struct State;
  State* state_;
};

namespace detail {

/// Error (shape): the files have different numbers of observations.
ROSIN_API void check_same_observations(std::span<const NpyData> files);

}  // namespace detail

/// Files side by side, whose batches are tuples: `DataLoader(npy_data("x.npy", "y.npy"), {.batchsize = 64})`.
template <size_t n> struct NpyTuple {
  std::array<NpyData, n> files;

  int64_t numobs() const { return files[0].numobs(); }
  auto getobs(std::span<const int64_t> at) const {
    return [&]<size_t... i>(std::index_sequence<i...>) {
      return std::tuple{files[i].getobs(at)...};
    }(std::make_index_sequence<n>());
  }
};

/// Error (shape): the files have different numbers of observations; else as NpyData.
template <class... Path> NpyTuple<sizeof...(Path)> npy_data(const Path&... paths) {
  NpyTuple<sizeof...(Path)> data{{NpyData(paths)...}};
  detail::check_same_observations(data.files);
  return data;
}

}  // namespace rosin
