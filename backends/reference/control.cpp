// IF, LOOP and BARRIER: which items take part in the steps that follow.
#include <cstring>

#include "steps.hpp"
#include "types.hpp"

namespace rosin::reference {
namespace {

/// Tightens the range around the items that are on.
void tighten(Lanes& lanes, int items) {
  while (lanes.first < lanes.last && !lanes.on[lanes.first]) ++lanes.first;
  while (lanes.last > lanes.first && !lanes.on[lanes.last - 1]) --lanes.last;
  lanes.all = lanes.last - lanes.first == items && !std::memchr(lanes.on, 0, static_cast<size_t>(items));
}

/// One level deeper, with the range of the level above; the caller decides about each item in it.
Lanes& enter(Frame& frame) {
  const Lanes parent = frame.active();
  ++frame.depth;
  Lanes& lanes = frame.active();
  lanes.first = parent.first;
  lanes.last = parent.last;
  return lanes;
}

template <class T> void enter_loop(Frame& frame, const Step& step) {
  const Lanes parent = frame.active();
  Lanes& lanes = enter(frame);
  T* counter = frame.at<T>(step.out);
  const T *from = frame.at<T>(step.operands[0]), *to = frame.at<T>(step.operands[1]);
  const T* by = frame.at<T>(step.operands[2]);
  for (int i = parent.first; i < parent.last; ++i) {
    counter[i] = from[i];
    lanes.on[i] = parent.has(i) && from[i] < to[i];
    if (lanes.on[i] && !(by[i] > T{0})) fault(frame, step, i, "a step of " + std::to_string(by[i]));
  }
  tighten(lanes, frame.items);
  if (!lanes.none()) return;
  --frame.depth;
  frame.next = step.jump;
}

template <class T> void next_round(Frame& frame, const Step& step) {
  using Unsigned = std::make_unsigned_t<T>;
  Lanes& lanes = frame.active();
  T* counter = frame.at<T>(step.out);
  const T *to = frame.at<T>(step.operands[1]), *by = frame.at<T>(step.operands[2]);
  for (int i = lanes.first; i < lanes.last; ++i) {
    if (!lanes.has(i)) continue;
    // Unsigned, as the way from the counter to the end may be longer than the type can say.
    const Unsigned left = static_cast<Unsigned>(static_cast<Unsigned>(to[i]) - static_cast<Unsigned>(counter[i]));
    lanes.on[i] = left > static_cast<Unsigned>(by[i]);
    counter[i] = static_cast<T>(static_cast<Unsigned>(counter[i]) + static_cast<Unsigned>(by[i]));
  }
  tighten(lanes, frame.items);
  if (lanes.none()) --frame.depth;
  else frame.next = step.jump;
}

template <class F> Run for_integers(int type, F&& f) {
  return with_scalar(type, Run{}, [&f]<class Tag>(Tag tag) -> Run {
    if constexpr (Integer<typename Tag::Type>) return f(tag);
    else return nullptr;
  });
}

}  // namespace

Run begin_loop(int type) {
  return for_integers(type, []<class Tag>(Tag) -> Run { return &enter_loop<typename Tag::Type>; });
}

Run end_loop(int type) {
  return for_integers(type, []<class Tag>(Tag) -> Run { return &next_round<typename Tag::Type>; });
}

void begin_if(Frame& frame, const Step& step) {
  const Lanes parent = frame.active();
  Lanes& lanes = enter(frame);
  const Bool* holds = frame.at<Bool>(step.operands[0]);
  for (int i = parent.first; i < parent.last; ++i) lanes.on[i] = parent.has(i) && holds[i];
  tighten(lanes, frame.items);
  if (lanes.none()) frame.next = step.jump;
}

void begin_else(Frame& frame, const Step& step) {
  Lanes& lanes = frame.active();
  const Lanes& parent = frame.lanes[frame.depth - 1];
  for (int i = parent.first; i < parent.last; ++i) lanes.on[i] = parent.has(i) && !lanes.on[i];
  lanes.first = parent.first;
  lanes.last = parent.last;
  tighten(lanes, frame.items);
  if (lanes.none()) frame.next = step.jump;
}

void end_if(Frame& frame, const Step&) { --frame.depth; }

void barrier(Frame& frame, const Step& step) {
  const Lanes& lanes = frame.active();
  if (!lanes.all) {
    int missing = 0;
    while (missing >= lanes.first && missing < lanes.last && lanes.on[missing]) ++missing;
    fault(frame, step, missing, "not reached, while others wait");
  }
  ++frame.epoch;
}

}  // namespace rosin::reference
