// The commands `rosin inspect FILE`: names, shapes, types, sizes and statistics of what a file holds; and `rosin
// convert IN OUT`.
#include <algorithm>
#include <map>

#include <rosin/io.hpp>
#include <rosin/onnx.hpp>

#include "commands.hpp"
#include "statistics.hpp"
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

using StatisticsByName = std::map<std::string, Statistics>;

bool is_onnx(const std::string& file) { return file.ends_with(".onnx"); }

/// Of files that can be mapped one after another.
StatisticsByName statistics_of_file(const std::string& file) {
  const bool maps = file.ends_with(".safetensors") || file.ends_with(".index.json") || file.ends_with(".npy");
  StatisticsByName found;
  for (const rosin::NamedArray& entry :
       is_onnx(file) ? rosin::onnx::initializers(file) : rosin::load(file, {.map = maps}).arrays()) {
    if (!entry.value.is_nothing()) found.emplace(entry.name, statistics_of(entry.value));
  }
  return found;
}

/// Columns: name, type, shape, bytes; a name that fills them takes a line of its own.
void print_listing(const rosin::FileListing& listing, const StatisticsByName& statistics) {
  constexpr size_t widest_name = 38;
  size_t width = 0;
  for (const rosin::TensorListing& tensor : listing.tensors) width = std::max(width, printable(tensor.name).size());
  width = std::min(width, widest_name) + 2;
  for (const rosin::TensorListing& tensor : listing.tensors) {
    std::string facts = tensor.type;
    facts.resize(std::max<size_t>(facts.size() + 1, 6), ' ');
    std::string figures = facts + shape_text(tensor.sizes);
    say(printable(tensor.name), width, figures + ", " + bytes_text(tensor.bytes));
    const auto found = statistics.find(tensor.name);
    if (found != statistics.end()) say("", width, statistics_text(found->second));
  }
  for (const auto& [key, value] : listing.metadata) say(printable(key) + ":", width, printable(value));
  const Totals totals = totals_of(listing);
  say(count_text(listing.tensors.size(), "array") + ", " + count_text(totals.parameters, "parameter") + ", " +
      bytes_text(totals.bytes));
}

Json json_of(const std::string& file, const rosin::FileListing& listing, const StatisticsByName& statistics) {
  Json arrays = Json::array(), metadata = Json::object();
  for (const rosin::TensorListing& tensor : listing.tensors) {
    arrays.push_back({{"name", tensor.name}, {"type", tensor.type}, {"shape", tensor.sizes}, {"bytes", tensor.bytes}});
    const auto found = statistics.find(tensor.name);
    if (found != statistics.end()) arrays.back()["statistics"] = statistics_json(found->second);
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

Status inspect(const std::string& file, bool with_statistics, const Style& style) {
  const rosin::FileListing listing =
      as_usage([&] { return is_onnx(file) ? rosin::onnx::list_file(file) : rosin::list_file(file); });
  const StatisticsByName statistics = with_statistics ? statistics_of_file(file) : StatisticsByName();
  if (style.json) print_json(json_of(file, listing, statistics));
  else print_listing(listing, statistics);
  return all_fine;
}

Status convert(const std::string& from, const std::string& to, const Style& style) {
  as_usage([&] { return rosin::list_file(from); });
  const rosin::SavedFile file = rosin::load(from);
  as_usage([&] {
    rosin::save(to, file.arrays());
    return 0;
  });
  const Totals totals = totals_of(rosin::list_file(to));
  if (style.json) {
    print_json(
        {{"file", to}, {"arrays", file.arrays().size()}, {"parameters", totals.parameters}, {"bytes", totals.bytes}});
  } else {
    say(count_text(file.arrays().size(), "array") + ", " + bytes_text(totals.bytes));
  }
  return all_fine;
}

}  // namespace command
