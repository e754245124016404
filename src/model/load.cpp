// loadmodel: values of a saved or other model by path, all or nothing.
#include <rosin/model.hpp>

#include <algorithm>
#include <map>

#include <rosin/complex.hpp>
#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/generator_state.hpp>

#include "graph/leaf.hpp"
#include "graph/node.hpp"
#include "graph/record.hpp"
#include "graph/transfer.hpp"
#include "model/clone.hpp"
#include "model/lost_value.hpp"
#include "model/ties.hpp"

namespace rosin {
namespace {

/// What the source has at a path; nothing is an absent bias.
struct Entry {
  Array value;
  bool used = false;
};
using Source = std::map<std::string, Entry, std::less<>>;

class TakeSource : public ModelVisitor {
 public:
  TakeSource(Source& source) : source_(source) {}
  void array(const Array& x, const ModelPath& path) override { source_[path.file_text()] = {x}; }
  void rng(const Rng& x, const ModelPath& path) override { source_[path.file_text()] = {generator_state(x)}; }

 private:
  Source& source_;
};

/// Number of single-letter edits between two names.
size_t edits_between(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0]++;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row[b.size()];
}

std::string nearest(std::string_view name, const Source& source) {
  const std::string* best = nullptr;
  size_t least = 0;
  for (const auto& [candidate, entry] : source) {
    const size_t edits = edits_between(name, candidate);
    if (!entry.used && (!best || edits < least)) best = &candidate, least = edits;
  }
  return best ? "; the nearest of its names is " + *best : "; it has no other names";
}

/// First walk: finds the new value of every place and checks everything, and changes nothing.
class Match : public ModelEditor {
 public:
  struct Change {
    Array* place;
    Array value;
  };

  Match(Source& source, bool strict) : source_(source), strict_(strict) {}
  void array(Array& x, const ModelPath& path) override {
    const std::string name = path.file_text();
    const auto found = source_.find(name);
    const Ties::First* first = x.is_nothing() ? nullptr : ties_.find_or_add(x, path, changes.size());
    if (found != source_.end()) found->second.used = true;
    if (x.is_nothing()) return;
    if (found == source_.end()) {
      if (!first && strict_) refuse_missing(name);
      changes.push_back({&x, first ? changes[first->position].value : x});
      return;
    }
    const Array value = converted(found->second.value, x, name);
    if (first) check_tie(changes[first->position].value, value, name, first->path);
    changes.push_back({&x, first ? changes[first->position].value : value});
  }

  /// A source without it (a file of PyTorch, say) leaves a generator where it is.
  void rng(Rng& x, const ModelPath& path) override {
    const auto found = source_.find(path.file_text());
    if (found == source_.end()) return;
    found->second.used = true;
    try {
      generators.emplace_back(&x, restored_generator(found->second.value));
    } catch (const Error&) {
      throw Error(ErrorKind::argument, "loadmodel: a generator has a state of UInt64 (2) in the source; " +
                                           path.file_text() + " has another entry there; rename one of the two");
    }
  }

  void check_unused() const {
    if (!strict_) return;
    for (const auto& [name, entry] : source_) {
      if (entry.used || entry.value.is_nothing()) continue;
      throw Error(ErrorKind::argument,
                  "loadmodel: every entry of the source must have its place; " + name +
                      " is in the source only; load into what was saved (a state: of the same rule), or with "
                      "{.strict = false}");
    }
  }

  std::vector<Change> changes;
  std::vector<std::pair<Rng*, Rng>> generators;

 private:
  [[noreturn]] void refuse_missing(const std::string& name) const {
    throw Error(ErrorKind::argument,
                "loadmodel: every array needs an entry in the source; " + name + " is missing there" +
                    nearest(name, source_) +
                    "; rename it, load into what was saved (a state: of the same rule), or load with "
                    "{.strict = false}");
  }

  /// In the type and on the device of x.
  static Array converted(const Array& value, const Array& x, const std::string& name) {
    if (value.is_nothing()) return transferred(zeros(x.shape(), x.dtype()), x.node()->device);
    if (!(value.shape() == x.shape())) {
      throw Error(ErrorKind::shape, "loadmodel: sizes must match; " + name + " is " + to_string(x.shape()) +
                                        " and the source has " + to_string(value.shape()) +
                                        "; build the model with the sizes it was saved with");
    }
    if (const std::optional<std::string> lost = lost_value(value, x.dtype())) {
      throw Error(ErrorKind::dtype, "loadmodel: values must fit the type of their place; " + name + " is " +
                                        to_string(x.dtype()) + " and the source has " + *lost + " of type " +
                                        to_string(value.dtype()) + "; load into a wider type");
    }
    if (is_complex(value.dtype()) && !is_complex(x.dtype())) {
      throw Error(ErrorKind::dtype, "loadmodel: a real array cannot take complex values; " + name + " is " +
                                        to_string(x.dtype()) + " and the source has " + to_string(value.dtype()) +
                                        "; load real(z), imag(z) or abs(z) of it, or make the array complex");
    }
    // Counters are numbers of the host, wherever the arrays beside them are.
    if (is_scalar(*x.node()) && x.dtype() == Int64) return scalar_argument(value.item<int64_t>());
    if (value.dtype() != x.dtype()) return transferred(cast(value, x.dtype()), x.node()->device);
    // A tie of the source must not become one here, nor the other way round.
    return transferred(is_tied(value) != is_tied(x) ? cloned(value) : value, x.node()->device);
  }

  /// Of one type, that of their place; a double would round integers of 64 bits.
  static bool have_equal_values(const Array& a, const Array& b) {
    const auto are_equal_as = [&]<class T>(T) { return a.to_vector<T>() == b.to_vector<T>(); };
    if (is_complex(a.dtype())) return have_equal_values(view_as_real(a), view_as_real(b));
    if (a.dtype() == UInt64) return are_equal_as(uint64_t{});
    return is_integer(a.dtype()) ? are_equal_as(int64_t{}) : are_equal_as(double{});
  }

  static void check_tie(const Array& a, const Array& b, const std::string& name, const std::string& first) {
    if (same(a, b) || have_equal_values(a, b)) return;
    throw Error(ErrorKind::argument,
                "loadmodel: " + name + " is tied to " + first +
                    ", but the source has different values for them; untie them or load another source");
  }

  Source& source_;
  bool strict_;
  Ties ties_;
};

void load(ModelEdit dst, Source& source, const LoadOptions& options) {
  Match match(source, options.strict);
  dst.edit_with(match);
  match.check_unused();
  for (Match::Change& change : match.changes) {
    if (!is_look_at_file(*change.value.node())) eval(change.value);
  }
  for (Match::Change& change : match.changes)
    *change.place = is_tied(*change.place) ? tied(change.value) : change.value;
  for (auto& [place, value] : match.generators) *place = value;
}

}  // namespace

void loadmodel(ModelEdit dst, const std::vector<NamedArray>& source, LoadOptions options) {
  Source entries;
  for (const NamedArray& entry : source) entries[entry.name] = {entry.value};
  load(dst, entries, options);
}

void loadmodel(ModelEdit dst, ModelView source, LoadOptions options) {
  Source entries;
  TakeSource take(entries);
  source.visit_with(take);
  load(dst, entries, options);
}

}  // namespace rosin
