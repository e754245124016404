// Instructions that came after backend.h's first page: each is checked where the device says that it takes it.
#include <algorithm>
#include <cstring>

#include "checks.hpp"
#include "oracle.hpp"

namespace rosin::conformance {
namespace {

bool takes(const Rig& rig, uint64_t what) { return (rig.info.instructions & what) != 0; }

/// Each item copies a vector of `lanes` elements, the first lane last, and adds one to it.
template <class T> void copies_vectors(Rig& rig, int element, int scalar, int64_t lanes) {
  Code code;
  code.name = "vectors_" + std::to_string(element) + "_" + std::to_string(lanes);
  code.group = 64;
  code.buffers = {element, element};
  const Value at = code.binary(ROSIN_MULTIPLY, code.global(), code.int32(lanes));
  const Value from = code.load_vector(0, scalar, at, lanes);
  std::vector<Value> parts;
  for (int64_t lane = 0; lane < lanes; ++lane) parts.push_back(code.lane(from, (lane + 1) % lanes));
  const Value one = code.add(ROSIN_CONVERT, scalar, {code.int32(1)});
  parts.back() = code.binary(ROSIN_ADD, parts.back(), one);
  while (parts.size() > 1) {
    std::vector<Value> joined;
    for (size_t i = 0; i < parts.size(); i += 2) joined.push_back(code.join(parts[i], parts[i + 1]));
    parts = joined;
  }
  code.store_vector(1, at, parts[0], lanes);
  const size_t whole = static_cast<size_t>(lanes), count = 3 * 64 * whole;
  std::vector<T> given(count), wanted(count);
  for (size_t i = 0; i < count; ++i) given[i] = static_cast<T>(i * 7 % 251);
  for (size_t i = 0; i < count; ++i) {
    const size_t lane = i % whole;
    wanted[i] = given[i - lane + (lane + 1) % whole];
    if (lane + 1 == whole) wanted[i] = static_cast<T>(wanted[i] + T{1});
  }
  const Module module(rig, {&code, 1});
  const Memory memory(rig, 64 + 2 * count * sizeof(T));
  const uint64_t second = (count * sizeof(T) + 63) / 64 * 64;
  rig.write<T>(memory.at(), given);
  const rosin_place places[] = {memory.at(), memory.at(second)};
  rig.launch(rig.stream, module.kernel(code.name), places, 3);
  const std::vector<T> got = rig.read<T>(memory.at(second), count);
  expect(got == wanted, "vectors of " + std::to_string(lanes) + " elements of type " + std::to_string(element));
}

void vectors_are_their_elements(Rig& rig) {
  if (!takes(rig, ROSIN_TAKES_VECTORS)) return;
  for (const int64_t lanes : {2, 4, 8, 16}) {
    const auto fits = [&](int64_t bytes) {
      const int64_t whole = bytes * lanes;
      return whole >= 4 && whole <= std::min(rig.info.vector_bytes, 16);
    };
    if (fits(4)) copies_vectors<float>(rig, ROSIN_FLOAT32, ROSIN_SCALAR_FLOAT32, lanes);
    if (fits(4)) copies_vectors<int32_t>(rig, ROSIN_INT32, ROSIN_SCALAR_INT32, lanes);
    if (fits(4)) copies_vectors<uint32_t>(rig, ROSIN_UINT32, ROSIN_SCALAR_UINT32, lanes);
    if (fits(2)) copies_vectors<int16_t>(rig, ROSIN_INT16, ROSIN_SCALAR_INT32, lanes);
    if (fits(2)) copies_vectors<uint16_t>(rig, ROSIN_UINT16, ROSIN_SCALAR_INT32, lanes);
    if (fits(1)) copies_vectors<uint8_t>(rig, ROSIN_UINT8, ROSIN_SCALAR_INT32, lanes);
    if (fits(1)) copies_vectors<int8_t>(rig, ROSIN_INT8, ROSIN_SCALAR_INT32, lanes);
  }
}

/// Float16 and BFloat16 elements times a power of two, by vectors and by one.
void vectors_round_as_elements_do(Rig& rig) {
  if (!takes(rig, ROSIN_TAKES_VECTORS)) return;
  const int64_t lanes = std::min(rig.info.vector_bytes, 16) / 2;
  for (const int element : {ROSIN_FLOAT16, ROSIN_BFLOAT16}) {
    Code code;
    code.name = "rounds_" + std::to_string(element);
    code.group = 64;
    code.buffers = {element, element, element};
    const Value at = code.binary(ROSIN_MULTIPLY, code.global(), code.int32(lanes));
    const Value from = code.load_vector(0, ROSIN_SCALAR_FLOAT32, at, lanes), third = code.float32(1 / 3.0f);
    std::vector<Value> parts;
    for (int64_t lane = 0; lane < lanes; ++lane) {
      const Value product = code.binary(ROSIN_MULTIPLY, code.lane(from, lane), third);
      code.store(2, code.binary(ROSIN_ADD, at, code.int32(lane)), product);
      parts.push_back(product);
    }
    for (; parts.size() > 1; parts.resize(parts.size() / 2)) {
      for (size_t i = 0; i < parts.size(); i += 2) parts[i / 2] = code.join(parts[i], parts[i + 1]);
    }
    code.store_vector(1, at, parts[0], lanes);
    const size_t count = 65536, bytes = 2 * count;
    std::vector<uint16_t> all(count);
    for (size_t i = 0; i < count; ++i) all[i] = static_cast<uint16_t>(i);
    const Module module(rig, {&code, 1});
    const Memory memory(rig, 3 * bytes);
    rig.write<uint16_t>(memory.at(), all);
    const rosin_place places[] = {memory.at(), memory.at(bytes), memory.at(2 * bytes)};
    rig.launch(rig.stream, module.kernel(code.name), places,
               static_cast<uint32_t>(count / 64) / static_cast<uint32_t>(lanes));
    const auto by_vectors = rig.read<uint16_t>(memory.at(bytes), count);
    expect(by_vectors == rig.read<uint16_t>(memory.at(2 * bytes), count),
           "vectors of type " + std::to_string(element) + " are stored otherwise than their elements");
    expect(std::count(by_vectors.begin(), by_vectors.end(), 0) < 40000, "vectors are stored as zeros");
  }
}

void a_vector_keeps_what_variables_held(Rig& rig) {
  if (!takes(rig, ROSIN_TAKES_VECTORS)) return;
  Code code;
  code.name = "keeps";
  code.buffers = {ROSIN_INT16};
  const Value variable = code.variable(code.int32(5));
  const Value vector = code.join(variable, code.int32(6));
  code.assign(variable, code.int32(7));
  code.store_vector(0, code.int32(2), vector, 2);
  const Module module(rig, {&code, 1});
  const Memory memory(rig, 64);
  rig.write<int16_t>(memory.at(), std::vector<int16_t>(8, 1));
  const rosin_place places[] = {memory.at()};
  rig.launch(rig.stream, module.kernel("keeps"), places, 1);
  expect(rig.read<int16_t>(memory.at(), 6) == std::vector<int16_t>{1, 1, 5, 6, 1, 1}, "a vector of a variable");
}

void read_only_buffers_are_read(Rig& rig) {
  if (!takes(rig, ROSIN_TAKES_READ_ONLY)) return;
  Code code;
  code.name = "marked";
  code.group = 64;
  code.buffers = {ROSIN_INT32, ROSIN_INT32, ROSIN_INT32};
  code.add(ROSIN_READ_ONLY, ROSIN_SCALAR_INT32, {}, 2);
  const Value at = code.global();
  const Value sum = code.binary(ROSIN_ADD, code.load(0, ROSIN_SCALAR_INT32, at), code.load(2, ROSIN_SCALAR_INT32, at));
  code.store(1, at, sum);
  code.add(ROSIN_READ_ONLY, ROSIN_SCALAR_INT32, {}, 0);
  const Module module(rig, {&code, 1});
  const Memory memory(rig, 512), out(rig, 256);
  std::vector<int32_t> given(128), wanted(64);
  for (int i = 0; i < 128; ++i) given[static_cast<size_t>(i)] = i * i;
  for (size_t i = 0; i < 64; ++i) wanted[i] = given[i] + given[i + 64];
  rig.write<int32_t>(memory.at(), given);
  // What is marked may be one block with what is written, beside it.
  const rosin_place places[] = {memory.at(), out.at(), memory.at(256)};
  rig.launch(rig.stream, module.kernel("marked"), places, 1);
  expect(rig.read<int32_t>(out.at(), 64) == wanted, "a kernel with read-only buffers");
}

/// out[i] is what item (5 * place + 3) of the warp has, that is twice its number, or 2^33 + it where that is 64 bits.
template <class T> void exchanges(Rig& rig, int element, int scalar) {
  const int32_t warp = rig.info.warp, group = std::max(warp, 2 * warp <= rig.info.largest_group ? 2 * warp : warp);
  Code code;
  code.name = "exchanges_" + std::to_string(element);
  code.group = group;
  code.buffers = {element};
  const Value item = code.item(), mask = code.int32(warp - 1);
  const Value place = code.binary(ROSIN_BIT_AND, item, mask);
  const Value wide = code.add(ROSIN_CONVERT, scalar, {code.binary(ROSIN_ADD, item, item)});
  const Value high = code.add(ROSIN_LITERAL, ROSIN_SCALAR_INT64, {}, int64_t{1} << 33);
  const Value mine = sizeof(T) == 8 ? code.binary(ROSIN_ADD, wide, code.add(ROSIN_CONVERT, scalar, {high})) : wide;
  const Value five = code.binary(ROSIN_MULTIPLY, place, code.int32(5));
  const Value of = code.binary(ROSIN_BIT_AND, code.binary(ROSIN_ADD, five, code.int32(3)), mask);
  const Value first = code.shuffle(mine, of);
  code.store(0, item, code.shuffle(first, place));  // its own: the same again
  const Module module(rig, {&code, 1});
  const Memory out(rig, static_cast<uint64_t>(group) * sizeof(T));
  const rosin_place places[] = {out.at()};
  rig.launch(rig.stream, module.kernel(code.name), places, 1);
  const auto got = rig.read<T>(out.at(), static_cast<size_t>(group));
  for (int i = 0; i < group; ++i) {
    const int other = i / warp * warp + (5 * (i % warp) + 3) % warp;
    const T wanted = static_cast<T>(2 * other) + static_cast<T>(sizeof(T) == 8 ? int64_t{1} << 33 : 0);
    expect(got[static_cast<size_t>(i)] == wanted, "item " + std::to_string(i) + " of a group got what item " +
                                                      std::to_string(other) + " does not have, type " +
                                                      std::to_string(element));
  }
}

void items_of_a_warp_exchange_values(Rig& rig) {
  if (!takes(rig, ROSIN_TAKES_SHUFFLE)) return;
  exchanges<int32_t>(rig, ROSIN_INT32, ROSIN_SCALAR_INT32);
  exchanges<uint32_t>(rig, ROSIN_UINT32, ROSIN_SCALAR_UINT32);
  exchanges<int64_t>(rig, ROSIN_INT64, ROSIN_SCALAR_INT64);
  exchanges<float>(rig, ROSIN_FLOAT32, ROSIN_SCALAR_FLOAT32);
  if (rig.info.float64) exchanges<double>(rig, ROSIN_FLOAT64, ROSIN_SCALAR_FLOAT64);
}

/// Two arrays that take all there is: each item fills parts of both, then reads the part of its mirror image.
void shared_arrays_may_be_large(Rig& rig) {
  if (!takes(rig, ROSIN_TAKES_LARGE_SHARED)) return;
  const auto count = static_cast<int32_t>((rig.info.largest_shared - 64) / 4 / 2 / 64 * 64);
  Code code;
  code.name = "large";
  code.group = 64;
  code.buffers = {ROSIN_INT32};
  code.shared = {{ROSIN_SCALAR_BOOL, 3}, {ROSIN_SCALAR_INT32, count}, {ROSIN_SCALAR_INT32, count}};
  const Value item = code.item(), by = code.int32(64), end = code.int32(count);
  const Value at = code.loop(item, end, by);
  code.add(ROSIN_SHARED_STORE, ROSIN_SCALAR_INT32, {at, at}, 1);
  code.add(ROSIN_SHARED_STORE, ROSIN_SCALAR_INT32, {at, code.binary(ROSIN_ADD, at, at)}, 2);
  code.end_loop();
  code.barrier();
  const Value to = code.loop(item, end, by);
  const Value mirror = code.binary(ROSIN_SUBTRACT, code.int32(count - 1), to);
  const Value x = code.add(ROSIN_SHARED_LOAD, ROSIN_SCALAR_INT32, {mirror}, 1);
  const Value y = code.add(ROSIN_SHARED_LOAD, ROSIN_SCALAR_INT32, {mirror}, 2);
  code.store(0, to, code.binary(ROSIN_ADD, x, y));
  code.end_loop();
  const Module module(rig, {&code, 1});
  const auto whole = static_cast<size_t>(count);
  const Memory out(rig, 4 * whole);
  const rosin_place places[] = {out.at()};
  rig.launch(rig.stream, module.kernel("large"), places, 1);
  const auto got = rig.read<int32_t>(out.at(), whole);
  for (int32_t i = 0; i < count; ++i) {
    expect(got[static_cast<size_t>(i)] == 3 * (count - 1 - i), "element " + std::to_string(i) + " of large arrays");
  }
}

Value joined(Code& code, std::vector<Value> parts) {
  for (; parts.size() > 1; parts.resize(parts.size() / 2)) {
    for (size_t i = 0; i < parts.size(); i += 2) parts[i / 2] = code.join(parts[i], parts[i + 1]);
  }
  return parts[0];
}

/// Small numbers of either sign, different in each place of a warp's matrices; sums of their products are exact.
float element(int row, int column, int warp) { return static_cast<float>((row * 7 + column * 3 + warp * 5) % 11 - 5); }

/// Which item of a warp has what of the matrices: lane n of item i.
struct MatrixPlaces {
  int warp, columns, x, y, z;  // items; columns of Y; lanes
  int (*row_of_x)(int i, int n);
  int (*word_of_x)(int i, int n);  // of the row
  int (*word_of_y)(int i, int n);
  int (*column_of_y)(int i);
  int (*row_of_z)(int i, int n);
  int (*column_of_z)(int i, int n);
};

int row_of_square(int i, int) { return i % 16; }
int column_of_square(int i) { return i % 16; }
int column_of_sums(int i, int) { return i % 16; }
template <int w> int word_of_square(int i, int n) { return n + (w < 8 ? w * (i / 16) : 0); }
template <int u, int v> int row_of_sums(int i, int n) { return u * n + v * (i / 16); }
template <int warp, int w, int u, int v> constexpr MatrixPlaces square() {
  return {warp,
          16,
          w,
          w,
          256 / warp,
          row_of_square,
          word_of_square<w>,
          word_of_square<w>,
          column_of_square,
          row_of_sums<u, v>,
          column_of_sums};
}

constexpr MatrixPlaces of_eight_columns = {32,
                                           8,
                                           4,
                                           2,
                                           4,
                                           [](int i, int n) { return i / 4 + 8 * (n % 2); },
                                           [](int i, int n) { return i % 4 + 4 * (n / 2); },
                                           [](int i, int n) { return i % 4 + 4 * n; },
                                           [](int i) { return i / 4; },
                                           [](int i, int n) { return i / 4 + 8 * (n / 2); },
                                           [](int i, int n) { return 2 * (i % 4) + n % 2; }};

const MatrixPlaces& places_on(const Rig& rig) {
  static constexpr MatrixPlaces mfma = square<64, 2, 1, 4>(), wmma11 = square<32, 8, 2, 1>(),
                                wmma12 = square<32, 4, 1, 8>();
  if (!takes(rig, ROSIN_TAKES_SQUARE_MATRICES)) return of_eight_columns;
  return rig.info.matrix_layout == ROSIN_LAYOUT_MFMA     ? mfma
         : rig.info.matrix_layout == ROSIN_LAYOUT_WMMA11 ? wmma11
                                                         : wmma12;
}

/// The words of one operand, from the elements in `buffer`.
Value words_of_matrix(Code& code, int64_t buffer, int64_t count, int type) {
  const int each = type == ROSIN_FLOAT32 ? 1 : 2;
  const Value first = code.binary(ROSIN_MULTIPLY, code.item(), code.int32(count * each));
  std::vector<Value> parts;
  for (int64_t n = 0; n < count; ++n) {
    const auto load = [&](int64_t k) {
      return code.load(buffer, ROSIN_SCALAR_FLOAT32, code.binary(ROSIN_ADD, first, code.int32(n * each + k)));
    };
    if (each == 2) parts.push_back(code.add(ROSIN_PACK, ROSIN_SCALAR_UINT32, {load(0), load(1)}, type));
    else
      parts.push_back(
          code.add(ROSIN_CONVERT, ROSIN_SCALAR_UINT32, {code.add(ROSIN_REINTERPRET, ROSIN_SCALAR_INT32, {load(0)})}));
  }
  return joined(code, parts);
}

/// All of two warps or more multiply matrices whose elements they make from their places, as the page says.
void multiplies(Rig& rig, int type) {
  const MatrixPlaces& at = places_on(rig);
  constexpr int items = 128;
  const int each = type == ROSIN_FLOAT32 ? 1 : 2;
  Code code;
  code.name = "matrices_" + std::to_string(type);
  code.group = items;
  code.buffers = {ROSIN_FLOAT32, ROSIN_FLOAT32, ROSIN_FLOAT32};
  std::vector<Value> of_z;
  const auto place_of_sum = [&](int64_t n) {
    return code.binary(ROSIN_ADD, code.binary(ROSIN_MULTIPLY, code.item(), code.int32(at.z)), code.int32(n));
  };
  for (int64_t n = 0; n < at.z; ++n) of_z.push_back(code.load(2, ROSIN_SCALAR_FLOAT32, place_of_sum(n)));
  const Value sums =
      code.add(ROSIN_MULTIPLY_MATRICES, ROSIN_SCALAR_FLOAT32,
               {words_of_matrix(code, 0, at.x, type), words_of_matrix(code, 1, at.y, type), joined(code, of_z)}, type);
  for (int64_t n = 0; n < at.z; ++n) code.store(2, place_of_sum(n), code.lane(sums, n));
  const auto count = [&](int lanes) { return static_cast<size_t>(items * lanes); };
  std::vector<float> x(count(at.x * each)), y(count(at.y * each)), given(count(at.z)), wanted(count(at.z));
  for (int item = 0; item < items; ++item) {
    const int warp = item / at.warp, i = item % at.warp;
    const auto element_of = [&](int lanes, int n) { return static_cast<size_t>(item * lanes + n); };
    for (int n = 0; n < at.x * each; ++n) {
      const int k = each * at.word_of_x(i, n / each) + n % each;
      x[element_of(at.x * each, n)] = element(at.row_of_x(i, n / each), k, warp);
    }
    for (int n = 0; n < at.y * each; ++n) {
      const int k = each * at.word_of_y(i, n / each) + n % each;
      y[element_of(at.y * each, n)] = element(k, at.column_of_y(i) + 20, warp);
    }
    for (int n = 0; n < at.z; ++n) {
      const int row = at.row_of_z(i, n), column = at.column_of_z(i, n);
      float& sum = wanted[element_of(at.z, n)];
      sum = given[element_of(at.z, n)] = static_cast<float>(row - 3 * column);
      for (int k = 0; k < 8 * each; ++k) sum += element(row, k, warp) * element(k, column + 20, warp);
    }
  }
  const Module module(rig, {&code, 1});
  const Memory memory_of_x(rig, x.size() * 4), memory_of_y(rig, y.size() * 4), memory_of_z(rig, given.size() * 4);
  rig.write<float>(memory_of_x.at(), x);
  rig.write<float>(memory_of_y.at(), y);
  rig.write<float>(memory_of_z.at(), given);
  const rosin_place places[] = {memory_of_x.at(), memory_of_y.at(), memory_of_z.at()};
  rig.launch(rig.stream, module.kernel(code.name), places, 1);
  expect(rig.read<float>(memory_of_z.at(), wanted.size()) == wanted, "matrices of type " + std::to_string(type));
}

bool takes_matrices(const Rig& rig) {
  return takes(rig, ROSIN_TAKES_MATRICES) || takes(rig, ROSIN_TAKES_SQUARE_MATRICES);
}

void warps_multiply_matrices(Rig& rig) {
  if (!takes_matrices(rig)) return;
  for (const int type : {ROSIN_FLOAT16, ROSIN_BFLOAT16, ROSIN_FLOAT32}) {
    if (rig.info.matrix_types >> type & 1) multiplies(rig, type);
  }
}

/// Each item packs two numbers, and stores them one by one.
void pairs_are_packed(Rig& rig) {
  if (!takes_matrices(rig)) return;
  for (const int type : {ROSIN_FLOAT16, ROSIN_BFLOAT16}) {
    Code code;
    code.name = "packs_" + std::to_string(type);
    code.group = 64;
    code.buffers = {ROSIN_UINT32, type};
    const Value item = code.global(), twice = code.binary(ROSIN_ADD, item, item);
    const Value x = code.add(ROSIN_CONVERT, ROSIN_SCALAR_FLOAT32, {item});
    const Value low = code.binary(ROSIN_MULTIPLY, x, code.float32(1.37f)), high = code.binary(ROSIN_DIVIDE, x, low);
    code.store(0, item, code.add(ROSIN_PACK, ROSIN_SCALAR_UINT32, {low, high}, type));
    code.store(1, twice, low);
    code.store(1, code.binary(ROSIN_ADD, twice, code.int32(1)), high);
    const Module module(rig, {&code, 1});
    const Memory packed(rig, 4096), stored(rig, 4096);
    const rosin_place places[] = {packed.at(), stored.at()};
    rig.launch(rig.stream, module.kernel(code.name), places, 16);
    expect(rig.read<uint32_t>(packed.at(), 1024) == rig.read<uint32_t>(stored.at(), 1024),
           "pairs of type " + std::to_string(type));
  }
}

/// Each item leaves a vector in shared memory and takes that of its mirror image.
void shared_memory_holds_vectors(Rig& rig) {
  if (!takes_matrices(rig)) return;
  for (const int64_t lanes : {2, 4}) {
    Code code;
    code.name = "shared_vectors_" + std::to_string(lanes);
    code.group = 64;
    code.buffers = {ROSIN_UINT32};
    code.shared = {{ROSIN_SCALAR_BOOL, 3}, {ROSIN_SCALAR_UINT32, static_cast<int32_t>(64 * lanes)}};
    const Value item = code.item(), mirror = code.binary(ROSIN_SUBTRACT, code.int32(63), item);
    const Value here = code.binary(ROSIN_MULTIPLY, item, code.int32(lanes));
    const Value there = code.binary(ROSIN_MULTIPLY, mirror, code.int32(lanes));
    std::vector<Value> parts;
    for (int64_t lane = 0; lane < lanes; ++lane) {
      const Value number = code.binary(ROSIN_ADD, here, code.int32(lane));
      parts.push_back(code.add(ROSIN_CONVERT, ROSIN_SCALAR_UINT32, {number}));
    }
    const int64_t array = lanes << 32 | 1;
    code.add(ROSIN_SHARED_STORE_VECTOR, ROSIN_SCALAR_UINT32, {here, joined(code, parts)}, array);
    code.barrier();
    code.store_vector(0, here, code.add(ROSIN_SHARED_LOAD_VECTOR, ROSIN_SCALAR_UINT32, {there}, array), lanes);
    const Module module(rig, {&code, 1});
    const Memory out(rig, 64 * 4 * static_cast<uint64_t>(lanes));
    const rosin_place places[] = {out.at()};
    rig.launch(rig.stream, module.kernel(code.name), places, 1);
    const auto got = rig.read<uint32_t>(out.at(), static_cast<size_t>(64 * lanes));
    for (int64_t i = 0; i < 64 * lanes; ++i) {
      expect(got[static_cast<size_t>(i)] == static_cast<uint32_t>((63 - i / lanes) * lanes + i % lanes),
             "element " + std::to_string(i) + " of vectors of " + std::to_string(lanes));
    }
  }
}

/// Even groups copy from the first buffer to the third, odd ones from the second to the fourth.
void buffers_are_chosen(Rig& rig) {
  if (!takes(rig, ROSIN_TAKES_CHOICES)) return;
  Code code;
  code.name = "chooses";
  code.group = 64;
  code.buffers = {ROSIN_INT32, ROSIN_INT32, ROSIN_INT32, ROSIN_INT32};
  const auto choose = [&](int64_t number, int64_t buffer) {
    code.add(ROSIN_CHOOSE, ROSIN_SCALAR_INT32, {}, number << 32 | buffer);
  };
  choose(0, 0);
  choose(1, 2);
  const Value odd = code.binary(ROSIN_BIT_AND, code.group_at(0), code.int32(1));
  code.when(code.less(code.int32(0), odd));
  choose(0, 1);
  choose(1, 3);
  code.end_if();
  const Value at = code.global();
  code.store(ROSIN_CHOSEN_BUFFER + 1, at, code.load(ROSIN_CHOSEN_BUFFER, ROSIN_SCALAR_INT32, at));
  const size_t count = 256;
  std::vector<int32_t> first(count), second(count);
  for (size_t i = 0; i < count; ++i) first[i] = static_cast<int32_t>(i), second[i] = -first[i];
  const Module module(rig, {&code, 1});
  const Memory from(rig, 4 * count), other(rig, 4 * count), to(rig, 4 * count), there(rig, 4 * count);
  rig.write<int32_t>(from.at(), first);
  rig.write<int32_t>(other.at(), second);
  rig.write<int32_t>(to.at(), std::vector<int32_t>(count, 7));
  rig.write<int32_t>(there.at(), std::vector<int32_t>(count, 7));
  const rosin_place places[] = {from.at(), other.at(), to.at(), there.at()};
  rig.launch(rig.stream, module.kernel(code.name), places, count / 64);
  const auto even_got = rig.read<int32_t>(to.at(), count), odd_got = rig.read<int32_t>(there.at(), count);
  for (size_t i = 0; i < count; ++i) {
    const bool even = i / 64 % 2 == 0;
    expect(even_got[i] == (even ? first[i] : 7), "element " + std::to_string(i) + " of the third buffer");
    expect(odd_got[i] == (even ? 7 : second[i]), "element " + std::to_string(i) + " of the fourth buffer");
  }
}

/// Eight groups store, each for itself, at one of two counters; the last to come at each adds up what all of them have
/// stored. Twice, as counters are 0 again behind the first.
void the_last_group_sees_what_all_stored(Rig& rig) {
  if (!takes(rig, ROSIN_TAKES_ARRIVALS)) return;
  constexpr int64_t groups = 64, items = 64, counters = 2, each = groups / counters;
  Code code;
  code.name = "arrives";
  code.group = items;
  code.buffers = {ROSIN_INT32, ROSIN_INT32, ROSIN_INT32, ROSIN_INT32};  // given, parts, counters, sums
  const Value counter = code.binary(ROSIN_BIT_AND, code.group_at(0), code.int32(counters - 1));
  const Value at = code.global();
  const Value given = code.load(0, ROSIN_SCALAR_INT32, at);
  code.store(1, at, code.binary(ROSIN_MULTIPLY, given, given));
  const Value last = code.add(ROSIN_ARRIVE, ROSIN_SCALAR_BOOL, {counter, code.int32(each)}, 2);
  code.when(last);
  const Value sum = code.variable(code.int32(0));
  const Value part = code.loop(code.int32(0), code.int32(each), code.int32(1));
  const Value group = code.binary(ROSIN_ADD, code.binary(ROSIN_MULTIPLY, part, code.int32(counters)), counter);
  const Value there = code.binary(ROSIN_ADD, code.binary(ROSIN_MULTIPLY, group, code.int32(items)), code.item());
  code.assign(sum, code.binary(ROSIN_ADD, sum, code.load(1, ROSIN_SCALAR_INT32, there)));
  code.end_loop();
  const Value to = code.binary(ROSIN_ADD, code.binary(ROSIN_MULTIPLY, counter, code.int32(items)), code.item());
  code.store(3, to, sum);
  code.end_if();
  const size_t count = groups * items;
  const Module module(rig, {&code, 1});
  const Memory from(rig, 4 * count), parts(rig, 4 * count), arrived(rig, 64), sums(rig, 4 * counters * items);
  rig.write<int32_t>(arrived.at(), std::vector<int32_t>(16, 0));
  for (int32_t turn = 0; turn < 2; ++turn) {
    std::vector<int32_t> numbers(count), wanted(counters * items, 0);
    for (size_t i = 0; i < count; ++i) {
      numbers[i] = static_cast<int32_t>(i) % 97 + turn;
      wanted[i / items % counters * items + i % items] += numbers[i] * numbers[i];
    }
    rig.write<int32_t>(from.at(), numbers);
    rig.write<int32_t>(parts.at(), std::vector<int32_t>(count, -1));
    rig.write<int32_t>(sums.at(), std::vector<int32_t>(counters * items, -1));
    const rosin_place places[] = {from.at(), parts.at(), arrived.at(), sums.at()};
    rig.launch(rig.stream, module.kernel(code.name), places, groups);
    expect(rig.read<int32_t>(sums.at(), counters * items) == wanted, "the last groups' sums");
    expect(rig.read<int32_t>(arrived.at(), 16) == std::vector<int32_t>(16, 0), "counters are 0 again");
  }
}

constexpr Check checks[] = {
    {"vectors are their elements", vectors_are_their_elements},
    {"vectors round as elements do", vectors_round_as_elements_do},
    {"a vector keeps what variables held", a_vector_keeps_what_variables_held},
    {"read-only buffers are read", read_only_buffers_are_read},
    {"items of a warp exchange values", items_of_a_warp_exchange_values},
    {"shared arrays may be large", shared_arrays_may_be_large},
    {"warps multiply matrices", warps_multiply_matrices},
    {"pairs are packed", pairs_are_packed},
    {"buffers are chosen", buffers_are_chosen},
    {"the last group sees what all stored", the_last_group_sees_what_all_stored},
    {"shared memory holds vectors", shared_memory_holds_vectors},
};

}  // namespace

const Part later_part = {"later", checks};

}  // namespace rosin::conformance
