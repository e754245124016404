// Devices: where arrays live and ops run. A device is a small value that one calls: `model | device`, `device(x)`.
// Read next: move.hpp (moving arrays, models and loaders).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <rosin/dtype.hpp>
#include <rosin/export.hpp>

namespace rosin {

/// `device.with(keep)`: moves to it change no element types.
struct KeepTypes {};
inline constexpr KeepTypes keep;

/// One device of this process. Copied freely; a default-constructed one is the CPU.
class ROSIN_API Device {
 public:
  static constexpr bool rosin_leaf = true;  // in a model it is as a number

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

  /// The same device with another rule for element types of arrays that are moved to it. Without one, a move from the
  /// CPU to another device makes Float64 Float32 and ComplexF64 ComplexF32 (one notice, `float64-moved`) and keeps all
  /// other types; a move to the CPU keeps all. keep: all types stay. A float type: all floats become that type.
  /// Error (argument): not a float type.
  Device with(KeepTypes) const noexcept;
  Device with(DType type) const;
  /// The type that elements of `type` get on a move from `from` to this device.
  DType type_after_move(DType type, const Device& from) const noexcept;

  /// Whether both are the same device; rules for element types do not count.
  bool operator==(const Device& other) const noexcept { return position_ == other.position_; }

  /// x on this device: as `x | device`. Include <rosin/move.hpp> for it.
  template <class T> auto operator()(const T& x) const { return x | *this; }

  /// Position in the list of all devices, and back; for the library.
  int position() const noexcept { return position_; }
  static Device at_position(int position) noexcept;

 private:
  static constexpr uint8_t usual_types = 255, kept_types = 254;  // else the DType of floats

  uint8_t position_ = 0;
  uint8_t types_ = usual_types;
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

// --- What there is. Names of back ends match without case; "rocm" and "hip" are AMDGPU. A plug-in
// librosin_<name>.so in the folder rosin/ beside librosin or in one of ROSIN_PLUGIN_PATH is a back end too, which is
// taken by its name only.

/// Back ends in the order in which they are tried: ("CUDA", "AMDGPU", "Metal", "OpenCL", "CPU").
ROSIN_API const std::vector<std::string>& supported_devices();
/// The same without the CPU.
ROSIN_API std::vector<std::string> supported_gpu_backends();
/// Whether a back end is part of the process, and whether it has a device that works. Asking loads an installed plug-in
/// unless that is switched off (ROSIN_AUTOLOAD=0, preference autoload = false). Error (argument): no such back end.
ROSIN_API bool loaded(std::string_view backend);
ROSIN_API bool functional(std::string_view backend);
/// Whether a library of the vendor that the back end can use is there, such as "MIOpen" of AMDGPU.
ROSIN_API bool functional(std::string_view backend, std::string_view library);
/// Why a back end is not functional; empty when it is.
ROSIN_API std::string why_not(std::string_view backend);
/// Why a library of the vendor is not used: the back end's own reason, that of the library, or that nobody looks for
/// one of that name; empty where functional(backend, library) holds. Error (argument): no such back end.
ROSIN_API std::string why_not(std::string_view backend, std::string_view library);
/// Loads the plug-in of a back end. Needed only where loading by itself is switched off. Error (device): it is not
/// installed, or not a plug-in of this version.
ROSIN_API void use(std::string_view backend);
/// All devices that are chosen by themselves and the CPU, or all of one back end.
ROSIN_API DeviceList devices();
ROSIN_API DeviceList devices(std::string_view backend);

// --- Choosing one.

struct DeviceChoice {
  bool verbose = false;  // says which device was chosen and why
};
/// The back end of the preference (ROSIN_GPU_BACKEND, LocalPreferences.toml), else the first functional one in the
/// order of supported_devices(). OpenCL devices that are no GPUs are taken by name only, or with ROSIN_OPENCL_CPU=1.
ROSIN_API Device get_device(DeviceChoice choice = {});
/// Device `id` of a back end; the CPU ignores the id. Errors (device): the back end is not available; there is no such
/// device. (argument): no such back end.
ROSIN_API Device get_device(std::string_view backend, int id = 0);

struct GpuChoice {
  bool force = false;  // no GPU is an error
};
/// The GPU of the preference, else the first functional one, or, with one notice, the CPU. The choice is remembered
/// until reset_gpu_device(), `use` or a change of the preference. Error (device) when there is none and `force` is set.
ROSIN_API Device gpu_device(GpuChoice choice = {});
/// The same with an id within the back end. Error (argument): there is no such id.
ROSIN_API Device gpu_device(int id, GpuChoice choice = {});
/// Forgets what gpu_device() chose.
ROSIN_API void reset_gpu_device();
/// Makes device `id` of a back end the one that gpu_device() returns. Of the CPU and of a back end that is not
/// functional it is ignored, with a warning (`device-setting`). Errors: (device) there is no such device; (argument) no
/// such back end.
ROSIN_API void set_device(std::string_view backend, int id);
/// The same by the rank of a process among several: id = rank modulo the number of devices.
ROSIN_API void set_device_by_rank(std::string_view backend, int rank);

/// Writes the preference gpu_backend into LocalPreferences.toml; devices chosen afterwards follow it. An empty name
/// removes it. While ROSIN_GPU_BACKEND is set, that goes before the file, and the notice says so.
/// Errors (argument): no such back end; (io): the file cannot be written.
ROSIN_API void set_gpu_backend(std::string_view backend);
/// The preference, else "CUDA".
ROSIN_API std::string gpu_backend();

inline Device cpu_device() noexcept { return {}; }
inline Device CPUDevice() noexcept { return {}; }
/// Device `id` of CUDA, AMDGPU, OpenCL; the one of Metal. Errors as for get_device.
inline Device CUDADevice(int id = 0) { return get_device("CUDA", id); }
inline Device AMDGPUDevice(int id = 0) { return get_device("AMDGPU", id); }
inline Device MetalDevice() { return get_device("Metal", 0); }
inline Device OpenCLDevice(int id = 0) { return get_device("OpenCL", id); }
inline Device FluxCPUDevice() noexcept { return {}; }
inline Device FluxCUDADevice(int id = 0) { return CUDADevice(id); }
inline Device FluxAMDGPUDevice(int id = 0) { return AMDGPUDevice(id); }
inline Device FluxMetalDevice() { return MetalDevice(); }
inline Device LuxCPUDevice() noexcept { return {}; }
inline Device LuxCUDADevice(int id = 0) { return CUDADevice(id); }
inline Device LuxAMDGPUDevice(int id = 0) { return AMDGPUDevice(id); }
inline Device LuxMetalDevice() { return MetalDevice(); }

// --- What runs on one.

/// Waits until all work that was given to the device has ended. Error (backend): some of it failed.
ROSIN_API void synchronize(const Device& device);

/// Memory of arrays and plans on a device, in bytes.
struct MemoryStats {
  int64_t live = 0;    // held by arrays and plans
  int64_t cached = 0;  // free, kept for the next arrays
  int64_t peak = 0;    // the most that was live at a time
  int64_t limit = 0;   // of live and cached together; 0: none but the device's
};
ROSIN_API MemoryStats memory_stats(const Device& device);
/// Gives free memory back to the device's driver, and kernels that no cached plan uses (trim() empties that cache).
ROSIN_API void trim(const Device& device);
/// Bounds the memory that arrays and plans take on a device; 0: no bound but the device's. Error (argument): negative.
ROSIN_API void set_memory_limit(const Device& device, int64_t bytes);
/// Bounds the idle arenas of a device, default 256 MiB: memory that evaluations work in, kept for the next ones. Those
/// used longest ago go first; the two used last stay, whatever they take. Error (argument): negative.
ROSIN_API void set_arena_limit(const Device& device, int64_t bytes);

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
