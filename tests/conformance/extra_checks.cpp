// What is optional, where it is offered: copies between devices, vendor calls, native handles. Graphs:
// graph_checks.cpp.
#include "checks.hpp"

namespace rosin::conformance {
namespace {

std::vector<float> numbers(size_t count, int seed) {
  std::vector<float> all(count);
  // Small integers: every order of summation gives the same.
  for (size_t i = 0; i < count; ++i) all[i] = static_cast<float>((i * 7 + static_cast<size_t>(seed)) % 13) - 6;
  return all;
}

void copies_between_devices(Rig& rig) {
  if (!rig.api.copy_peer) return;
  int32_t count = 0;
  rig.good(rig.api.device_count(&count), "device_count");
  for (int32_t i = 0; i < count; ++i) {
    if (i == rig.number) continue;
    Rig other(rig.api, i);
    const Memory here(rig, 4000), there(other, 4000);
    const auto values = numbers(1000, i);
    rig.write<float>(here.at(), values);
    rig.sync();
    const rosin_status status = rig.api.copy_peer(other.stream, there.at(40), rig.device, here.at(80), 2000);
    if (status == ROSIN_UNSUPPORTED) continue;
    rig.good(status, "copy_peer");
    const std::vector<float> wanted(values.begin() + 20, values.begin() + 520);
    expect(other.read<float>(there.at(40), 500) == wanted, "copy_peer changed what it copied");
  }
}

/// (rows, columns, 3 in the batch), with these strides.
rosin_call_array matrix(int32_t role, int64_t rows, int64_t columns, int64_t row, int64_t column, int64_t batch) {
  return {role, ROSIN_FLOAT32, 3, {rows, columns, 3}, {row, column, batch}};
}

/// result (5, 4) = a (5, 3) * b (3, 4), three times; a is stored by rows, b by columns with a gap.
struct Product {
  Product(bool with_bias, bool with_relu) : bias(with_bias), relu(with_relu) {
    arrays = {matrix(ROSIN_ROLE_LEFT, 5, 3, 3, 1, 15), matrix(ROSIN_ROLE_RIGHT, 3, 4, 1, 4, 16)};
    if (bias) arrays.push_back({ROSIN_ROLE_BIAS, ROSIN_FLOAT32, 1, {5}, {1}});
    arrays.push_back(matrix(ROSIN_ROLE_OUTPUT, 5, 4, 1, 5, 20));
    what.size = sizeof(what);
    what.kind = ROSIN_CALL_MATMUL;
    what.array_count = static_cast<uint32_t>(arrays.size());
    what.arrays = arrays.data();
    what.epilogue.bias = bias;
    what.epilogue.activation = relu ? ROSIN_ACTIVATION_RELU : ROSIN_ACTIVATION_NONE;
    what.deterministic = 1;
  }

  bool bias, relu;
  std::vector<rosin_call_array> arrays;
  rosin_call_description what{};
};

size_t place(const rosin_call_array& of, int64_t i, int64_t j, int64_t q) {
  return static_cast<size_t>(i * of.strides[0] + j * of.strides[1] + q * of.strides[2]);
}

void run_matmul(Rig& rig, const Product& product, rosin_call* call, uint64_t workspace) {
  const auto a = numbers(45, 1), b = numbers(48, 2), bias = numbers(5, 3);
  const Memory place_a(rig, 45 * 4), place_b(rig, 48 * 4), place_bias(rig, 5 * 4), result(rig, 60 * 4);
  const Memory scratch(rig, workspace ? workspace : 1);
  rig.write<float>(place_a.at(), a);
  rig.write<float>(place_b.at(), b);
  rig.write<float>(place_bias.at(), bias);
  std::vector<rosin_place> buffers{place_a.at(), place_b.at()};
  if (product.bias) buffers.push_back(place_bias.at());
  buffers.push_back(result.at());
  for (int i = 0; i < 2; ++i) rig.good(rig.api.call_run(rig.stream, call, buffers.data(), scratch.at()), "call_run");
  const auto got = rig.read<float>(result.at(), 60);
  for (int64_t q = 0; q < 3; ++q)
    for (int64_t i = 0; i < 5; ++i)
      for (int64_t j = 0; j < 4; ++j) {
        float sum = 0;
        for (int64_t l = 0; l < 3; ++l)
          sum += a[place(product.arrays[0], i, l, q)] * b[place(product.arrays[1], l, j, q)];
        if (product.bias) sum += bias[static_cast<size_t>(i)];
        if (product.relu && sum < 0) sum = 0;
        expect(got[place(product.arrays.back(), i, j, q)] == sum, "an element of a matmul is wrong");
      }
}

/// The same question without sizes.
bool takes(Rig& rig, const Product& product) {
  std::vector<rosin_call_array> unknown = product.arrays;
  for (rosin_call_array& array : unknown) {
    for (int64_t& size : array.sizes) size = 0;
    for (int64_t& stride : array.strides) stride = 0;
  }
  rosin_call_description what = product.what;
  what.arrays = unknown.data();
  std::vector<int32_t> orders(unknown.size(), ROSIN_ORDER_CONTIGUOUS);
  const rosin_status status = rig.api.call_takes(rig.device, &what, orders.data());
  if (status == ROSIN_UNSUPPORTED) return false;
  rig.good(status, "call_takes");
  for (const int32_t order : orders)
    expect(order >= ROSIN_ORDER_CONTIGUOUS && order <= ROSIN_ORDER_CHANNELS_FIRST, "call_takes wishes no known order");
  return true;
}

void a_vendor_matmul_is_right_or_unsupported(Rig& rig) {
  if (!rig.api.call_prepare) return;
  for (const Product& product : {Product(false, false), Product(true, false), Product(true, true)}) {
    const bool may = takes(rig, product);
    rosin_call* call = nullptr;
    uint64_t workspace = 0;
    const rosin_status status = rig.api.call_prepare(rig.device, &product.what, &call, &workspace);
    if (status == ROSIN_UNSUPPORTED) continue;
    rig.good(status, "call_prepare");
    expect(may, "call_prepare takes a call that call_takes refused");
    run_matmul(rig, product, call, workspace);
    rig.api.call_destroy(call);
  }
}

void native_handles_are_there_where_offered(Rig& rig) {
  const Memory memory(rig, 16);
  if (rig.api.native_stream) expect(rig.api.native_stream(rig.stream) != nullptr, "native_stream gives null");
  if (rig.api.native_memory) expect(rig.api.native_memory(memory.at().memory) != nullptr, "native_memory gives null");
}

constexpr Check checks[] = {
    {"copies between devices", copies_between_devices},
    {"a vendor matmul is right or unsupported", a_vendor_matmul_is_right_or_unsupported},
    {"native handles are there where offered", native_handles_are_there_where_offered},
};

}  // namespace

const Part extras_part = {"extras", checks};

}  // namespace rosin::conformance
