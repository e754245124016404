// Buffers and the notes that gradient calls take of assignments to them.
#include <rosin/buffer.hpp>

#include <atomic>
#include <utility>

#include <rosin/error.hpp>
#include <rosin/random.hpp>

#include "base/of_thread.hpp"
#include "model/notes.hpp"

namespace rosin {
namespace {

thread_local BufferNotes* innermost = nullptr;
thread_local int suspended = 0;

/// Numbers of notes are never used twice, so a copy of a model that outlives its gradient call writes nowhere.
uint64_t first_of_thread() {
  static std::atomic<uint64_t> threads{0};
  return (threads.fetch_add(1) << 40) + 1;
}
thread_local uint64_t next_note = first_of_thread();

/// Emptied vectors of former calls: a steady training step takes no memory from the heap.
std::vector<std::vector<Array>>& spare() { return of_thread<std::vector<std::vector<Array>>, BufferNotes>(); }

void check_assigned(const Buffer& buffer, const Array& value) {
  if (value.is_nothing()) {
    throw Error(ErrorKind::argument, "assign: the value is nothing; give an array of the buffer's shape");
  }
  if (!buffer.is_nothing() && !(buffer.value().shape() == value.shape())) {
    throw Error(ErrorKind::shape, "assign: a buffer keeps its shape " + to_string(buffer.value().shape()) + "; got " +
                                      to_string(value.shape()));
  }
}

class Adopt : public ModelEditor {
 public:
  Adopt(uint64_t first, DrawnNotes& drawn) : next_(first), drawn_(drawn) {}
  void array(Array&, const ModelPath&) override {}
  void buffer(Buffer& x, const ModelPath&) override {
    x.settle();  // the step belongs to the model itself
    x.set_note(next_++);
  }
  void rng(Rng& x, const ModelPath&) override { x.set_note(drawn_.add()); }
  uint64_t next() const { return next_; }

 private:
  uint64_t next_;
  DrawnNotes& drawn_;
};

class Write : public ModelEditor {
 public:
  Write(const std::vector<Array>& values, const DrawnNotes& drawn, NotePosition position)
      : values_(values), drawn_(drawn), at_(position) {}
  void array(Array&, const ModelPath&) override {}
  void buffer(Buffer& x, const ModelPath& path) override {
    if (at_.buffer >= values_.size()) refuse(path);
    const Array& value = values_[at_.buffer++];
    if (!value.is_nothing()) x.advance(value, at_.step);
  }
  void rng(Rng& x, const ModelPath& path) override {
    if (at_.rng >= drawn_.size()) refuse(path);
    const DrawnNotes::Note& note = drawn_[at_.rng++];
    if (note.drawn) x.advance(note.key, note.counter, at_.step);
  }

 private:
  [[noreturn]] static void refuse(const ModelPath& path) {
    throw Error(ErrorKind::internal,
                "gradient: the model has more buffers or generators than its copy; first at " + path.text());
  }

  const std::vector<Array>& values_;
  const DrawnNotes& drawn_;
  NotePosition at_;
};

}  // namespace

const Array& Buffer::value() const noexcept {
  if (note_ != 0) {
    if (const Array* noted = BufferNotes::noted(*this)) return *noted;
  }
  return value_;
}

void Buffer::advance(const Array& value, uint64_t step) {
  check_assigned(*this, value);
  if (BufferNotes::note(*this, value)) return;  // of a model that an outer gradient call has handed out
  if (earlier_.is_nothing() || step != step_) earlier_ = std::move(value_);
  step_ = step;
  value_ = value;
}

void assign(Buffer& buffer, const Array& value) {
  check_assigned(buffer, value);
  if (BufferNotes::note(buffer, value)) return;
  buffer.settle();
  buffer.stored() = value;
}

void assign(const Buffer& buffer, const Array& value) {
  check_assigned(buffer, value);
  BufferNotes::note(buffer, value);
}

BufferNotes::BufferNotes() : outer_(innermost), first_(next_note) {
  innermost = this;
  if (spare().empty()) return;
  values_ = std::move(spare().back());
  spare().pop_back();
}

BufferNotes::~BufferNotes() {
  innermost = outer_;
  values_.clear();
  if (values_.capacity() > 0) spare().push_back(std::move(values_));
}

NotePosition BufferNotes::adopt(ModelEdit copy) {
  const NotePosition position{values_.size(), drawn_.size(), 0};
  Adopt adopt(first_ + position.buffer, drawn_);
  copy.edit_with(adopt);
  values_.resize(static_cast<size_t>(adopt.next() - first_));
  next_note = adopt.next();
  return position;
}

bool BufferNotes::any() const {
  if (drawn_.any()) return true;
  for (const Array& value : values_) {
    if (!value.is_nothing()) return true;
  }
  return false;
}

void BufferNotes::write(ModelEdit model, NotePosition position) const {
  Write write(values_, drawn_, position);
  model.edit_with(write);
}

Array* BufferNotes::find(uint64_t note) noexcept {
  const bool own = note >= first_ && note - first_ < values_.size();
  return own ? &values_[static_cast<size_t>(note - first_)] : nullptr;
}

const Array* BufferNotes::noted(const Buffer& buffer) noexcept {
  for (BufferNotes* notes = innermost; notes; notes = notes->outer_) {
    const Array* value = notes->find(buffer.note());
    if (value) return value->is_nothing() ? nullptr : value;
  }
  return nullptr;
}

SuspendedNotes::SuspendedNotes() { ++suspended; }
SuspendedNotes::~SuspendedNotes() { --suspended; }

bool BufferNotes::note(const Buffer& buffer, const Array& value) {
  if (suspended > 0) return true;
  for (BufferNotes* notes = innermost; notes; notes = notes->outer_) {
    if (Array* place = notes->find(buffer.note())) {
      *place = value;
      return true;
    }
  }
  return false;
}

}  // namespace rosin
