// Looking up the arguments of a call.
#include "call.hpp"

#include <algorithm>
#include <numeric>

#include <rosin/elementwise.hpp>
#include <rosin/movement.hpp>

namespace rosin::opinfo {
namespace {

std::vector<Family>& known_families() {
  static std::vector<Family> all;
  return all;
}

constexpr std::string_view without_meaning[] = {"memory_format", "layout", "device", "pin_memory", "requires_grad"};

}  // namespace

Table::Table(const char* family, std::vector<Row> rows) { known_families().push_back({family, std::move(rows)}); }
const std::vector<Family>& families() { return known_families(); }

const Value* Call::find(int at, std::string_view name) {
  const Value* found = nullptr;
  if (const auto place = named.find(name); place != named.end()) found = &place->second;
  else if (at >= 0 && static_cast<size_t>(at) < values.size()) found = &values[static_cast<size_t>(at)];
  if (!found) return nullptr;
  read_.insert(found);
  return found->kind == Value::Kind::none ? nullptr : found;
}

bool Call::has(int at, std::string_view name) { return find(at, name) != nullptr; }

Array Call::as_array(const Value& value) const {
  switch (value.kind) {
    case Value::Kind::array: return arrays[value.at];
    case Value::Kind::boolean: return Array(value.number != 0);
    case Value::Kind::integer: return Array(static_cast<int64_t>(value.number));
    case Value::Kind::real: return Array(value.number);
    default: throw Refused("an argument is no array");
  }
}

Array Call::array_or_nothing(int at, std::string_view name) {
  const Value* const value = find(at, name);
  return value ? as_array(*value) : Array();
}

Array Call::array(int at, std::string_view name) {
  const Value* const value = find(at, name);
  if (!value) throw Refused("no argument " + std::string(name));
  return as_array(*value);
}

Arrays Call::list(int at, std::string_view name) {
  Arrays all;
  const Value* const value = find(at, name);
  if (value && value->kind == Value::Kind::list) {
    for (const Value& one : value->items) all.push_back(as_array(one));
    return all;
  }
  for (size_t i = static_cast<size_t>(at); i < values.size(); ++i) all.push_back(array(static_cast<int>(i)));
  return all;
}

int64_t Call::integer(int at, std::string_view name, int64_t otherwise) {
  const Value* const value = find(at, name);
  if (!value) return otherwise;
  if (value->kind == Value::Kind::array) return arrays[value->at].item<int64_t>();
  if (value->kind == Value::Kind::list && value->items.size() == 1) return static_cast<int64_t>(value->items[0].number);
  if (value->kind > Value::Kind::real) throw Refused(std::string(name) + " is no number");
  return static_cast<int64_t>(value->number);
}

double Call::real(int at, std::string_view name, double otherwise) {
  const Value* const value = find(at, name);
  if (!value) return otherwise;
  if (value->kind == Value::Kind::array) return arrays[value->at].item();
  if (value->kind > Value::Kind::real) throw Refused(std::string(name) + " is no number");
  return value->number;
}

bool Call::flag(int at, std::string_view name, bool otherwise) { return real(at, name, otherwise ? 1 : 0) != 0; }

std::string Call::text(int at, std::string_view name, const std::string& otherwise) {
  const Value* const value = find(at, name);
  if (value && value->kind != Value::Kind::text) throw Refused(std::string(name) + " is no text");
  return value ? value->text : otherwise;
}

std::vector<int64_t> Call::integers(int at, std::string_view name) {
  const Value* const value = find(at, name);
  std::vector<int64_t> all;
  if (!value) return all;
  if (value->kind != Value::Kind::list) return {integer(at, name, 0)};
  for (const Value& one : value->items) all.push_back(static_cast<int64_t>(one.number));
  return all;
}

std::vector<int64_t> Call::sizes(int at, std::string_view name) {
  const Value* const value = find(at, name);
  if (!value || value->kind == Value::Kind::list) return reversed(integers(at, name));
  std::vector<int64_t> all;
  for (int i = at; has(i); ++i) all.push_back(integer(i, "", 0));
  return reversed(all);
}

int Call::dim(const Array& x, int at, std::string_view name, int64_t otherwise) {
  return turned(integer(at, name, otherwise), x.rank());
}

std::vector<int> Call::dims(const Array& x, int at, std::string_view name) {
  std::vector<int> all;
  if (x.rank() == 0) return find(at, name), std::vector<int>{0};
  for (const int64_t dim : integers(at, name)) all.push_back(turned(dim, x.rank()));
  if (all.empty()) {
    all.resize(static_cast<size_t>(x.rank()));
    std::iota(all.begin(), all.end(), 0);
  }
  return all;
}

Array Call::typed(const Array& x, int at) {
  const std::string name = text(at, "dtype");
  return name.empty() ? x : cast(x, type_named(name));
}

void Call::refuse(int at, std::string_view name) {
  const Value* const value = find(at, name);
  if (value && !(value->kind == Value::Kind::boolean && value->number == 0)) {
    throw Refused("there is no argument " + std::string(name));
  }
}

std::string Call::unread() const {
  std::string all;
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].kind != Value::Kind::none && !read_.contains(&values[i])) all += " " + std::to_string(i);
  }
  for (const auto& [name, value] : named) {
    const bool matters = std::ranges::find(without_meaning, name) == std::end(without_meaning);
    if (matters && value.kind != Value::Kind::none && !read_.contains(&value)) all += " " + name;
  }
  return all;
}

DType type_named(const std::string& name) {
  if (name == "complex64") return ComplexF32;
  if (name == "complex128") return ComplexF64;
  for (int i = 0; i < static_cast<int>(ComplexF32); ++i) {
    std::string known = to_string(static_cast<DType>(i));
    std::ranges::transform(known, known.begin(), [](unsigned char letter) { return std::tolower(letter); });
    if (known == name) return static_cast<DType>(i);
  }
  throw Refused("there is no type " + name);
}

int turned(int64_t dim, int rank) {
  if (rank == 0) return 0;
  return static_cast<int>(dim < 0 ? -1 - dim : rank - 1 - dim);
}

std::vector<int64_t> reversed(std::vector<int64_t> values) {
  std::ranges::reverse(values);
  return values;
}

Array mt(const Array& x) {
  if (x.rank() < 2) throw Refused("no matrix");
  std::vector<int> order(static_cast<size_t>(x.rank()));
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[0], order[1]);
  return permute(x, order);
}

Array without(const Array& x, const std::vector<int>& dims, bool keep) {
  return keep || x.rank() == 0 ? x : squeeze(x, dims);
}

}  // namespace rosin::opinfo
