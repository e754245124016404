// Fuser: turns the nodes of a graph into units.
#pragma once

#include <optional>

#include "plan/units.hpp"

namespace rosin::plan {

class Fuser {
 public:
  Fuser(Structure& structure, const Target& target);
  /// Places every node: fills homes, base, contiguous of the structure and the units.
  void run();

  /// The value without identities (arguments of gradient calls) around it.
  int32_t plain(int32_t value) const;
  /// The same, without broadcasts: elementwise ops broadcast by themselves.
  int32_t without_broadcast(int32_t value) const;
  /// The value whose memory this one looks at (itself if it has its own).
  int32_t storage(int32_t value) const;
  /// The unit that computes the value's memory, or -1.
  int32_t unit_of(int32_t value) const;
  /// When a value is wanted: its own place in the recording order, a copy's first reader's.
  int32_t wanted_at(int32_t value) const {
    return value < s_.graph.nodes ? value : wanted_at_[static_cast<size_t>(value)];
  }
  /// Whether the value follows from C++ numbers alone, in little work: nothing in memory is waited for.
  bool is_constant(int32_t value) const;
  Level level(int32_t value) const { return level_[static_cast<size_t>(value)]; }

  Units units;

 private:
  Value& v(int32_t value) { return s_.graph.values[static_cast<size_t>(value)]; }
  const Value& v(int32_t value) const { return s_.graph.values[static_cast<size_t>(value)]; }
  void place(int32_t node);
  void place_movement(int32_t node);
  void look_at(int32_t node, int32_t operand, Home home);
  int32_t contiguous(int32_t value);
  bool may_be_fill(int32_t node, int i) const;
  bool is_fill(int32_t value) const;
  int32_t channels_first(int32_t value);
  int32_t copied(int32_t value, bool channels_first = false);
  bool orders_differ(int32_t value) const;
  std::optional<CallDescription> call_of(int32_t node) const;
  CallDescription described(int32_t call, const Unit& wanted) const;
  bool join_call(int32_t node);
  bool take_into_call(int32_t unit, int32_t node, int product, bool alone);
  bool add_auxiliary(Unit& wanted, int32_t unit, int32_t node, int product, bool alone);
  bool add_bits(Unit& wanted, int32_t unit, int32_t node);
  int32_t forward_with_bits(int32_t unit, int32_t activated) const;
  bool offers_bits(int32_t forward) const;
  void find_calls_that_sum();
  bool join_sums(int32_t node);
  bool sums_rows(int32_t node, int32_t operand, const Value& made) const;
  bool take_own_sums(int32_t node, int32_t operand);
  bool is_made_on_the_way(int32_t operand) const;
  bool take_sums_of_operand(int32_t node, int32_t operand);
  bool is_ready(int32_t call, int32_t before) const;
  bool add_array(Unit& wanted, int32_t unit, int32_t node, int32_t other) const;
  bool add_scale(Unit& wanted, int32_t node, int i) const;
  bool add_of_channels(Unit& wanted, int32_t unit, int32_t node, int32_t other, CallRole role) const;
  bool is_of_channels(int32_t unit, int32_t node, int32_t other) const;
  bool is_there_before(int32_t unit, int32_t other) const;
  bool fits_epilogue(int32_t unit, int32_t other) const;
  void add_to_call(int32_t unit, int32_t node, const Unit& wanted);
  bool stands_in_memory(int32_t value) const;
  int32_t transposed(int32_t value);
  int32_t copied_by_parts(int32_t value);
  Value look_of(int32_t value, Look look) const;
  int32_t append(Value value, Home home, int32_t base);
  int32_t call_operand(int32_t node, int i, Order order);
  bool meets_channels_first(int32_t node) const;
  bool meets_channels_first_partly(int32_t node) const;
  bool joins_channels_first(int32_t node) const;
  bool may_be_logical(int32_t node, const CallDescription& call) const;
  bool stays_logical(int32_t node, const CallDescription& call);
  bool keeps_order(int32_t node) const;
  void find_wanted_first();
  bool is_flattened(int32_t node) const;
  bool reads_any_order(int32_t node) const;
  void count_readers();
  void add_member(int32_t unit, int32_t value, Level level);
  void add_call(int32_t node);
  void place_part(int32_t node);
  bool stands_where_made(int32_t node);
  bool known(int32_t unit, int32_t value, Level level) const;
  bool reads_row_of(int32_t unit, int32_t node) const;
  bool reads_predecessor(int32_t node) const;
  Level level_in(int32_t unit, int32_t node) const;
  bool legal(int32_t unit, int32_t node) const;
  bool needs_nothing_new(int32_t unit, int32_t node) const;
  void join_elementwise(int32_t node);
  void join_reduction(int32_t node);
  void begin_kernel(int32_t node);
  bool over_planes(int32_t image, uint8_t reduced) const;
  void try_merge(int32_t into, int32_t from);
  bool only_sums(int32_t unit) const;
  void join_reader(int32_t sums);
  static uint8_t rest_after(uint8_t wide, int dims);

  Structure& s_;
  const Target& target_;
  std::vector<int32_t> unit_of_;  // of values with memory or registers of their own
  std::vector<Level> level_;
  std::vector<int32_t> channels_first_;  // a copy of the value in CWHN where one is made, else -1
  std::vector<bool> wanted_first_;       // of values: whether CWHN is, see find_wanted_first
  std::vector<int32_t> wanted_at_;       // of copies: the node that was placed when they were made
  int32_t placing_ = 0;
  std::vector<int32_t> readers_;    // of nodes: how many operands of nodes they are
  std::vector<int32_t> flattened_;  // of nodes: how many of these read them in logical order, as reshapes do
  std::vector<int32_t> strided_;    // of nodes: how many of them read any order, see reads_any_order
  std::vector<int32_t> summed_by_;  // of values: a call that can sum them up on its way, see take_sums_of_operand
  std::vector<int32_t> loaded_by_;  // a kernel that loads the value at its domain's size
};

}  // namespace rosin::plan
