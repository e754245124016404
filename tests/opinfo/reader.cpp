// Reads tests/oracles/opinfo/FAMILY.npz; its format is told at the top of tests/oracles/make_opinfo.py.
#include <charconv>
#include <cmath>
#include <sstream>

#include <rosin/complex.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/io.hpp>

#include "call.hpp"

namespace rosin::opinfo {
namespace {

enum TensorType : int64_t { type_bool, type_integer, type_float, type_wide_float, type_complex, type_wide_complex };

/// The tensors of one file.
class Tensors {
 public:
  explicit Tensors(const SavedFile& file) : table_(file["tensors"].to_vector<int64_t>()) {
    const size_t pools = 4;
    constexpr const char* names[pools] = {"u8", "i64", "f32", "f64"};
    for (size_t i = 0; i < pools; ++i) {
      if (file.contains(names[i])) pools_[i] = file[names[i]].to_vector<double>();
    }
  }

  Expected expected(size_t at) const {
    Expected tensor;
    tensor.shape = shape(at);
    const double* const first = elements(at);
    const bool is_complex = type(at) >= type_complex;
    tensor.elements.assign(first, first + tensor.shape.count() * (is_complex ? 2 : 1));
    tensor.kind = is_complex                 ? Expected::Kind::complex
                  : type(at) >= type_float   ? Expected::Kind::real
                  : type(at) == type_integer ? Expected::Kind::integer
                                             : Expected::Kind::boolean;
    return tensor;
  }

  Array array(size_t at) const {
    const Expected tensor = expected(at);
    switch (tensor.kind) {
      case Expected::Kind::boolean: return made<uint8_t>(tensor, Bool);
      case Expected::Kind::integer: return Array(copied<int64_t>(tensor.elements), tensor.shape);
      case Expected::Kind::real: return Array(copied<float>(tensor.elements), tensor.shape);
      default: return parts(tensor);
    }
  }

 private:
  static constexpr size_t columns = 11;

  template <class T> static std::vector<T> copied(const std::vector<double>& values) {
    std::vector<T> all;
    for (const double value : values) all.push_back(static_cast<T>(value));
    return all;
  }
  template <class T> static Array made(const Expected& tensor, DType type) {
    return cast(Array(copied<T>(tensor.elements), tensor.shape), type);
  }
  static Array parts(const Expected& tensor) {
    std::vector<int64_t> sizes{2};
    sizes.insert(sizes.end(), tensor.shape.begin(), tensor.shape.end());
    return view_as_complex(Array(copied<float>(tensor.elements), Shape(std::span<const int64_t>(sizes))));
  }

  const int64_t* row(size_t at) const { return table_.data() + at * columns; }
  int64_t type(size_t at) const { return row(at)[0]; }
  const double* elements(size_t at) const {
    constexpr size_t pool[] = {0, 1, 2, 3, 2, 3};
    return pools_[pool[type(at)]].data() + row(at)[1];
  }
  Shape shape(size_t at) const {
    const int64_t* const numbers = row(at);
    std::vector<int64_t> sizes(numbers + 3, numbers + 3 + numbers[2]);
    sizes = reversed(sizes);
    return Shape(std::span<const int64_t>(sizes));
  }

  std::vector<int64_t> table_;  // row after row
  std::vector<double> pools_[4];
};

/// The words of one line.
class Line {
 public:
  Line(const std::string& text, const Tensors& tensors) : words_(text), tensors_(&tensors) { next(); }

  Sample sample() {
    Sample sample;
    call_ = &sample.call;
    while (word_ != "|") call_->values.push_back(value());
    for (next(); word_ != "|";) {
      std::string name = word_.substr(0, word_.size() - 1);
      next();
      call_->named.emplace(std::move(name), value());
    }
    next();
    sample.outputs = tensors();
    sample.gradients = tensors();
    sample.second = tensors();
    return sample;
  }

 private:
  void next() {
    if (!(words_ >> word_)) word_.clear();
  }

  std::vector<Expected> tensors() {
    std::vector<Expected> all;
    for (; !word_.empty() && word_ != "|"; next()) {
      Expected one;
      if (word_ == "-") one.missing = true;
      else one = tensors_->expected(std::stoul(word_.substr(1)));
      one.in_the_loss = word_[0] == '&';
      if (const size_t types = word_.find(':'); types != std::string::npos) {
        const size_t comma = word_.find(',');
        one.types[0] = word_.substr(types + 1, comma - types - 1);
        one.types[1] = word_.substr(comma + 1);
      }
      all.push_back(std::move(one));
    }
    next();
    return all;
  }

  Value value() {
    Value value;
    const std::string word = word_;
    next();
    if (word == "[" || word == "slice[") {
      value.kind = word == "[" ? Value::Kind::list : Value::Kind::slice;
      while (word_ != "]") value.items.push_back(this->value());
      next();
      return value;
    }
    const std::string rest = word.substr(1);
    switch (word[0]) {
      case 't': value.number = 1; [[fallthrough]];
      case 'f': value.kind = Value::Kind::boolean; break;
      case 'i':
        value.kind = Value::Kind::integer;
        value.number = std::stod(rest);
        break;
      case 'd':
        value.kind = Value::Kind::real;
        value.number = std::stod(rest);
        break;
      case 's':
        value.kind = Value::Kind::text;
        value.text = unquoted(rest);
        break;
      case '-': break;
      default: array(value, word[0] == '&', std::stoul(rest));
    }
    return value;
  }

  void array(Value& value, bool variable, size_t tensor) {
    value.kind = Value::Kind::array;
    value.at = call_->arrays.size();
    if (variable) call_->variables.push_back(value.at);
    call_->arrays.push_back(tensors_->array(tensor));
  }

  static std::string unquoted(const std::string& text) {
    std::string plain;
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] != '%') plain += text[i];
      else plain += static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16)), i += 2;
    }
    return plain;
  }

  std::istringstream words_;
  std::string word_;
  const Tensors* tensors_;
  Call* call_ = nullptr;
};

std::map<std::string, std::vector<Sample>> read(const std::string& family) {
  const SavedFile file = load(std::string(ROSIN_SOURCE_DIR "/tests/oracles/opinfo/") + family + ".npz");
  const Tensors tensors(file);
  const std::vector<uint8_t> text = file["calls"].to_vector<uint8_t>();
  std::istringstream lines(std::string(text.begin(), text.end()));
  std::map<std::string, std::vector<Sample>> entries;
  std::vector<Sample>* samples = nullptr;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("op ")) samples = &entries[line.substr(3, line.rfind(' ') - 3)];
    else samples->push_back(Line(line, tensors).sample());
  }
  return entries;
}

}  // namespace

const std::map<std::string, std::vector<Sample>>& samples_of(const std::string& family) {
  static std::map<std::string, std::map<std::string, std::vector<Sample>>> read_already;
  auto place = read_already.find(family);
  if (place == read_already.end()) place = read_already.emplace(family, read(family)).first;
  return place->second;
}

}  // namespace rosin::opinfo
