// Reads documents front to back through a small window of the file. Lengths must agree with what they enclose.
#include "io/bson_document.hpp"

#include <algorithm>
#include <cstring>
#include <map>

#include "io/julia_tree.hpp"

namespace rosin {
namespace {

constexpr int deepest = 500;
constexpr uint64_t longest_text = uint64_t{1} << 24;

class BsonParser {
 public:
  explicit BsonParser(const InputFile& file) : file_(file) {}

  BsonFile parsed() {
    if (file_.size() < 5) refuse("a BSON file has at least five bytes", "it has " + std::to_string(file_.size()));
    parsed_.elements.push_back({});
    parsed_.elements[0].type = BsonType::document;
    parsed_.elements[0].text = BsonElement::no_text;
    read_children(0, file_.size(), 0);
    if (at_ != file_.size()) {
      refuse("the document must fill the file", std::to_string(file_.size() - at_) + " bytes follow it");
    }
    return std::move(parsed_);
  }

 private:
  [[noreturn]] void refuse(const std::string& rule, const std::string& what) const {
    refuse_at(file_.path(), at_, rule, what);
  }

  /// The next `count` bytes, which end before `end`.
  const unsigned char* take(uint64_t count, uint64_t end) {
    if (count > end - at_) refuse("an element must end within its document", "it is cut off");
    if (at_ < window_start_ || at_ + count > window_start_ + window_.size()) {
      constexpr uint64_t usual = 1 << 16;
      window_.resize(static_cast<size_t>(std::min(std::max(usual, count), file_.size() - at_)));
      file_.read(at_, window_.data(), window_.size());
      window_start_ = at_;
    }
    const unsigned char* bytes = window_.data() + (at_ - window_start_);
    at_ += count;
    return bytes;
  }

  template <class T> T number(uint64_t end) {
    T value;
    std::memcpy(&value, take(sizeof value, end), sizeof value);
    return value;
  }

  uint32_t remember(std::string text) {
    const auto [entry, fresh] = known_.emplace(std::move(text), static_cast<uint32_t>(parsed_.texts.size()));
    if (fresh) parsed_.texts.push_back(entry->first);
    return entry->second;
  }

  uint32_t key(uint64_t end) {
    std::string text;
    while (const unsigned char c = *take(1, end)) {
      if (text.size() == 4096) refuse("a key has at most 4096 bytes", "one is longer");
      text.push_back(static_cast<char>(c));
    }
    return remember(std::move(text));
  }

  /// A length of at least `least` that ends before `end`.
  uint64_t length(int32_t least, uint64_t end) {
    const int32_t stated = number<int32_t>(end);
    if (stated < least || static_cast<uint64_t>(stated) > end - at_) {
      refuse("a length must agree with what encloses it",
             "it states " + std::to_string(stated) + " bytes of " + std::to_string(end - at_));
    }
    return static_cast<uint64_t>(stated);
  }

  uint32_t text(uint64_t end) {
    const uint64_t bytes = length(1, end);
    if (bytes > longest_text) refuse("a text has at most 2^24 bytes", "one has " + std::to_string(bytes));
    const unsigned char* first = take(bytes, end);
    if (first[bytes - 1] != 0) refuse("a text must end with a zero byte", "it does not");
    return remember(std::string(reinterpret_cast<const char*>(first), bytes - 1));
  }

  void read_children(uint32_t document, uint64_t end, int depth) {
    if (depth > deepest) refuse("documents are nested at most 500 deep", "this one is deeper");
    const uint64_t start = at_;
    const int32_t stated = number<int32_t>(end);
    if (stated < 5 || static_cast<uint64_t>(stated) > end - start) {
      refuse("a document's length must agree with what encloses it",
             "it states " + std::to_string(stated) + " bytes of " + std::to_string(end - start));
    }
    const uint64_t last = start + static_cast<uint64_t>(stated);
    std::vector<uint32_t> children;
    while (const unsigned char type = *take(1, last)) children.push_back(read_element(type, last, depth));
    if (at_ != last)
      refuse("a document must end where its length says", "it ends " + std::to_string(last - at_) + " bytes before");
    BsonElement& element = parsed_.elements[document];
    for (uint32_t each : children) {
      const BsonElement& child = parsed_.elements[each];
      const bool tag = child.type == BsonType::text && parsed_.key(each) == "tag";
      if (tag && element.type == BsonType::document) element.text = child.text;
    }
    element.first = static_cast<uint32_t>(parsed_.order.size());
    element.count = static_cast<uint32_t>(children.size());
    parsed_.order.insert(parsed_.order.end(), children.begin(), children.end());
  }

  uint32_t read_element(unsigned char type, uint64_t end, int depth) {
    if (parsed_.elements.size() == JuliaTree::most_values) refuse("a file has at most 2^22 elements", "it has more");
    const auto index = static_cast<uint32_t>(parsed_.elements.size());
    BsonElement element{};
    element.type = static_cast<BsonType>(type);
    element.place = at_ - 1;
    element.key = key(end);
    switch (element.type) {
      case BsonType::real: element.real = number<double>(end); break;
      case BsonType::text: element.text = text(end); break;
      case BsonType::document:
      case BsonType::array: element.text = BsonElement::no_text; break;
      case BsonType::binary:
        element.bytes = length(0, end - std::min<uint64_t>(end - at_, 1));
        take(1, end);  // the subtype says nothing here
        element.place = at_;
        at_ += element.bytes;
        break;
      case BsonType::boolean: element.integer = *take(1, end) != 0; break;
      case BsonType::nothing: break;
      case BsonType::int32: element.integer = number<int32_t>(end); break;
      case BsonType::int64: element.integer = number<int64_t>(end); break;
      default: --at_; refuse("elements have the types that BSON.jl writes", "one has type " + std::to_string(type));
    }
    parsed_.elements.push_back(element);
    if (element.type == BsonType::document || element.type == BsonType::array) read_children(index, end, depth + 1);
    return index;
  }

  const InputFile& file_;
  uint64_t at_ = 0;
  uint64_t window_start_ = 0;
  std::vector<unsigned char> window_;
  BsonFile parsed_;
  std::map<std::string, uint32_t> known_;
};

}  // namespace

const BsonElement* BsonFile::child(const BsonElement& element, std::string_view wanted) const {
  for (uint32_t each : children(element)) {
    if (key(each) == wanted) return &elements[each];
  }
  return nullptr;
}

BsonFile read_bson(const InputFile& file) { return BsonParser(file).parsed(); }

}  // namespace rosin
