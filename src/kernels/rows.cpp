// See rows.hpp.
#include "kernels/rows.hpp"

#include <algorithm>
#include <bit>

#include "kernels/strips.hpp"
#include "kernels/target.hpp"

namespace rosin::kernels {
namespace {

using Do = Instr::Do;

constexpr int64_t most_held = 16;         // elements of an item in registers
constexpr int64_t most_held_work = 2048;  // primitives that are written for them: reading them again costs more
constexpr size_t most_together = 4;       // results for which items wait for each other once
constexpr int64_t most_exchanged = 8192;  // bytes of shared memory for what items exchange
constexpr int64_t most_at_once = 256;     // bytes that an item loads before it looks at any
constexpr int most_strips = 4;            // the same of a row in strips

// Of sums over rows: groups keep a device busy, write few parts, and all run at once; items keep what they have in
// registers, of more elements in shared memory, which leaves registers for more groups.
constexpr int64_t fewest_groups = 128, least_rows = 8, least_lanes = 32, most_kept = 32, most_in_registers = 8;

/// How many stand on a multiprocessor at once, as far as registers allow.
constexpr int groups_beside = 3;

/// As many as stand on all of an H100 or H200.
constexpr int64_t most_groups = int64_t{132} * groups_beside;

int64_t held_of(const Shares& shares) {
  return shares.strip * static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(shares.turns)));
}

bool may_hold(const Shares& shares, size_t work) {
  const int64_t held = held_of(shares);
  return held <= most_held && held * static_cast<int64_t>(work) <= most_held_work;
}

/// Rows that a group works on at once.
int64_t slots_of(const Shares& shares) { return items_of_group / shares.lanes; }

}  // namespace

int64_t RowSums::groups_for(const KernelLayout& sizes, size_t work, size_t sums) {
  const Shares shares(sizes.row, sizes.row, true);
  const bool kept = may_hold(shares, work) && held_of(shares) * static_cast<int64_t>(sums) <= most_kept;
  if (!kept || shares.lanes < least_lanes) return 0;
  const int64_t groups = std::min(sizes.rows / (least_rows * slots_of(shares)), most_groups);
  return groups < fewest_groups ? 0 : groups;
}

RowProgram::RowProgram(KernelWriter& writer, KernelBody& body, int row_dims, const Abilities& device,
                       std::vector<RowStore> stores, std::vector<RowStore> row_values, RowSums sums)
    : w_(writer), body_(body), sizes_(body.sizes()), device_(device), stores_(std::move(stores)),
      row_values_(std::move(row_values)), sums_(std::move(sums)), shares_(sizes_.row, sizes_.row, !sums_.roots.empty()),
      way_(Way::single), length_(writer.number(sizes_.row)), rows_(writer.number(sizes_.rows)),
      lanes_(shares_.lanes == items_of_group ? writer.index(items_of_group) : writer.number(shares_.lanes)),
      row_sizes_(domain_sizes(0, row_dims)), other_sizes_(domain_sizes(row_dims, sizes_.dims)),
      combiner_(writer, device), online_(writer, body), loaded_(body.kernel().loads.size(), 0) {
  const auto work = static_cast<int64_t>(body.primitives());
  const bool is_long = sizes_.row > KernelTarget::usual_row;
  if (shares_.strip * work <= (is_long ? most_held_work : int64_t{most_primitives})) way_ = Way::strips;
  if (may_hold(shares_, body.primitives())) way_ = Way::held;
  shares_.turns = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(shares_.turns)));
  whole_ = shares_.strip * shares_.lanes * shares_.turns == sizes_.row;
  const bool all_work = whole_ && sizes_.rows * shares_.lanes % items_of_group == 0;
  guarded_ = all_work ? std::vector<char>(loaded_.size(), 0) : body.stored_loads();
  within_line_ = row_sizes_.size() <= 1 || sizes_.sizes[0] % shares_.strip == 0;
  if (exchanges_are_few()) combiner_.use_own_arrays();
  if (way_ != Way::strips) return;
  find_online_sums();
  if (!is_long) return;
  for (together_ = most_strips; together_ > 1 && together_ * shares_.strip * work > most_held_work;) together_ /= 2;
}

void RowProgram::find_online_sums() {
  for (int phase = 2; phase <= static_cast<int>(body_.kernel().instrs.size()); ++phase) {
    if (shifted_.count(phase - 1) > 0) continue;  // which has no walk of its own
    std::vector<ShiftedSum> sums = OnlineSums::of_phase(body_, phase);
    if (!sums.empty()) shifted_.emplace(phase, std::move(sums));
  }
}

std::vector<Term> RowProgram::domain_sizes(int first, int last) const {
  std::vector<Term> sizes;
  for (int d = first; d < last; ++d) sizes.push_back(w_.number(sizes_.sizes[d]));
  return sizes;
}

void RowProgram::write() {
  if (way_ != Way::held) keep_long_row();
  begin();
  const Term slots = w_.number(slots_of(shares_)), first = w_.group(0) * slots;
  if (sums_.roots.empty()) return write_row(first + slot_);
  w_.stand_beside(groups_beside);
  begin_sums();
  w_.loop(first, rows_, slots * w_.number(sums_.groups), [&](Term row) {
    write_row(row + slot_);
    if (exchanges_ == 1) w_.barrier();
  });
  store_sums();
}

int64_t RowProgram::groups() const {
  return sums_.roots.empty() ? groups_for(sizes_.rows * shares_.lanes) : sums_.groups;
}

void RowProgram::write_row(Term wanted) {
  begin_row(wanted);
  if (way_ == Way::held) load_all();
  for (int phase = 0; reduce(phase); ++phase) {}
  store();
  body_.leave();
}

/// Of a row that is longer than usual, what several walks need is kept in shared memory, as far as there is room:
/// each item finds there what it has put there. The arrays have few sizes, so that other rows take the same code.
void RowProgram::keep_long_row() {
  if (sizes_.row <= KernelTarget::usual_row) return;
  const int64_t elements = (sizes_.row + row_step - 1) / row_step * row_step;
  int64_t room = room_for_rows();
  std::vector<int> joined;
  for (const auto& [phase, sums] : shifted_) joined.push_back(phase);
  const std::vector<int> walks = body_.walks_of_loads(wanted(), joined);
  for (size_t load = 0; load < walks.size(); ++load) {
    if (walks[load] < 2) continue;
    const bool pairs = way_ == Way::strips && body_.has_pairs(load, shares_.strip, within_line_);
    const ScalarType type = pairs ? ScalarType::int32 : body_.type_of_load(load);
    const int64_t count = pairs ? elements / 2 : elements, bytes = count * bytes_of(type);
    if (bytes > room) continue;
    room -= bytes;
    body_.keep_row(load, w_.shared(type, static_cast<int>(count)), pairs);
  }
}

/// Of rows that are read again wherever they do not fit, half of the memory: one group computes while another loads.
int64_t RowProgram::room_for_rows() const {
  return device_.shared_bytes / (sizes_.row > longest_row_of(device_) ? 2 : 1) - bytes_of_sums;
}

/// What does not depend on the row.
void RowProgram::begin() {
  const Term item = w_.item();
  slot_ = shares_.lanes == items_of_group ? w_.index(0) : w_.quotient(item, lanes_);
  lane_ = shares_.lanes == items_of_group ? item : item - slot_ * lanes_;
  if (way_ != Way::held) return;
  for (int64_t turn = 0; turn < shares_.turns; ++turn) {
    const Term number = turn == 0 ? lane_ : lane_ + lanes_ * turn;
    const Term first = number * shares_.strip;
    if (whole_) {
      turns_.push_back({first, {}, {}});
      continue;
    }
    // Strips beyond the end compute along, on elements that are there.
    const Term inside = first < length_;
    turns_.push_back({w_.select(inside, first, w_.index(0)), inside, {}});
  }
}

void RowProgram::begin_row(Term wanted) {
  valid_ = wanted < rows_;
  row_ = min(wanted, rows_ - 1);  // items beyond the last row work along, and store nothing
  end_ = w_.select(valid_, length_, w_.index(0));
  row_spot_ = {row_, w_.coordinates(row_, other_sizes_), {}, row_};
  for (const Strip& turn : turns_) {
    strips_.push_back(strip_at(turn.first, {}));
    strips_.back().inside = turn.inside;
  }
}

/// What an item needs of its row alone, at once, so that it waits for memory once; not of rows that need much.
void RowProgram::load_all() {
  std::vector<size_t> instrs = wanted();
  for (size_t i = 0; i < body_.kernel().instrs.size(); ++i) {
    if (body_.kernel().instrs[i].what == Do::reduce && body_.is_needed(i)) instrs.push_back(i);
  }
  std::vector<char> loads = body_.loads_of(instrs);
  int64_t bytes = 0;
  for (size_t i = 0; i < loads.size(); ++i) {
    loads[i] = loads[i] && differs_by_row(i);
    if (loads[i]) bytes += held_of(shares_) * bytes_of(body_.type_of_load(i));
  }
  if (bytes <= most_at_once) walk(loads, [](const Strip&, int) {});
}

bool RowProgram::differs_by_row(size_t load) const {
  const auto& strides = sizes_.loads[load].strides;
  return std::any_of(strides + row_sizes_.size(), strides + sizes_.dims, [](int64_t stride) { return stride != 0; });
}

void RowProgram::begin_sums() {
  const int64_t held = held_of(shares_);
  in_registers_ = held <= most_in_registers;
  for (const RowStore& root : sums_.roots) {
    const Instr& instr = body_.kernel().instrs[root.instr];
    const ScalarType type = shared_type(instr.type);
    const Term none = neutral(w_, *instr.reducer, instr.type);
    RowSum& sum = kept_.emplace_back();
    if (!in_registers_ || slots_of(shares_) > 1) sum.shared = w_.shared(type, static_cast<int>(held * items_of_group));
    for (int64_t i = 0; i < held; ++i) {
      if (in_registers_) sum.own.push_back(w_.variable(none));
      else w_.shared_store(sum.shared, own_place(i), w_.convert(none, type));
    }
  }
}

/// Where the item keeps the sum of its element `i` of a row.
Term RowProgram::own_place(int64_t i) const { return w_.item() + i * items_of_group; }

/// What the item has of root k's sum of its element `i`.
Term RowProgram::own_sum(size_t k, int64_t i) const {
  if (in_registers_) return kept_[k].own[static_cast<size_t>(i)];
  return w_.convert(w_.shared_load(kept_[k].shared, own_place(i)), body_.kernel().instrs[sums_.roots[k].instr].type);
}

/// The same of all that have worked on rows side by side, once each has put what it has into shared memory.
Term RowProgram::sum_of_group(size_t k, int64_t i) const {
  const int64_t slots = slots_of(shares_);
  if (slots == 1) return own_sum(k, i);
  const Instr& root = body_.kernel().instrs[sums_.roots[k].instr];
  const Term sum = w_.variable(own_sum(k, i));
  w_.loop(w_.index(1), w_.number(slots), w_.index(1), [&](Term slot) {
    const Term other = w_.shared_load(kept_[k].shared, own_place(i) + slot * lanes_);
    w_.assign(sum, combined(w_, root, sum, w_.convert(other, root.type)));
  });
  return sum;
}

/// The part of the group.
void RowProgram::store_sums() {
  if (slots_of(shares_) > 1) {
    for (size_t k = 0; k < kept_.size(); ++k) {
      const ScalarType type = shared_type(body_.kernel().instrs[sums_.roots[k].instr].type);
      for (size_t i = 0; i < kept_[k].own.size(); ++i)
        w_.shared_store(kept_[k].shared, own_place(static_cast<int64_t>(i)), w_.convert(kept_[k].own[i], type));
    }
    w_.barrier();
  }
  const auto put_parts = [&](int64_t turn) {
    for (size_t k = 0; k < kept_.size(); ++k) {
      const int buffer = sums_.roots[k].buffer;
      std::vector<Term> values;
      for (int64_t i = turn * shares_.strip; i < (turn + 1) * shares_.strip; ++i)
        values.push_back(w_.convert(sum_of_group(k, i), w_.type_of_buffer(buffer)));
      const Term first = turns_[static_cast<size_t>(turn)].first;
      w_.store_vector(buffer, w_.group(0) * length_ + first, values, device_.vector_bytes);
    }
  };
  w_.when(slot_ == 0, [&] {
    for (size_t turn = 0; turn < turns_.size(); ++turn) {
      const auto put = [&] { put_parts(static_cast<int64_t>(turn)); };
      if (turns_[turn].inside.writer) w_.when(turns_[turn].inside, put);
      else put();
    }
  });
}

/// Strip number `turn` of the item.
RowProgram::Strip RowProgram::strip_at(Term first, Term turn) const {
  Spot spot{row_ * length_ + first, w_.coordinates(first, row_sizes_), {}, row_};
  spot.coordinates.insert(spot.coordinates.end(), row_spot_.coordinates.begin(), row_spot_.coordinates.end());
  if (turn.writer) spot.kept = turn;
  return {first, {}, spot};
}

Spot RowProgram::element(const Strip& strip, int lane) const {
  Spot spot = strip.spot;
  if (spot.kept.writer) spot.kept = (spot.kept * shares_.strip + lane) * items_of_group + w_.item();
  if (lane == 0) return spot;
  spot.linear = spot.linear + lane;
  if (within_line_) {
    if (!row_sizes_.empty()) spot.coordinates[0] = spot.coordinates[0] + lane;
  } else {
    const std::vector<Term> at = w_.coordinates(strip.first + lane, row_sizes_);
    std::copy(at.begin(), at.end(), spot.coordinates.begin());
  }
  return spot;
}

/// strip(strip, turn) for each strip of the item, its loads done; turn 0 where they are met one after another.
template <class F> void RowProgram::walk(const std::vector<char>& loads, F&& strip) {
  if (way_ == Way::held) {
    std::vector<char> fresh = loads;
    for (size_t i = 0; i < fresh.size(); ++i) fresh[i] = loads[i] && !loaded_[i];
    for (const Strip& each : strips_) load_held(fresh, each);
    for (size_t i = 0; i < fresh.size(); ++i) loaded_[i] = loaded_[i] || fresh[i];
    for (size_t turn = 0; turn < strips_.size(); ++turn) strip(strips_[turn], static_cast<int>(turn));
    return;
  }
  const Term turn = w_.variable(w_.index(0));
  Term from = lane_ * shares_.strip;
  if (together_ > 1) {
    from = w_.variable(from);
    walk_together(loads, from, turn, strip);
  }
  w_.loop(from, end_, lanes_ * shares_.strip, [&](Term first) {
    const Strip each = strip_at(first, turn);
    body_.add_strip(loads, each.spot, shares_.strip, device_.vector_bytes, within_line_);
    strip(each, 0);
    w_.assign(turn, turn + 1);
  });
  body_.leave();
}

/// As many strips as are left in whole turns of `together_`; `from` and `turn`, variables, are then those of the rest.
template <class F> void RowProgram::walk_together(const std::vector<char>& loads, Term from, Term turn, F&& strip) {
  const Term step = lanes_ * shares_.strip;
  w_.loop(lane_ * shares_.strip, end_ - step * (together_ - 1), step * together_, [&](Term first) {
    std::vector<Strip> strips;
    for (int i = 0; i < together_; ++i) {
      strips.push_back(strip_at(first + step * i, turn + i));
      body_.add_strip(loads, strips.back().spot, shares_.strip, device_.vector_bytes, within_line_);
    }
    for (int i = 0; i < together_; ++i) strip(strips[static_cast<size_t>(i)], i);
    w_.assign(turn, turn + together_);
    w_.assign(from, first + step * together_);
  });
  body_.leave_loop();
}

/// element(spot) for each element, one after another: for long bodies.
template <class F> void RowProgram::walk_single(F&& element) {
  const Term turn = w_.variable(w_.index(0));
  w_.loop(lane_ * shares_.strip, end_, lanes_ * shares_.strip, [&](Term first) {
    w_.loop(w_.index(shares_.strip), [&](Term within) {
      Strip each = strip_at(first + within, {});
      each.spot.kept = (turn * shares_.strip + within) * items_of_group + w_.item();
      element(each.spot);
    });
    w_.assign(turn, turn + 1);
  });
  body_.leave();
}

/// Items that have no strip there, or no row, compute along on others' elements; or on nothing, where the memory of a
/// load may be stored to while they do.
void RowProgram::load_held(const std::vector<char>& loads, const Strip& strip) {
  std::vector<char> plain = loads, guarded = loads;
  for (size_t i = 0; i < loads.size(); ++i) (guarded_[i] ? plain : guarded)[i] = 0;
  body_.add_strip(plain, strip.spot, shares_.strip, device_.vector_bytes, within_line_);
  if (std::find(guarded.begin(), guarded.end(), 1) == guarded.end()) return;
  std::vector<Spot> spots;
  for (int lane = 0; lane < shares_.strip; ++lane) spots.push_back(element(strip, lane));
  const Term inside = strip.inside.writer ? valid_ && strip.inside : valid_;
  body_.add_strip_if(inside, guarded, spots, device_.vector_bytes, within_line_);
}

/// Values at row level that need `phase` reductions at most, while no loop is open.
void RowProgram::compute_rows(int phase) {
  for (size_t i = 0; i < body_.kernel().instrs.size(); ++i) {
    const Instr& instr = body_.kernel().instrs[i];
    const bool value = instr.what == Do::load || instr.what == Do::apply || instr.what == Do::convert;
    if (value && instr.row && body_.is_needed(i) && body_.phase(i) <= phase) body_.row(i, row_spot_);
  }
}

/// The row reductions of one phase, in one walk over the row. False when none is left.
bool RowProgram::reduce(int phase) {
  compute_rows(phase);
  std::vector<size_t> reductions;
  bool more = false;
  for (size_t i = 0; i < body_.kernel().instrs.size(); ++i) {
    if (body_.kernel().instrs[i].what != Do::reduce || !body_.is_needed(i)) continue;
    if (body_.phase(i) == phase + 1) reductions.push_back(i);
    more = more || body_.phase(i) > phase;
  }
  if (!more) return false;
  const auto before = shifted_.find(phase + 1);
  if (before == shifted_.end()) {
    combine(reductions, walk_sums(phase, reductions));
    return true;
  }
  std::vector<Term> sums;
  for (const ShiftedSum& each : before->second)
    sums.push_back(online_.sum(sums.size(), body_.row(each.shift, row_spot_)));
  combine(reductions, sums);
  return true;
}

/// What an item has of these reductions; on the way it adds up the sums of the next phase that need no walk then.
std::vector<Term> RowProgram::walk_sums(int phase, const std::vector<size_t>& reductions) {
  std::vector<Term> sums;
  std::vector<size_t> needed = reductions;
  for (const size_t i : reductions) {
    const Instr& instr = body_.kernel().instrs[i];
    sums.push_back(w_.variable(neutral(w_, *instr.reducer, instr.type)));
  }
  const auto found = shifted_.find(phase + 2);
  const std::vector<ShiftedSum> ahead = found == shifted_.end() ? std::vector<ShiftedSum>{} : found->second;
  for (const ShiftedSum& each : ahead) needed.push_back(each.sum);
  online_.begin(ahead);
  if (way_ == Way::single) {
    walk_single([&](const Spot& spot) { add(reductions, sums, spot, {}); });
    return sums;
  }
  walk(body_.loads_of(needed), [&](const Strip& strip, int turn) {
    std::vector<std::vector<Term>> elements(ahead.size());
    for (int lane = 0; lane < shares_.strip; ++lane) {
      if (way_ == Way::held) body_.return_to_lane(turn * shares_.strip + lane);
      else body_.go_to_lane(turn * shares_.strip + lane);
      const Spot spot = element(strip, lane);
      add(reductions, sums, spot, strip.inside);
      for (size_t k = 0; k < ahead.size(); ++k) elements[k].push_back(body_.element(ahead[k].element, spot));
    }
    for (size_t k = 0; k < ahead.size(); ++k) online_.add(k, elements[k]);
  });
  return sums;
}

/// Whether what items exchange may stand in other memory each time: they wait for each other half as often.
bool RowProgram::exchanges_are_few() const {
  int64_t bytes = 0;
  for (size_t i = 0; i < body_.kernel().instrs.size(); ++i) {
    const Instr& instr = body_.kernel().instrs[i];
    if (instr.what == Do::reduce && body_.is_needed(i)) bytes += items_of_group * bytes_of(shared_type(instr.type));
  }
  return way_ == Way::held && bytes <= most_exchanged;
}

/// Several at once where rows take no shared memory.
void RowProgram::combine(const std::vector<size_t>& reductions, const std::vector<Term>& sums) {
  std::vector<Partial> partials;
  for (size_t k = 0; k < reductions.size(); ++k)
    partials.push_back({body_.kernel().instrs[reductions[k]].reducer, sums[k]});
  const size_t together = way_ == Way::held ? most_together : 1;
  for (size_t first = 0; first < partials.size(); first += together) {
    const size_t count = std::min(together, partials.size() - first);
    ++exchanges_;
    const std::vector<Term> whole = combiner_.combine(std::span(partials).subspan(first, count), lane_, lanes_);
    for (size_t k = 0; k < count; ++k) body_.set_row(reductions[first + k], whole[k]);
  }
}

void RowProgram::add(const std::vector<size_t>& reductions, std::vector<Term>& sums, const Spot& spot, Term inside) {
  for (size_t k = 0; k < reductions.size(); ++k) {
    const Term x = body_.element(body_.definition(reductions[k], 0), spot);
    const Term sum = combined(w_, body_.kernel().instrs[reductions[k]], sums[k], x);
    w_.assign(sums[k], inside.writer ? w_.select(inside, sum, sums[k]) : sum);
  }
}

/// The instrs of what is stored, or added up, at elements.
std::vector<size_t> RowProgram::wanted() const {
  std::vector<size_t> found;
  for (const RowStore& store : stores_) {
    if (!body_.kernel().instrs[store.instr].row) found.push_back(store.instr);
  }
  for (const RowStore& root : sums_.roots) found.push_back(root.instr);
  return found;
}

void RowProgram::store() {
  const std::vector<size_t> wanted = this->wanted();
  if (!wanted.empty() && way_ == Way::single) {
    walk_single([&](const Spot& spot) {
      std::vector<Term> values;
      for (const size_t i : wanted) values.push_back(body_.element(body_.definition(i, 0), spot));
      size_t next = 0;
      for (const RowStore& store : stores_) {
        if (!body_.kernel().instrs[store.instr].row) put(store.buffer, spot.linear, values[next++]);
      }
    });
  } else if (!wanted.empty()) {
    walk(body_.loads_of(wanted), [&](const Strip& strip, int turn) { store_strip(strip, turn); });
  }
  w_.when(valid_ && lane_ == 0, [&] {
    for (const RowStore& store : stores_) {
      if (!body_.kernel().instrs[store.instr].row) continue;
      put(store.buffer, row_, body_.row(body_.definition(store.instr, 0), row_spot_));
    }
    for (const RowStore& value : row_values_) put(value.buffer, row_, body_.row(value.instr, row_spot_));
  });
}

/// All values first: a store may take over the memory of a load.
void RowProgram::store_strip(const Strip& strip, int turn) {
  std::vector<std::vector<Term>> values(stores_.size()), added(sums_.roots.size());
  for (int lane = 0; lane < shares_.strip; ++lane) {
    if (way_ == Way::held) body_.return_to_lane(turn * shares_.strip + lane);
    else body_.go_to_lane(turn * shares_.strip + lane);
    const Spot spot = element(strip, lane);
    for (size_t i = 0; i < stores_.size(); ++i) {
      if (body_.kernel().instrs[stores_[i].instr].row) continue;
      const Term value = body_.element(body_.definition(stores_[i].instr, 0), spot);
      values[i].push_back(w_.convert(value, w_.type_of_buffer(stores_[i].buffer)));
    }
    for (size_t k = 0; k < added.size(); ++k)
      added[k].push_back(body_.element(body_.definition(sums_.roots[k].instr, 0), spot));
  }
  const auto put_all = [&] {
    for (size_t i = 0; i < stores_.size(); ++i) {
      if (!values[i].empty()) w_.store_vector(stores_[i].buffer, strip.spot.linear, values[i], device_.vector_bytes);
    }
    add_to_sums(added, turn);
  };
  if (way_ != Way::held) put_all();
  else w_.when(strip.inside.writer ? valid_ && strip.inside : valid_, put_all);
}

/// `values`: the operands of each root, in the lanes of strip `turn`.
void RowProgram::add_to_sums(const std::vector<std::vector<Term>>& values, int turn) {
  for (size_t k = 0; k < values.size(); ++k) {
    const Instr& root = body_.kernel().instrs[sums_.roots[k].instr];
    for (size_t lane = 0; lane < values[k].size(); ++lane) {
      const int64_t i = turn * shares_.strip + static_cast<int64_t>(lane);
      const Term sum = own_sum(k, i), more = combined(w_, root, sum, values[k][lane]);
      if (in_registers_) w_.assign(sum, more);
      else w_.shared_store(kept_[k].shared, own_place(i), w_.convert(more, shared_type(root.type)));
    }
  }
}

void RowProgram::put(int buffer, Term at, Term value) {
  w_.store(buffer, at, w_.convert(value, w_.type_of_buffer(buffer)));
}

}  // namespace rosin::kernels
