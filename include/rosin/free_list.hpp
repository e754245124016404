// Memory for the small objects that models hold behind a pointer (erased layers, activations): free lists of the
// library, so that copying a model, which every gradient call does, takes nothing from the heap in a steady state.
// Read next: small_function.hpp, layer.hpp.
#pragma once

#include <cstddef>

#include <rosin/export.hpp>

namespace rosin {

namespace detail {

/// A block of at least `bytes` bytes, aligned for every type without extended alignment.
ROSIN_API void* take_block(size_t bytes);
/// Gives a block back, on any thread; `bytes` as it was taken.
ROSIN_API void give_block(void* block, size_t bytes) noexcept;

/// For containers inside layers.
template <class T> struct FreeListAllocator {
  using value_type = T;

  FreeListAllocator() noexcept = default;
  template <class U> FreeListAllocator(const FreeListAllocator<U>&) noexcept {}
  T* allocate(size_t count) { return static_cast<T*>(take_block(count * sizeof(T))); }
  void deallocate(T* block, size_t count) noexcept { give_block(block, count * sizeof(T)); }
  template <class U> bool operator==(const FreeListAllocator<U>&) const noexcept { return true; }
};

}  // namespace detail

}  // namespace rosin
