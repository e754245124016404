// The JSON of safetensors headers, read event by event: nothing is built that the format does not have, so depth and
// memory stay bounded by the text. The one file that sees nlohmann-json; without it, both functions say so.
#include "io/safetensors_header.hpp"

#include <rosin/error.hpp>

#ifdef ROSIN_HAVE_JSON

#include <algorithm>

#include <nlohmann/json.hpp>

namespace rosin {
namespace {

/// The parser of nlohmann calls these (its names); a handler that throws ends the parse.
class HeaderEvents : public nlohmann::json_sax<nlohmann::json> {
 public:
  HeaderEvents(SafetensorsHeader& header, const std::string& path) : header_(header), path_(path) {}

  bool start_object(std::size_t) override {
    if (place_ == Place::start) return enter(Place::names);
    if (place_ == Place::names && has_key_) return start_entry();
    refuse("an object is not expected");
  }
  bool key(string_t& text) override {
    if (place_ == Place::tensor) {
      const unsigned field = text == "dtype" ? 1u : text == "shape" ? 2u : text == "data_offsets" ? 4u : 0u;
      if (field == 0) refuse("the key '" + text + "' is not one of dtype, shape, data_offsets");
      if (seen_ & field) refuse("the key '" + text + "' occurs twice");
      seen_ |= field;
    }
    key_ = std::move(text);
    has_key_ = true;
    return true;
  }
  bool end_object() override {
    if (place_ == Place::tensor && seen_ != 7u) refuse("one of dtype, shape, data_offsets is missing");
    return enter(place_ == Place::names ? Place::end : Place::names);
  }

  bool start_array(std::size_t) override {
    if (place_ != Place::tensor || key_ == "dtype") refuse("a list is not expected");
    numbers_.clear();
    return enter(Place::list);
  }
  bool end_array() override {
    TensorInfo& tensor = header_.tensors.back();
    if (key_ == "shape") {
      tensor.sizes = std::move(numbers_);
    } else {
      if (numbers_.size() != 2) refuse("data_offsets must be two numbers");
      tensor.begin = numbers_[0];
      tensor.end = numbers_[1];
    }
    return enter(Place::tensor);
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (place_ != Place::list) refuse("a number is not expected");
    numbers_.push_back(value);
    return true;
  }
  bool string(string_t& text) override {
    if (place_ == Place::metadata) {
      header_.metadata.emplace_back(key_, std::move(text));
    } else if (place_ == Place::tensor && key_ == "dtype") {
      header_.tensors.back().type = std::move(text);
    } else {
      refuse("a string is not expected");
    }
    return true;
  }

  bool null() override { refuse("null is not expected"); }
  bool boolean(bool) override { refuse("true or false is not expected"); }
  bool number_integer(number_integer_t) override { refuse("a number must not be negative"); }
  bool number_float(number_float_t, const string_t& text) override { refuse("a number must be whole, not " + text); }
  bool binary(binary_t&) override { refuse("bytes are not expected"); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) override {
    refuse_file(path_, "", "the header must be JSON in UTF-8", "it is not, at byte " + std::to_string(position));
  }

 private:
  enum class Place : uint8_t { start, names, metadata, tensor, list, end };

  bool enter(Place place) {
    place_ = place;
    return true;
  }
  bool start_entry() {
    has_key_ = false;
    if (key_ == "__metadata__") {
      if (has_metadata_) refuse("__metadata__ occurs twice");
      has_metadata_ = true;
      return enter(Place::metadata);
    }
    if (header_.tensors.size() == most_tensors) refuse("it has more than " + std::to_string(most_tensors) + " tensors");
    seen_ = 0;
    header_.tensors.push_back({key_, {}, {}, 0, 0});
    return enter(Place::tensor);
  }
  [[noreturn]] void refuse(const std::string& what) const {
    const bool inside = place_ == Place::tensor || place_ == Place::list;
    refuse_file(path_, inside ? header_.tensors.back().name : "",
                "the header must be an object of tensors with dtype, shape and data_offsets", what);
  }

  SafetensorsHeader& header_;
  const std::string& path_;
  Place place_ = Place::start;
  std::string key_;
  bool has_key_ = false;  // in `names`: the key of the entry to come
  bool has_metadata_ = false;
  unsigned seen_ = 0;  // fields of the tensor: 1 dtype, 2 shape, 4 data_offsets
  std::vector<uint64_t> numbers_;
};

void refuse_repeated(std::vector<std::string_view>& names, const std::string& path) {
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) refuse_file(path, std::string(*twice), "a name may be used once", "it occurs twice");
}

std::string quoted(const std::string& text) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception&) {
    throw Error(
        ErrorKind::argument,
        "save: names and texts must be UTF-8; one has other bytes; rename it, or save bytes as an array of UInt8");
  }
}

/// A list of texts and nothing else.
class ListEvents : public nlohmann::json_sax<nlohmann::json> {
 public:
  std::vector<std::string> texts;

  bool null() override { return false; }
  bool boolean(bool) override { return false; }
  bool number_integer(int64_t) override { return false; }
  bool number_unsigned(uint64_t) override { return false; }
  bool number_float(double, const std::string&) override { return false; }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return false; }
  bool key(std::string&) override { return false; }
  bool end_object() override { return false; }
  bool start_array(size_t) override { return !std::exchange(inside_, true); }
  bool end_array() override { return true; }
  bool string(std::string& text) override {
    texts.push_back(std::move(text));
    return inside_;
  }
  bool parse_error(size_t, const std::string&, const nlohmann::json::exception&) override { return false; }

 private:
  bool inside_ = false;
};

/// Objects named metadata and weight_map; whatever else there is, is passed by.
class IndexEvents : public nlohmann::json_sax<nlohmann::json> {
 public:
  IndexEvents(ShardIndex& index, const std::string& path) : index_(index), path_(path) {}
  bool found() const { return found_; }

  bool start_object(size_t) override {
    if (++depth_ == 2) place_ = key_ == "weight_map" ? &index_.files : key_ == "metadata" ? &index_.metadata : nullptr;
    found_ |= depth_ == 2 && key_ == "weight_map";
    return true;
  }
  bool end_object() override {
    if (depth_-- == 2) place_ = nullptr;
    return true;
  }
  bool start_array(size_t) override {
    if (++depth_ == 1) refuse("it is a list");
    return in_map() ? refuse("a file's name is a list") : true;
  }
  bool end_array() override { return --depth_ > 0; }
  bool key(std::string& text) override {
    if (depth_ <= 2) key_ = std::move(text);
    return true;
  }
  bool string(std::string& text) override { return add(std::move(text)); }
  bool number_unsigned(uint64_t value) override { return in_map() ? refuse_number() : add(std::to_string(value)); }
  bool number_integer(int64_t value) override { return in_map() ? refuse_number() : add(std::to_string(value)); }
  bool number_float(double, const std::string& text) override { return in_map() ? refuse_number() : add(text); }
  bool null() override { return in_map() ? refuse_number() : true; }
  bool boolean(bool) override { return in_map() ? refuse_number() : true; }
  bool binary(binary_t&) override { return false; }
  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception&) override {
    refuse("it is no JSON in UTF-8, at byte " + std::to_string(position));
  }
  [[noreturn]] bool refuse(const std::string& what) const {
    refuse_file(path_, "", "an index must be an object whose weight_map gives a file for each tensor", what);
  }

 private:
  bool in_map() const { return place_ == &index_.files; }
  [[noreturn]] bool refuse_number() const { refuse("a file's name is no text"); }
  bool add(std::string text) {
    if (depth_ == 0) refuse("it is no object");
    if (place_ && depth_ == 2) place_->emplace_back(key_, std::move(text));
    if (index_.files.size() > most_tensors) refuse("it has more than " + std::to_string(most_tensors) + " tensors");
    return true;
  }

  ShardIndex& index_;
  const std::string& path_;
  std::vector<std::pair<std::string, std::string>>* place_ = nullptr;
  std::string key_;
  int64_t depth_ = 0;
  bool found_ = false;
};

/// The members of an object: "a":"b","c":"d".
std::string members_text(const std::vector<std::pair<std::string, std::string>>& members) {
  std::string text;
  for (const auto& [key, value] : members) text += (text.empty() ? "" : ",") + quoted(key) + ":" + quoted(value);
  return text;
}

void refuse_repeated_keys(const std::vector<std::pair<std::string, std::string>>& members, const std::string& path) {
  std::vector<std::string_view> keys;
  for (const auto& member : members) keys.push_back(member.first);
  refuse_repeated(keys, path);
}

}  // namespace

ShardIndex parse_index(std::string_view json, const std::string& path) {
  ShardIndex index;
  IndexEvents events(index, path);
  nlohmann::json::sax_parse(json.begin(), json.end(), &events);
  if (!events.found()) events.refuse("it has no weight_map");
  refuse_repeated_keys(index.files, path);
  refuse_repeated_keys(index.metadata, path);
  return index;
}

std::string index_text(const ShardIndex& index, uint64_t total_bytes) {
  const std::string comma = index.metadata.empty() ? "" : ",";
  return "{\"metadata\":{\"total_size\":" + std::to_string(total_bytes) + comma + members_text(index.metadata) +
         "},\"weight_map\":{" + members_text(index.files) + "}}\n";
}

std::string list_text(const std::vector<std::string>& texts) {
  std::string list = "[";
  for (const std::string& text : texts) list += (list.size() > 1 ? "," : "") + quoted(text);
  return list + "]";
}

std::vector<std::string> parse_list(const std::string& json, std::string_view name) {
  ListEvents events;
  if (nlohmann::json::sax_parse(json.begin(), json.end(), &events)) return std::move(events.texts);
  throw Error(ErrorKind::io, "load: a vector of texts must be a JSON list of strings; the entry '" + std::string(name) +
                                 "' is not; read it as one text");
}

SafetensorsHeader parse_header(std::string_view json, const std::string& path) {
  SafetensorsHeader header;
  HeaderEvents events(header, path);
  nlohmann::json::sax_parse(json.begin(), json.end(), &events);
  std::vector<std::string_view> names;
  for (const TensorInfo& tensor : header.tensors) names.push_back(tensor.name);
  refuse_repeated(names, path);
  refuse_repeated_keys(header.metadata, path);
  return header;
}

std::string header_text(const SafetensorsHeader& header) {
  std::string text = "{\"__metadata__\":{" + members_text(header.metadata) + "}";
  for (const TensorInfo& tensor : header.tensors) {
    text += "," + quoted(tensor.name) + ":{\"dtype\":\"" + tensor.type + "\",\"shape\":[";
    for (size_t d = 0; d < tensor.sizes.size(); ++d) text += (d ? "," : "") + std::to_string(tensor.sizes[d]);
    text += "],\"data_offsets\":[" + std::to_string(tensor.begin) + "," + std::to_string(tensor.end) + "]}";
  }
  text += "}";
  text.append((8 - text.size() % 8) % 8, ' ');
  return text;
}

}  // namespace rosin

#else

namespace rosin {
namespace {

[[noreturn]] void refuse_format(const std::string& what) {
  throw Error(ErrorKind::io, what +
                                 ": safetensors needs nlohmann-json; this rosin was built without it; install "
                                 "nlohmann-json3-dev and build rosin again");
}

}  // namespace

SafetensorsHeader parse_header(std::string_view, const std::string& path) { refuse_format("load: '" + path + "'"); }
std::string header_text(const SafetensorsHeader&) { refuse_format("save"); }
ShardIndex parse_index(std::string_view, const std::string& path) { refuse_format("load: '" + path + "'"); }
std::string index_text(const ShardIndex&, uint64_t) { refuse_format("save"); }
std::string list_text(const std::vector<std::string>&) { refuse_format("save"); }
std::vector<std::string> parse_list(const std::string&, std::string_view) { refuse_format("load"); }

}  // namespace rosin

#endif
