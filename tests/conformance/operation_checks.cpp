// Every operation for every type, on pairs of special values, against oracle.hpp.
#include <functional>
#include <map>

#include "checks.hpp"
#include "oracle.hpp"

namespace rosin::conformance {
namespace {

/// Kernels that are compiled as one program, each with the check of its results.
class Batch {
 public:
  explicit Batch(Rig& rig) : rig_(rig) {}

  /// `make` appends the result to a code that has loaded its operands; element i of the result is wanted(i).
  /// inputs: columns of equal length, one for each operand.
  template <class Out, class... In, class Make, class Wanted>
  void add(const std::string& name, Make make, Wanted wanted, std::vector<In>... inputs) {
    Code code;
    code.name = name;
    code.group = 64;
    code.parameters = {ROSIN_SCALAR_INT32};
    (code.buffers.push_back(element_of<In>), ...);
    code.buffers.push_back(element_of<Out>);
    const size_t count = std::min({inputs.size()...});
    const Value at = code.global();
    code.when(code.less(at, code.parameter(0)));
    int64_t buffer = 0;
    const Value operands[] = {code.load(buffer++, scalar_of<In>, at)...};
    code.store(static_cast<int64_t>(sizeof...(In)), at, make(code, operands));
    code.end_if();
    codes_.push_back(code);
    runs_.push_back([this, name, count, wanted, inputs...](rosin_kernel* kernel) {
      std::vector<std::unique_ptr<Memory>> memory;
      (memory.push_back(filled<In>(inputs)), ...);
      memory.push_back(std::make_unique<Memory>(rig_, count * sizeof(Out)));
      std::vector<rosin_place> places;
      for (const auto& block : memory) places.push_back(block->at());
      const rosin_number numbers[] = {number(static_cast<int32_t>(count))};
      rig_.launch(rig_.stream, kernel, places, static_cast<uint32_t>((count + 63) / 64), numbers);
      const auto got = rig_.read<Out>(places.back(), count);
      for (size_t i = 0; i < count; ++i) {
        if (same<Out>(got[i], wanted(i))) continue;
        std::string of;
        ((of += ' ' + std::to_string(inputs[i])), ...);
        throw Broken(name + " of" + of + " is " + std::to_string(got[i]) + ", not " + std::to_string(wanted(i)));
      }
    });
  }

  void run() {
    constexpr size_t most = 30;
    std::string broken;
    for (size_t first = 0; first < codes_.size(); first += most) {
      const size_t count = std::min(most, codes_.size() - first);
      const Module module(rig_, std::span(codes_).subspan(first, count));
      for (size_t i = first; i < first + count; ++i) {
        try {
          runs_[i](module.kernel(codes_[i].name));
        } catch (const Broken& error) {
          broken += (broken.empty() ? "" : "\n  ") + std::string(error.what());
        }
      }
    }
    expect(broken.empty(), broken);
  }

 private:
  template <class T> std::unique_ptr<Memory> filled(const std::vector<T>& values) {
    auto memory = std::make_unique<Memory>(rig_, values.size() * sizeof(T));
    rig_.write<T>(memory->at(), values);
    return memory;
  }

  Rig& rig_;
  std::vector<Code> codes_;
  std::vector<std::function<void(rosin_kernel*)>> runs_;
};

template <class T> const char* type_name() {
  constexpr const char* names[] = {"bool", "int32", "uint32", "int64", "uint64", "float32", "float64"};
  return names[scalar_of<T>];
}

/// f(T{}) for every type that the device computes in.
template <class F> void for_each_type(const Rig& rig, F&& f) {
  f(Bool{});
  f(int32_t{});
  f(uint32_t{});
  f(int64_t{});
  f(uint64_t{});
  f(float{});
  if (rig.info.float64) f(double{});
}

/// All pairs of special values, as two columns.
template <class T> std::pair<std::vector<T>, std::vector<T>> pairs() {
  std::pair<std::vector<T>, std::vector<T>> all;
  for (const T x : special<T>()) {
    for (const T y : special<T>()) {
      all.first.push_back(x);
      all.second.push_back(y);
    }
  }
  return all;
}

const std::map<rosin_operation, std::string> operations = {
    {ROSIN_ADD, "add"},
    {ROSIN_SUBTRACT, "subtract"},
    {ROSIN_MULTIPLY, "multiply"},
    {ROSIN_DIVIDE, "divide"},
    {ROSIN_NEGATE, "negate"},
    {ROSIN_ABSOLUTE, "absolute"},
    {ROSIN_MINIMUM, "minimum"},
    {ROSIN_MAXIMUM, "maximum"},
    {ROSIN_FLOOR, "floor"},
    {ROSIN_CEIL, "ceil"},
    {ROSIN_TRUNC, "trunc"},
    {ROSIN_ROUND_EVEN, "round_even"},
    {ROSIN_SQRT, "sqrt"},
    {ROSIN_LOGICAL_AND, "logical_and"},
    {ROSIN_LOGICAL_OR, "logical_or"},
    {ROSIN_LOGICAL_NOT, "logical_not"},
    {ROSIN_BIT_AND, "bit_and"},
    {ROSIN_BIT_OR, "bit_or"},
    {ROSIN_BIT_XOR, "bit_xor"},
    {ROSIN_SHIFT_LEFT, "shift_left"},
    {ROSIN_SHIFT_RIGHT, "shift_right"},
    {ROSIN_SHIFT_RIGHT_ZERO, "shift_right_zero"},
    {ROSIN_MULTIPLY_HIGH, "multiply_high"},
};

bool takes_one(rosin_operation operation) {
  return operation == ROSIN_NEGATE || operation == ROSIN_ABSOLUTE || operation == ROSIN_LOGICAL_NOT ||
         (operation >= ROSIN_FLOOR && operation <= ROSIN_SQRT);
}

void each_computes(Rig& rig) {
  Batch batch(rig);
  for_each_type(rig, [&]<class T>(T) {
    const auto [x, y] = pairs<T>();
    for (const auto& [operation, name] : operations) {
      if (!computes<T>(operation)) continue;
      const auto make = [operation = operation](Code& code, const Value* in) {
        if (takes_one(operation)) return code.add(operation, scalar_of<T>, {in[0]});
        return code.add(operation, scalar_of<T>, {in[0], in[1]});
      };
      const auto wanted = [operation = operation, x = x, y = y](size_t i) {
        return computed(operation, x[i], y[i], T{});
      };
      batch.add<T, T, T>(name + "_" + type_name<T>(), make, wanted, x, y);
    }
  });
  batch.run();
}

void each_comparison_holds(Rig& rig) {
  Batch batch(rig);
  constexpr rosin_operation comparisons[] = {ROSIN_LESS, ROSIN_LESS_EQUAL, ROSIN_EQUAL, ROSIN_NOT_EQUAL};
  constexpr const char* names[] = {"less_", "less_equal_", "equal_", "not_equal_"};
  for_each_type(rig, [&]<class T>(T) {
    const auto [x, y] = pairs<T>();
    for (size_t i = 0; i < 4; ++i) {
      const auto make = [operation = comparisons[i]](Code& code, const Value* in) {
        return code.add(operation, ROSIN_SCALAR_BOOL, {in[0], in[1]});
      };
      const auto wanted = [operation = comparisons[i], x = x, y = y](size_t k) {
        return compared(operation, x[k], y[k]);
      };
      batch.add<Bool, T, T>(names[i] + std::string(type_name<T>()), make, wanted, x, y);
    }
  });
  batch.run();
}

void select_takes_bits_as_they_are(Rig& rig) {
  Batch batch(rig);
  for_each_type(rig, [&]<class T>(T) {
    const auto [x, y] = pairs<T>();
    std::vector<Bool> mask(x.size());
    for (size_t i = 0; i < mask.size(); ++i) mask[i] = i % 3 == 0;
    const auto make = [](Code& code, const Value* in) {
      return code.add(ROSIN_SELECT, scalar_of<T>, {in[0], in[1], in[2]});
    };
    const auto wanted = [mask, x = x, y = y](size_t i) { return mask[i] ? x[i] : y[i]; };
    batch.add<T, Bool, T, T>(std::string("select_") + type_name<T>(), make, wanted, mask, x, y);
  });
  batch.run();
}

template <class T> void add_fma(Batch& batch) {
  std::vector<T> x, y, z;
  const std::vector<T> all = special<T>();
  for (size_t i = 0; i < all.size(); i += 2) {
    for (size_t j = 0; j < all.size(); j += 3) {
      for (size_t k = i % 2; k < all.size(); k += 3) {
        x.push_back(all[i]);
        y.push_back(all[j]);
        z.push_back(all[k]);
      }
    }
  }
  // Where two roundings are not one: the product's last bit decides.
  const T tiny = std::numeric_limits<T>::epsilon();
  x.push_back(1 + tiny);
  y.push_back(1 - tiny);
  z.push_back(-1);
  const auto make = [](Code& code, const Value* in) {
    return code.add(ROSIN_FMA, scalar_of<T>, {in[0], in[1], in[2]});
  };
  const auto wanted = [x, y, z](size_t i) { return computed(ROSIN_FMA, x[i], y[i], z[i]); };
  batch.add<T, T, T, T>(std::string("fma_") + type_name<T>(), make, wanted, x, y, z);
}

void fma_rounds_once(Rig& rig) {
  Batch batch(rig);
  add_fma<float>(batch);
  if (rig.info.float64) add_fma<double>(batch);
  batch.run();
}

void nothing_is_contracted(Rig& rig) {
  Batch batch(rig);
  const float tiny = std::numeric_limits<float>::epsilon();
  const std::vector<float> x = {1 + tiny, 3, 0.1f}, y = {1 - tiny, 5, 0.2f}, z = {-1, 7, -0.02f};
  const auto make = [](Code& code, const Value* in) {
    return code.binary(ROSIN_ADD, code.binary(ROSIN_MULTIPLY, in[0], in[1]), in[2]);
  };
  const auto wanted = [x, y, z](size_t i) {
    const float product = computed(ROSIN_MULTIPLY, x[i], y[i], 0.0f);
    return computed(ROSIN_ADD, product, z[i], 0.0f);
  };
  batch.add<float, float, float, float>("multiply_then_add", make, wanted, x, y, z);
  batch.run();
}

/// What an approximation gives, by the operation; f: the exact value. Errors have bounds in parts of it, or as
/// such.
void approximate(Rig& rig, rosin_operation operation, double (*f)(double), double parts, double most = 0x1p-126) {
  Code code;
  code.name = "approximates_" + std::to_string(operation);
  code.group = 64;
  code.buffers = {ROSIN_FLOAT32, ROSIN_FLOAT32};
  const Value at = code.global();
  code.store(1, at, code.add(operation, ROSIN_SCALAR_FLOAT32, {code.load(0, ROSIN_SCALAR_FLOAT32, at)}));
  std::vector<float> x;
  for (int i = 1; i <= 2048; ++i) {
    const float size = static_cast<float>(i % 2 ? i / 100.0 : i * 1e-4);
    x.push_back(i % 4 < 2 ? size : -size);
  }
  const Memory in(rig, x.size() * 4), out(rig, x.size() * 4);
  rig.write<float>(in.at(), x);
  const Module module(rig, std::span(&code, 1));
  const rosin_place places[] = {in.at(), out.at()};
  rig.launch(rig.stream, module.kernel(code.name), places, static_cast<uint32_t>(x.size() / 64));
  const auto got = rig.read<float>(out.at(), x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const double exact = f(static_cast<double>(x[i])), error = std::fabs(static_cast<double>(got[i]) - exact);
    expect(error <= parts * std::fabs(exact) + most,
           code.name + " of " + std::to_string(x[i]) + " is " + std::to_string(got[i]));
  }
}

void approximations_keep_their_bounds(Rig& rig) {
  approximate(
      rig, ROSIN_EXP2_APPROXIMATE, [](double x) { return std::exp2(x); }, 0x1p-20);
  approximate(
      rig, ROSIN_RECIPROCAL_APPROXIMATE, [](double x) { return 1 / x; }, 0x1p-20);
  approximate(
      rig, ROSIN_TANH_APPROXIMATE, [](double x) { return std::tanh(x); }, 0, 0x1p-10);
}

void every_conversion_saturates_or_wraps(Rig& rig) {
  Batch batch(rig);
  for_each_type(rig, [&]<class From>(From) {
    for_each_type(rig, [&]<class To>(To) {
      const std::vector<From> x = special<From>();
      const auto make = [](Code& code, const Value* in) { return code.add(ROSIN_CONVERT, scalar_of<To>, {in[0]}); };
      const auto wanted = [x](size_t i) { return converted<To>(x[i]); };
      batch.add<To, From>(std::string("convert_") + type_name<From>() + "_" + type_name<To>(), make, wanted, x);
    });
  });
  batch.run();
}

template <class To, class From> void add_reinterpret(Batch& batch) {
  std::vector<From> x = special<From>();
  if constexpr (Float<From>) x.pop_back();  // a NaN may change its bits on the way
  const auto make = [](Code& code, const Value* in) { return code.add(ROSIN_REINTERPRET, scalar_of<To>, {in[0]}); };
  const auto wanted = [x](size_t i) { return std::bit_cast<To>(x[i]); };
  batch.add<To, From>(std::string("reinterpret_") + type_name<From>(), make, wanted, x);
}

void reinterpreting_keeps_bits(Rig& rig) {
  Batch batch(rig);
  add_reinterpret<int32_t, float>(batch);
  add_reinterpret<float, int32_t>(batch);
  if (rig.info.float64) {
    add_reinterpret<int64_t, double>(batch);
    add_reinterpret<double, int64_t>(batch);
  }
  batch.run();
}

template <class T> int64_t literal_bits(T x) {
  if constexpr (std::same_as<T, float>) return std::bit_cast<int32_t>(x);
  else if constexpr (std::same_as<T, double>) return std::bit_cast<int64_t>(x);
  else return static_cast<int64_t>(static_cast<std::conditional_t<std::same_as<T, uint32_t>, int32_t, T>>(x));
}

/// x + 0 * (where it stands) would change signs of zero, so each literal is chosen by its place.
void literals_are_the_numbers_they_say(Rig& rig) {
  Batch batch(rig);
  for_each_type(rig, [&]<class T>(T) {
    const std::vector<T> values = special<T>();
    std::vector<int32_t> places(values.size());
    for (size_t i = 0; i < places.size(); ++i) places[i] = static_cast<int32_t>(i);
    const auto make = [values](Code& code, const Value* in) {
      Value chosen = code.add(ROSIN_LITERAL, scalar_of<T>, {}, literal_bits(values[0]));
      for (size_t i = 1; i < values.size(); ++i) {
        const Value literal = code.add(ROSIN_LITERAL, scalar_of<T>, {}, literal_bits(values[i]));
        const Value here = code.add(ROSIN_EQUAL, ROSIN_SCALAR_BOOL, {in[0], code.int32(static_cast<int64_t>(i))});
        chosen = code.add(ROSIN_SELECT, scalar_of<T>, {here, literal, chosen});
      }
      return chosen;
    };
    const auto wanted = [values](size_t i) { return values[i]; };
    batch.add<T, int32_t>(std::string("literals_") + type_name<T>(), make, wanted, places);
  });
  batch.run();
}

constexpr Check checks[] = {
    {"each computes", each_computes},
    {"each comparison holds", each_comparison_holds},
    {"select takes bits as they are", select_takes_bits_as_they_are},
    {"fma rounds once", fma_rounds_once},
    {"nothing is contracted", nothing_is_contracted},
    {"approximations keep their bounds", approximations_keep_their_bounds},
    {"every conversion saturates or wraps", every_conversion_saturates_or_wraps},
    {"reinterpreting keeps bits", reinterpreting_keeps_bits},
    {"literals are the numbers they say", literals_are_the_numbers_they_say},
};

}  // namespace

const Part operations_part = {"operations", checks};

}  // namespace rosin::conformance
