// Vendor calls, where they are offered: matmuls with every epilogue, with numbers, in graphs, and choices.
#include <cmath>
#include <functional>

#include "call_rig.hpp"
#include "checks.hpp"

namespace rosin::conformance {
namespace {

constexpr int64_t rows = 5, inner = 3, columns = 4, batches = 3;

/// What is asked for: result (5, 4) = left (5, 3) * right (3, 4), in a batch of 1 or 3; left is stored by rows, right
/// by columns with `gap` elements between them.
struct Question {
  std::string name;
  int32_t type = ROSIN_FLOAT32;
  int64_t batch = batches;
  rosin_epilogue epilogue{};
  bool accumulate = false;
  bool scaled = false;
  bool unrounded = false;
  int64_t gap = 1;
};

bool is_gradient(const rosin_epilogue& epilogue) {
  return epilogue.activation == ROSIN_ACTIVATION_RELU_GRADIENT || epilogue.activation == ROSIN_ACTIVATION_GELU_GRADIENT;
}
bool has_bits(const rosin_epilogue& epilogue) {
  return epilogue.activation == ROSIN_ACTIVATION_RELU || epilogue.activation == ROSIN_ACTIVATION_RELU_GRADIENT;
}

/// The description of a question; it owns what it points to.
class Described {
 public:
  explicit Described(const Question& asked) : question(asked) {
    add(ROSIN_ROLE_LEFT, rows, inner, inner, 1, rows * inner);
    const int64_t column = inner + asked.gap;
    add(ROSIN_ROLE_RIGHT, inner, columns, 1, column, column * columns);
    const rosin_epilogue& epilogue = asked.epilogue;
    if (epilogue.bias) arrays.push_back({ROSIN_ROLE_BIAS, asked.type, 1, {rows}, {1}});
    if (epilogue.residual) add(ROSIN_ROLE_RESIDUAL, rows, columns, 1, rows, rows * columns);
    if (epilogue.auxiliary && has_bits(epilogue)) {
      add(ROSIN_ROLE_AUXILIARY, bit_bytes, columns, 1, bit_bytes, bit_bytes * columns);
      arrays.back().type = ROSIN_UINT8;
    } else if (epilogue.auxiliary) {
      add(ROSIN_ROLE_AUXILIARY, rows, columns, 1, padded_rows, padded_rows * columns);
    }
    if (epilogue.bias_gradient) arrays.push_back({ROSIN_ROLE_BIAS_GRADIENT, asked.type, 1, {rows}, {1}});
    add(ROSIN_ROLE_OUTPUT, rows, columns, 1, rows, rows * columns);
    what.size = sizeof(what);
    what.kind = ROSIN_CALL_MATMUL;
    what.array_count = static_cast<uint32_t>(arrays.size());
    what.arrays = arrays.data();
    what.epilogue = epilogue;
    what.accumulate = asked.accumulate;
    what.scaled = asked.scaled;
    what.unrounded = asked.unrounded;
    what.deterministic = 1;
  }
  Described(const Described&) = delete;
  Described& operator=(const Described&) = delete;

  static constexpr int64_t bit_bytes = 16, padded_rows = 8;  // libraries want columns of 128 bits, or of 8 elements
  Question question;
  std::vector<rosin_call_array> arrays;
  rosin_call_description what{};

 private:
  void add(int32_t role, int64_t m, int64_t n, int64_t row, int64_t column, int64_t batch) {
    arrays.push_back({role, question.type, question.batch > 1 ? 3 : 2, {m, n, question.batch}, {row, column, batch}});
    if (question.batch == 1) arrays.back().sizes[2] = arrays.back().strides[2] = 0;
  }
};

size_t place(const rosin_call_array& of, int64_t i, int64_t j, int64_t q) {
  return static_cast<size_t>(i * of.strides[0] + j * of.strides[1] + q * of.strides[2]);
}

/// How many elements reach over an array, and more where a plug-in might write beyond it.
size_t count_of(const rosin_call_array& array, int64_t batch) {
  return static_cast<size_t>(array.rank == 1 ? array.sizes[0] : array.strides[1] * array.sizes[1] * 2 * batch + 64);
}

double gelu(double x) { return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }
double gelu_gradient(double x) {
  const double step = 1e-5;
  return (gelu(x + step) - gelu(x - step)) / (2 * step);
}

double activated(int32_t activation, double x) {
  switch (activation) {
    case ROSIN_ACTIVATION_RELU: return x < 0 ? 0 : x;
    case ROSIN_ACTIVATION_SIGMOID: return 1 / (1 + std::exp(-x));
    case ROSIN_ACTIVATION_TANH: return std::tanh(x);
    case ROSIN_ACTIVATION_GELU: return gelu(x);
    default: return x;
  }
}

/// A prepared call with its operands, and what it must give.
class Prepared {
 public:
  Prepared(Rig& rig, const Described& described, rosin_call* call, uint64_t workspace)
      : call_(call), rig_(rig), described_(described), scratch_bytes_(workspace),
        scratch_(rig, workspace ? workspace : 1) {
    for (const rosin_call_array& array : described.arrays) {
      const auto seed = static_cast<int>(operands_.size()) + 1;
      const size_t count = count_of(array, described.question.batch);
      operands_.push_back(std::make_unique<Operand>(rig, array.type, count, seed));
      buffers_.push_back(operands_.back()->at());
    }
    numbers_.size = sizeof(numbers_);
    numbers_.alpha = 2;
    numbers_.beta = -3;
  }
  ~Prepared() {
    (void)rig_.api.stream_sync(rig_.stream);
    rig_.api.call_destroy(call_);
  }
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;

  const rosin_call_numbers* numbers() const { return described_.question.scaled ? &numbers_ : nullptr; }
  void set_numbers(double alpha, double beta) {
    numbers_.alpha = alpha;
    numbers_.beta = beta;
  }
  void run() {
    rig_.good(rig_.api.call_run(rig_.stream, call_, buffers_.data(), scratch_.at(), numbers()), "call_run");
  }
  void tune() {
    uint64_t needed = 0;
    rig_.good(
        rig_.api.call_tune(rig_.stream, call_, buffers_.data(), scratch_.at(), scratch_bytes_, numbers(), &needed),
        "call_tune");
    expect(needed <= scratch_bytes_, "call_tune needs more workspace than it was given");
    reset();
  }
  rosin_graph_node node() const {
    rosin_graph_node all{};
    all.size = sizeof(all);
    all.kind = ROSIN_GRAPH_CALL;
    all.call = call_;
    all.buffers = buffers_.data();
    all.workspace = scratch_.at();
    all.numbers = numbers();
    return all;
  }
  /// What the operands held before.
  void reset() {
    for (const auto& operand : operands_) operand->put();
  }
  /// After one run.
  void check() {
    const std::vector<float> got = operands_.back()->read();
    for (int64_t q = 0; q < described_.question.batch; ++q)
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j) check_element(got, i, j, q);
    check_sums(got);
  }

  rosin_call* call_;

 private:
  const rosin_call_array* array(int32_t role, const Operand*& operand) const {
    for (size_t i = 0; i < described_.arrays.size(); ++i) {
      if (described_.arrays[i].role != role) continue;
      operand = operands_[i].get();
      return &described_.arrays[i];
    }
    return nullptr;
  }
  double value(int32_t role, int64_t i, int64_t j, int64_t q) const {
    const Operand* operand = nullptr;
    const rosin_call_array* found = array(role, operand);
    return found ? operand->values[place(*found, i, j, q)] : 0;
  }

  /// `size`: of what was added up or multiplied on the way.
  void close(double got, double wanted, const char* what, double size = 0) const {
    expect_close(described_.question.type, got, wanted, described_.question.name + ": " + what, size);
  }

  void check_element(const std::vector<float>& got, int64_t i, int64_t j, int64_t q) const {
    const Question& asked = described_.question;
    const rosin_epilogue& epilogue = asked.epilogue;
    double sum = 0;
    for (int64_t l = 0; l < inner; ++l) sum += value(ROSIN_ROLE_LEFT, i, l, q) * value(ROSIN_ROLE_RIGHT, l, j, q);
    const double beta = asked.scaled ? numbers_.beta : 1;
    if (asked.scaled) sum *= numbers_.alpha;
    if (asked.accumulate) sum += beta * value(ROSIN_ROLE_OUTPUT, i, j, q);
    if (epilogue.bias) sum += value(ROSIN_ROLE_BIAS, i, 0, 0);
    if (epilogue.residual) sum += beta * value(ROSIN_ROLE_RESIDUAL, i, j, q);
    const double result = got[place(described_.arrays.back(), i, j, q)];
    if (!is_gradient(epilogue)) {
      close(result, activated(epilogue.activation, sum), "an element");
      if (epilogue.auxiliary) check_auxiliary(sum, i, j, q);
    } else if (has_bits(epilogue)) {
      const auto byte = static_cast<int>(static_cast<uint8_t>(value(ROSIN_ROLE_AUXILIARY, i / 8, j, q)));
      close(result, byte >> (i % 8) & 1 ? sum : 0, "an element of a gradient");
    } else {
      close(result, sum * gelu_gradient(value(ROSIN_ROLE_AUXILIARY, i, j, q)), "an element of a gradient", sum);
    }
  }

  void check_auxiliary(double before, int64_t i, int64_t j, int64_t q) const {
    const Operand* operand = nullptr;
    const rosin_call_array* found = array(ROSIN_ROLE_AUXILIARY, operand);
    const std::vector<float> stored = operand->read();
    if (!has_bits(described_.question.epilogue)) return close(stored[place(*found, i, j, q)], before, "the auxiliary");
    const auto byte = static_cast<int>(stored[place(*found, i / 8, j, q)]);
    close(byte >> (i % 8) & 1, before > 0 ? 1 : 0, "a bit of the auxiliary");
  }

  void check_sums(const std::vector<float>& got) const {
    if (!described_.question.epilogue.bias_gradient) return;
    const Operand* operand = nullptr;
    (void)array(ROSIN_ROLE_BIAS_GRADIENT, operand);
    const std::vector<float> sums = operand->read();
    const bool of_result = is_gradient(described_.question.epilogue);
    for (int64_t i = 0; i < rows; ++i) {
      double sum = 0, size = 0;
      for (int64_t j = 0; j < (of_result ? columns : inner); ++j) {
        const double term = of_result ? got[place(described_.arrays.back(), i, j, 0)] : value(ROSIN_ROLE_LEFT, i, j, 0);
        sum += term;
        size += std::fabs(term);
      }
      close(sums[static_cast<size_t>(i)], sum, "a sum of the bias's gradient", size);
    }
  }

  Rig& rig_;
  const Described& described_;
  rosin_call_numbers numbers_{};
  uint64_t scratch_bytes_;
  Memory scratch_;
  std::vector<std::unique_ptr<Operand>> operands_;
  std::vector<rosin_place> buffers_;
};

/// The call, or null where the plug-in does not take it.
std::unique_ptr<Prepared> prepared(Rig& rig, const Described& described) {
  const bool may = takes(rig, described.what);
  rosin_call* call = nullptr;
  uint64_t workspace = 0;
  const rosin_status status = rig.api.call_prepare(rig.device, &described.what, &call, &workspace);
  if (status == ROSIN_UNSUPPORTED) return nullptr;
  rig.good(status, "call_prepare");
  auto made = std::make_unique<Prepared>(rig, described, call, workspace);
  expect(may, described.question.name + ": call_prepare takes a call that call_takes refused");
  return made;
}

std::vector<Question> questions_of(int32_t type, const std::string& type_name) {
  std::vector<Question> all;
  const auto add = [&](const char* name, rosin_epilogue epilogue, int64_t batch = batches) -> Question& {
    all.push_back({.name = type_name + name, .type = type, .batch = batch, .epilogue = epilogue});
    return all.back();
  };
  // bias, residual, activation, auxiliary, bias_gradient
  add("matmul", {});
  add("bias", {1, 0, ROSIN_ACTIVATION_NONE, 0, 0});
  add("bias and relu", {1, 0, ROSIN_ACTIVATION_RELU, 0, 0});
  add("bias and sigmoid", {1, 0, ROSIN_ACTIVATION_SIGMOID, 0, 0});
  add("bias and tanh", {1, 0, ROSIN_ACTIVATION_TANH, 0, 0});
  add("bias and gelu", {1, 0, ROSIN_ACTIVATION_GELU, 0, 0});
  add("residual", {0, 1, ROSIN_ACTIVATION_NONE, 0, 0});
  add("bias, residual and relu", {1, 1, ROSIN_ACTIVATION_RELU, 0, 0});
  add("relu with auxiliary", {1, 0, ROSIN_ACTIVATION_RELU, 1, 0});
  add("gelu with auxiliary", {1, 0, ROSIN_ACTIVATION_GELU, 1, 0});
  add("gradient of relu", {0, 0, ROSIN_ACTIVATION_RELU_GRADIENT, 1, 0});
  add("gradient of gelu", {0, 0, ROSIN_ACTIVATION_GELU_GRADIENT, 1, 0});
  add("gradient of the bias", {0, 0, ROSIN_ACTIVATION_NONE, 0, 1}, 1);
  add("gradients of relu and bias", {0, 0, ROSIN_ACTIVATION_RELU_GRADIENT, 1, 1}, 1);
  add("gradients of gelu and bias", {0, 0, ROSIN_ACTIVATION_GELU_GRADIENT, 1, 1}, 1);
  add("accumulated", {}).accumulate = true;
  add("accumulated in one product", {}, 1).accumulate = true;
  add("scaled", {1, 0, ROSIN_ACTIVATION_RELU, 0, 0}).scaled = true;
  add("scaled residual", {0, 1, ROSIN_ACTIVATION_NONE, 0, 0}).scaled = true;
  Question& both = add("scaled and accumulated", {});
  both.scaled = both.accumulate = true;
  add("matmul without gaps", {}).gap = 0;
  add("bias and relu without gaps", {1, 0, ROSIN_ACTIVATION_RELU, 0, 0}).gap = 0;
  add("bias and residual of one product without gaps", {1, 1, ROSIN_ACTIVATION_NONE, 0, 0}, 1).gap = 0;
  return all;
}

std::vector<Question> questions() {
  std::vector<Question> all = questions_of(ROSIN_FLOAT32, "");
  for (const Question& one : questions_of(ROSIN_FLOAT16, "Float16 ")) all.push_back(one);
  for (const Question& one : questions_of(ROSIN_BFLOAT16, "BFloat16 ")) all.push_back(one);
  for (size_t i = 0, count = all.size(); i < count; ++i) {
    all.push_back(all[i]);
    all.back().unrounded = true;
    all.back().name += ", unrounded";
  }
  return all;
}

/// f(description, call) for each question that the plug-in takes.
void for_each_call(Rig& rig, const std::function<void(const Described&, Prepared&)>& f) {
  if (!rig.api.call_prepare) return;
  for (const Question& question : questions()) {
    const Described described(question);
    if (const auto call = prepared(rig, described)) f(described, *call);
  }
}

void a_matmul_is_right_or_unsupported(Rig& rig) {
  for_each_call(rig, [](const Described&, Prepared& call) {
    for (int i = 0; i < 2; ++i) {
      call.reset();
      call.run();
    }
    call.check();
  });
}

void numbers_are_those_of_the_run(Rig& rig) {
  for_each_call(rig, [](const Described& described, Prepared& call) {
    if (!described.question.scaled) return;
    call.run();
    call.reset();
    call.set_numbers(-1, 2);
    call.run();
    call.check();
    call.reset();
    call.set_numbers(1, 0);
    call.run();
    call.check();
  });
}

void what_it_does_not_know_is_refused(Rig& rig) {
  if (!rig.api.call_prepare) return;
  constexpr int32_t unknown = 1000;
  const rosin_attribute attribute{unknown, 1, 1};
  const std::pair<const char*, std::function<void(Described&)>> wrong[] = {
      {"a kind", [](Described& d) { d.what.kind = unknown; }},
      {"a type",
       [](Described& d) {
         for (rosin_call_array& a : d.arrays) a.type = unknown;
       }},
      {"an activation", [](Described& d) { d.what.epilogue.activation = unknown; }},
      {"a mode", [](Described& d) { d.what.compute = unknown; }},
      {"an attribute", [&](Described& d) { d.what.attribute_count = 1, d.what.attributes = &attribute; }}};
  for (const auto& [what, change] : wrong) {
    Described described(Question{.name = what});
    change(described);
    std::vector<int32_t> orders(described.arrays.size(), ROSIN_ORDER_CONTIGUOUS);
    const std::string text = std::string(what) + " that backend.h does not know";
    rig.fails(rig.api.call_takes(rig.device, &described.what, orders.data()), ROSIN_UNSUPPORTED,
              "call_takes of " + text);
    rosin_call* call = nullptr;
    uint64_t workspace = 0;
    rig.fails(rig.api.call_prepare(rig.device, &described.what, &call, &workspace), ROSIN_UNSUPPORTED,
              "call_prepare of " + text);
  }
}

void the_workspace_keeps_its_limit(Rig& rig) {
  if (!rig.api.call_prepare) return;
  Described described(Question{.name = "matmul"});
  described.what.workspace = 1;
  rosin_call* call = nullptr;
  uint64_t workspace = 0;
  const rosin_status status = rig.api.call_prepare(rig.device, &described.what, &call, &workspace);
  if (status == ROSIN_UNSUPPORTED) return;
  rig.good(status, "call_prepare");
  rig.api.call_destroy(call);
  expect(workspace <= 1, "call_prepare asks for more workspace than the description allows");
}

void a_tuned_call_is_right_and_its_choice_is_taken(Rig& rig) {
  if (!rig.api.call_tune || !rig.api.call_choice) return;
  for_each_call(rig, [&](const Described& described, Prepared& call) {
    call.tune();
    call.run();
    call.check();
    const void* bytes = nullptr;
    uint64_t count = 0;
    rig.good(rig.api.call_choice(call.call_, &bytes, &count), "call_choice");
    expect(count == 0 || bytes != nullptr, "call_choice gives bytes that are null");
    const std::vector<char> choice(static_cast<const char*>(bytes), static_cast<const char*>(bytes) + count);
    const std::vector<char> foreign(100, 'x');
    for (const std::vector<char>* kept : {&choice, &foreign}) {
      Described chosen(described.question);
      chosen.what.choice = kept->data();
      chosen.what.choice_bytes = kept->size();
      const auto again = prepared(rig, chosen);
      expect(again != nullptr, described.question.name + ": call_prepare refuses a call for its choice");
      again->run();
      again->check();
      if (kept == &foreign) continue;
      rig.good(rig.api.call_choice(again->call_, &bytes, &count), "call_choice");
      expect(std::vector<char>(static_cast<const char*>(bytes), static_cast<const char*>(bytes) + count) == choice,
             described.question.name + ": a call that was given a choice has another one");
    }
  });
}

void calls_stand_in_graphs(Rig& rig) {
  if (!rig.api.graph_create) return;
  for_each_call(rig, [&](const Described& described, Prepared& call) {
    rosin_graph* graph = nullptr;
    rosin_status status = rig.api.graph_create(rig.device, &graph);
    if (status == ROSIN_UNSUPPORTED) return;
    rig.good(status, "graph_create");
    const std::unique_ptr<rosin_graph, void (*)(rosin_graph*)> owner(graph, rig.api.graph_destroy);
    rosin_graph_node node = call.node();
    status = rig.api.graph_add(graph, &node);
    if (status == ROSIN_UNSUPPORTED) return;
    rig.good(status, "graph_add of a call");
    rig.good(rig.api.graph_finish(graph), "graph_finish");
    if (described.question.scaled) {
      call.set_numbers(4, 5);
      node = call.node();
      status = rig.api.graph_update(graph, 0, &node);
      if (status == ROSIN_UNSUPPORTED) return;
      rig.good(status, "graph_update of a call");
    }
    rig.good(rig.api.graph_launch(rig.stream, graph), "graph_launch");
    call.check();
    rig.sync();
  });
}

constexpr Check checks[] = {
    {"a matmul is right or unsupported", a_matmul_is_right_or_unsupported},
    {"numbers are those of the run", numbers_are_those_of_the_run},
    {"what it does not know is refused", what_it_does_not_know_is_refused},
    {"the workspace keeps its limit", the_workspace_keeps_its_limit},
    {"a tuned call is right and its choice is taken", a_tuned_call_is_right_and_its_choice_is_taken},
    {"calls stand in graphs", calls_stand_in_graphs},
};

}  // namespace

const Part calls_part = {"calls", checks};

}  // namespace rosin::conformance
