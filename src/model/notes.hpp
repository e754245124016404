// Notes: what was assigned to buffers and drawn from generators inside one gradient call, kept until the call may write
// it into the model. Used by gradient calls: make one, adopt() the copy of the model that f gets, run f, then write()
// or drop.
#pragma once

#include <cstdint>
#include <vector>

#include <rosin/array.hpp>
#include <rosin/walk.hpp>

#include "ops/drawn.hpp"

namespace rosin {

class Buffer;

/// Where the notes of one model begin. `step` tells steps apart: see Buffer::advance.
struct NotePosition {
  size_t buffer = 0, rng = 0;
  uint64_t step = 0;
};

/// One gradient call's assignments and draws. Lives on the stack of the thread that makes the call; calls nest.
class BufferNotes {
 public:
  BufferNotes();
  ~BufferNotes();
  BufferNotes(const BufferNotes&) = delete;
  BufferNotes& operator=(const BufferNotes&) = delete;

  /// Gives every buffer and generator of the copy a note of its own; copies of the copy share it. A call with several
  /// models adopts each in turn.
  NotePosition adopt(ModelEdit copy);
  /// Whether anything was assigned or drawn.
  bool any() const;
  /// The noted values in walk order, nothing where there is none; a step evaluates them together with its update.
  std::vector<Array>& values() { return values_; }
  /// Writes the noted values into the model that the copy was made of (a second walk in the same order), from the
  /// position that adopt returned for it. Not called when f or the step throws.
  void write(ModelEdit model, NotePosition position = {}) const;

  /// The value noted for a buffer by any gradient call in progress on this thread, or null.
  static const Array* noted(const Buffer& buffer) noexcept;
  /// Notes a value. Returns false when the buffer belongs to no gradient call in progress on this thread.
  static bool note(const Buffer& buffer, const Array& value);

 private:
  Array* find(uint64_t note) noexcept;

  BufferNotes* outer_;
  uint64_t first_;  // numbers of notes never repeat in a thread
  std::vector<Array> values_;
  DrawnNotes drawn_;
};

/// While it lives, what is assigned on this thread is forgotten: values of one observation that stands for many.
class SuspendedNotes {
 public:
  SuspendedNotes();
  ~SuspendedNotes();
  SuspendedNotes(const SuspendedNotes&) = delete;
  SuspendedNotes& operator=(const SuspendedNotes&) = delete;
};

}  // namespace rosin
