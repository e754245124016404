// See call_choices.hpp.
#include "run/call_choices.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "run/kernel_files.hpp"

namespace rosin {
namespace {

using Bytes = std::vector<uint8_t>;

constexpr uint64_t workspace_for_ways = uint64_t{32} << 20;  // of those that a call need not choose

bool is_wanted(const OpenDevice& device) {
  static const bool wanted = environment_switch(Setting::tune).value_or(false);
  return wanted && device.functions.call_tune && device.functions.call_choice;
}

template <class T> void add(std::string& text, const T* numbers, size_t count) {
  for (size_t i = 0; i < count; ++i) text.append(std::to_string(numbers[i])).append(" ");
}

/// What a way is chosen for.
std::string key_of(const OpenDevice& device, const rosin_call_description& call) {
  std::string key("rosin " ROSIN_VERSION " call\n");
  for (const char* part : {device.functions.name, device.functions.version, device.info.driver, device.info.name}) {
    key.append(part ? part : "").append("\n");
  }
  const rosin_epilogue& epilogue = call.epilogue;
  const int32_t facts[] = {call.kind,           epilogue.bias,      epilogue.residual,
                           epilogue.activation, epilogue.auxiliary, epilogue.bias_gradient,
                           call.accumulate,     call.compute,       call.deterministic,
                           call.scaled,         call.unrounded};
  add(key, facts, std::size(facts));
  const rosin_call_window& window = call.window;
  for (const int32_t* three : {window.stride, window.dilation, window.pad_low, window.pad_high, window.window}) {
    add(key, three, 3);
  }
  const int32_t rest[] = {window.spatial, window.groups, window.flipped, window.mean};
  add(key, rest, std::size(rest));
  for (uint32_t i = 0; i < call.attribute_count; ++i) {
    const rosin_attribute& attribute = call.attributes[i];
    add(key, &attribute.key, 1);
    add(key, &attribute.integer, 1);
    add(key, &attribute.real, 1);
  }
  for (uint32_t i = 0; i < call.array_count; ++i) {
    const rosin_call_array& array = call.arrays[i];
    const int32_t what[] = {array.role, array.type, array.rank};
    add(key, what, std::size(what));
    add(key, array.sizes, static_cast<size_t>(array.rank));
    add(key, array.strides, static_cast<size_t>(array.rank));
  }
  return key;
}

/// Memory and a stream of its own, beside those of runs.
class Measured {
 public:
  explicit Measured(OpenDevice& device) : device_(device) {}
  ~Measured() {
    if (stream_) device_.functions.stream_destroy(stream_);
    for (const rosin_place& place : places_) device_.functions.release(device_.device, place.memory);
  }
  Measured(const Measured&) = delete;
  Measured& operator=(const Measured&) = delete;

  /// Stays with the fastest way, unless the device has no room for the arrays.
  rosin_status measure(const rosin_call_description& question, rosin_call* call, uint64_t& workspace) {
    rosin_status status = device_.functions.stream_create(device_.device, &stream_);
    for (uint32_t i = 0; i < question.array_count && status == ROSIN_OK; ++i) {
      status = add(bytes_of(question.arrays[i]), true);
    }
    const uint64_t room = std::max(workspace, workspace_for_ways);
    if (status == ROSIN_OK) status = add(room, false);
    if (status == ROSIN_OK) {
      const rosin_call_numbers numbers{sizeof numbers, 1, 1, 0, 0};
      status = device_.functions.call_tune(stream_, call, places_.data(), places_.back(), room, &numbers, &workspace);
    }
    return status == ROSIN_OUT_OF_MEMORY || status == ROSIN_UNSUPPORTED ? ROSIN_OK : status;
  }

 private:
  /// Up to the end of the last element.
  static uint64_t bytes_of(const rosin_call_array& array) {
    uint64_t last = 0;
    for (int32_t d = 0; d < array.rank; ++d) {
      last += static_cast<uint64_t>(array.sizes[d] - 1) * static_cast<uint64_t>(std::max<int64_t>(array.strides[d], 0));
    }
    return (last + 1) * size_of(static_cast<DType>(array.type));
  }

  /// Filled with numbers: devices are faster on zeros.
  rosin_status add(uint64_t bytes, bool filled) {
    rosin_place place{};
    const rosin_status status = device_.functions.alloc(device_.device, bytes, &place.memory);
    if (status != ROSIN_OK) return status;
    places_.push_back(place);
    if (!filled) return ROSIN_OK;
    Bytes content(bytes);
    uint32_t state = 1;
    for (uint8_t& byte : content) byte = static_cast<uint8_t>((state = state * 1664525u + 1013904223u) >> 26);
    return device_.functions.copy_in(stream_, place, content.data(), bytes);
  }

  OpenDevice& device_;
  rosin_stream* stream_ = nullptr;
  std::vector<rosin_place> places_;
};

/// What was chosen, by key. One call at a time is measured.
class Choices {
 public:
  rosin_status prepare(OpenDevice& device, rosin_call_description question, rosin_call*& call, uint64_t& workspace) {
    const std::string key = key_of(device, question);
    const std::lock_guard guard(lock_);
    const Bytes* kept = find(key);
    if (kept) {
      question.choice = kept->data();
      question.choice_bytes = kept->size();
    }
    const rosin_backend& functions = device.functions;
    rosin_status status = functions.call_prepare(device.device, &question, &call, &workspace);
    if (kept || status != ROSIN_OK) return status;
    status = Measured(device).measure(question, call, workspace);
    const void* bytes = nullptr;
    uint64_t count = 0;
    if (status == ROSIN_OK) status = functions.call_choice(call, &bytes, &count);
    if (status != ROSIN_OK) {
      functions.call_destroy(std::exchange(call, nullptr));
      return status;
    }
    const auto* first = static_cast<const uint8_t*>(bytes);
    known_.emplace(key, Bytes(first, first + count));
    if (count > 0) store_kernel_file(key, bytes, count);
    return ROSIN_OK;
  }

 private:
  const Bytes* find(const std::string& key) {
    const auto known = known_.find(key);
    if (known != known_.end()) return &known->second;
    std::optional<Bytes> kept = find_kernel_file(key);
    return kept ? &known_.emplace(key, std::move(*kept)).first->second : nullptr;
  }

  std::mutex lock_;
  std::map<std::string, Bytes> known_;
};

}  // namespace

rosin_status prepare_call(OpenDevice& device, rosin_call_description question, rosin_call*& call, uint64_t& workspace) {
  if (!is_wanted(device)) return device.functions.call_prepare(device.device, &question, &call, &workspace);
  static Choices* const choices = new Choices;  // never destroyed: devices work until the process ends
  return choices->prepare(device, question, call, workspace);
}

}  // namespace rosin
