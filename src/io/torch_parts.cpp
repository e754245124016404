// See torch_parts.hpp.
#include "io/torch_parts.hpp"

#include <algorithm>
#include <map>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/movement.hpp>
#include <rosin/reduce.hpp>

namespace rosin {
namespace {

bool has_two(const TorchPlace& place) {
  return place.storage == TorchStorage::summed || place.storage == TorchStorage::gated;
}

/// The name of the bias of the recurrent weight beside that of the input's.
std::string second_bias(std::string name) { return name.replace(name.rfind("bias_ih"), 7, "bias_hh"); }

using Entries = std::map<std::string, Array>;

/// The places that are rows of one array, in their order.
using Wholes = std::map<std::string, std::vector<const TorchPlace*>>;
Wholes wholes_of(const std::vector<TorchPlace>& places) {
  Wholes wholes;
  for (const TorchPlace& place : places) {
    if (!place.whole.empty() && place.rows > 0) wholes[place.whole].push_back(&place);
  }
  return wholes;
}

void take_apart(const Wholes& wholes, Entries& entries) {
  for (const auto& [name, parts] : wholes) {
    const auto found = entries.find(name);
    int64_t rows = 0;
    for (const TorchPlace* part : parts) rows += part->rows;
    if (found == entries.end() || found->second.rank() == 0 || found->second.size(0) != rows) continue;
    const Array whole = found->second;
    entries.erase(found);
    int64_t begin = 0;
    for (const TorchPlace* part : parts) {
      entries[part->torch_name] = slice(whole, 0, begin, begin + part->rows);
      begin += part->rows;
    }
  }
}

/// Whether the model has a place for the bias inside the reset gate.
bool has_inside(const std::vector<TorchPlace>& places, const std::string& name) {
  return std::ranges::any_of(places, [&](const TorchPlace& place) {
    return place.storage == TorchStorage::inside && place.rows > 0 && place.torch_name == name;
  });
}

void add_biases(const std::vector<TorchPlace>& places, const TorchPlace& place, Entries& entries) {
  const auto first = entries.find(place.torch_name), second = entries.find(second_bias(place.torch_name));
  if (first == entries.end() || second == entries.end()) return;
  const Array other = second->second;
  if (place.storage == TorchStorage::summed || other.rank() != 1) {
    first->second = first->second + other;
    entries.erase(second);
    return;
  }
  const int64_t before = other.size(0) / 3 * 2;
  const Array inside = slice(other, 0, before, to_end);
  first->second = first->second + pad(slice(other, 0, 0, before), 0, 0, other.size(0) - before);
  if (has_inside(places, second->first)) {
    second->second = inside;
    return;
  }
  if (any(ne(inside, 0)).item<bool>()) {
    throw Error(ErrorKind::argument, "GRU: the last third of '" + second->first +
                                         "' is a bias inside the reset gate, where this GRU has none; it is not 0; "
                                         "give the cell one first: cell.reset_bias = zeros({out})");
  }
  entries.erase(second);
}

}  // namespace

std::vector<NamedArray> parted(const std::vector<TorchPlace>& places, const std::vector<NamedArray>& entries) {
  Entries all;
  for (const NamedArray& entry : entries) all[entry.name] = entry.value;
  take_apart(wholes_of(places), all);
  for (const TorchPlace& place : places) {
    if (has_two(place)) add_biases(places, place, all);
    const auto alone = place.alone.empty() ? all.end() : all.find(place.alone);
    if (alone == all.end()) continue;
    all[place.torch_name] = alone->second;
    all.erase(alone);
  }
  std::vector<NamedArray> result;
  for (const auto& [name, value] : all) result.push_back({name, value});
  return result;
}

void join_parts(const std::vector<TorchPlace>& places, std::vector<OutgoingArray>& arrays) {
  const auto find = [&](const std::string& name) {
    return std::ranges::find_if(arrays, [&](const OutgoingArray& one) { return one.name == name; });
  };
  for (const auto& [name, parts] : wholes_of(places)) {
    std::vector<Array> rows;
    for (const TorchPlace* part : parts) {
      if (const auto at = find(part->torch_name); at != arrays.end()) rows.push_back(at->array);
    }
    // Tied ones stand there once.
    const bool complete = rows.size() == parts.size();
    const bool joins = complete && (rows[0].rank() == 1 || std::ranges::all_of(rows, [&](const Array& x) {
                                      return x.shape() == rows[0].shape();
                                    }));
    for (const TorchPlace* part : parts) {
      const auto at = find(part->torch_name);
      if (at == arrays.end()) continue;
      if (joins) arrays.erase(at);
      else at->name = part->alone;
    }
    if (!joins) continue;
    const Array whole = concat(rows, 0);
    arrays.push_back({name, whole, whole.shape()});
  }
  for (const TorchPlace& place : places) {
    const auto at = has_two(place) ? find(place.torch_name) : arrays.end();
    if (at == arrays.end()) continue;
    const std::string name = second_bias(place.torch_name);
    if (const auto inside = find(name); inside != arrays.end()) {
      inside->array = pad(inside->array, 0, at->array.size(0) - inside->array.size(0), 0);
      inside->shape = inside->array.shape();
      continue;
    }
    const Array none = zeros_like(at->array);
    arrays.push_back({name, none, none.shape()});
  }
}

}  // namespace rosin
