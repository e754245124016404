// The closure of dependencies, as one bit set a unit.
#include "plan/units.hpp"

#include <algorithm>
#include <bit>

namespace rosin::plan {

uint8_t Unit::row_wide() const {
  uint8_t rest = wide;
  for (int d = 0; d < row_dims; ++d) rest = static_cast<uint8_t>(rest & (rest - 1));
  return rest;
}

Level Unit::level_of(uint8_t wide_dims) const {
  if (wide_dims == wide) return Level::full;
  return row_dims > 0 && wide_dims == row_wide() ? Level::row : Level::none;
}

bool contains(const std::vector<int32_t>& list, int32_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}
void add_unique(std::vector<int32_t>& list, int32_t value) {
  if (!contains(list, value)) list.push_back(value);
}

std::vector<int32_t> written_by_epilogue(const Unit& call) {
  std::vector<int32_t> values = {call.members.back()};
  if (call.epilogue.writes_auxiliary()) values.push_back(call.auxiliary);
  if (call.bias_gradient >= 0) values.push_back(call.bias_gradient);
  return values;
}

bool Unit::computes_again(int32_t value) const { return contains(again, value); }

void Units::set(Bits& bits, int32_t i) {
  const size_t word = static_cast<size_t>(i) / 64;
  if (word >= bits.size()) bits.resize(word + 1);
  bits[word] |= uint64_t{1} << (i % 64);
}

void Units::unite(Bits& into, const Bits& from) {
  if (into.size() < from.size()) into.resize(from.size());
  for (size_t i = 0; i < from.size(); ++i) into[i] |= from[i];
}

int32_t Units::add(bool call) {
  units_.emplace_back().call = call;
  alive_.push_back(true);
  has_dependents_.push_back(false);
  merged_into_.push_back(-1);
  added_.emplace_back();
  closure_.emplace_back();
  return count() - 1;
}

void Units::add_dependency(int32_t unit, int32_t on) {
  if (unit == on || depends(unit, on)) return;
  added_[static_cast<size_t>(unit)].push_back(on);
  has_dependents_[static_cast<size_t>(on)] = true;
  Bits gained = closure_[static_cast<size_t>(on)];
  set(gained, on);
  unite(closure_[static_cast<size_t>(unit)], gained);
  for (int32_t u = 0; has_dependents_[static_cast<size_t>(unit)] && u < count(); ++u) {
    if (depends(u, unit)) unite(closure_[static_cast<size_t>(u)], gained);
  }
}

void Units::merge(int32_t into, int32_t from) {
  Unit& a = units_[static_cast<size_t>(into)];
  Unit& b = units_[static_cast<size_t>(from)];
  const auto append = [](auto& x, const auto& y) { x.insert(x.end(), y.begin(), y.end()); };
  append(a.members, b.members);
  append(a.full_loads, b.full_loads);
  append(a.row_loads, b.row_loads);
  if (a.row_dims == 0) a.row_dims = b.row_dims;
  alive_[static_cast<size_t>(from)] = false;
  merged_into_[static_cast<size_t>(from)] = into;
  append(added_[static_cast<size_t>(into)], added_[static_cast<size_t>(from)]);
  if (has_dependents_[static_cast<size_t>(from)]) has_dependents_[static_cast<size_t>(into)] = true;
  Bits gained = closure_[static_cast<size_t>(from)];
  unite(gained, closure_[static_cast<size_t>(into)]);
  closure_[static_cast<size_t>(into)] = gained;
  set(gained, into);
  for (int32_t u = 0; u < count(); ++u) {
    if (u != into && u != from && (depends(u, from) || depends(u, into)))
      unite(closure_[static_cast<size_t>(u)], gained);
  }
}

}  // namespace rosin::plan
