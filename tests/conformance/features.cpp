// See features.hpp.
#include "features.hpp"

#include <string>
#include <vector>

namespace rosin::conformance {
namespace {

std::string yes(bool holds) { return holds ? "yes" : "no"; }

std::string name_of_language(int32_t language) {
  switch (language) {
    case ROSIN_LANGUAGE_OPENCL: return "OpenCL C";
    case ROSIN_LANGUAGE_CUDA: return "CUDA C++";
    case ROSIN_LANGUAGE_HIP: return "HIP C++";
    case ROSIN_LANGUAGE_METAL: return "Metal";
    default: return "instructions";
  }
}

struct Element {
  int32_t type;
  const char* name;
};
constexpr Element elements[] = {{ROSIN_FLOAT32, "`Float32`"},
                                {ROSIN_FLOAT64, "`Float64`"},
                                {ROSIN_FLOAT16, "`Float16`"},
                                {ROSIN_BFLOAT16, "`BFloat16`"},
                                {ROSIN_COMPLEX32, "`ComplexF32`"}};

/// The types of which something holds.
template <class F> std::string types(F&& holds) {
  std::string all;
  for (const Element& element : elements) {
    if (holds(element.type)) all.append(all.empty() ? "" : ", ").append(element.name);
  }
  return all.empty() ? "no" : all;
}

/// Whether a library takes plain calls of this kind, of the arrays with these roles and as many dims.
bool is_taken(Rig& rig, int32_t kind, int32_t type, std::vector<int32_t> roles, int32_t rank) {
  if (!rig.api.call_takes) return false;
  std::vector<rosin_call_array> arrays;
  for (const int32_t role : roles) arrays.push_back({role, type, rank, {}, {}});
  rosin_call_description call{};
  call.size = sizeof call;
  call.kind = kind;
  call.arrays = arrays.data();
  call.array_count = static_cast<uint32_t>(arrays.size());
  call.window = {rank - 2, {1, 1, 1}, {1, 1, 1}, {}, {}, {}, 1, 0, 0};
  call.deterministic = call.unrounded = 1;
  std::vector<int32_t> orders(arrays.size());
  return rig.api.call_takes(rig.device, &call, orders.data()) == ROSIN_OK;
}

}  // namespace

void print_features(Rig& rig, std::ostream& out) {
  const rosin_backend& api = rig.api;
  const rosin_device_info& info = rig.info;
  const auto takes = [&](uint64_t what) { return (info.instructions & what) != 0; };
  const auto say = [&](const char* feature, const std::string& answer) { out << feature << '\t' << answer << '\n'; };
  say("device", info.capability);
  say("`Float64`", yes(info.float64));
  say("language of kernels", name_of_language(info.language));
  say("products by the vendor's library", types([&](int32_t type) {
        return is_taken(rig, ROSIN_CALL_MATMUL, type, {ROSIN_ROLE_LEFT, ROSIN_ROLE_RIGHT, ROSIN_ROLE_OUTPUT}, 2);
      }));
  say("convolutions by it", types([&](int32_t type) {
        return is_taken(rig, ROSIN_CALL_CONVOLUTION, type, {ROSIN_ROLE_INPUT, ROSIN_ROLE_WEIGHTS, ROSIN_ROLE_OUTPUT},
                        4);
      }));
  say("attention by it", types([&](int32_t type) {
        return is_taken(rig, ROSIN_CALL_ATTENTION, type,
                        {ROSIN_ROLE_QUERY, ROSIN_ROLE_KEY, ROSIN_ROLE_VALUE, ROSIN_ROLE_OUTPUT}, 4);
      }));
  say("matrix units in rosin's own kernels", types([&](int32_t type) {
        return takes(ROSIN_TAKES_MATRICES | ROSIN_TAKES_SQUARE_MATRICES) && type != ROSIN_FLOAT64 &&
               (info.matrix_types >> type & 1) != 0;
      }));
  say("bytes of a load", takes(ROSIN_TAKES_VECTORS) ? std::to_string(info.vector_bytes) : "an element");
  say("items that exchange values", takes(ROSIN_TAKES_SHUFFLE) ? std::to_string(info.warp) : "none");
  say("one kernel updates many parameters", yes(takes(ROSIN_TAKES_CHOICES)));
  say("sums of many groups in one kernel", yes(takes(ROSIN_TAKES_ARRIVALS)));
  say("a step as one graph", yes(api.graph_create != nullptr));
  say("copies between two devices", api.copy_peer ? "straight, or as the driver chooses" : "through the host");
  say("memory that is there becomes pinned", yes(api.pin != nullptr));
  say("streams of the vendor are adopted", yes(api.stream_adopt != nullptr));
  say("streams have priorities", yes(api.stream_create_with != nullptr));
  say("time between events", yes(api.event_create_timed != nullptr));
}

}  // namespace rosin::conformance
