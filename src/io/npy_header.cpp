// A parser of the one literal that headers hold: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }.
#include "io/npy_header.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <optional>

#include <rosin/error.hpp>

#include "io/julia_tree.hpp"

namespace rosin {
namespace {

struct NpyType {
  const char* name;  // without the order of bytes
  DType type;
};

constexpr NpyType npy_types[] = {
    {"b1", DType::Bool},       {"u1", DType::UInt8},       {"i1", DType::Int8},    {"i2", DType::Int16},
    {"u2", DType::UInt16},     {"i4", DType::Int32},       {"u4", DType::UInt32},  {"i8", DType::Int64},
    {"u8", DType::UInt64},     {"f2", DType::Float16},     {"f4", DType::Float32}, {"f8", DType::Float64},
    {"c8", DType::ComplexF32}, {"c16", DType::ComplexF64},
};

constexpr uint64_t longest_header = uint64_t{1} << 20;

class HeaderParser {
 public:
  HeaderParser(const NpyBytes& bytes, std::string text, uint64_t start)
      : bytes_(bytes), text_(std::move(text)), start_(start) {}

  NpyHeader parsed() {
    NpyHeader header;
    expect('{');
    bool type = false, order = false, shape = false;
    while (!accept('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr" && !type) read_type(header), type = true;
      else if (key == "fortran_order" && !order) header.fortran_order = truth(), order = true;
      else if (key == "shape" && !shape) read_shape(header), shape = true;
      else refuse("the keys are descr, fortran_order and shape, each once", "another one is '" + key + "'");
      if (!accept(',') && peek() != '}') refuse("entries must be parted by commas", "one is missing");
    }
    if (!type || !order || !shape) refuse("a header has descr, fortran_order and shape", "one is missing");
    skip_spaces();
    if (at_ != text_.size()) refuse("a header ends after its literal", "more follows");
    return header;
  }

 private:
  [[noreturn]] void refuse(const std::string& rule, const std::string& what) const {
    bytes_.refuse(start_ + at_, rule, what);
  }
  void skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  char peek() {
    skip_spaces();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) refuse(std::string("a header has '") + c + "' here", "it has another character");
  }
  std::string quoted() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') refuse("a header has a text here", "it has none");
    const size_t end = text_.find(quote, ++at_);
    if (end == std::string::npos) refuse("a text must end", "it does not");
    std::string found = text_.substr(at_, end - at_);
    at_ = end + 1;
    return found;
  }
  bool truth() {
    skip_spaces();
    for (const char* word : {"True", "False"}) {
      if (text_.compare(at_, std::strlen(word), word) != 0) continue;
      at_ += std::strlen(word);
      return word[0] == 'T';
    }
    refuse("fortran_order is True or False", "it is neither");
  }

  void read_type(NpyHeader& header) {
    if (peek() == '[') refuse_type("a structure");
    const std::string text = quoted();
    const bool known_order = !text.empty() && std::strchr("<>|=", text[0]) != nullptr;
    if (!known_order) refuse_type("'" + text + "'");
    const auto* row = std::find_if(std::begin(npy_types), std::end(npy_types),
                                   [&](const NpyType& each) { return text.substr(1) == each.name; });
    if (row == std::end(npy_types)) refuse_type("'" + text + "'");
    header.type = row->type;
    header.big_endian = text[0] == '>';
  }
  [[noreturn]] void refuse_type(const std::string& what) const {
    throw Error(ErrorKind::dtype, "load: elements must be numbers or Bool; '" + bytes_.file->path() + "' at byte " +
                                      std::to_string(start_ + at_) + " has " + what +
                                      "; convert it with NumPy's astype and save it again");
  }

  void read_shape(NpyHeader& header) {
    expect('(');
    while (!accept(')')) {
      skip_spaces();
      size_t end = at_;
      while (end < text_.size() && text_[end] >= '0' && text_[end] <= '9') ++end;
      if (end == at_ || end - at_ > 18) refuse("sizes must be counts", "one is none");
      header.sizes.push_back(std::stoll(text_.substr(at_, end - at_)));
      at_ = end;
      if (accept('L')) continue;  // of Python 2
      if (!accept(',') && peek() != ')') refuse("sizes must be parted by commas", "one is missing");
      if (header.sizes.size() > 64) refuse("NumPy's arrays have at most 64 dims", "this one has more");
    }
  }

  const NpyBytes& bytes_;
  std::string text_;
  uint64_t start_;
  size_t at_ = 0;
};

}  // namespace

void NpyBytes::read(uint64_t offset, void* target, uint64_t count) const {
  if (offset > size || count > size - offset) {
    refuse(offset, "the file must hold what its header states", "it is cut off");
  }
  if (count == 0) return;
  if (memory) std::memcpy(target, memory + offset, static_cast<size_t>(count));
  else file->read(place + offset, target, static_cast<size_t>(count));
}

void NpyBytes::refuse(uint64_t offset, const std::string& rule, const std::string& what) const {
  refuse_at(file->path(), place + (memory ? 0 : offset), rule, what);
}

NpyHeader read_npy_header(const NpyBytes& bytes) {
  unsigned char head[12] = {};
  bytes.read(0, head, 8);
  if (std::memcmp(head, "\x93NUMPY", 6) != 0) bytes.refuse(0, "a .npy file begins with \\x93NUMPY", "it does not");
  const unsigned version = head[6];
  if (version < 1 || version > 3) bytes.refuse(6, "the version is 1, 2 or 3", "it is " + std::to_string(version));
  const uint64_t wide = version == 1 ? 2 : 4;
  bytes.read(8, head + 8, wide);
  uint64_t length = 0;
  for (uint64_t i = wide; i-- > 0;) length = length << 8 | head[8 + i];
  if (length > longest_header || length > bytes.size) {
    bytes.refuse(8, "the header must fit the file", "it states " + std::to_string(length) + " bytes");
  }
  std::string text(static_cast<size_t>(length), '\0');
  bytes.read(8 + wide, text.data(), length);
  NpyHeader header = HeaderParser(bytes, std::move(text), 8 + wide).parsed();
  header.data = 8 + wide + length;
  const auto needed = julia_bytes(header.sizes, size_of(header.type));
  if (!needed || *needed != bytes.size - header.data) {
    bytes.refuse(header.data, "the elements must fill the file",
                 "there are " + std::to_string(bytes.size - header.data) + " bytes" +
                     (needed ? " of " + std::to_string(*needed) : ""));
  }
  header.bytes = *needed;
  return header;
}

std::string npy_type(DType type) {
  for (const NpyType& row : npy_types) {
    if (row.type == type) return (size_of(type) == 1 ? "|" : "<") + std::string(row.name);
  }
  return "";
}

std::string npy_header_text(DType type, const std::vector<int64_t>& sizes) {
  const std::string name = npy_type(type);
  if (name.empty()) {
    throw Error(ErrorKind::dtype, std::string("save: NumPy's files have NumPy's types; got ") + to_string(type) +
                                      "; convert it to Float32 or Float16 first");
  }
  std::string text = "{'descr': '" + name + "', 'fortran_order': False, 'shape': (";
  for (size_t d = 0; d < sizes.size(); ++d) text += (d ? ", " : "") + std::to_string(sizes[d]);
  text += sizes.size() == 1 ? ",), }" : "), }";
  const size_t length = (10 + text.size() + 1 + 63) / 64 * 64 - 10;
  text.append(length - text.size() - 1, ' ');
  text.push_back('\n');
  const char head[10] = {
      '\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0, static_cast<char>(length & 255), static_cast<char>(length >> 8)};
  return std::string(head, 10) + text;
}

}  // namespace rosin
