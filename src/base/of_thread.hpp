// What a thread keeps for itself from call to call.
#pragma once

#include <utility>

namespace rosin {

/// The calling thread's T, made when it is first asked for, which ends with the thread. Who asks later still, as
/// destructors of a program's globals do, gets a fresh one, which stays. `Tag` tells several of one type apart. (Memory
/// of threads is scarce where a program opens the library at run time: only a pointer stands there.)
template <class T, class Tag = T> T& of_thread() {
  static constinit thread_local T* object = nullptr;
  struct End {
    ~End() { delete std::exchange(object, nullptr); }
  };
  if (!object) {
    object = new T;
    static thread_local const End end;
  }
  return *object;
}

}  // namespace rosin
