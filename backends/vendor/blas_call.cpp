// Products of a vendor's library as vendor calls: which are taken, how each is prepared, run and timed. Read first:
// calls.hpp, blas.hpp.
#include <limits>

#include "vendor/blas.hpp"
#include "vendor/calls.hpp"

namespace rosin::vendor {
namespace {

using driver::Address;
using driver::Failure;
using driver::Stream;

/// Refuses what this device's library does not compute, whatever the sizes.
Blas& checked(rosin_device& device, const rosin_call_description& call) {
  check_matmul(call);
  Blas& blas = blas_of(device);
  if (!blas.reason().empty()) throw Failure{ROSIN_UNSUPPORTED, blas.reason()};
  const BlasLibrary& library = blas_library();
  const int32_t activation = call.epilogue.activation;
  if (activation == ROSIN_ACTIVATION_RELU && !blas.relu_keeps_nan()) {
    throw Failure{ROSIN_UNSUPPORTED, std::string(library.name) + ": its relu makes numbers of NaN"};
  }
  const bool relu = activation == ROSIN_ACTIVATION_RELU || activation == ROSIN_ACTIVATION_RELU_GRADIENT;
  if (call.epilogue.auxiliary && relu && !library.has_relu_bits) {
    throw Failure{ROSIN_UNSUPPORTED, std::string(library.name) + ": its relu keeps no bits for the gradient"};
  }
  const bool half = call.arrays[0].type == ROSIN_FLOAT16 || call.arrays[0].type == ROSIN_BFLOAT16;
  const bool slope =
      activation == ROSIN_ACTIVATION_GELU_GRADIENT || (half && activation == ROSIN_ACTIVATION_RELU_GRADIENT);
  if (slope && !library.joins_gradients) {
    throw Failure{ROSIN_UNSUPPORTED, std::string(library.name) + ": slopes of activations take a slow pass of its own"};
  }
  return blas;
}

/// A product of the library.
class BlasCall final : public rosin_call {
 public:
  BlasCall(rosin_device& on, const Blas& blas, BlasPlan plan)
      : plan_(std::move(plan)), choice_(blas_library().mark, blas.version(), on) {
    device = &on;
  }

  uint64_t workspace() const { return Workspace::asked(plan_.chosen().workspace); }

  /// Takes the way of another call, if it is one for this.
  void take(const void* bytes, uint64_t count) {
    blas::Algorithm given;
    if (choice_.read(bytes, count, given)) plan_.choose(given);
  }

  void run(Stream stream, const rosin_place* buffers, rosin_place workspace,
           const rosin_call_numbers* numbers) override {
    const Product& product = plan_.product();
    Address arrays[most_call_arrays] = {};
    for (size_t i = 0; i < product.bytes.size(); ++i) {
      arrays[i] = Workspace::address_of(buffers[i], product.bytes[i]);
    }
    BlasRun run{.arrays = arrays, .workspace = Workspace::in(workspace, plan_.chosen().workspace)};
    if (product.scaled) {
      if (!numbers) throw Failure{ROSIN_INVALID, "matmul: a scaled call without its numbers"};
      run.alpha = numbers->alpha;
      run.beta = numbers->beta;
    }
    plan_.run(stream, run);
  }

  uint64_t tune(Stream stream, const rosin_place* buffers, rosin_place workspace, uint64_t bytes,
                const rosin_call_numbers* numbers) override {
    BlasPlan::Candidate best = plan_.chosen();
    float least = std::numeric_limits<float>::infinity();
    for (const BlasPlan::Candidate& one : plan_.candidates()) {
      if (Workspace::asked(one.workspace) > bytes) continue;
      plan_.choose(one);
      const float time = time_of([&] { run(stream, buffers, workspace, numbers); }, stream);
      if (time < least) best = one;
      least = std::min(least, time);
    }
    plan_.choose(best);
    return this->workspace();
  }

  std::string_view choice() override {
    choice_.way = plan_.chosen().algorithm;
    return choice_.bytes();
  }

 private:
  BlasPlan plan_;
  Choice<blas::Algorithm> choice_;
};

void take(rosin_device& device, const rosin_call_description& call, int32_t* orders) {
  checked(device, call);
  for (uint32_t i = 0; i < call.array_count; ++i) {
    const int32_t role = call.arrays[i].role;
    const bool operand = role == ROSIN_ROLE_LEFT || role == ROSIN_ROLE_RIGHT;
    orders[i] = operand ? ROSIN_ORDER_STRIDED : ROSIN_ORDER_CONTIGUOUS;
  }
}

std::unique_ptr<rosin_call> prepare(rosin_device& device, const rosin_call_description& wanted, uint64_t* workspace) {
  Blas& blas = checked(device, wanted);
  const uint64_t room = std::min(Workspace::limit(wanted), blas_library().most_room);
  auto call = std::make_unique<BlasCall>(device, blas, BlasPlan(blas.handle(), product_of(wanted), room));
  call->take(wanted.choice, wanted.choice_bytes);
  *workspace = call->workspace();
  return call;
}

}  // namespace

const CallMaker blas_calls{take, prepare};

}  // namespace rosin::vendor
