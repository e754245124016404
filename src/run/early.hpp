// Results that are wanted early, so that messages to other processes overlap with the rest of an evaluation. While one
// on the CPU goes on, a listener is told of arrays as soon as their elements are written. One on a device returns when
// its work has been given; the arrays' memory then has tickets in the midst of that. Read next: evaluate.cpp (who
// runs), device_marks.hpp.
#pragma once

#include <span>
#include <vector>

#include <rosin/array.hpp>

#include "plan/device.hpp"
#include "plan/layout.hpp"

namespace rosin {

class EarlyResults final : private plan::StepListener {
 public:
  class Listener {
   public:
    virtual ~Listener() = default;
    /// arrays[i] has its elements, in memory that nobody writes to any more, though the array is not evaluated yet.
    /// In the middle of a run, by the thread that evaluates; not of every array.
    virtual void written(size_t i, const void* elements) noexcept = 0;
    /// The run has failed: memory that written() was given since it began goes away when this returns.
    virtual void failed() noexcept = 0;
    /// Arrays of one group are wanted together: a device has one ticket for them.
    virtual int32_t group(size_t i) const noexcept = 0;
  };

  /// Of what this thread evaluates as long as the object lives; arrays may stand there twice. Not nested.
  EarlyResults(std::span<const Array> arrays, Listener& listener);
  ~EarlyResults();
  EarlyResults(const EarlyResults&) = delete;
  EarlyResults& operator=(const EarlyResults&) = delete;

  /// The calling thread's, or null.
  static EarlyResults* of_thread() noexcept { return of_thread_; }

  /// For a run of `nodes`, whose values are in `memory`: who wants results of it.
  plan::StepListener* begin(const plan::Layout& layout, std::span<Node* const> nodes, void* const* memory);
  void fail() noexcept { listener_.failed(); }

 private:
  struct Wanted {
    const Node* node;
    size_t array;
  };
  /// That array is written once the step is over.
  struct Written {
    size_t step;
    size_t array;
    const void* elements;
  };

  void over(size_t step) noexcept override;
  std::span<const plan::EarlyOutput> outputs() const noexcept override { return outputs_; }
  std::span<const Wanted> wanted(const Node* node) const;
  void list_written(const plan::Layout& layout, std::span<Node* const> nodes, void* const* memory);
  void list_outputs(const plan::Layout& layout, std::span<Node* const> nodes);

  static constinit thread_local EarlyResults* of_thread_;

  Listener& listener_;
  std::vector<Wanted> wanted_;              // by address
  std::vector<Written> written_;            // in this run, by step
  size_t told_ = 0;                         // of them
  std::vector<plan::EarlyOutput> outputs_;  // in this run, of a device, by group
};

}  // namespace rosin
