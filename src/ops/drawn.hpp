// Notes of one gradient call about the generators of the models that it hands out: how far they were drawn from.
// Read next: model/notes.hpp, which writes them into the models.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rosin {

/// Lives as long as its gradient call, on that thread; calls nest. Generators carry the number of their note, so a draw
/// from any copy counts: the note tells of the last one.
class DrawnNotes {
 public:
  struct Note {
    uint64_t key = 0, counter = 0;
    bool drawn = false;
  };

  DrawnNotes();
  ~DrawnNotes();
  DrawnNotes(const DrawnNotes&) = delete;
  DrawnNotes& operator=(const DrawnNotes&) = delete;

  /// A new note; its number is never used again on this thread.
  uint64_t add();
  size_t size() const noexcept { return notes_.size(); }
  const Note& operator[](size_t i) const noexcept { return notes_[i]; }
  bool any() const noexcept;

  /// Takes down where a generator stands. Returns false when no call in progress on this thread has its note.
  static bool note(uint64_t number, uint64_t key, uint64_t counter) noexcept;

 private:
  DrawnNotes* outer_;
  uint64_t first_;
  std::vector<Note> notes_;
};

}  // namespace rosin
