// See rows.hpp.
#include "kernels/rows.hpp"

#include <algorithm>
#include <bit>

#include "kernels/strips.hpp"
#include "kernels/target.hpp"

namespace rosin::kernels {
namespace {

using Do = Instr::Do;

constexpr int64_t most_held = 16;  // elements of an item in registers

int64_t held_of(const Shares& shares) {
  return shares.strip * static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(shares.turns)));
}

}  // namespace

RowProgram::RowProgram(KernelWriter& writer, KernelBody& body, int row_dims, const Abilities& device,
                       std::vector<RowStore> stores, std::vector<RowStore> row_values)
    : w_(writer), body_(body), sizes_(body.sizes()), device_(device), stores_(std::move(stores)),
      row_values_(std::move(row_values)), shares_(sizes_.row, sizes_.row), way_(Way::single),
      length_(writer.number(sizes_.row)), rows_(writer.number(sizes_.rows)), lanes_(writer.number(shares_.lanes)),
      row_sizes_(domain_sizes(0, row_dims)), other_sizes_(domain_sizes(row_dims, sizes_.dims)),
      combiner_(writer, device), loaded_(body.kernel().loads.size(), 0) {
  const auto work = static_cast<int64_t>(body.primitives());
  constexpr auto most = static_cast<int64_t>(most_primitives);
  if (shares_.strip * work <= most) way_ = Way::strips;
  if (held_of(shares_) <= most_held && held_of(shares_) * work <= most) way_ = Way::held;
  shares_.turns = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(shares_.turns)));
  whole_ = shares_.strip * shares_.lanes * shares_.turns == sizes_.row;
  const bool all_work = whole_ && sizes_.rows * shares_.lanes % items_of_group == 0;
  guarded_ = all_work ? std::vector<char>(loaded_.size(), 0) : body.stored_loads();
  within_line_ = row_sizes_.size() <= 1 || sizes_.sizes[0] % shares_.strip == 0;
}

std::vector<Term> RowProgram::domain_sizes(int first, int last) const {
  std::vector<Term> sizes;
  for (int d = first; d < last; ++d) sizes.push_back(w_.number(sizes_.sizes[d]));
  return sizes;
}

void RowProgram::write() {
  if (way_ != Way::held) keep_long_row();
  begin();
  for (int phase = 0; reduce(phase); ++phase) {}
  store();
}

/// Of a row that is longer than usual, what several walks need is kept in shared memory, as far as there is room:
/// each item finds there what it has put there. The arrays have few sizes, so that other rows take the same code.
void RowProgram::keep_long_row() {
  if (sizes_.row <= KernelTarget::usual_row) return;
  const int64_t elements = (sizes_.row + row_step - 1) / row_step * row_step;
  int64_t room = device_.shared_bytes - bytes_of_sums;
  std::vector<size_t> wanted;
  for (const RowStore& store : stores_) wanted.push_back(store.instr);
  const std::vector<int> walks = body_.walks_of_loads(wanted);
  for (size_t load = 0; load < walks.size(); ++load) {
    if (walks[load] < 2) continue;
    const ScalarType type = body_.type_of_load(load);
    const int64_t bytes = elements * bytes_of(type);
    if (bytes > room) continue;
    room -= bytes;
    body_.keep_row(load, w_.shared(type, static_cast<int>(elements)));
  }
}

void RowProgram::begin() {
  const Term at = w_.global();
  const Term wanted = w_.quotient(at, lanes_);
  lane_ = at - wanted * lanes_;
  valid_ = wanted < rows_;
  row_ = min(wanted, rows_ - 1);  // items beyond the last row work along, and store nothing
  end_ = w_.select(valid_, length_, w_.index(0));
  row_spot_ = {row_, w_.coordinates(row_, other_sizes_), {}, row_};
  if (way_ != Way::held) return;
  for (int64_t turn = 0; turn < shares_.turns; ++turn) {
    const Term number = turn == 0 ? lane_ : lane_ + lanes_ * turn;
    const Term first = number * shares_.strip;
    if (whole_) {
      strips_.push_back(strip_at(first, {}));
      continue;
    }
    // Strips beyond the end compute along, on elements that are there.
    const Term inside = first < length_;
    strips_.push_back(strip_at(w_.select(inside, first, w_.index(0)), {}));
    strips_.back().inside = inside;
  }
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
  w_.loop(lane_ * shares_.strip, end_, lanes_ * shares_.strip, [&](Term first) {
    const Strip each = strip_at(first, turn);
    body_.add_strip(loads, each.spot, shares_.strip, device_.vector_bytes, within_line_);
    strip(each, 0);
    w_.assign(turn, turn + 1);
  });
  body_.leave();
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
  std::vector<Term> sums;
  for (const size_t i : reductions) {
    const Instr& instr = body_.kernel().instrs[i];
    sums.push_back(w_.variable(neutral(w_, *instr.reducer, instr.type)));
  }
  if (way_ == Way::single) {
    walk_single([&](const Spot& spot) { add(reductions, sums, spot, {}); });
  } else {
    walk(body_.loads_of(reductions), [&](const Strip& strip, int turn) {
      for (int lane = 0; lane < shares_.strip; ++lane) {
        if (way_ == Way::held) body_.return_to_lane(turn * shares_.strip + lane);
        else body_.go_to_lane(lane);
        add(reductions, sums, element(strip, lane), strip.inside);
      }
    });
  }
  for (size_t k = 0; k < reductions.size(); ++k) {
    const Instr& instr = body_.kernel().instrs[reductions[k]];
    body_.set_row(reductions[k], combiner_.combine(*instr.reducer, sums[k], lane_, lanes_));
  }
  return true;
}

void RowProgram::add(const std::vector<size_t>& reductions, std::vector<Term>& sums, const Spot& spot, Term inside) {
  for (size_t k = 0; k < reductions.size(); ++k) {
    const Term x = body_.element(body_.definition(reductions[k], 0), spot);
    const Term sum = combined(w_, body_.kernel().instrs[reductions[k]], sums[k], x);
    w_.assign(sums[k], inside.writer ? w_.select(inside, sum, sums[k]) : sum);
  }
}

void RowProgram::store() {
  std::vector<size_t> wanted;
  for (const RowStore& store : stores_) {
    if (!body_.kernel().instrs[store.instr].row) wanted.push_back(store.instr);
  }
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
  std::vector<std::vector<Term>> values(stores_.size());
  for (int lane = 0; lane < shares_.strip; ++lane) {
    if (way_ == Way::held) body_.return_to_lane(turn * shares_.strip + lane);
    else body_.go_to_lane(lane);
    const Spot spot = element(strip, lane);
    for (size_t i = 0; i < stores_.size(); ++i) {
      if (body_.kernel().instrs[stores_[i].instr].row) continue;
      const Term value = body_.element(body_.definition(stores_[i].instr, 0), spot);
      values[i].push_back(w_.convert(value, w_.type_of_buffer(stores_[i].buffer)));
    }
  }
  const auto put_all = [&] {
    for (size_t i = 0; i < stores_.size(); ++i) {
      if (!values[i].empty()) w_.store_vector(stores_[i].buffer, strip.spot.linear, values[i], device_.vector_bytes);
    }
  };
  if (way_ != Way::held) put_all();
  else w_.when(strip.inside.writer ? valid_ && strip.inside : valid_, put_all);
}

void RowProgram::put(int buffer, Term at, Term value) {
  w_.store(buffer, at, w_.convert(value, w_.type_of_buffer(buffer)));
}

}  // namespace rosin::kernels
