// Loads and stores: buffers in global memory, shared arrays, and what rounding to an element type does.
#include <algorithm>
#include <cstring>

#include "interpret.hpp"
#include "steps.hpp"
#include "types.hpp"

namespace rosin::reference {
namespace {

template <class Index> [[noreturn]] void outside(Frame& frame, const Step& step, int item, Index at, uint64_t count) {
  fault(frame, step, item,
        "element " + std::to_string(at) + " of buffer " + std::to_string(step.immediate) + ", which holds " +
            std::to_string(count));
}

void note(Frame& frame, const Step& step, const char* at, size_t bytes) {
  if (frame.reaches) frame.reaches[frame.arguments[step.immediate]].note(at, bytes);
}

/// Calls f(item, address of the first element) for each item that takes part.
template <class E, class Index, class F> void each_vector(Frame& frame, const Step& step, F&& f) {
  constexpr size_t size = sizeof(typename E::Stored);
  const Lanes lanes = frame.active();
  const Block& block = frame.buffers[step.immediate];
  const uint64_t count = block.bytes / size, whole = static_cast<uint64_t>(step.lanes);
  const Index* at = frame.at<Index>(step.operands[0]);
  for (int i = lanes.first; i < lanes.last; ++i) {
    if (!lanes.has(i)) continue;
    const auto element = static_cast<uint64_t>(at[i]);
    if (element >= count || count - element < whole) outside(frame, step, i, at[i], count);
    if (element % whole != 0) {
      fault(frame, step, i,
            "a vector of " + std::to_string(whole) + " elements begins at element " + std::to_string(element));
    }
    char* place = static_cast<char*>(block.base) + element * size;
    note(frame, step, place, whole * size);
    f(i, place);
  }
}

template <class E, class Index> void load_vectors(Frame& frame, const Step& step) {
  using Stored = typename E::Stored;
  const size_t apart = frame.value_bytes(sizeof(typename E::Scalar));
  each_vector<E, Index>(frame, step, [&](int item, const char* place) {
    for (size_t lane = 0; lane < static_cast<size_t>(step.lanes); ++lane) {
      Stored stored;
      std::memcpy(&stored, place + lane * sizeof(Stored), sizeof(Stored));
      frame.at<typename E::Scalar>(step.out + lane * apart)[item] = E::widened(stored);
    }
  });
}

template <class E, class Index> void store_vectors(Frame& frame, const Step& step) {
  using Stored = typename E::Stored;
  const size_t apart = frame.value_bytes(sizeof(typename E::Scalar));
  each_vector<E, Index>(frame, step, [&](int item, char* place) {
    for (size_t lane = 0; lane < static_cast<size_t>(step.lanes); ++lane) {
      const Stored stored = E::narrowed(frame.at<typename E::Scalar>(step.operands[1] + lane * apart)[item]);
      std::memcpy(place + lane * sizeof(Stored), &stored, sizeof(Stored));
    }
  });
}

template <class T> void shuffle_values(Frame& frame, const Step& step) {
  const Lanes lanes = frame.active();
  T* out = frame.at<T>(step.out);
  const T* x = frame.at<T>(step.operands[0]);
  const int32_t* of = frame.at<int32_t>(step.operands[1]);
  for (int i = lanes.first; i < lanes.last; ++i) {
    if (!lanes.has(i)) continue;
    const int first = i / warp * warp;
    for (int other = first; other < first + warp; ++other) {
      if (other < lanes.first || other >= lanes.last || !lanes.has(other)) {
        fault(frame, step, other, "not reached, while others of its warp wait");
      }
    }
    if (of[i] < 0 || of[i] >= warp) fault(frame, step, i, "item " + std::to_string(of[i]) + " of a warp");
    out[i] = x[first + of[i]];
  }
}

template <class E, class Index> void load_elements(Frame& frame, const Step& step) {
  using Stored = typename E::Stored;
  const Lanes lanes = frame.active();
  const Block& block = frame.buffers[step.immediate];
  const uint64_t count = block.bytes / sizeof(Stored);
  auto* out = frame.at<typename E::Scalar>(step.out);
  const Index* at = frame.at<Index>(step.operands[0]);
  const char* base = static_cast<const char*>(block.base);
  for (int i = lanes.first; i < lanes.last; ++i) {
    if (!lanes.has(i)) continue;
    const auto element = static_cast<uint64_t>(at[i]);  // below 0: far outside
    if (element >= count) outside(frame, step, i, at[i], count);
    note(frame, step, base + element * sizeof(Stored), sizeof(Stored));
    Stored stored;
    std::memcpy(&stored, base + element * sizeof(Stored), sizeof(Stored));
    out[i] = E::widened(stored);
  }
}

template <class E, class Index> void store_elements(Frame& frame, const Step& step) {
  using Stored = typename E::Stored;
  const Lanes lanes = frame.active();
  const Block& block = frame.buffers[step.immediate];
  const uint64_t count = block.bytes / sizeof(Stored);
  const Index* at = frame.at<Index>(step.operands[0]);
  const auto* value = frame.at<typename E::Scalar>(step.operands[1]);
  char* base = static_cast<char*>(block.base);
  for (int i = lanes.first; i < lanes.last; ++i) {
    if (!lanes.has(i)) continue;
    const auto element = static_cast<uint64_t>(at[i]);
    if (element >= count) outside(frame, step, i, at[i], count);
    note(frame, step, base + element * sizeof(Stored), sizeof(Stored));
    const Stored stored = E::narrowed(value[i]);
    std::memcpy(base + element * sizeof(Stored), &stored, sizeof(Stored));
  }
}

template <class E> void round_elements(Frame& frame, const Step& step) {
  using T = typename E::Scalar;
  const Lanes lanes = frame.active();
  T* __restrict out = frame.at<T>(step.out);
  const T* x = frame.at<T>(step.operands[0]);
  for (int i = lanes.first; i < lanes.last; ++i) out[i] = E::widened(E::narrowed(x[i]));
}

std::string element_of(const Step& step, int64_t at) {
  return "element " + std::to_string(at) + " of shared array " + std::to_string(step.immediate);
}

void check_shared(Frame& frame, const Step& step, int item, int64_t at) {
  const int64_t count = frame.shared[step.immediate].count;
  if (at < 0 || at >= count) fault(frame, step, item, element_of(step, at) + ", which holds " + std::to_string(count));
}

/// Reads are right only of what the item itself wrote, or what was there at the last barrier.
void note_read(Frame& frame, const Step& step, int item, int64_t at) {
  Touch& touch = frame.touches[frame.shared[step.immediate].first_element + static_cast<size_t>(at)];
  if (touch.written == frame.epoch && touch.writer != item)
    fault(frame, step, item,
          element_of(step, at) + ", which item " + std::to_string(touch.writer) + " wrote with no barrier between");
  touch.reader = touch.read == frame.epoch && touch.reader != item ? Touch::many : item;
  touch.read = frame.epoch;
}

void note_write(Frame& frame, const Step& step, int item, int64_t at, bool changes) {
  Touch& touch = frame.touches[frame.shared[step.immediate].first_element + static_cast<size_t>(at)];
  if (changes && touch.written == frame.epoch && touch.writer != item)
    fault(frame, step, item,
          element_of(step, at) + ", to which item " + std::to_string(touch.writer) +
              " wrote something else with no barrier between");
  if (changes && touch.read == frame.epoch && touch.reader != item)
    fault(frame, step, item, element_of(step, at) + ", which another item read with no barrier between");
  touch.written = frame.epoch;
  touch.writer = item;
}

template <class T, class Index> void load_shared(Frame& frame, const Step& step) {
  const Lanes lanes = frame.active();
  T* out = frame.at<T>(step.out);
  const Index* at = frame.at<Index>(step.operands[0]);
  const T* array = reinterpret_cast<const T*>(frame.shared_memory + frame.shared[step.immediate].offset);
  for (int i = lanes.first; i < lanes.last; ++i) {
    if (!lanes.has(i)) continue;
    check_shared(frame, step, i, at[i]);
    note_read(frame, step, i, at[i]);
    out[i] = array[at[i]];
  }
}

template <class T, class Index> void store_shared(Frame& frame, const Step& step) {
  const Lanes lanes = frame.active();
  const Index* at = frame.at<Index>(step.operands[0]);
  const T* value = frame.at<T>(step.operands[1]);
  T* array = reinterpret_cast<T*>(frame.shared_memory + frame.shared[step.immediate].offset);
  for (int i = lanes.first; i < lanes.last; ++i) {
    if (!lanes.has(i)) continue;
    check_shared(frame, step, i, at[i]);
    const bool changes = std::memcmp(array + at[i], value + i, sizeof(T)) != 0;
    note_write(frame, step, i, at[i], changes);
    array[at[i]] = value[i];
  }
}

void check_vector(Frame& frame, const Step& step, int item, int64_t at) {
  check_shared(frame, step, item, at);
  check_shared(frame, step, item, at + step.lanes - 1);
  if (at % step.lanes != 0) fault(frame, step, item, "a vector begins at " + element_of(step, at));
}

template <class T, class Index> void load_shared_vectors(Frame& frame, const Step& step) {
  const Lanes lanes = frame.active();
  const size_t apart = frame.value_bytes(sizeof(T));
  const Index* at = frame.at<Index>(step.operands[0]);
  const T* array = reinterpret_cast<const T*>(frame.shared_memory + frame.shared[step.immediate].offset);
  for (int i = lanes.first; i < lanes.last; ++i) {
    if (!lanes.has(i)) continue;
    check_vector(frame, step, i, at[i]);
    for (int lane = 0; lane < step.lanes; ++lane) {
      note_read(frame, step, i, at[i] + lane);
      frame.at<T>(step.out + static_cast<size_t>(lane) * apart)[i] = array[at[i] + lane];
    }
  }
}

template <class T, class Index> void store_shared_vectors(Frame& frame, const Step& step) {
  const Lanes lanes = frame.active();
  const size_t apart = frame.value_bytes(sizeof(T));
  const Index* at = frame.at<Index>(step.operands[0]);
  T* array = reinterpret_cast<T*>(frame.shared_memory + frame.shared[step.immediate].offset);
  for (int i = lanes.first; i < lanes.last; ++i) {
    if (!lanes.has(i)) continue;
    check_vector(frame, step, i, at[i]);
    for (int lane = 0; lane < step.lanes; ++lane) {
      const T* value = frame.at<T>(step.operands[1] + static_cast<size_t>(lane) * apart) + i;
      note_write(frame, step, i, at[i] + lane, std::memcmp(array + at[i] + lane, value, sizeof(T)) != 0);
      array[at[i] + lane] = *value;
    }
  }
}

template <class T> void assign_scalars(Frame& frame, const Step& step) {
  const Lanes lanes = frame.active();
  T* variable = frame.at<T>(step.operands[0]);
  const T* value = frame.at<T>(step.operands[1]);
  if (lanes.all) std::memmove(variable, value, static_cast<size_t>(frame.items) * sizeof(T));
  else
    for (int i = lanes.first; i < lanes.last; ++i) variable[i] = lanes.on[i] ? value[i] : variable[i];
}

template <class T> void copy_scalars(Frame& frame, const Step& step) {
  const Lanes lanes = frame.active();
  T* __restrict out = frame.at<T>(step.out);
  const T* x = frame.at<T>(step.operands[0]);
  for (int i = lanes.first; i < lanes.last; ++i) out[i] = x[i];
}

}  // namespace

void choose(Frame& frame, const Step& step) {
  if (frame.active().none()) return;
  const auto from = static_cast<size_t>(step.immediate & INT32_MAX), to = static_cast<size_t>(step.immediate >> 32);
  if (!frame.active().all) fault(frame, step, frame.active().first, "some items of a group choose a buffer alone");
  frame.buffers[to] = frame.buffers[from];
  frame.arguments[to] = static_cast<uint32_t>(from);
}

namespace {

/// What all items of the group have.
template <class T> int64_t common_value(Frame& frame, const Step& step, size_t operand) {
  const T* values = frame.at<T>(operand);
  for (int i = 1; i < frame.items; ++i) {
    if (values[i] != values[0]) fault(frame, step, i, "arrives elsewhere than the first item of its group");
  }
  return values[0];
}

/// Groups run one after another, each as a whole.
template <class Index> void arrive_at(Frame& frame, const Step& step) {
  barrier(frame, step);
  const int64_t at = common_value<Index>(frame, step, step.operands[0]);
  const int64_t groups = common_value<int32_t>(frame, step, step.operands[1]);
  const Block& block = frame.buffers[step.immediate];
  const uint64_t count = block.bytes / sizeof(int32_t);
  if (static_cast<uint64_t>(at) >= count) outside(frame, step, 0, at, count);
  char* place = static_cast<char*>(block.base) + static_cast<uint64_t>(at) * sizeof(int32_t);
  note(frame, step, place, sizeof(int32_t));
  int32_t arrived = 0;
  std::memcpy(&arrived, place, sizeof arrived);
  if (arrived < 0 || arrived >= groups) {
    fault(frame, step, 0, "arrives behind " + std::to_string(arrived) + " of " + std::to_string(groups) + " groups");
  }
  const bool last = ++arrived == groups;
  if (last) arrived = 0;
  std::memcpy(place, &arrived, sizeof arrived);
  std::fill_n(frame.at<Bool>(step.out), frame.items, Bool{last});
}

}  // namespace

Run arrive(int index_type) {
  if (index_type == ROSIN_SCALAR_INT32) return &arrive_at<int32_t>;
  if (index_type == ROSIN_SCALAR_INT64) return &arrive_at<int64_t>;
  return nullptr;
}

Run round(int rosin_type) {
  return with_element(rosin_type, Run{}, []<class E>(E) -> Run { return &round_elements<E>; });
}

Run load(int rosin_type, int index_type) {
  return with_element(rosin_type, Run{}, [index_type]<class E>(E) -> Run {
    if (index_type == ROSIN_SCALAR_INT32) return &load_elements<E, int32_t>;
    if (index_type == ROSIN_SCALAR_INT64) return &load_elements<E, int64_t>;
    return nullptr;
  });
}

Run store(int rosin_type, int index_type) {
  return with_element(rosin_type, Run{}, [index_type]<class E>(E) -> Run {
    if (index_type == ROSIN_SCALAR_INT32) return &store_elements<E, int32_t>;
    if (index_type == ROSIN_SCALAR_INT64) return &store_elements<E, int64_t>;
    return nullptr;
  });
}

namespace {

/// Elements of 8 bytes are in no vector.
template <template <class, class> class Loop> Run vector_loop(int rosin_type, int index_type) {
  return with_element(rosin_type, Run{}, [index_type]<class E>(E) -> Run {
    if constexpr (sizeof(typename E::Stored) <= 4) {
      if (index_type == ROSIN_SCALAR_INT32) return Loop<E, int32_t>::run;
      if (index_type == ROSIN_SCALAR_INT64) return Loop<E, int64_t>::run;
    }
    return nullptr;
  });
}
template <class E, class Index> struct LoadVectors {
  static constexpr Run run = &load_vectors<E, Index>;
};
template <class E, class Index> struct StoreVectors {
  static constexpr Run run = &store_vectors<E, Index>;
};

}  // namespace

Run load_vector(int rosin_type, int index_type) { return vector_loop<LoadVectors>(rosin_type, index_type); }

Run store_vector(int rosin_type, int index_type) { return vector_loop<StoreVectors>(rosin_type, index_type); }

Run shuffle(int type) {
  return with_scalar(type, Run{}, []<class Tag>(Tag) -> Run {
    if constexpr (std::same_as<typename Tag::Type, Bool>) return nullptr;
    else return &shuffle_values<typename Tag::Type>;
  });
}

Run shared_load(int type, int index_type) {
  return with_scalar(type, Run{}, [index_type]<class Tag>(Tag) -> Run {
    if (index_type == ROSIN_SCALAR_INT32) return &load_shared<typename Tag::Type, int32_t>;
    if (index_type == ROSIN_SCALAR_INT64) return &load_shared<typename Tag::Type, int64_t>;
    return nullptr;
  });
}

Run shared_store(int type, int index_type) {
  return with_scalar(type, Run{}, [index_type]<class Tag>(Tag) -> Run {
    if (index_type == ROSIN_SCALAR_INT32) return &store_shared<typename Tag::Type, int32_t>;
    if (index_type == ROSIN_SCALAR_INT64) return &store_shared<typename Tag::Type, int64_t>;
    return nullptr;
  });
}

namespace {

/// Only elements of 4 bytes are in vectors of shared memory.
template <template <class, class> class Loop> Run shared_vector_loop(int type, int index_type) {
  return with_scalar(type, Run{}, [index_type]<class Tag>(Tag) -> Run {
    if constexpr (sizeof(typename Tag::Type) == 4) {
      if (index_type == ROSIN_SCALAR_INT32) return Loop<typename Tag::Type, int32_t>::run;
      if (index_type == ROSIN_SCALAR_INT64) return Loop<typename Tag::Type, int64_t>::run;
    }
    return nullptr;
  });
}
template <class T, class Index> struct LoadSharedVectors {
  static constexpr Run run = &load_shared_vectors<T, Index>;
};
template <class T, class Index> struct StoreSharedVectors {
  static constexpr Run run = &store_shared_vectors<T, Index>;
};

}  // namespace

Run shared_load_vector(int type, int index_type) { return shared_vector_loop<LoadSharedVectors>(type, index_type); }

Run shared_store_vector(int type, int index_type) { return shared_vector_loop<StoreSharedVectors>(type, index_type); }

Run assign(int type) {
  return with_scalar(type, Run{}, []<class Tag>(Tag) -> Run { return &assign_scalars<typename Tag::Type>; });
}

Run copy(int type) {
  return with_scalar(type, Run{}, []<class Tag>(Tag) -> Run { return &copy_scalars<typename Tag::Type>; });
}

}  // namespace rosin::reference
