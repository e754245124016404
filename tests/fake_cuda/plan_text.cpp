// Plans of cuDNN's stand-in as texts, from which other processes make them again: the objects of the graph, those first
// that others are made of. See cudnn.hpp.
#include <map>
#include <sstream>

#include "cudnn.hpp"

namespace fake_dnn {
namespace {

using dnn::Attribute;

/// Numbers each object once, behind its parts.
void add(const Object& one, std::map<const Descriptor*, size_t>& known, std::vector<const Descriptor*>& order) {
  if (known.contains(one.get())) return;
  for (const auto& [which, values] : one->given) {
    for (const Object& part : values.objects) add(part, known, order);
  }
  known.emplace(one.get(), order.size());
  order.push_back(one.get());
}

void write(std::ostream& out, const Values& values, const std::map<const Descriptor*, size_t>& known) {
  out << static_cast<int>(values.type) << ' ' << values.count << ' ' << values.bytes.size();
  for (const unsigned char byte : values.bytes) out << ' ' << static_cast<int>(byte);
  out << ' ' << values.objects.size();
  for (const Object& part : values.objects) out << ' ' << known.at(part.get());
  out << '\n';
}

template <class T> T read(std::istream& in) {
  T value{};
  if (!(in >> value)) refuse("a text that is no plan of this version");
  return value;
}

Values read_values(std::istream& in, const std::vector<Object>& all) {
  Values made;
  made.type = static_cast<dnn::ValueType>(read<int>(in));
  made.count = read<int64_t>(in);
  for (auto left = read<size_t>(in); left > 0; --left) made.bytes.push_back(static_cast<unsigned char>(read<int>(in)));
  for (auto left = read<size_t>(in); left > 0; --left) {
    const auto part = read<size_t>(in);
    if (part >= all.size()) refuse("a text that is no plan of this version");
    made.objects.push_back(all[part]);
  }
  return made;
}

}  // namespace

std::string text_of_plan(const Descriptor& plan) {
  std::map<const Descriptor*, size_t> known;
  std::vector<const Descriptor*> order;
  add(plan.graph, known, order);
  std::ostringstream out;
  out << "plan " << plan.engine->number << ' ' << order.size() << '\n';
  for (const Descriptor* one : order) {
    out << static_cast<int>(one->kind) << ' ' << one->given.size() << '\n';
    for (const auto& [which, values] : one->given) {
      out << static_cast<int>(which) << ' ';
      write(out, values, known);
    }
  }
  return out.str();
}

int64_t read_plan(const std::string& text, Descriptor& plan) {
  std::istringstream in(text);
  if (read<std::string>(in) != "plan") refuse("a text that is no plan of this version");
  const auto engine = read<int64_t>(in);
  std::vector<Object> all;
  for (auto left = read<size_t>(in); left > 0; --left) {
    auto one = std::make_shared<Descriptor>();
    one->kind = static_cast<dnn::Kind>(read<int>(in));
    one->finished = true;
    for (auto attributes = read<size_t>(in); attributes > 0; --attributes) {
      const auto which = static_cast<Attribute>(read<int>(in));
      one->given[which] = read_values(in, all);
    }
    all.push_back(std::move(one));
  }
  if (all.empty()) refuse("a text that is no plan of this version");
  plan.graph = all.back();
  return engine;
}

}  // namespace fake_dnn
