// Launches: groups in three dims, parameters, offsets, loops, ifs, variables, shared memory, many launches.
#include <algorithm>
#include <numeric>
#include <thread>

#include "checks.hpp"

namespace rosin::conformance {
namespace {

Code code_of(const std::string& name, int32_t group, std::vector<int32_t> buffers,
             std::vector<int32_t> parameters = {}) {
  Code code;
  code.name = name;
  code.group = group;
  code.buffers = std::move(buffers);
  code.parameters = std::move(parameters);
  return code;
}

/// Runs one kernel whose only buffer is `count` Int32 zeros, and gives what it became.
std::vector<int32_t> result_of(Rig& rig, const Code& code, size_t count, uint32_t groups,
                               std::span<const rosin_number> parameters = {}) {
  const Module module(rig, {&code, 1});
  const Memory out(rig, count * 4);
  rig.write<int32_t>(out.at(), std::vector<int32_t>(count));
  const rosin_place places[] = {out.at()};
  rig.launch(rig.stream, module.kernel(code.name), places, groups, parameters);
  return rig.read<int32_t>(out.at(), count);
}

void expect_equal(const std::vector<int32_t>& got, const std::vector<int32_t>& wanted, const std::string& what) {
  for (size_t i = 0; i < wanted.size(); ++i) {
    expect(got[i] == wanted[i], what + ": element " + std::to_string(i) + " is " + std::to_string(got[i]) + ", not " +
                                    std::to_string(wanted[i]));
  }
}

void every_item_of_every_group_runs_once(Rig& rig) {
  for (const int32_t group : {1, 2, 37, 64, 256}) {
    Code code = code_of("counts_items", group, {ROSIN_INT32});
    const Value at = code.global();
    const Value before = code.load(0, ROSIN_SCALAR_INT32, at);
    code.store(0, at, code.binary(ROSIN_ADD, before, code.binary(ROSIN_ADD, at, code.int32(1))));
    const auto count = static_cast<size_t>(group) * 11;
    std::vector<int32_t> wanted(count);
    std::iota(wanted.begin(), wanted.end(), 1);
    expect_equal(result_of(rig, code, count, 11), wanted, "groups of " + std::to_string(group));
  }
}

void groups_have_three_dims(Rig& rig) {
  // out[(g2 * 5 + g1) * 3 + g0] = g0 + 10 g1 + 100 g2
  Code code = code_of("places", 1, {ROSIN_INT32});
  const Value g0 = code.group_at(0), g1 = code.group_at(1), g2 = code.group_at(2);
  const Value plane = code.binary(ROSIN_ADD, code.binary(ROSIN_MULTIPLY, g2, code.int32(5)), g1);
  const Value at = code.binary(ROSIN_ADD, code.binary(ROSIN_MULTIPLY, plane, code.int32(3)), g0);
  const Value tens = code.binary(ROSIN_MULTIPLY, g1, code.int32(10));
  const Value hundreds = code.binary(ROSIN_MULTIPLY, g2, code.int32(100));
  code.store(0, at, code.binary(ROSIN_ADD, g0, code.binary(ROSIN_ADD, tens, hundreds)));
  const Module module(rig, {&code, 1});
  const Memory out(rig, 3 * 5 * 7 * 4);
  const rosin_place place = out.at();
  rosin_launch launch{};
  launch.size = sizeof(launch);
  launch.groups[0] = 3;
  launch.groups[1] = 5;
  launch.groups[2] = 7;
  launch.buffers = &place;
  rig.good(rig.api.launch(rig.stream, module.kernel("places"), &launch), "launch");
  std::vector<int32_t> wanted;
  for (int c = 0; c < 7; ++c)
    for (int b = 0; b < 5; ++b)
      for (int a = 0; a < 3; ++a) wanted.push_back(a + 10 * b + 100 * c);
  expect_equal(rig.read<int32_t>(out.at(), wanted.size()), wanted, "groups in three dims");
}

void there_may_be_many_groups(Rig& rig) {
  Code code = code_of("many_groups", 1, {ROSIN_INT32});
  const Value wide = code.add(ROSIN_GROUP, ROSIN_SCALAR_INT64, {}, 0);
  code.store(0, wide, code.group_at(0));
  std::vector<int32_t> wanted(200003);
  std::iota(wanted.begin(), wanted.end(), 0);
  expect_equal(result_of(rig, code, wanted.size(), 200003), wanted, "many groups");
}

void parameters_of_every_type_arrive(Rig& rig) {
  Code code = code_of("parameters", 1, {ROSIN_INT32, ROSIN_UINT32, ROSIN_INT64, ROSIN_FLOAT32},
                      {ROSIN_SCALAR_FLOAT32, ROSIN_SCALAR_INT64, ROSIN_SCALAR_INT32, ROSIN_SCALAR_UINT32});
  const Value at = code.item();
  code.store(3, at, code.parameter(0));
  code.store(2, at, code.parameter(1));
  code.store(0, at, code.parameter(2));
  code.store(1, at, code.parameter(3));
  rosin_number numbers[4] = {};
  numbers[0].float32 = -1.5f;
  numbers[1].int64 = INT64_C(-1234567890123456789);
  numbers[2].int32 = -77;
  numbers[3].uint32 = 4000000000u;
  const Module module(rig, {&code, 1});
  const Memory a(rig, 4), b(rig, 4), c(rig, 8), d(rig, 4);
  const rosin_place places[] = {a.at(), b.at(), c.at(), d.at()};
  rig.launch(rig.stream, module.kernel("parameters"), places, 1, numbers);
  expect(rig.read<int32_t>(a.at(), 1)[0] == -77, "an Int32 parameter");
  expect(rig.read<uint32_t>(b.at(), 1)[0] == 4000000000u, "a UInt32 parameter");
  expect(rig.read<int64_t>(c.at(), 1)[0] == INT64_C(-1234567890123456789), "an Int64 parameter");
  expect(rig.read<float>(d.at(), 1)[0] == -1.5f, "a Float32 parameter");
}

void buffers_begin_at_their_offsets(Rig& rig) {
  Code code = code_of("offsets", 4, {ROSIN_INT32, ROSIN_INT32});
  const Value at = code.item();
  code.store(1, at, code.binary(ROSIN_ADD, code.load(0, ROSIN_SCALAR_INT32, at), code.int32(1)));
  const Module module(rig, {&code, 1});
  const auto unit = static_cast<uint64_t>(rig.info.alignment);
  const uint64_t step = unit < 16 ? 16 : unit;
  const Memory memory(rig, 4 * step);
  rig.write<int32_t>(memory.at(step), std::vector<int32_t>{5, 6, 7, 8});
  const rosin_place places[] = {memory.at(step), memory.at(3 * step)};
  rig.launch(rig.stream, module.kernel("offsets"), places, 1);
  expect_equal(rig.read<int32_t>(memory.at(3 * step), 4), {6, 7, 8, 9}, "with offsets");
}

void several_kernels_stand_in_one_program(Rig& rig) {
  std::vector<Code> codes;
  for (int i = 0; i < 30; ++i) {
    codes.push_back(code_of("kernel_" + std::to_string(i), 1, {ROSIN_INT32}));
    codes.back().store(0, codes.back().int32(i), codes.back().int32(1000 + i));
  }
  const Module module(rig, codes);
  const Memory out(rig, 30 * 4);
  const rosin_place places[] = {out.at()};
  std::vector<int32_t> wanted(30);
  std::iota(wanted.begin(), wanted.end(), 1000);
  for (const Code& code : codes) rig.launch(rig.stream, module.kernel(code.name), places, 1);
  expect_equal(rig.read<int32_t>(out.at(), 30), wanted, "kernels of one program");
}

void loops_nest_and_their_bounds_may_differ_by_item(Rig& rig) {
  // out[i] = the sum of a * b over a = 0, 2, 4 ... below i and b = a ... below i
  Code code = code_of("loops", 32, {ROSIN_INT32});
  const Value item = code.item(), one = code.int32(1), sum = code.variable(code.int32(0));
  const Value a = code.loop(code.int32(0), item, code.int32(2));
  const Value b = code.loop(a, item, one);
  code.assign(sum, code.binary(ROSIN_ADD, sum, code.binary(ROSIN_MULTIPLY, a, b)));
  code.end_loop();
  code.end_loop();
  code.store(0, item, sum);
  std::vector<int32_t> wanted(32);
  for (int i = 0; i < 32; ++i)
    for (int x = 0; x < i; x += 2)
      for (int y = x; y < i; ++y) wanted[static_cast<size_t>(i)] += x * y;
  expect_equal(result_of(rig, code, 32, 1), wanted, "nested loops");
}

void a_loop_reads_its_bounds_once(Rig& rig) {
  Code code = code_of("bounds", 2, {ROSIN_INT32});
  const Value end = code.variable(code.int32(5)), step = code.variable(code.int32(2));
  const Value rounds = code.variable(code.int32(0));
  code.loop(code.int32(-1), end, step);
  code.assign(end, code.int32(1000));
  code.assign(step, code.int32(1));
  code.assign(rounds, code.binary(ROSIN_ADD, rounds, code.int32(1)));
  code.end_loop();
  code.store(0, code.item(), rounds);
  expect_equal(result_of(rig, code, 2, 1), {3, 3}, "bounds that the body assigns");
}

void branches_run_for_their_items_only(Rig& rig) {
  // Below 10: i; from 20: 2 i, and the multiples of 4 among them 1 more; the others: -i. The condition is assigned.
  Code code = code_of("branches", 32, {ROSIN_INT32});
  const Value item = code.item(), result = code.variable(code.int32(0));
  const Value low = code.variable(code.less(item, code.int32(10)));
  code.when(low);
  code.assign(low, code.add(ROSIN_LITERAL, ROSIN_SCALAR_BOOL, {}, 0));
  code.assign(result, item);
  code.otherwise();
  code.when(code.less(item, code.int32(20)));
  code.assign(result, code.add(ROSIN_NEGATE, ROSIN_SCALAR_INT32, {item}));
  code.otherwise();
  code.assign(result, code.binary(ROSIN_ADD, item, item));
  const Value rest = code.binary(ROSIN_BIT_AND, item, code.int32(3));
  code.when(code.add(ROSIN_EQUAL, ROSIN_SCALAR_BOOL, {rest, code.int32(0)}));
  code.assign(result, code.binary(ROSIN_ADD, result, code.int32(1)));
  code.end_if();
  code.end_if();
  code.end_if();
  code.store(0, item, result);
  std::vector<int32_t> wanted;
  for (int i = 0; i < 32; ++i) wanted.push_back(i < 10 ? i : i < 20 ? -i : 2 * i + (i % 4 == 0));
  expect_equal(result_of(rig, code, 32, 1), wanted, "branches");
}

void items_outside_of_an_if_touch_no_memory(Rig& rig) {
  Code code = code_of("guarded", 256, {ROSIN_INT32}, {ROSIN_SCALAR_INT32});
  const Value at = code.global();
  code.when(code.less(at, code.parameter(0)));
  code.store(0, at, code.binary(ROSIN_ADD, code.load(0, ROSIN_SCALAR_INT32, at), code.int32(3)));
  code.end_if();
  const rosin_number numbers[] = {number(300)};
  std::vector<int32_t> wanted(400);
  std::fill(wanted.begin(), wanted.begin() + 300, 3);
  expect_equal(result_of(rig, code, 400, 2, numbers), wanted, "a guarded store");
}

void a_variable_stands_for_what_it_holds(Rig& rig) {
  // Two variables swap, ten times.
  Code code = code_of("swaps", 1, {ROSIN_INT32});
  const Value x = code.variable(code.int32(1)), y = code.variable(code.int32(2));
  code.loop(code.int32(0), code.int32(11), code.int32(1));
  const Value kept = code.binary(ROSIN_ADD, x, code.int32(0));
  code.assign(x, y);
  code.assign(y, kept);
  code.end_loop();
  code.store(0, code.int32(0), x);
  code.store(0, code.int32(1), y);
  expect_equal(result_of(rig, code, 2, 1), {2, 1}, "variables that swap");
}

/// Each group sums its items by halves in shared memory.
Code tree_sum(int32_t group) {
  Code code = code_of("tree_sum", group, {ROSIN_INT32});
  code.shared = {{ROSIN_SCALAR_INT64, 3}, {ROSIN_SCALAR_INT32, group}};
  const Value item = code.item(), one = code.int32(1);
  code.add(ROSIN_SHARED_STORE, ROSIN_SCALAR_INT32, {item, code.binary(ROSIN_ADD, code.global(), one)}, 1);
  const Value half = code.variable(code.int32(group / 2));
  int rounds = 0;
  while (1 << rounds < group) ++rounds;
  code.loop(code.int32(0), code.int32(rounds), one);
  code.barrier();
  code.when(code.less(item, half));
  const Value other = code.add(ROSIN_SHARED_LOAD, ROSIN_SCALAR_INT32, {code.binary(ROSIN_ADD, item, half)}, 1);
  const Value mine = code.add(ROSIN_SHARED_LOAD, ROSIN_SCALAR_INT32, {item}, 1);
  code.add(ROSIN_SHARED_STORE, ROSIN_SCALAR_INT32, {item, code.binary(ROSIN_ADD, mine, other)}, 1);
  code.end_if();
  code.assign(half, code.binary(ROSIN_SHIFT_RIGHT, half, one));
  code.end_loop();
  code.when(code.add(ROSIN_EQUAL, ROSIN_SCALAR_BOOL, {item, code.int32(0)}));
  code.store(0, code.group_at(0), code.add(ROSIN_SHARED_LOAD, ROSIN_SCALAR_INT32, {item}, 1));
  code.end_if();
  return code;
}

void items_share_memory_with_barriers(Rig& rig) {
  for (const int32_t group : {2, 64, 256}) {
    std::vector<int32_t> wanted;
    for (int g = 0; g < 50; ++g) wanted.push_back(group * (g * group) + group * (group + 1) / 2);
    expect_equal(result_of(rig, tree_sum(group), 50, 50), wanted, "sums of groups of " + std::to_string(group));
  }
}

void shared_arrays_may_fill_what_there_is(Rig& rig) {
  // 4096 Int32 of 16384 bytes: each item fills a part, then reads the part of its mirror image.
  Code code = code_of("full", 256, {ROSIN_INT32});
  code.shared = {{ROSIN_SCALAR_INT32, 4096}};
  const Value item = code.item(), by = code.int32(256), end = code.int32(4096);
  const Value at = code.loop(item, end, by);
  code.add(ROSIN_SHARED_STORE, ROSIN_SCALAR_INT32, {at, at}, 0);
  code.end_loop();
  code.barrier();
  const Value to = code.loop(item, end, by);
  const Value mirror = code.binary(ROSIN_SUBTRACT, code.int32(4095), to);
  code.store(0, to, code.add(ROSIN_SHARED_LOAD, ROSIN_SCALAR_INT32, {mirror}, 0));
  code.end_loop();
  std::vector<int32_t> wanted(4096);
  std::iota(wanted.rbegin(), wanted.rend(), 0);
  expect_equal(result_of(rig, code, 4096, 1), wanted, "16384 bytes of shared memory");
}

Code adds_one() {
  Code code = code_of("adds_one", 64, {ROSIN_INT32});
  const Value at = code.global();
  code.store(0, at, code.binary(ROSIN_ADD, code.load(0, ROSIN_SCALAR_INT32, at), code.int32(1)));
  return code;
}

void many_launches_run_in_their_order(Rig& rig) {
  const Code code = adds_one();
  const Module module(rig, {&code, 1});
  const Memory memory(rig, 256);
  rig.write<int32_t>(memory.at(), std::vector<int32_t>(64));
  const rosin_place places[] = {memory.at()};
  for (int i = 0; i < 2000; ++i) rig.launch(rig.stream, module.kernel("adds_one"), places, 1);
  expect_equal(rig.read<int32_t>(memory.at(), 64), std::vector<int32_t>(64, 2000), "2000 launches");
}

void threads_launch_one_kernel_on_their_streams(Rig& rig) {
  const Code code = adds_one();
  const Module module(rig, {&code, 1});
  rosin_kernel* kernel = module.kernel("adds_one");
  std::vector<std::string> broken(4);
  const auto work = [&](size_t mine) {
    rosin_stream* stream = nullptr;
    try {
      rig.good(rig.api.stream_create(rig.device, &stream), "stream_create");
      const Memory memory(rig, 6400);
      std::vector<int32_t> numbers(1600, static_cast<int32_t>(mine));
      rig.good(rig.api.copy_in(stream, memory.at(), numbers.data(), 6400), "copy_in");
      const rosin_place places[] = {memory.at()};
      for (int i = 0; i < 200; ++i) rig.launch(stream, kernel, places, 25);
      rig.good(rig.api.copy_out(stream, numbers.data(), memory.at(), 6400), "copy_out");
      expect_equal(numbers, std::vector<int32_t>(1600, static_cast<int32_t>(mine) + 200), "a thread's launches");
    } catch (const Broken& error) {
      broken[mine] = error.what();
    }
    if (stream) rig.api.stream_destroy(stream);
  };
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 4; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
  for (const std::string& why : broken) expect(why.empty(), why);
}

constexpr Check checks[] = {
    {"every item of every group runs once", every_item_of_every_group_runs_once},
    {"groups have three dims", groups_have_three_dims},
    {"there may be many groups", there_may_be_many_groups},
    {"parameters of every type arrive", parameters_of_every_type_arrive},
    {"buffers begin at their offsets", buffers_begin_at_their_offsets},
    {"several kernels stand in one program", several_kernels_stand_in_one_program},
    {"loops nest and their bounds may differ by item", loops_nest_and_their_bounds_may_differ_by_item},
    {"a loop reads its bounds once", a_loop_reads_its_bounds_once},
    {"branches run for their items only", branches_run_for_their_items_only},
    {"items outside of an if touch no memory", items_outside_of_an_if_touch_no_memory},
    {"a variable stands for what it holds", a_variable_stands_for_what_it_holds},
    {"items share memory with barriers", items_share_memory_with_barriers},
    {"shared arrays may fill what there is", shared_arrays_may_fill_what_there_is},
    {"many launches run in their order", many_launches_run_in_their_order},
    {"threads launch one kernel on their streams", threads_launch_one_kernel_on_their_streams},
};

}  // namespace

const Part kernels_part = {"kernels", checks};

}  // namespace rosin::conformance
