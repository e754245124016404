// Foundation, as far as it is used: strings, arrays, errors, the process. Read next: device.cpp.
#include "objects.hpp"

namespace fake_metal {
namespace {

struct Array : State {
  std::vector<Kept> all;
};

struct Number : State {
  int64_t value = 0;
};

struct Dictionary : State {
  std::vector<std::pair<Kept, Kept>> pairs;
};

struct Error : State {
  Kept domain, text;
  int64_t code = 0;
};

Object* again(Object* object) { return autoreleased(object ? retain(object) : nullptr); }

}  // namespace

Object* make_string(const std::string& text) { return made("NSString", std::make_unique<String>(text)); }
const std::string& text_in(Object* string) { return state_of<String>(string).text; }

Object* make_array(const std::vector<Object*>& all) {
  auto array = std::make_unique<Array>();
  for (Object* one : all) array->all.emplace_back(one);
  return made("NSArray", std::move(array));
}

const std::vector<Kept>& objects_in(Object* array) { return state_of<Array>(array).all; }
int64_t number_in(Object* number) { return state_of<Number>(number).value; }
const std::vector<std::pair<Kept, Kept>>& pairs_in(Object* dictionary) {
  return state_of<Dictionary>(dictionary).pairs;
}

Object* make_error(const std::string& domain, int64_t code, const std::string& text) {
  auto error = std::make_unique<Error>();
  Object* parts[] = {make_string(domain), make_string(text)};
  error->domain = Kept(parts[0]);
  error->text = Kept(parts[1]);
  error->code = code;
  for (Object* part : parts) release(part);
  return made("NSError", std::move(error));
}

namespace {

void define_collections() {
  class_method(
      "NSNumber", "numberWithLongLong:", +[](Object*, Selector, int64_t value) {
        const Guard guard(lock());
        auto number = std::make_unique<Number>();
        number->value = value;
        return autoreleased(made("NSNumber", std::move(number)));
      });
  class_method(
      "NSArray", "arrayWithObjects:count:", +[](Object*, Selector, Object* const* all, uint64_t count) {
        const Guard guard(lock());
        return autoreleased(make_array({all, all + count}));
      });
  class_method(
      "NSDictionary", "dictionaryWithObjects:forKeys:", +[](Object*, Selector, Object* values, Object* keys) {
        const Guard guard(lock());
        if (objects_in(values).size() != objects_in(keys).size()) misuse("NSDictionary: not as many keys as objects");
        auto dictionary = std::make_unique<Dictionary>();
        for (size_t i = 0; i < objects_in(keys).size(); ++i)
          dictionary->pairs.emplace_back(objects_in(keys)[i], objects_in(values)[i]);
        return autoreleased(made("NSDictionary", std::move(dictionary)));
      });
  method(
      "NSArray", "count", +[](Object* self, Selector) { return uint64_t{state_of<Array>(self).all.size()}; });
  method(
      "NSArray", "objectAtIndex:", +[](Object* self, Selector, uint64_t at) {
        const auto& all = state_of<Array>(self).all;
        if (at >= all.size()) misuse("-[NSArray objectAtIndex:]: beyond its bounds");
        return again(all[at].get());
      });
}

}  // namespace

void define_foundation() {
  define_collections();
  method(
      "NSObject", "respondsToSelector:", +[](Object* self, Selector, Selector asked) { return responds(self, asked); });
  method(
      "NSObject", "isEqual:", +[](Object* self, Selector, Object* other) { return self == other; });
  method(
      "NSObject",
      "instancesRespondToSelector:", +[](Object* self, Selector, Selector asked) { return responds(self, asked); });
  class_method(
      "NSString", "stringWithUTF8String:", +[](Object*, Selector, const char* text) {
        const Guard guard(lock());
        if (!text) misuse("+[NSString stringWithUTF8String:]: NULL");
        return autoreleased(make_string(text));
      });
  method(
      "NSString", "UTF8String", +[](Object* self, Selector) { return text_in(self).c_str(); });
  method(
      "NSError", "localizedDescription",
      +[](Object* self, Selector) { return again(state_of<Error>(self).text.get()); });
  method(
      "NSError", "domain", +[](Object* self, Selector) { return again(state_of<Error>(self).domain.get()); });
  method(
      "NSError", "code", +[](Object* self, Selector) { return state_of<Error>(self).code; });
  class_method(
      "NSProcessInfo", "processInfo", +[](Object*, Selector) {
        const Guard guard(lock());
        static Object* process = made("NSProcessInfo", std::make_unique<State>());
        return again(process);
      });
  method(
      "NSProcessInfo", "operatingSystemVersionString", +[](Object*, Selector) {
        const Guard guard(lock());
        const int version = fake::Machine::instance().options.system;
        return autoreleased(make_string("Version " + std::to_string(version) + ".5 (Build 00A00)"));
      });
}

}  // namespace fake_metal
