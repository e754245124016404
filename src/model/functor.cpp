// Arrays by path, in one model and in several at once.
#include <rosin/functor.hpp>

#include <algorithm>
#include <string>

#include <rosin/error.hpp>

#include "base/nearest.hpp"

namespace rosin {
namespace {

bool is_at(const ModelPath& place, std::string_view path) { return place.text() == path || place.file_text() == path; }

class FindArray : public ModelVisitor {
 public:
  explicit FindArray(std::string_view path) : path_(path) {}
  void array(const Array& x, const ModelPath& path) override {
    if (found || !is_at(path, path_)) return;
    found = true;
    value = x;
  }
  bool found = false;
  Array value;

 private:
  std::string_view path_;
};

class ReplaceArray : public ModelEditor {
 public:
  ReplaceArray(std::string_view path, const Array& value) : path_(path), value_(value) {}
  void array(Array& x, const ModelPath& path) override {
    paths.push_back(path.text());
    if (found || !is_at(path, path_)) return;
    found = true;
    x = value_;
  }
  bool found = false;
  std::vector<std::string> paths;

 private:
  std::string_view path_;
  const Array& value_;
};

class ListPaths : public ModelVisitor {
 public:
  void array(const Array&, const ModelPath& path) override { paths.push_back(path.text()); }
  std::vector<std::string> paths;
};

[[noreturn]] void refuse(const char* op, std::string_view path, const std::vector<std::string>& paths) {
  const std::vector<std::string_view> names(paths.begin(), paths.end());
  const std::string_view meant = nearest_name(path, names);
  throw Error(ErrorKind::argument,
              std::string(op) + ": the path must lead to an array of the model; got \"" + std::string(path) + "\"" +
                  (meant.empty() ? "; state(model) lists the paths" : "; did you mean " + std::string(meant) + "?"));
}

}  // namespace

bool haskeypath(ModelView model, std::string_view path) {
  FindArray find(path);
  model.visit_with(find);
  return find.found;
}

Array getkeypath(ModelView model, std::string_view path) {
  FindArray find(path);
  model.visit_with(find);
  if (find.found) return find.value;
  ListPaths list;
  model.visit_with(list);
  refuse("getkeypath", path, list.paths);
}

void setkeypath(ModelEdit model, std::string_view path, const Array& value) {
  ReplaceArray replace(path, value);
  model.edit_with(replace);
  if (!replace.found) refuse("setkeypath", path, replace.paths);
}

detail::ArraysByPath::ArraysByPath(ModelView model) {
  std::vector<detail::ArrayPlace<const Array*>> found;
  detail::list_arrays(model, found);
  for (const detail::ArrayPlace<const Array*>& place : found) places_.push_back({place.path, *place.array});
  std::sort(places_.begin(), places_.end(), [](const Place& a, const Place& b) { return a.path < b.path; });
}

const Array& detail::ArraysByPath::at(const ModelPath& path, int tree) const {
  const auto place = std::lower_bound(places_.begin(), places_.end(), path.hash(),
                                      [](const Place& a, uint64_t hash) { return a.path < hash; });
  if (place != places_.end() && place->path == path.hash()) return place->value;
  throw Error(ErrorKind::argument, "fmap: every array of the first model needs one at its path in the others; " +
                                       path.text() + " is missing in model " + std::to_string(tree) +
                                       " (counted from 0); give models of the same structure");
}

}  // namespace rosin
