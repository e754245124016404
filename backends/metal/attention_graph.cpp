// Attention as a graph, and a small one that is computed by it and by its definition. Read first: attention.hpp,
// graph.hpp.
#include <cmath>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "metal/attention.hpp"
#include "metal/graph.hpp"

namespace rosin::metal {

Executable attention_graph(const rosin_device& device, const rosin_call_description& call) {
  const Attention a = attention_of(call, device.facts->info.memory);
  GraphWriter graph(call);
  const Id query = graph.reshaped(graph.input(a.q), a.query_sizes()), key = graph.input(a.k), value = graph.input(a.v);
  Id mask = nullptr;
  if (a.causal) mask = graph.reshaped(graph.causal_mask({1, a.shared(), a.queries, a.keys}), a.mask_sizes());
  const Id result = graph.attention(query, key, value, mask, a.scale);
  return graph.finish(device, graph.reshaped(result, graph.array(a.y).sizes), a.y);
}

namespace {

using Numbers = std::vector<float>;

constexpr int64_t batch = 2, heads = 4, features = 16;
constexpr double scale = 0.25, tolerance = 1e-4;  // graphs compute in Float32

/// With blocks that end early, whatever their size.
struct Trial {
  int64_t served, queries, keys;
  bool causal;
};
constexpr Trial trials[] = {{4, 40, 72, false}, {2, 72, 72, true}};

void good(rosin_status status) {
  if (status != ROSIN_OK) throw Failure{status, error_text()};
}

/// Multiples of 1/8 from -1 to 1.
Numbers numbers(int64_t count, int which) {
  Numbers all;
  for (int64_t i = 0; i < count; ++i)
    all.push_back(static_cast<float>(std::round(8 * std::sin(1.7 * static_cast<double>(i) + 2.3 * which)) / 8));
  return all;
}

/// Heads stand side by side at each place.
rosin_call_array array_of(int32_t role, int64_t length, int64_t count) {
  const int64_t place = features * count;
  return {role, ROSIN_FLOAT32, 4, {features, length, count, batch}, {1, place, features, place * length}};
}

size_t at(int64_t length, int64_t count, int64_t b, int64_t h, int64_t t) {
  return static_cast<size_t>(((b * length + t) * count + h) * features);
}

/// By the definition, one query after the other.
bool is_right(const Trial& trial, const Numbers& q, const Numbers& k, const Numbers& v, const Numbers& y) {
  for (int64_t i = 0; i < batch * heads * trial.queries; ++i) {
    const int64_t b = i / trial.queries / heads, h = i / trial.queries % heads, t = i % trial.queries;
    const size_t own = at(trial.queries, heads, b, h, t);
    std::vector<double> wanted(features);
    double sum = 0;
    for (int64_t s = 0; s < (trial.causal ? t + 1 : trial.keys); ++s) {
      const size_t other = at(trial.keys, trial.served, b, h / (heads / trial.served), s);
      double score = 0;
      for (size_t f = 0; f < features; ++f)
        score += static_cast<double>(q[own + f]) * static_cast<double>(k[other + f]);
      const double weight = std::exp(scale * score);
      sum += weight;
      for (size_t f = 0; f < features; ++f) wanted[f] += weight * static_cast<double>(v[other + f]);
    }
    for (size_t f = 0; f < features; ++f) {
      if (!(std::abs(static_cast<double>(y[own + f]) - wanted[f] / sum) <= tolerance)) return false;
    }
  }
  return true;
}

/// A stream and memory of the device, which the work of the stream uses, so that the stream ends first.
class Bench {
 public:
  explicit Bench(rosin_device& device) : device_(device) { good(stream_create(&device, &stream_)); }
  ~Bench() {
    stream_sync(stream_);
    stream_destroy(stream_);
    for (rosin_memory* memory : blocks_) release(&device_, memory);
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  rosin_stream& stream() { return *stream_; }
  rosin_place put(const Numbers& values) {
    rosin_memory* memory = nullptr;
    good(alloc(&device_, values.size() * sizeof(float), &memory));
    blocks_.push_back(memory);
    good(copy_in(stream_, {memory, 0}, values.data(), values.size() * sizeof(float)));
    return {memory, 0};
  }
  void get(rosin_place from, Numbers& values) {
    good(copy_out(stream_, values.data(), from, values.size() * sizeof(float)));
    good(stream_sync(stream_));
  }

 private:
  rosin_device& device_;
  rosin_stream* stream_ = nullptr;
  std::vector<rosin_memory*> blocks_;
};

bool is_right(rosin_device& device, const Trial& trial) {
  const rosin_call_array arrays[] = {
      array_of(ROSIN_ROLE_QUERY, trial.queries, heads), array_of(ROSIN_ROLE_KEY, trial.keys, trial.served),
      array_of(ROSIN_ROLE_VALUE, trial.keys, trial.served), array_of(ROSIN_ROLE_OUTPUT, trial.queries, heads)};
  const rosin_attribute attributes[] = {{ROSIN_ATTRIBUTE_SCALE, 0, scale}, {ROSIN_ATTRIBUTE_CAUSAL, trial.causal, 0}};
  rosin_call_description call{};
  call.size = sizeof call;
  call.kind = ROSIN_CALL_ATTENTION;
  call.array_count = 4;
  call.arrays = arrays;
  call.unrounded = 1;
  call.attribute_count = 2;
  call.attributes = attributes;
  const Executable graph = attention_graph(device, call);
  const Numbers q = numbers(batch * heads * trial.queries * features, 0),
                k = numbers(batch * trial.served * trial.keys * features, 1),
                v = numbers(batch * trial.served * trial.keys * features, 2);
  Numbers y(q.size());
  Bench bench(device);
  const rosin_place places[] = {bench.put(q), bench.put(k), bench.put(v), bench.put(y)};
  give_graph(bench.stream(), graph, places);
  bench.get(places[3], y);
  return is_right(trial, q, k, v, y);
}

std::string tried_attention(rosin_device& device) {
  const Metal& metal = the_metal();
  if (!metal.why_no_attention.empty()) return metal.why_no_attention;
  try {
    const Pool pool;
    for (const Trial& trial : trials) {
      if (!is_right(device, trial)) return "MPSGraph of " + metal.system + " computes a small attention wrongly";
    }
    return {};
  } catch (const Failure& failure) {
    return failure.text;
  }
}

/// What came of it, by device, however often that is opened.
struct Tried {
  std::mutex lock;
  std::map<const DeviceFacts*, std::string> reasons;

  static Tried& here() {
    static Tried& once = *new Tried;
    return once;
  }
};

}  // namespace

std::string why_no_attention(rosin_device& device) {
  Tried& tried = Tried::here();
  const std::lock_guard guard(tried.lock);
  const auto found = tried.reasons.find(device.facts);
  if (found != tried.reasons.end()) return found->second;
  return tried.reasons[device.facts] = tried_attention(device);
}

std::string known_why_no_attention(const rosin_device& device) {
  Tried& tried = Tried::here();
  const std::lock_guard guard(tried.lock);
  const auto found = tried.reasons.find(device.facts);
  return found != tried.reasons.end() ? found->second : the_metal().why_no_attention;
}

}  // namespace rosin::metal
