// The step in progress on a thread: what recording it needs and what is put back when it fails. Its vectors stay with
// the thread, so that a steady step takes no memory from the heap. Read next: update.cpp.
#pragma once

#include <array>
#include <string>
#include <vector>

#include <rosin/model.hpp>
#include <rosin/optim.hpp>

#include "graph/node.hpp"
#include "model/unsettled.hpp"

namespace rosin {

class Error;

/// The processes that have exchanged the gradients of a step, which all of them make or none.
class Companions {
 public:
  /// Each says whether it can begin its part: on all of them throws what one says.
  virtual void agree_to_begin(const Error* failed) = 0;
  /// Tells them that this one has not made a step that they have: nothing goes on.
  virtual void fall_out(const std::string& why) = 0;

 protected:
  ~Companions() = default;
};

class Step {
 public:
  static Step& of_thread();

  /// A value that must be finite, or the step is undone.
  struct Check {
    Array value;       // one element
    const char* text;  // the rule that it breaks
    int leaf;          // of the state, as many as there are for all together; -1 for the loss
    int64_t item = 0;  // of the data, for the loss
  };

  bool active = false;  // between the first rule and the end of the step
  int leaf = -1;        // whose rule runs; as many as there are: what looks at all gradients
  std::vector<Check> checks;
  std::vector<detail::ArrayPlace<Array*>> places;           // of the model
  std::vector<detail::ArrayPlace<const Array*>> gradients;  // the same places of the gradient
  std::vector<Array> exchanged;                             // the gradient of each leaf, where it is another by now
  bool is_exchanged = false;                                // they are: the rules of all leaves have begun
  std::vector<size_t> exchanged_leaves;                     // those that have one, on any process
  std::vector<size_t> divided_leaves;                       // those of which this process has moved a part
  bool needs_no_memory = false;      // what is made of what is exchanged overwrites arrays and takes no other memory
  Companions* companions = nullptr;  // who have exchanged
  bool is_agreed_on = false;         // some of them need memory: all are asked before the step is made
  Unsettled unsettled;               // of the model

  /// Remembers what stands at a place of model or state, before that changes.
  void keep(Array* place) { keep(place, *place); }
  void keep(Array* place, const Array& old);
  /// Remembers what the last step left in buffers that gradient calls have written since.
  void keep_unsettled();
  /// From now on what was kept does not hinder that its memory is overwritten.
  void guard();
  /// Whether the checks are of a device, which can look at them itself while nobody waits.
  bool is_checked_by_device() const { return !checks.empty() && checks.front().value.node()->device != 0; }
  /// Where `ok` (Bool, 0-d) is false, the changed arrays get their old elements, as what checks select besides, and no
  /// check of a rule fails.
  void skip_unless(const Array& ok);
  /// The same for a step without checks.
  void select_by_scale() { select_by(proceeds_); }
  /// Puts back what rules count on the host, once a step is known to be skipped.
  void put_back_numbers() noexcept;
  /// Where a check fails, the changed arrays get their old elements.
  void select_by_checks() { select_by(all_finite()); }
  /// The same, and the device's run fails, with what `texts` say (ops/finding.hpp): of each check but the loss's, in
  /// their order, then of that.
  void select_by_device(int64_t texts) { select_by(nothing_found(texts)); }
  /// The first check that failed, once evaluated; null where all hold.
  const Check* failed() const;
  /// Puts back everything that was kept. Once `evaluated`, arrays that checks have given their old elements stay: the
  /// memory of the kept ones may be overwritten by then.
  void undo(bool evaluated) noexcept;
  /// Forgets it.
  void finish() noexcept;

  /// Numbers of the same place in the rule and of equal value are one node for all parameters.
  void begin_rule() noexcept { next_number_ = 0; }
  Array number(double value);
  Array counter(int64_t value);
  /// base^exponent. The last ones are remembered: all parameters of a step ask for the same.
  double power(double base, int64_t exponent);

 private:
  struct Kept {
    Array* place;
    Node* old;  // with one user count, or one reference that is a guard; null for nothing
    bool guarded = false;
    Node* recorded = nullptr;  // what the rule put there, once checks select between both
  };
  struct Number {
    bool counts;
    double value;
    int64_t count;
    Array node;
  };
  struct Power {
    double base = 0;
    int64_t exponent = 0;
    double value = 1;
  };
  Array shared(Number wanted);
  Array all_finite() const;
  Array nothing_found(int64_t texts) const;
  void select_by(const Array& holds);
  Array selected(const Array& ok, size_t index, const Array& now) const;
  static void release(const Kept& kept) noexcept;

  std::vector<Kept> kept_;
  Array proceeds_;  // whether the step is not skipped; nothing: it is not
  std::vector<Number> numbers_;
  size_t next_number_ = 0;
  std::array<Power, 4> powers_;
  size_t next_power_ = 0;
};

/// The loss of a step that must be finite, and which item of the data it is of.
struct CheckedLoss {
  const Array& value;
  int64_t item;
};

/// A step as update() takes it. `loss`, unless null, must be finite: Error (numeric), and everything as it was, where
/// it is not; on a device at a later boundary.
void take_step(State& state, ModelEdit model, ModelView gradient, const CheckedLoss* loss, UpdateOptions options = {});

}  // namespace rosin
