// Convolutions as vendor calls, where they are offered: forward and both gradients, with bias and relu, of images in
// two orders, against a loop over the definition. Read first: call_rig.hpp.
#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>

#include "call_rig.hpp"
#include "checks.hpp"

namespace rosin::conformance {
namespace {

using Sizes = std::vector<int64_t>;

/// What is asked for. Images are (spatial..., channels, batch), weights (spatial..., in / groups, out).
struct Question {
  std::string name;
  int32_t type = ROSIN_FLOAT32;
  int32_t kind = ROSIN_CALL_CONVOLUTION;
  Sizes x{7, 6, 4, 2}, w{3, 2, 4, 5};
  Sizes stride{1, 1, 1}, dilation{1, 1, 1}, pad_low{0, 0, 0}, pad_high{0, 0, 0};
  int32_t groups = 1;
  bool flipped = false, bias = false, relu = false;
  bool channels_first = true;
};

/// The sizes of its result: (spatial..., out, batch).
Sizes results_of(const Question& asked) {
  Sizes y = asked.x;
  const size_t spatial = y.size() - 2;
  for (size_t d = 0; d < spatial; ++d) {
    const int64_t room = asked.x[d] + asked.pad_low[d] + asked.pad_high[d] - asked.dilation[d] * (asked.w[d] - 1) - 1;
    y[d] = room / asked.stride[d] + 1;
  }
  y[spatial] = asked.w.back();
  return y;
}

rosin_call_array array_of(int32_t role, int32_t type, const Sizes& sizes, bool channels_first) {
  rosin_call_array array{role, type, static_cast<int32_t>(sizes.size()), {}, {}};
  Sizes order;
  for (size_t d = 0; d < sizes.size(); ++d) order.push_back(static_cast<int64_t>(d));
  if (channels_first) std::rotate(order.begin(), order.end() - 2, order.end() - 1);
  int64_t stride = 1;
  for (const int64_t d : order) {
    array.sizes[d] = sizes[static_cast<size_t>(d)];
    array.strides[d] = stride;
    stride *= array.sizes[d];
  }
  return array;
}

void put(const Sizes& from, int32_t (&to)[3]) {
  for (size_t d = 0; d < 3; ++d) to[d] = static_cast<int32_t>(from[d]);
}

/// The description of a question; it owns what it points to. Which of its arrays are x, w and y does not depend on
/// which of them is the result.
class Described {
 public:
  explicit Described(const Question& asked) : question(asked) {
    const bool data = asked.kind == ROSIN_CALL_CONVOLUTION_DATA, weights = asked.kind == ROSIN_CALL_CONVOLUTION_WEIGHTS;
    if (data) {
      y = image(ROSIN_ROLE_OUTPUT_GRADIENT, results_of(asked));
      w = kernel(ROSIN_ROLE_WEIGHTS);
      x = image(ROSIN_ROLE_INPUT_GRADIENT, asked.x);
    } else if (weights) {
      x = image(ROSIN_ROLE_INPUT, asked.x);
      y = image(ROSIN_ROLE_OUTPUT_GRADIENT, results_of(asked));
      w = kernel(ROSIN_ROLE_WEIGHTS_GRADIENT);
    } else {
      x = image(ROSIN_ROLE_INPUT, asked.x);
      w = kernel(ROSIN_ROLE_WEIGHTS);
      if (asked.bias) arrays.push_back({ROSIN_ROLE_BIAS, asked.type, 1, {asked.w.back()}, {1}});
      y = image(ROSIN_ROLE_OUTPUT, results_of(asked));
    }
    what.size = sizeof(what);
    what.kind = asked.kind;
    what.arrays = arrays.data();
    what.array_count = static_cast<uint32_t>(arrays.size());
    what.epilogue.bias = asked.bias;
    what.epilogue.activation = asked.relu ? ROSIN_ACTIVATION_RELU : ROSIN_ACTIVATION_NONE;
    what.unrounded = 1;
    what.deterministic = 1;
    what.window.spatial = static_cast<int32_t>(asked.x.size()) - 2;
    put(asked.stride, what.window.stride);
    put(asked.dilation, what.window.dilation);
    put(asked.pad_low, what.window.pad_low);
    put(asked.pad_high, what.window.pad_high);
    what.window.groups = asked.groups;
    what.window.flipped = asked.flipped;
  }
  Described(const Described&) = delete;
  Described& operator=(const Described&) = delete;

  Question question;
  std::vector<rosin_call_array> arrays;
  rosin_call_description what{};
  size_t x = 0, w = 0, y = 0;  // places in `arrays`

 private:
  size_t image(int32_t role, const Sizes& sizes) {
    arrays.push_back(array_of(role, question.type, sizes, question.channels_first));
    return arrays.size() - 1;
  }
  size_t kernel(int32_t role) {
    arrays.push_back(array_of(role, question.type, question.w, false));
    return arrays.size() - 1;
  }
};

size_t place(const rosin_call_array& array, const Sizes& index) {
  int64_t at = 0;
  for (size_t d = 0; d < index.size(); ++d) at += index[d] * array.strides[d];
  return static_cast<size_t>(at);
}

/// f(index) for each element.
void for_each(const rosin_call_array& array, const std::function<void(const Sizes&)>& f) {
  Sizes index(static_cast<size_t>(array.rank));
  for (;;) {
    f(index);
    size_t d = 0;
    while (d < index.size() && ++index[d] == array.sizes[d]) index[d++] = 0;
    if (d == index.size()) return;
  }
}

/// The element of x that y's and w's meet in; empty where that is padding, or of another group.
Sizes meeting(const Question& asked, const Sizes& y, const Sizes& w) {
  const size_t channel = y.size() - 2;
  if (y[channel] != w[channel + 1]) return {};
  Sizes x = y;
  x[channel] = w[channel] + y[channel] / (asked.w.back() / asked.groups) * asked.w[channel];
  for (size_t d = 0; d < channel; ++d) {
    const int64_t tap = asked.flipped ? asked.w[d] - 1 - w[d] : w[d];
    x[d] = y[d] * asked.stride[d] + tap * asked.dilation[d] - asked.pad_low[d];
    if (x[d] < 0 || x[d] >= asked.x[d]) return {};
  }
  return x;
}

/// A prepared call with its operands.
class Prepared {
 public:
  Prepared(Rig& rig, const Described& described, rosin_call* call, uint64_t workspace)
      : rig_(rig), described_(described), call_(call), scratch_bytes_(workspace), scratch_(rig, workspace + 1) {
    for (const rosin_call_array& array : described.arrays) {
      size_t count = 1;
      for (int d = 0; d < array.rank; ++d) count *= static_cast<size_t>(array.sizes[d]);
      const auto seed = static_cast<int>(operands_.size()) + 1;
      operands_.push_back(std::make_unique<Operand>(rig, array.type, count, seed));
      buffers_.push_back(operands_.back()->at());
    }
  }
  ~Prepared() {
    (void)rig_.api.stream_sync(rig_.stream);
    rig_.api.call_destroy(call_);
  }
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;

  void run() { rig_.good(rig_.api.call_run(rig_.stream, call_, buffers_.data(), scratch_.at(), nullptr), "call_run"); }
  void tune() {
    uint64_t needed = 0;
    rig_.good(rig_.api.call_tune(rig_.stream, call_, buffers_.data(), scratch_.at(), scratch_bytes_, nullptr, &needed),
              "call_tune");
    expect(needed <= scratch_bytes_, "call_tune needs more workspace than it was given");
    operands_.back()->put();
  }
  rosin_graph_node node() const {
    rosin_graph_node all{};
    all.size = sizeof(all);
    all.kind = ROSIN_GRAPH_CALL;
    all.call = call_;
    all.buffers = buffers_.data();
    all.workspace = scratch_.at();
    return all;
  }

  /// After a run.
  void check() const {
    const Question& asked = described_.question;
    const std::vector<float> got = operands_.back()->read();
    std::vector<double> sums(got.size()), amounts(got.size());
    add_products(sums, amounts);
    const rosin_call_array& result = described_.arrays.back();
    for_each(result, [&](const Sizes& index) {
      const size_t at = place(result, index);
      double wanted = sums[at];
      if (asked.bias) wanted += operands_[2]->values[static_cast<size_t>(index[index.size() - 2])];
      if (asked.relu) wanted = std::max(wanted, 0.0);
      expect_close(asked.type, got[at], wanted, asked.name + ": an element", amounts[at]);
    });
  }

 private:
  /// Each element of the result as a sum, and the sum of the sizes of what was added up.
  void add_products(std::vector<double>& sums, std::vector<double>& amounts) const {
    const std::vector<rosin_call_array>& all = described_.arrays;
    const size_t x = described_.x, w = described_.w, y = described_.y, result = all.size() - 1;
    for_each(all[y], [&](const Sizes& in_y) {
      for_each(all[w], [&](const Sizes& in_w) {
        const Sizes in_x = meeting(described_.question, in_y, in_w);
        if (in_x.empty()) return;
        double product = 1;
        size_t to = 0;
        for (const auto& [array, index] : {std::pair(x, &in_x), std::pair(w, &in_w), std::pair(y, &in_y)}) {
          const size_t at = place(all[array], *index);
          if (array == result) to = at;
          else product *= static_cast<double>(operands_[array]->values[at]);
        }
        sums[to] += product;
        amounts[to] += std::fabs(product);
      });
    });
  }

  Rig& rig_;
  const Described& described_;
  rosin_call* call_;
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

/// In one type and of one kind.
std::vector<Question> questions_of(int32_t type, int32_t kind, const std::string& name) {
  const Question plain{.name = name, .type = type, .kind = kind};
  std::vector<Question> all;
  const auto add = [&](const char* how) -> Question& {
    all.push_back(plain);
    all.back().name += how;
    return all.back();
  };
  add("");
  add(", flipped").flipped = true;
  add(" of images in planes").channels_first = false;
  add(", strided").stride = {2, 3, 1};
  add(", dilated").dilation = {2, 3, 1};
  Question& padded = add(", padded unevenly");
  padded.pad_low = {1, 0, 0}, padded.pad_high = {2, 1, 0};
  Question& groups = add(" in groups");
  groups.w = {3, 2, 2, 6}, groups.groups = 2;
  Question& line = add(" of one spatial dim");
  line.x = {9, 3, 2}, line.w = {3, 3, 4}, line.stride = {2, 1, 1};
  Question& block = add(" of three spatial dims");
  block.x = {4, 5, 3, 2, 2}, block.w = {3, 2, 2, 2, 3}, block.pad_low = block.pad_high = {1, 1, 1};
  if (kind != ROSIN_CALL_CONVOLUTION) return all;
  add(" with a bias").bias = true;
  Question& both = add(" with a bias and relu");
  both.bias = both.relu = true;
  return all;
}

std::vector<Question> questions() {
  std::vector<Question> all;
  for (const auto& [type, type_name] :
       {std::pair(ROSIN_FLOAT32, "a convolution"), std::pair(ROSIN_FLOAT16, "a convolution of Float16"),
        std::pair(ROSIN_BFLOAT16, "a convolution of BFloat16")}) {
    for (const auto& [kind, kind_name] :
         {std::pair(ROSIN_CALL_CONVOLUTION, ""), std::pair(ROSIN_CALL_CONVOLUTION_DATA, "'s gradient by its images"),
          std::pair(ROSIN_CALL_CONVOLUTION_WEIGHTS, "'s gradient by its weights")}) {
      for (Question& one : questions_of(type, kind, std::string(type_name) + kind_name)) all.push_back(std::move(one));
    }
  }
  return all;
}

/// f(call) for each question that the plug-in takes.
void for_each_call(Rig& rig, const std::function<void(Prepared&)>& f) {
  if (!rig.api.call_prepare) return;
  for (const Question& question : questions()) {
    const Described described(question);
    if (const auto call = prepared(rig, described)) f(*call);
  }
}

void a_convolution_is_right_or_unsupported(Rig& rig) {
  for_each_call(rig, [](Prepared& call) {
    for (int i = 0; i < 2; ++i) call.run();
    call.check();
  });
}

void a_tuned_convolution_is_right(Rig& rig) {
  if (!rig.api.call_tune) return;
  for_each_call(rig, [](Prepared& call) {
    call.tune();
    call.run();
    call.check();
  });
}

void convolutions_stand_in_graphs(Rig& rig) {
  if (!rig.api.graph_create) return;
  for_each_call(rig, [&](Prepared& call) {
    rosin_graph* graph = nullptr;
    rosin_status status = rig.api.graph_create(rig.device, &graph);
    if (status == ROSIN_UNSUPPORTED) return;
    rig.good(status, "graph_create");
    const std::unique_ptr<rosin_graph, void (*)(rosin_graph*)> owner(graph, rig.api.graph_destroy);
    const rosin_graph_node node = call.node();
    status = rig.api.graph_add(graph, &node);
    if (status == ROSIN_UNSUPPORTED) return;
    rig.good(status, "graph_add of a convolution");
    rig.good(rig.api.graph_finish(graph), "graph_finish");
    rig.good(rig.api.graph_launch(rig.stream, graph), "graph_launch");
    call.check();
    rig.sync();
  });
}

void a_convolution_that_does_not_fit_is_refused(Rig& rig) {
  if (!rig.api.call_prepare) return;
  for (const Question& question : questions()) {
    Described described(question);
    rosin_call_array& y = described.arrays[described.y];
    Sizes larger = results_of(question);
    larger[0] += 1;
    y = array_of(y.role, y.type, larger, question.channels_first);
    rosin_call* call = nullptr;
    uint64_t workspace = 0;
    const rosin_status status = rig.api.call_prepare(rig.device, &described.what, &call, &workspace);
    expect(status == ROSIN_INVALID || status == ROSIN_UNSUPPORTED,
           question.name + ": call_prepare gives " + name_of(status) + " for a result that is too large");
  }
}

constexpr Check checks[] = {
    {"a convolution is right or unsupported", a_convolution_is_right_or_unsupported},
    {"a tuned convolution is right", a_tuned_convolution_is_right},
    {"convolutions stand in graphs", convolutions_stand_in_graphs},
    {"a convolution that does not fit is refused", a_convolution_that_does_not_fit_is_refused},
};

}  // namespace

const Part convolutions_part = {"convolutions", checks};

}  // namespace rosin::conformance
