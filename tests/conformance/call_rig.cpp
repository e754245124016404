// See call_rig.hpp.
#include "call_rig.hpp"

#include <cmath>

namespace rosin::conformance {
namespace {

std::vector<float> numbers(size_t count, int seed) {
  std::vector<float> all(count);
  for (size_t i = 0; i < count; ++i) all[i] = static_cast<float>((i * 7 + static_cast<size_t>(seed)) % 13) - 6;
  return all;
}

}  // namespace

size_t element_bytes(int32_t type) { return type == ROSIN_FLOAT32 ? 4 : type == ROSIN_UINT8 ? 1 : 2; }

const SmallFloat& small_float(int32_t type) {
  static const SmallFloat half(5, 10), brain(8, 7);
  return type == ROSIN_FLOAT16 ? half : brain;
}

Operand::Operand(Rig& rig, int32_t type, size_t count, int seed)
    : rig_(rig), type_(type), values(numbers(count, seed)), memory_(rig, count * element_bytes(type)) {
  put();
}

void Operand::put() {
  if (type_ == ROSIN_FLOAT32) return rig_.write<float>(memory_.at(), values);
  if (type_ == ROSIN_UINT8) {
    const std::vector<uint8_t> bytes(values.begin(), values.end());
    return rig_.write<uint8_t>(memory_.at(), bytes);
  }
  std::vector<uint16_t> bits;
  for (const float x : values) bits.push_back(small_float(type_).narrowed(x));
  rig_.write<uint16_t>(memory_.at(), bits);
}

std::vector<float> Operand::read() const {
  if (type_ == ROSIN_FLOAT32) return rig_.read<float>(memory_.at(), values.size());
  std::vector<float> all;
  if (type_ == ROSIN_UINT8) {
    for (const uint8_t byte : rig_.read<uint8_t>(memory_.at(), values.size())) all.push_back(byte);
  } else {
    for (const uint16_t bits : rig_.read<uint16_t>(memory_.at(), values.size())) {
      all.push_back(small_float(type_).widened(bits));
    }
  }
  return all;
}

void expect_close(int32_t type, double got, double wanted, const std::string& what, double size) {
  const double digits = type == ROSIN_FLOAT32 ? 1e-5 : type == ROSIN_FLOAT16 ? 2e-3 : 1.6e-2;
  const bool right = std::fabs(got - wanted) <= digits * (1 + std::fabs(wanted) + std::fabs(size));
  expect(right, what + " is " + std::to_string(got) + " instead of " + std::to_string(wanted));
}

bool takes(Rig& rig, const rosin_call_description& described) {
  std::vector<rosin_call_array> unknown(described.arrays, described.arrays + described.array_count);
  for (rosin_call_array& array : unknown) {
    for (int64_t& size : array.sizes) size = 0;
    for (int64_t& stride : array.strides) stride = 0;
  }
  rosin_call_description what = described;
  what.arrays = unknown.data();
  std::vector<int32_t> orders(unknown.size(), ROSIN_ORDER_CONTIGUOUS);
  const rosin_status status = rig.api.call_takes(rig.device, &what, orders.data());
  if (status == ROSIN_UNSUPPORTED) return false;
  rig.good(status, "call_takes");
  for (const int32_t order : orders)
    expect(order >= ROSIN_ORDER_CONTIGUOUS && order <= ROSIN_ORDER_CHANNELS_FIRST, "call_takes wishes no known order");
  return true;
}

}  // namespace rosin::conformance
