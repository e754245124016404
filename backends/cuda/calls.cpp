// Vendor calls of CUDA: which are taken, how each is prepared, run and timed. Read first: blas.hpp.
#include <algorithm>
#include <cstring>
#include <limits>

#include "cuda/blas.hpp"
#include "cuda/cuda.hpp"
#include "cuda/scratch.hpp"

namespace rosin::cuda {
namespace {

using blas::Candidate;
using driver::Address;
using driver::Failure;
using driver::Stream;

constexpr uint64_t most_workspace = uint64_t{32} << 20;
// Places of workspaces are multiples of 64, and cuBLASLt wants 256.
constexpr uint64_t workspace_alignment = 256, place_alignment = 64, lost = workspace_alignment - place_alignment;
constexpr size_t most_arrays = 8;
constexpr int timed_runs = 4;

/// Refuses what this device's library does not compute, whatever the sizes.
Blas& checked(rosin_device& device, const rosin_call_description& call) {
  check_kind(call);
  Blas& blas = blas_of(device);
  if (!blas.reason().empty()) throw Failure{ROSIN_UNSUPPORTED, blas.reason()};
  if (call.epilogue.activation == ROSIN_ACTIVATION_RELU && !blas.relu_keeps_nan()) {
    throw Failure{ROSIN_UNSUPPORTED, "cuBLASLt: its relu makes numbers of NaN"};
  }
  return blas;
}

uint64_t with_alignment(uint64_t workspace) { return workspace > 0 ? workspace + lost : 0; }

Address address(const rosin_place& place, uint64_t bytes) {
  if (place.offset % place_alignment != 0) throw Failure{ROSIN_INVALID, "matmul: an offset that is not aligned"};
  return driver::address_of(place, bytes);
}

/// The way of a call as rosin keeps it: for one version of the library and one product on one architecture.
struct Choice {
  char mark[8] = {'c', 'u', 'b', 'l', 'a', 's', 'l', 't'};
  char version[24] = {};
  char target[24] = {};
  blas::Algorithm algorithm{};
};

/// A matmul of cuBLASLt.
class BlasCall final : public rosin_call {
 public:
  BlasCall(rosin_device& on, BlasPlan plan) : plan_(std::move(plan)) {
    device = &on;
    blas_library().version().copy(choice_.version, sizeof choice_.version - 1);
    on.target.copy(choice_.target, sizeof choice_.target - 1);
  }

  uint64_t workspace() const { return with_alignment(plan_.chosen().workspace); }

  /// Takes the way of another call, if it is one for this.
  void take(const void* bytes, uint64_t count) {
    Choice given;
    if (!bytes || count != sizeof given) return;
    std::memcpy(&given, bytes, sizeof given);
    if (std::memcmp(&given, &choice_, offsetof(Choice, algorithm)) == 0) plan_.choose(given.algorithm);
  }

  void run(Stream stream, const rosin_place* buffers, rosin_place workspace,
           const rosin_call_numbers* numbers) override {
    const Product& product = plan_.product();
    Address arrays[most_arrays] = {};
    for (size_t i = 0; i < product.bytes.size(); ++i) arrays[i] = address(buffers[i], product.bytes[i]);
    BlasRun run{.arrays = arrays};
    if (const uint64_t needed = this->workspace(); needed > 0) {
      run.workspace =
          (address(workspace, needed) + workspace_alignment - 1) / workspace_alignment * workspace_alignment;
    }
    if (product.scaled) {
      if (!numbers) throw Failure{ROSIN_INVALID, "matmul: a scaled call without its numbers"};
      run.alpha = numbers->alpha;
      run.beta = numbers->beta;
    }
    plan_.run(stream, run);
  }

  uint64_t tune(Stream stream, const rosin_place* buffers, rosin_place workspace, uint64_t bytes,
                const rosin_call_numbers* numbers) override {
    Candidate best = plan_.chosen();
    float least = std::numeric_limits<float>::infinity();
    for (const Candidate& one : plan_.candidates()) {
      if (with_alignment(one.workspace) > bytes) continue;
      plan_.choose(one);
      const float time = time_of([&] { run(stream, buffers, workspace, numbers); }, stream);
      if (time < least) best = one;
      least = std::min(least, time);
    }
    plan_.choose(best);
    return this->workspace();
  }

  std::string_view choice() override {
    choice_.algorithm = plan_.chosen().algorithm;
    return {reinterpret_cast<const char*>(&choice_), sizeof choice_};
  }

 private:
  template <class Run> static float time_of(Run&& run, Stream stream) {
    const Timer from, to;
    run();
    from.record(stream);
    for (int i = 0; i < timed_runs; ++i) run();
    to.record(stream);
    to.wait();
    return to.since(from);
  }

  BlasPlan plan_;
  Choice choice_;
};

uint64_t limit_of(const rosin_call_description& call) {
  if (call.workspace == 0) return most_workspace;
  return std::min(most_workspace, call.workspace > lost ? call.workspace - lost : 0);
}

}  // namespace

rosin_status call_takes(rosin_device* device, const rosin_call_description* description, int32_t* orders) {
  return driver::guarded([&] {
    const rosin_call_description call = known_fields(*description);
    checked(*device, call);
    for (uint32_t i = 0; i < call.array_count; ++i) {
      const int32_t role = call.arrays[i].role;
      const bool operand = role == ROSIN_ROLE_LEFT || role == ROSIN_ROLE_RIGHT;
      orders[i] = operand ? ROSIN_ORDER_STRIDED : ROSIN_ORDER_CONTIGUOUS;
    }
  });
}

rosin_status call_prepare(rosin_device* device, const rosin_call_description* description, rosin_call** out,
                          uint64_t* workspace) {
  return driver::guarded([&] {
    const rosin_call_description wanted = known_fields(*description);
    Blas& blas = checked(*device, wanted);
    const driver::Current current(*device);
    auto call = std::make_unique<BlasCall>(*device, BlasPlan(blas.handle(), product_of(wanted), limit_of(wanted)));
    call->take(wanted.choice, wanted.choice_bytes);
    *workspace = call->workspace();
    *out = call.release();
  });
}

}  // namespace rosin::cuda
