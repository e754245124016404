// Calls of PyTorch's functions as its own tests make them (OpInfo), and the rows of the tables that say what the same
// is here. Read next: judge_test.cpp (what is compared), elementwise.cpp (a table), ../oracles/make_opinfo.py (the
// calls).
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <rosin/array.hpp>

namespace rosin::opinfo {

using Arrays = std::vector<Array>;

/// A row's word for an argument that has no counterpart here. Such samples are listed in refusals.txt.
class Refused : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// An argument of a call.
struct Value {
  enum class Kind : uint8_t { none, boolean, integer, real, text, list, slice, array };

  Kind kind = Kind::none;
  double number = 0;         // of a boolean, an integer or a real
  std::string text;          // of a text or a type
  std::vector<Value> items;  // of a list or a slice
  size_t at = 0;             // of an array, in Call::arrays
};

/// One call. Arguments are looked up by name, else by place (0 is the input); what no row has looked at is found by
/// `unread`. Dims are PyTorch's in the call and rosin's where a row gets them.
class Call {
 public:
  std::vector<Value> values;
  std::map<std::string, Value, std::less<>> named;
  Arrays arrays;
  std::vector<size_t> variables;  // the arrays that PyTorch differentiates by

  bool has(int at, std::string_view name = "");
  /// An array, or a number as one. Refused: there is none.
  Array array(int at, std::string_view name = "");
  /// The same; nothing where there is none.
  Array array_or_nothing(int at, std::string_view name = "");
  /// Those of a list, or all places from `at` on.
  Arrays list(int at, std::string_view name = "");
  int64_t integer(int at, std::string_view name, int64_t otherwise);
  double real(int at, std::string_view name, double otherwise);
  bool flag(int at, std::string_view name, bool otherwise);
  std::string text(int at, std::string_view name, const std::string& otherwise = "");
  /// Of a list or one number; nothing where there is none.
  std::vector<int64_t> integers(int at, std::string_view name);
  /// Sizes of PyTorch as a shape.
  std::vector<int64_t> sizes(int at, std::string_view name);
  /// The dim of x that is PyTorch's `dim`.
  int dim(const Array& x, int at, std::string_view name, int64_t otherwise);
  /// All that are named; all of x where none is.
  std::vector<int> dims(const Array& x, int at, std::string_view name);
  /// x in the type that the argument `dtype` names.
  Array typed(const Array& x, int at = -1);
  const Value* find(int at, std::string_view name);
  /// Refused with the message unless the argument is missing, None or false.
  void refuse(int at, std::string_view name);

  void forget_reads() { read_.clear(); }
  /// The arguments that nothing has looked at, as a text.
  std::string unread() const;

 private:
  Array as_array(const Value& value) const;

  std::set<const Value*> read_;
};

/// The dim of an array of `rank` dims that is PyTorch's `dim`.
int turned(int64_t dim, int rank);
/// The type of a name of PyTorch's. Refused: there is none.
DType type_named(const std::string& name);
/// Sizes, paddings and the like of PyTorch, in the order of rosin's dims.
std::vector<int64_t> reversed(std::vector<int64_t> values);
/// PyTorch's matrices, which are the last two dims: rosin's are the first two, the other way round.
Array mt(const Array& x);
/// Dims of size 1 that PyTorch does not keep.
Array without(const Array& x, const std::vector<int>& dims, bool keep);

/// What an entry of OpInfo is here. `loose` multiplies the bounds, where the op itself magnifies errors. `differs` says
/// why results may differ from PyTorch's: then what does is listed in refusals.txt instead of failing.
struct Row {
  template <std::invocable<Call&> F>
  Row(const char* entry, F call, double looser = 1, const char* why = "")
      : name(entry), run([call](Call& c) { return listed(call(c)); }), loose(looser), differs(why) {}
  Row(const char* entry, Array (*f)(const Array&), double looser = 1)
      : name(entry), run([f](Call& c) { return Arrays{f(c.array(0))}; }), loose(looser) {}
  Row(const char* entry, Array (*f)(const Array&, const Array&), double looser = 1)
      : name(entry), run([f](Call& c) { return Arrays{f(c.array(0), c.array(1, "other"))}; }), loose(looser) {}

  std::string name;
  std::function<Arrays(Call&)> run;
  double loose;
  std::string differs;

 private:
  static Arrays listed(Array x) { return {std::move(x)}; }
  static Arrays listed(Arrays all) { return all; }
};

/// The rows of one family, known to the judge from when it is made.
struct Table {
  Table(const char* family, std::vector<Row> rows);
};
struct Family {
  std::string name;
  std::vector<Row> rows;
};
const std::vector<Family>& families();

/// What PyTorch has, in Float64.
struct Expected {
  enum class Kind : uint8_t { boolean, integer, real, complex };

  Kind kind = Kind::real;
  bool missing = false;  // no gradient
  bool in_the_loss = false;
  std::string types[2];  // of a float or complex output, in Float32 and Float64 runs, where it is not the run's
  Shape shape;           // rosin's
  std::vector<double> elements;
};
struct Sample {
  Call call;  // its arrays in the types of the file
  std::vector<Expected> outputs;
  std::vector<Expected> gradients, second;  // as many as variables; none where PyTorch has none
};
/// The samples of each entry of a family, from tests/oracles/opinfo.
const std::map<std::string, std::vector<Sample>>& samples_of(const std::string& family);

}  // namespace rosin::opinfo
