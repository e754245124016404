// See rare_code.hpp.
#include "cpu/rare_code.hpp"

#include <algorithm>

namespace rosin::cpu {
namespace {

constexpr ptrdiff_t least_leap = 24;  // instructions; fewer take no longer than a leap that was not foreseen

bool computes(const Instruction& made) { return info(made.primitive).arity > 0; }

/// Who reads each place of a code.
struct Readers {
  explicit Readers(const LoopText& text) : of(text.code.list.size()), written(text.code.list.size(), false) {
    for (size_t place = 0; place < of.size(); ++place) {
      const Instruction& made = text.code.list[place];
      for (int i = 0; i < info(made.primitive).arity; ++i) of[made.operands[i]].push_back(place);
    }
    for (const LoopOutput& output : text.outputs) written[output.place] = true;
  }
  std::vector<std::vector<size_t>> of;
  std::vector<bool> written;
};

/// What only that side of a choice reads, in rising order.
std::vector<size_t> read_by_side(const LoopText& text, const Readers& readers, size_t choice, int side) {
  const std::vector<Instruction>& list = text.code.list;
  const Instruction& made = list[choice];
  std::vector<bool> inside(choice, false);
  std::vector<size_t> places;
  const auto reads_for_side = [&](size_t reader, size_t place) {
    if (reader < choice) return static_cast<bool>(inside[reader]);
    return reader == choice && made.operands[0] != place && made.operands[3 - side] != place;
  };
  for (size_t place = choice; place-- > 0;) {
    const std::vector<size_t>& of = readers.of[place];
    if (!computes(list[place]) || readers.written[place] || of.empty()) continue;
    inside[place] = std::all_of(of.begin(), of.end(), [&](size_t reader) { return reads_for_side(reader, place); });
    if (inside[place]) places.push_back(place);
  }
  std::reverse(places.begin(), places.end());
  return places;
}

}  // namespace

OrderedText with_rare_code_together(const LoopText& text) {
  const std::vector<Instruction>& list = text.code.list;
  const Readers readers(text);
  struct Side {
    size_t choice;
    int number;
    std::vector<size_t> places;
  };
  std::vector<Side> sides;
  std::vector<bool> moves(list.size(), false);
  for (size_t choice = 0; choice < list.size(); ++choice) {  // inner choices come first, and move once
    if (list[choice].primitive != Primitive::select) continue;
    for (int side = 1; side <= 2; ++side) {
      std::vector<size_t> places = read_by_side(text, readers, choice, side);
      const bool moved = std::any_of(places.begin(), places.end(), [&](size_t place) { return moves[place]; });
      if (moved || std::ssize(places) < least_leap) continue;
      for (const size_t place : places) moves[place] = true;
      sides.push_back({choice, side, std::move(places)});
    }
  }
  if (sides.empty()) return {text, {}};
  OrderedText ordered{text, {}};
  std::vector<Instruction>& out = ordered.text.code.list;
  out.clear();
  std::vector<uint16_t> now(list.size());
  const auto add = [&](size_t place) {
    now[place] = static_cast<uint16_t>(out.size());
    Instruction made = list[place];
    for (int i = 0; i < info(made.primitive).arity; ++i) made.operands[i] = now[made.operands[i]];
    out.push_back(made);
  };
  for (size_t place = 0; place < list.size(); ++place) {
    if (moves[place]) continue;
    for (const Side& side : sides) {
      if (side.choice != place) continue;
      const size_t first = out.size();
      for (const size_t rare : side.places) add(rare);
      ordered.rare.push_back({first, out.size(), now[list[place].operands[0]], side.number == 1});
    }
    add(place);
  }
  for (LoopOutput& output : ordered.text.outputs) output.place = now[output.place];
  ordered.text.code.result = now[text.code.result];
  return ordered;
}

}  // namespace rosin::cpu
