// Vendor calls that are attention, beside their definition (backend_calls.h), query by query. Read first: call_rig.hpp.
#include <cmath>
#include <map>
#include <memory>

#include "call_rig.hpp"
#include "checks.hpp"

namespace rosin::conformance {
namespace {

constexpr int64_t batch = 2, queries = 9, keys = 9;

struct Question {
  const char* name;
  int32_t type = ROSIN_BFLOAT16;
  bool causal = false;
  int64_t features = 16, heads = 4, served = 4;
  double scale = 0.25;
};
constexpr Question questions[] = {
    {.name = "attention"},
    {.name = "attention of Float16", .type = ROSIN_FLOAT16},
    {.name = "attention of Float32", .type = ROSIN_FLOAT32},
    {.name = "causal attention", .causal = true},
    {.name = "attention of few heads of keys", .served = 2},
    {.name = "attention of another scale", .scale = 1},
};

bool of_keys(int32_t role) {
  return role == ROSIN_ROLE_KEY || role == ROSIN_ROLE_VALUE || role == ROSIN_ROLE_KEY_GRADIENT ||
         role == ROSIN_ROLE_VALUE_GRADIENT;
}

/// Heads stand side by side at each place.
rosin_call_array array_of(const Question& q, int32_t role) {
  if (role == ROSIN_ROLE_STATE) {
    return {role, ROSIN_FLOAT32, 3, {queries, q.heads, batch}, {1, queries, queries * q.heads}};
  }
  const int64_t heads = of_keys(role) ? q.served : q.heads, length = of_keys(role) ? keys : queries;
  const int64_t place = q.features * heads;
  return {role, q.type, 4, {q.features, length, heads, batch}, {1, place, q.features, place * length}};
}

struct Described {
  std::vector<rosin_call_array> arrays;
  rosin_attribute attributes[2]{};
  rosin_call_description what{};

  Described(const Question& q, int32_t kind, std::initializer_list<int32_t> roles) {
    for (const int32_t role : roles) arrays.push_back(array_of(q, role));
    attributes[0] = {ROSIN_ATTRIBUTE_SCALE, 0, q.scale};
    attributes[1] = {ROSIN_ATTRIBUTE_CAUSAL, 1, 0};
    what.size = sizeof what;
    what.kind = kind;
    what.array_count = static_cast<uint32_t>(arrays.size());
    what.arrays = arrays.data();
    what.unrounded = what.deterministic = 1;
    what.attribute_count = q.causal ? 2 : 1;
    what.attributes = attributes;
  }
};

using Doubles = std::vector<double>;

constexpr std::initializer_list<int32_t> roles_of_attention = {ROSIN_ROLE_QUERY, ROSIN_ROLE_KEY, ROSIN_ROLE_VALUE,
                                                               ROSIN_ROLE_OUTPUT};

/// Attention and its gradient on the device, or attention alone, without the state that the gradient needs; arrays by
/// role.
class Attended {
 public:
  Attended(Rig& rig, const Question& question)
      : rig_(rig), q_(question), alone_(question, ROSIN_CALL_ATTENTION, roles_of_attention),
        forward_(question, ROSIN_CALL_ATTENTION,
                 {ROSIN_ROLE_QUERY, ROSIN_ROLE_KEY, ROSIN_ROLE_VALUE, ROSIN_ROLE_OUTPUT, ROSIN_ROLE_STATE}),
        gradient_(question, ROSIN_CALL_ATTENTION_DATA,
                  {ROSIN_ROLE_QUERY, ROSIN_ROLE_KEY, ROSIN_ROLE_VALUE, ROSIN_ROLE_OUTPUT, ROSIN_ROLE_STATE,
                   ROSIN_ROLE_OUTPUT_GRADIENT, ROSIN_ROLE_QUERY_GRADIENT, ROSIN_ROLE_KEY_GRADIENT,
                   ROSIN_ROLE_VALUE_GRADIENT}) {}

  bool is_taken() { return takes(rig_, forward_.what) && takes(rig_, gradient_.what); }
  bool is_taken_alone() { return takes(rig_, alone_.what); }

  /// Operands are multiples of 1/4 between -3/2 and 3/2.
  void fill() {
    for (const rosin_call_array& array : gradient_.arrays) {
      size_t count = 1;
      for (int d = 0; d < array.rank; ++d) count *= static_cast<size_t>(array.sizes[d]);
      arrays_[array.role] = std::make_unique<Operand>(rig_, array.type, count, array.role);
      for (float& x : arrays_[array.role]->values) x /= 4;
      arrays_[array.role]->put();
    }
  }
  // False: one is refused now that the sizes are known.
  bool run() { return run(forward_) && run(gradient_); }
  bool run_alone() { return run(alone_); }

  void check(bool alone) const {
    Doubles y(count(ROSIN_ROLE_OUTPUT)), state(count(ROSIN_ROLE_STATE)), dq(y.size()), dk(count(ROSIN_ROLE_KEY)),
        dv(dk.size());
    for (int64_t i = 0; i < batch * q_.heads * queries; ++i) {
      add_query(i / queries / q_.heads, i / queries % q_.heads, i % queries, y, state, dq, dk, dv);
    }
    compare(ROSIN_ROLE_OUTPUT, y, ": a result");
    if (alone) return;
    compare(ROSIN_ROLE_STATE, state, ": a state");
    compare(ROSIN_ROLE_QUERY_GRADIENT, dq, ": a slope by a query");
    compare(ROSIN_ROLE_KEY_GRADIENT, dk, ": a slope by a key");
    compare(ROSIN_ROLE_VALUE_GRADIENT, dv, ": a slope by a value");
  }

 private:
  bool run(const Described& described) {
    rosin_call* call = nullptr;
    uint64_t workspace = 0;
    const rosin_status status = rig_.api.call_prepare(rig_.device, &described.what, &call, &workspace);
    if (status == ROSIN_UNSUPPORTED) return false;
    rig_.good(status, "call_prepare");
    const std::unique_ptr<rosin_call, void (*)(rosin_call*)> owner(call, rig_.api.call_destroy);
    const Memory room(rig_, std::max<uint64_t>(workspace, 1));
    std::vector<rosin_place> places;
    for (const rosin_call_array& array : described.arrays) places.push_back(arrays_.at(array.role)->at());
    rig_.good(rig_.api.call_run(rig_.stream, call, places.data(), room.at(), nullptr), "call_run");
    rig_.sync();
    return true;
  }

  size_t count(int32_t role) const { return arrays_.at(role)->values.size(); }
  size_t place(int64_t heads, int64_t b, int64_t h, int64_t t, int64_t f) const {
    return static_cast<size_t>(((b * queries + t) * heads + h) * q_.features + f);
  }
  double given(int32_t role, int64_t b, int64_t h, int64_t t, int64_t f) const {
    return static_cast<double>(arrays_.at(role)->values[place(of_keys(role) ? q_.served : q_.heads, b, h, t, f)]);
  }

  void add_query(int64_t b, int64_t h, int64_t t, Doubles& y, Doubles& state, Doubles& dq, Doubles& dk,
                 Doubles& dv) const {
    const int64_t of = h / (q_.heads / q_.served), seen = q_.causal ? t + 1 : keys;
    Doubles weight(static_cast<size_t>(seen)), slope(weight.size());
    double sum = 0, dots = 0;
    for (int64_t s = 0; s < seen; ++s) {
      double logit = 0;
      for (int64_t f = 0; f < q_.features; ++f) {
        logit += given(ROSIN_ROLE_QUERY, b, h, t, f) * given(ROSIN_ROLE_KEY, b, of, s, f);
        slope[static_cast<size_t>(s)] +=
            given(ROSIN_ROLE_OUTPUT_GRADIENT, b, h, t, f) * given(ROSIN_ROLE_VALUE, b, of, s, f);
      }
      sum += weight[static_cast<size_t>(s)] = std::exp(q_.scale * logit);
    }
    state[static_cast<size_t>((b * q_.heads + h) * queries + t)] = std::log(sum);
    for (size_t s = 0; s < weight.size(); ++s) dots += (weight[s] /= sum) * slope[s];
    for (int64_t s = 0; s < seen; ++s) {
      const double w = weight[static_cast<size_t>(s)];
      const double by_logit = q_.scale * w * (slope[static_cast<size_t>(s)] - dots);
      for (int64_t f = 0; f < q_.features; ++f) {
        y[place(q_.heads, b, h, t, f)] += w * given(ROSIN_ROLE_VALUE, b, of, s, f);
        dv[place(q_.served, b, of, s, f)] += w * given(ROSIN_ROLE_OUTPUT_GRADIENT, b, h, t, f);
        dq[place(q_.heads, b, h, t, f)] += by_logit * given(ROSIN_ROLE_KEY, b, of, s, f);
        dk[place(q_.served, b, of, s, f)] += by_logit * given(ROSIN_ROLE_QUERY, b, h, t, f);
      }
    }
  }

  void compare(int32_t role, const Doubles& wanted, const char* what) const {
    const std::vector<float> got = arrays_.at(role)->read();
    const bool is_state = role == ROSIN_ROLE_STATE;
    for (size_t i = 0; i < wanted.size(); ++i) {
      expect_close(is_state ? int32_t{ROSIN_FLOAT16} : q_.type, static_cast<double>(got[i]), wanted[i],
                   std::string(q_.name) + what, 2);
    }
  }

  Rig& rig_;
  const Question& q_;
  Described alone_, forward_, gradient_;
  std::map<int32_t, std::unique_ptr<Operand>> arrays_;
};

void attention_is_right(Rig& rig) {
  if (!rig.api.call_prepare) return;
  for (const Question& question : questions) {
    Attended attended(rig, question);
    if (!attended.is_taken()) continue;
    attended.fill();
    if (attended.run()) attended.check(false);
  }
}

void attention_alone_is_right(Rig& rig) {
  if (!rig.api.call_prepare) return;
  for (const Question& question : questions) {
    Attended attended(rig, question);
    if (!attended.is_taken_alone()) continue;
    attended.fill();
    if (attended.run_alone()) attended.check(true);
  }
}

void attention_that_does_not_fit_is_refused(Rig& rig) {
  if (!rig.api.call_prepare) return;
  for (const Question& question : questions) {
    Described described(question, ROSIN_CALL_ATTENTION, roles_of_attention);
    described.arrays[1].sizes[0] *= 2;
    rosin_call* call = nullptr;
    uint64_t workspace = 0;
    const rosin_status status = rig.api.call_prepare(rig.device, &described.what, &call, &workspace);
    expect(status == ROSIN_INVALID || status == ROSIN_UNSUPPORTED,
           std::string(question.name) + ": call_prepare gives " + name_of(status) + " for keys of other features");
  }
}

constexpr Check checks[] = {
    {"attention and its gradient are right or unsupported", attention_is_right},
    {"attention alone is right or unsupported", attention_alone_is_right},
    {"attention that does not fit is refused", attention_that_does_not_fit_is_refused},
};

}  // namespace

const Part attention_part = {"attention", checks};

}  // namespace rosin::conformance
