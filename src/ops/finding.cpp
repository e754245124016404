// See finding.hpp. An index into one class that is not 0 is out of range: so all executors report it.
#include "ops/finding.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>

#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/movement.hpp>

#include "graph/gather_form.hpp"
#include "graph/record.hpp"
#include "ops/shapes.hpp"

namespace rosin {
namespace {

enum Found : int64_t { nan = 1, infinite = 2, minus_infinite = 3, kinds_of_found = 4 };

/// Never destroyed: runs may be looked at until the process ends.
struct Texts {
  std::mutex mutex;
  std::map<std::vector<std::string>, int64_t> numbers;
  std::deque<const std::vector<std::string>*> all;
};

Texts& known() {
  static auto* texts = new Texts;
  return *texts;
}

void replace_first(std::string& text, const std::string& by) {
  if (const size_t at = text.find("{}"); at != std::string::npos) text.replace(at, 2, by);
}

/// As rosin prints such numbers.
std::string value_text(int64_t found) {
  return found == Found::nan ? "NaN" : found == Found::infinite ? "Inf" : "-Inf";
}

/// As those of labels begin: executors take a finding for the label of one class.
struct FindingAttributes {
  LabelAttributes label{1};
  int64_t texts = 0;
};

[[noreturn]] void refuse_finding(const Attributes& attributes, int64_t found) {
  const int64_t which = found / kinds_of_found;
  std::string text;
  int64_t last = 0;
  {
    Texts& texts = known();
    const std::lock_guard guard(texts.mutex);
    const auto& of = *texts.all[static_cast<size_t>(attributes.as<FindingAttributes>().texts)];
    last = static_cast<int64_t>(of.size()) - 1;
    text = of[static_cast<size_t>(std::min(which, last))];
  }
  replace_first(text, value_text(found % kinds_of_found));
  if (which >= last) replace_first(text, std::to_string(which - last));
  throw Error(ErrorKind::numeric, text);
}

const Op& nothing_found_op = *register_op({.name = "nothing_found",
                                           .kind = Kind::gather,
                                           .operands = 1,
                                           .doc = "true; a finding other than 0 makes the run fail",
                                           .type_rule = TypeRule::boolean,
                                           .attribute_words = 2,
                                           .refuse_index = refuse_finding});

}  // namespace

int64_t finding_texts(const std::vector<std::string>& texts) {
  Texts& all = known();
  const std::lock_guard guard(all.mutex);
  const auto [at, is_new] = all.numbers.try_emplace(texts, static_cast<int64_t>(all.all.size()));
  if (is_new) all.all.push_back(&at->first);
  return at->second;
}

Array finding(const Array& value, int64_t which) {
  const Array one = reshape(value, Shape{});
  const auto number = [&](Found found) { return scalar_argument(which * kinds_of_found + found); };
  const Array infinity = where(gt(one, 0), number(Found::infinite), number(Found::minus_infinite));
  const Array wrong = where(is_nan(one), number(Found::nan), infinity);
  return where(is_finite(one), scalar_argument(0), wrong);
}

Array first_finding(const Array& first, const Array& second) { return where(ne(first, 0), first, second); }

Array nothing_found(const Array& found, int64_t texts) {
  const Array holds =
      record_one(nothing_found_op, found, Bool, Shape{1}, Attributes::of(FindingAttributes{.texts = texts}));
  return reshape(holds, Shape{});
}

}  // namespace rosin
