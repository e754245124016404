// Devices: where arrays live and ops run. A device is a small value that one calls: `model | device`, `device(x)`.
// Read next: move.hpp (moving arrays, models and loaders).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <rosin/export.hpp>

namespace rosin {

/// One device of this process. Copied freely; a default-constructed one is the CPU.
class ROSIN_API Device {
 public:
  Device() noexcept = default;

  /// "CPU", "CUDA", "AMDGPU", "Metal" or "OpenCL".
  std::string_view backend() const noexcept;
  /// Counts from 0 within the back end; 0 for the CPU.
  int id() const noexcept;
  /// The hardware, for example "NVIDIA GeForce GTX 1650".
  std::string name() const;
  /// All of the device's memory, in bytes.
  int64_t memory() const;
  bool is_gpu() const noexcept;

  bool operator==(const Device&) const noexcept = default;

  /// x on this device: as `x | device`. Include <rosin/move.hpp> for it.
  template <class T> auto operator()(const T& x) const { return x | *this; }

  /// Position in the list of all devices, and back; for the library.
  int position() const noexcept { return position_; }
  static Device at_position(int position) noexcept;

 private:
  uint8_t position_ = 0;
};

/// Devices in the order of their ids.
struct DeviceList {
  std::string backend;  // empty: of all back ends
  std::vector<Device> list;

  auto begin() const noexcept { return list.begin(); }
  auto end() const noexcept { return list.end(); }
  int64_t size() const noexcept { return static_cast<int64_t>(list.size()); }
  const Device& operator[](size_t id) const { return list[id]; }
};

// --- What there is. Names of back ends match without case; "rocm" and "hip" are AMDGPU.

/// Back ends in the order in which they are tried: ("CUDA", "AMDGPU", "Metal", "OpenCL", "CPU").
ROSIN_API const std::vector<std::string>& supported_devices();
/// The same without the CPU.
ROSIN_API std::vector<std::string> supported_gpu_backends();
/// Whether a back end is part of the process, and whether it can be used. Error (argument): no such back end.
ROSIN_API bool loaded(std::string_view backend);
ROSIN_API bool functional(std::string_view backend);
/// Why a back end is not functional; empty when it is.
ROSIN_API std::string why_not(std::string_view backend);
/// All usable devices, or those of one back end.
ROSIN_API DeviceList devices();
ROSIN_API DeviceList devices(std::string_view backend);

// --- Choosing one.

struct DeviceChoice {
  bool verbose = false;  // says which device was chosen and why
};
/// The back end that ROSIN_GPU_BACKEND names, else the first functional one in the order of supported_devices().
ROSIN_API Device get_device(DeviceChoice choice = {});
/// Device `id` of a back end; the CPU ignores the id. Errors (device): the back end is not available; there is no such
/// device. (argument): no such back end.
ROSIN_API Device get_device(std::string_view backend, int id = 0);

struct GpuChoice {
  bool force = false;  // no GPU is an error
};
/// The first functional GPU, or, with one notice, the CPU. Error (device) when there is none and `force` is set.
ROSIN_API Device gpu_device(GpuChoice choice = {});
inline Device cpu_device() noexcept { return {}; }
inline Device CPUDevice() noexcept { return {}; }

/// "CPU (AMD EPYC 7763)", "CUDA:0 (NVIDIA GeForce GTX 1650)".
ROSIN_API std::string to_string(const Device& device);
/// "2 CUDA devices:" and a line "0. name" for each.
ROSIN_API std::string to_string(const DeviceList& devices);

template <class Stream>
  requires requires(Stream& stream, const char* text) { stream.write(text, 1); }
Stream& operator<<(Stream& stream, const Device& device) {
  const std::string text = to_string(device);
  stream.write(text.data(), static_cast<int64_t>(text.size()));
  return stream;
}
template <class Stream>
  requires requires(Stream& stream, const char* text) { stream.write(text, 1); }
Stream& operator<<(Stream& stream, const DeviceList& devices) {
  const std::string text = to_string(devices);
  stream.write(text.data(), static_cast<int64_t>(text.size()));
  return stream;
}

}  // namespace rosin
