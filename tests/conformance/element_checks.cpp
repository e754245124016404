// Loads, stores and ROUND for every element type: all bit patterns of 8 and 16 bits, special values of the others.
#include "checks.hpp"
#include "oracle.hpp"

namespace rosin::conformance {
namespace {

/// A kernel that moves elements from buffer 0 to buffer 1, whose scalar types are equal; with `rounds`, through ROUND.
Code moves(const std::string& name, int32_t from, int32_t to, int scalar, int32_t rounds = -1) {
  Code code;
  code.name = name;
  code.group = 128;
  code.buffers = {from, to};
  code.parameters = {ROSIN_SCALAR_INT32};
  const Value at = code.global();
  code.when(code.less(at, code.parameter(0)));
  Value value = code.load(0, scalar, at);
  if (rounds >= 0) value = code.add(ROSIN_ROUND, scalar, {value}, rounds);
  code.store(1, at, value);
  code.end_if();
  return code;
}

template <class Out, class In>
std::vector<Out> moved(Rig& rig, const Module& module, const std::string& name, const std::vector<In>& values) {
  const Memory in(rig, values.size() * sizeof(In)), out(rig, values.size() * sizeof(Out));
  rig.write<In>(in.at(), values);
  const rosin_place places[] = {in.at(), out.at()};
  const rosin_number numbers[] = {number(static_cast<int32_t>(values.size()))};
  rig.launch(rig.stream, module.kernel(name), places, static_cast<uint32_t>((values.size() + 127) / 128), numbers);
  return rig.read<Out>(out.at(), values.size());
}

/// Loads of `bits` give wide(bits), stores and rounding of `values` give narrow(value), or its wide form.
template <class Stored, class Scalar, class Wide, class Narrow>
void check_element(Rig& rig, int32_t type, const std::vector<Stored>& bits, const std::vector<Scalar>& values,
                   Wide wide, Narrow narrow) {
  const int32_t scalar = element_of<Scalar>;
  const Code codes[] = {moves("loads", type, scalar, scalar_of<Scalar>),
                        moves("stores", scalar, type, scalar_of<Scalar>),
                        moves("rounds", scalar, scalar, scalar_of<Scalar>, type)};
  const Module module(rig, codes);
  const std::string of = " of rosin_type " + std::to_string(type) + " ";
  const auto loaded = moved<Scalar>(rig, module, "loads", bits);
  for (size_t i = 0; i < bits.size(); ++i) {
    expect(same<Scalar>(loaded[i], wide(bits[i])), "a load" + of + "gave " + std::to_string(loaded[i]));
  }
  const auto stored = moved<Stored>(rig, module, "stores", values);
  const auto rounded = moved<Scalar>(rig, module, "rounds", values);
  for (size_t i = 0; i < values.size(); ++i) {
    const Stored wanted = narrow(values[i]);
    // Any NaN stands for any other.
    expect(stored[i] == wanted || same<Scalar>(wide(stored[i]), wide(wanted)),
           "a store" + of + "of " + std::to_string(values[i]) + " gave " + std::to_string(stored[i]) + ", not " +
               std::to_string(wanted));
    expect(same<Scalar>(rounded[i], wide(wanted)),
           "ROUND" + of + "of " + std::to_string(values[i]) + " gave " + std::to_string(rounded[i]));
  }
}

template <class Stored, class Scalar> void check_integer(Rig& rig, int32_t type) {
  std::vector<Stored> bits;
  if constexpr (sizeof(Stored) <= 2) {
    for (int32_t i = 0; i < 1 << (8 * sizeof(Stored)); ++i) bits.push_back(static_cast<Stored>(i));
  } else {
    for (const Scalar x : special<Scalar>()) bits.push_back(static_cast<Stored>(x));
  }
  std::vector<Scalar> values = special<Scalar>();
  for (int32_t i = -70000; i < 70000; i += 37) values.push_back(static_cast<Scalar>(i));
  check_element<Stored, Scalar>(
      rig, type, bits, values, [](Stored x) { return static_cast<Scalar>(x); },
      [](Scalar x) { return static_cast<Stored>(x); });
}

void integers(Rig& rig) {
  check_integer<uint8_t, int32_t>(rig, ROSIN_UINT8);
  check_integer<int8_t, int32_t>(rig, ROSIN_INT8);
  check_integer<int16_t, int32_t>(rig, ROSIN_INT16);
  check_integer<uint16_t, int32_t>(rig, ROSIN_UINT16);
  check_integer<int32_t, int32_t>(rig, ROSIN_INT32);
  check_integer<uint32_t, uint32_t>(rig, ROSIN_UINT32);
  check_integer<int64_t, int64_t>(rig, ROSIN_INT64);
  check_integer<uint64_t, uint64_t>(rig, ROSIN_UINT64);
}

void bools(Rig& rig) {
  const std::vector<Bool> both = {0, 1, 1, 0};
  const auto same_bit = [](Bool x) { return x; };
  check_element<Bool, Bool>(rig, ROSIN_BOOL, both, both, same_bit, same_bit);
}

template <class T> void check_float(Rig& rig, int32_t type) {
  const auto itself = [](T x) { return x; };
  const std::vector<T> values = special<T>();
  check_element<T, T>(rig, type, values, values, itself, itself);
}

void floats(Rig& rig) {
  check_float<float>(rig, ROSIN_FLOAT32);
  if (rig.info.float64) check_float<double>(rig, ROSIN_FLOAT64);
}

/// All 65536 are loaded; stored are the numbers between neighbours, and those just beside.
void check_small_float(Rig& rig, int32_t type, const SmallFloat& format) {
  std::vector<uint16_t> bits(65536);
  for (size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<uint16_t>(i);
  std::vector<float> values = special<float>();
  for (size_t i = 0; i + 1 < format.values().size(); ++i) {
    const auto middle = static_cast<float>((format.values()[i] + format.values()[i + 1]) / 2);
    for (const float sign : {1.0f, -1.0f}) {
      values.push_back(sign * middle);
      values.push_back(sign * std::nextafter(middle, 0.0f));
      values.push_back(sign * std::nextafter(middle, std::numeric_limits<float>::infinity()));
    }
  }
  for (const float x : {65504.0f, 65519.0f, 65520.0f, 65536.0f, 3.39e38f, 3.4e38f}) values.push_back(x);
  check_element<uint16_t, float>(
      rig, type, bits, values, [&](uint16_t x) { return format.widened(x); },
      [&](float x) { return format.narrowed(x); });
}

void halves(Rig& rig) { check_small_float(rig, ROSIN_FLOAT16, SmallFloat(5, 10)); }
void brain_floats(Rig& rig) { check_small_float(rig, ROSIN_BFLOAT16, SmallFloat(8, 7)); }

constexpr Check checks[] = {
    {"integers", integers}, {"bools", bools}, {"floats", floats}, {"Float16", halves}, {"BFloat16", brain_floats},
};

}  // namespace

const Part elements_part = {"elements", checks};

}  // namespace rosin::conformance
