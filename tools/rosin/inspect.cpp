// The command `rosin inspect FILE`: names, shapes, types and sizes of what a file holds.
#include <algorithm>

#include <rosin/io.hpp>

#include "commands.hpp"
#include "text.hpp"

namespace command {
namespace {

std::string shape_text(const std::vector<uint64_t>& sizes) {
  std::string text = "(";
  for (size_t i = 0; i < sizes.size(); ++i) text += (i ? ", " : "") + std::to_string(sizes[i]);
  return text + ")";
}

uint64_t count_of(const rosin::TensorListing& tensor) {
  uint64_t count = 1;
  for (const uint64_t size : tensor.sizes) count *= size;
  return count;
}

struct Totals {
  uint64_t parameters = 0;
  uint64_t bytes = 0;
};

Totals totals_of(const rosin::FileListing& listing) {
  Totals totals;
  for (const rosin::TensorListing& tensor : listing.tensors) {
    totals.parameters += count_of(tensor);
    totals.bytes += tensor.bytes;
  }
  return totals;
}

/// Columns: name, type, shape, bytes; a name that fills them takes a line of its own.
void print_listing(const rosin::FileListing& listing) {
  constexpr size_t widest_name = 38;
  size_t width = 0;
  for (const rosin::TensorListing& tensor : listing.tensors) width = std::max(width, printable(tensor.name).size());
  width = std::min(width, widest_name) + 2;
  for (const rosin::TensorListing& tensor : listing.tensors) {
    std::string facts = tensor.type;
    facts.resize(std::max<size_t>(facts.size() + 1, 6), ' ');
    std::string figures = facts + shape_text(tensor.sizes);
    say(printable(tensor.name), width, figures + ", " + bytes_text(tensor.bytes));
  }
  for (const auto& [key, value] : listing.metadata) say(printable(key) + ":", width, printable(value));
  const Totals totals = totals_of(listing);
  say(count_text(listing.tensors.size(), "array") + ", " + count_text(totals.parameters, "parameter") + ", " +
      bytes_text(totals.bytes));
}

Json json_of(const std::string& file, const rosin::FileListing& listing) {
  Json arrays = Json::array(), metadata = Json::object();
  for (const rosin::TensorListing& tensor : listing.tensors) {
    arrays.push_back({{"name", tensor.name}, {"type", tensor.type}, {"shape", tensor.sizes}, {"bytes", tensor.bytes}});
  }
  for (const auto& [key, value] : listing.metadata) metadata[key] = value;
  const Totals totals = totals_of(listing);
  return {{"file", file},
          {"arrays", arrays},
          {"metadata", metadata},
          {"parameters", totals.parameters},
          {"bytes", totals.bytes}};
}

}  // namespace

Status inspect(const std::string& file, const Style& style) {
  const rosin::FileListing listing = as_usage([&] { return rosin::list_file(file); });
  if (style.json) print_json(json_of(file, listing));
  else print_listing(listing);
  return all_fine;
}

}  // namespace command
