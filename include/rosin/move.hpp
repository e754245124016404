// Moving things between devices: `model | device`, `(X, Y) | gpu`, `cpu(x)`. What is on the device already comes back
// as the same handle. Loaders move batch by batch (loader.hpp).
#pragma once

#include <type_traits>

#include <rosin/copy.hpp>
#include <rosin/device.hpp>
#include <rosin/export.hpp>
#include <rosin/fwd.hpp>
#include <rosin/walk.hpp>

namespace rosin {

/// The array on a device. Tied and equal handles stay so.
ROSIN_API Array moved(const Array& x, const Device& device);

namespace detail {

/// Moves every array of a model in place.
ROSIN_API void move_arrays(ModelEdit model, const Device& device);

}  // namespace detail

/// Array, models, containers of them: what can be moved as a whole.
template <Walkable M> M moved(const M& model, const Device& device) {
  M copy = copy_of(model);
  detail::move_arrays(copy, device);
  return copy;
}

/// A class that says itself what it is on another device (loaders do).
template <class T>
concept MovesItself = requires(const T& x, const Device& device) { x.rosin_moved(device); };
template <class T>
concept Movable = Walkable<T> || MovesItself<T>;

/// x on the device. For classes that the walk knows and for loaders only, so that `std::cout << model | cpu` does not
/// compile.
template <Movable T> auto operator|(const T& x, const Device& device) {
  if constexpr (MovesItself<T>) return x.rosin_moved(device);
  else return moved(x, device);
}

namespace detail {

/// The device that `gpu(x)` moves to (the CPU where there is no GPU, with one notice).
ROSIN_API Device device_of_gpu();
/// The same for `cu(x)`. Error (device): CUDA is not functional.
ROSIN_API Device device_of_cu();

}  // namespace detail

/// For the library: types of the objects gpu, cpu and cu, which one calls or writes after `|`.
struct ToGpu {
  template <Movable T> auto operator()(const T& x) const { return x | detail::device_of_gpu(); }
};
struct ToCpu {
  template <Movable T> auto operator()(const T& x) const { return x | cpu_device(); }
};
struct ToCuda {
  template <Movable T> auto operator()(const T& x) const { return x | detail::device_of_cu(); }
};

/// gpu(x): to what gpu_device() gives; without a GPU x stays where it is. cpu(x): to the CPU. cu(x): to CUDA, or an
/// Error (device).
inline constexpr ToGpu gpu;
inline constexpr ToCpu cpu;
inline constexpr ToCuda cu;

template <Movable T> auto operator|(const T& x, ToGpu) { return gpu(x); }
template <Movable T> auto operator|(const T& x, ToCpu) { return cpu(x); }
template <Movable T> auto operator|(const T& x, ToCuda) { return cu(x); }

/// Not meant: says what is missing for a class that cannot be walked.
template <class T, class Target>
  requires(reflect::UnknownClass<T> && !MovesItself<T> &&
           (std::is_same_v<Target, Device> || std::is_same_v<Target, ToGpu> || std::is_same_v<Target, ToCpu> ||
            std::is_same_v<Target, ToCuda>))
T operator|(const T& x, const Target&) {
  reflect::refuse_unknown<T>();
  return x;
}

/// The device that the arrays of a model are on; the CPU when it has none. Error (device) with two paths when they are
/// on different ones.
ROSIN_API Device device_of(ModelView model);

/// The generator of this thread for draws on a device: default_rng(), as numbers are the same on every device.
ROSIN_API Rng& default_device_rng(const Device& device);

}  // namespace rosin
