// Vendor calls of CUDA and of HIP: what those of all libraries share. Which library is asked for a call is each
// plug-in's to say. Read first: driver/driver.hpp, scratch.hpp. Read next: blas_call.cpp, cuda/calls.cpp,
// amdgpu/calls.cpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>

#include "driver/driver.hpp"
#include "vendor/scratch.hpp"

namespace rosin::vendor {

/// A library's answer to a kind of call.
struct CallMaker {
  /// Throws ROSIN_UNSUPPORTED where the device's library does not compute it; `orders` gets its wishes.
  void (*take)(rosin_device& device, const rosin_call_description& call, int32_t* orders);
  /// With the device's context current.
  std::unique_ptr<rosin_call> (*prepare)(rosin_device& device, const rosin_call_description& call, uint64_t* workspace);
};

/// Which library is asked for calls of this kind. Throws ROSIN_UNSUPPORTED where none is. Defined by each plug-in.
const CallMaker& maker_of(int32_t kind);

/// Products, by the library of blas.hpp.
extern const CallMaker blas_calls;

/// A copy, whose fields beyond the size that it states are zero.
rosin_call_description known_fields(const rosin_call_description& call);

/// The functions for calls, which ask maker_of, into a plug-in's table.
void put_calls(rosin_backend& table);

constexpr size_t most_call_arrays = 9;

/// The room of calls: places are multiples of 64, and libraries want 256, so that more is asked for.
struct Workspace {
  static constexpr uint64_t most = uint64_t{32} << 20, alignment = 256, of_places = 64, lost = alignment - of_places;

  static uint64_t asked(uint64_t needed) { return needed > 0 ? needed + lost : 0; }
  /// What the library may use at most.
  static uint64_t limit(const rosin_call_description& call) {
    if (call.workspace == 0) return most;
    return std::min(most, call.workspace > lost ? call.workspace - lost : 0);
  }
  /// Where the library's room begins, of `needed` bytes.
  static driver::Address in(const rosin_place& place, uint64_t needed) {
    if (needed == 0) return 0;
    return (address_of(place, asked(needed)) + alignment - 1) / alignment * alignment;
  }
  static driver::Address address_of(const rosin_place& place, uint64_t bytes) {
    if (place.offset % of_places != 0)
      throw driver::Failure{ROSIN_INVALID, "a call with an offset that is not aligned"};
    return driver::address_of(place, bytes);
  }
};

/// The way of a call as rosin keeps it: for one version of a library and one architecture.
template <class Way> struct Choice {
  char library[8] = {};
  char version[24] = {};
  char target[24] = {};
  Way way{};

  Choice(const char (&name)[9], const std::string& of, const rosin_device& device) {
    std::memcpy(library, name, sizeof library);
    of.copy(version, sizeof version - 1);
    device.target.copy(target, sizeof target - 1);
  }
  /// The way in these bytes, where they were made for the same library and architecture; else null.
  const Way* read(const void* bytes, uint64_t count, Way& into) const {
    if (!bytes || count != sizeof *this || std::memcmp(bytes, this, offsetof(Choice, way)) != 0) return nullptr;
    std::memcpy(&into, static_cast<const char*>(bytes) + offsetof(Choice, way), sizeof into);
    return &into;
  }
  std::string_view bytes() const { return {reinterpret_cast<const char*>(this), sizeof *this}; }
};

/// Milliseconds of some runs, after one that is not timed.
template <class Run> float time_of(Run&& run, driver::Stream stream) {
  constexpr int timed_runs = 4;
  const Timer from, to;
  run();
  from.record(stream);
  for (int i = 0; i < timed_runs; ++i) run();
  to.record(stream);
  to.wait();
  return to.since(from);
}

}  // namespace rosin::vendor
