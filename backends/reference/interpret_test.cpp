// The reference device's interpreter: control flow, and that what is undefined on a GPU is found. The meaning of each
// operation is checked by the conformance test, which runs on this device too.
#include "interpret.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "../../tests/conformance/code.hpp"

namespace rosin::reference {
namespace {

using conformance::Code;
using conformance::Value;

/// Runs a code over int32 buffers.
void run(const Code& code, std::vector<std::vector<int32_t>*> buffers, uint32_t groups = 1,
         std::vector<rosin_number> parameters = {}) {
  std::vector<Block> blocks;
  for (auto* buffer : buffers) blocks.push_back({buffer->data(), buffer->size() * sizeof(int32_t)});
  const uint32_t sizes[3] = {groups, 1, 1};
  Kernel(code.view()).run(sizes, blocks.data(), parameters.data());
}

std::string fault_of(const std::function<void()>& what) {
  try {
    what();
  } catch (const Fault& fault) {
    return fault.what();
  }
  return "";
}

std::string refusal_of(const Code& code) {
  try {
    Kernel kernel(code.view());
  } catch (const InvalidCode& error) {
    return error.what();
  }
  return "";
}

Code code_of(int items, size_t buffers) {
  Code code;
  code.name = "tested";
  code.group = items;
  code.buffers.assign(buffers, ROSIN_INT32);
  return code;
}

TEST(Interpreter, LoopsWhoseBoundsDifferByItemSumWhatEachItemAsksFor) {
  Code code = code_of(8, 1);
  const Value item = code.item(), sum = code.variable(code.int32(0));
  const Value i = code.loop(code.int32(0), item, code.int32(1));
  code.assign(sum, code.binary(ROSIN_ADD, sum, i));
  code.end_loop();
  code.store(0, item, sum);
  std::vector<int32_t> out(8);
  run(code, {&out});
  EXPECT_EQ(out, (std::vector<int32_t>{0, 0, 1, 3, 6, 10, 15, 21}));
}

TEST(Interpreter, BothBranchesOfAnIfRunForTheirItemsEvenWhenTheConditionIsAssigned) {
  Code code = code_of(4, 1);
  const Value item = code.item();
  const Value condition = code.variable(code.less(item, code.int32(2)));
  const Value result = code.variable(code.int32(0));
  code.when(condition);
  code.assign(condition, code.add(ROSIN_LITERAL, ROSIN_SCALAR_BOOL, {}, 0));
  code.assign(result, code.int32(10));
  code.otherwise();
  code.assign(result, code.int32(20));
  code.end_if();
  code.store(0, item, result);
  std::vector<int32_t> out(4);
  run(code, {&out});
  EXPECT_EQ(out, (std::vector<int32_t>{10, 10, 20, 20}));
}

TEST(Interpreter, ALoopReadsItsBoundsOnce) {
  Code code = code_of(2, 1);
  const Value end = code.variable(code.int32(3)), rounds = code.variable(code.int32(0));
  code.loop(code.int32(0), end, code.int32(1));
  code.assign(end, code.int32(100));
  code.assign(rounds, code.binary(ROSIN_ADD, rounds, code.int32(1)));
  code.end_loop();
  code.store(0, code.item(), rounds);
  std::vector<int32_t> out(2);
  run(code, {&out});
  EXPECT_EQ(out, (std::vector<int32_t>{3, 3}));
}

TEST(Interpreter, ALoopThatEndsAtTheHighestNumberEnds) {
  Code code = code_of(1, 1);
  const Value rounds = code.variable(code.int32(0));
  code.loop(code.int32(INT32_MIN), code.int32(INT32_MAX), code.int32(INT32_MAX));
  code.assign(rounds, code.binary(ROSIN_ADD, rounds, code.int32(1)));
  code.end_loop();
  code.store(0, code.item(), rounds);
  std::vector<int32_t> out(1);
  run(code, {&out});
  EXPECT_EQ(out[0], 3);  // INT32_MIN, -1, INT32_MAX - 1
}

TEST(Interpreter, AnElementOutsideOfItsBufferIsAFaultWithNames) {
  for (const int64_t at : {4, -1}) {
    Code code = code_of(2, 2);
    code.store(1, code.item(), code.load(0, ROSIN_SCALAR_INT32, code.int32(at)));
    std::vector<int32_t> in(4), out(2);
    const std::string text = fault_of([&] { run(code, {&in, &out}); });
    EXPECT_NE(text.find("kernel tested"), std::string::npos) << text;
    EXPECT_NE(text.find("element " + std::to_string(at) + " of buffer 0, which holds 4"), std::string::npos) << text;
  }
  Code code = code_of(3, 1);
  code.store(0, code.item(), code.int32(1));
  std::vector<int32_t> out(2);
  EXPECT_NE(fault_of([&] { run(code, {&out}); }).find("item 2"), std::string::npos);
}

TEST(Interpreter, ItemsThatDoNotTakePartTouchNoMemory) {
  Code code = code_of(4, 1);
  const Value item = code.item();
  code.when(code.less(item, code.int32(2)));
  code.store(0, item, code.load(0, ROSIN_SCALAR_INT32, item));
  code.end_if();
  std::vector<int32_t> out(2);
  EXPECT_EQ(fault_of([&] { run(code, {&out}); }), "");
}

Code exchange(bool with_barrier) {
  Code code = code_of(4, 1);
  code.shared.push_back({ROSIN_SCALAR_INT32, 4});
  const Value item = code.item();
  code.add(ROSIN_SHARED_STORE, ROSIN_SCALAR_INT32, {item, item}, 0);
  if (with_barrier) code.barrier();
  const Value other = code.binary(ROSIN_SUBTRACT, code.int32(3), item);
  code.store(0, item, code.add(ROSIN_SHARED_LOAD, ROSIN_SCALAR_INT32, {other}, 0));
  return code;
}

TEST(Interpreter, ItemsSeeSharedMemoryAfterABarrierAndAMissingOneIsFound) {
  std::vector<int32_t> out(4);
  run(exchange(true), {&out});
  EXPECT_EQ(out, (std::vector<int32_t>{3, 2, 1, 0}));
  EXPECT_NE(fault_of([&] { run(exchange(false), {&out}); }).find("with no barrier between"), std::string::npos);
}

TEST(Interpreter, ABarrierThatSomeItemsMissIsAFault) {
  Code code = code_of(4, 0);
  code.when(code.less(code.item(), code.int32(3)));
  code.barrier();
  code.end_if();
  EXPECT_NE(fault_of([&] { run(code, {}); }).find("item 3"), std::string::npos);
}

TEST(Interpreter, ALoopWithoutAStepIsAFault) {
  Code code = code_of(1, 0);
  code.loop(code.int32(0), code.int32(1), code.int32(0));
  code.end_loop();
  EXPECT_NE(fault_of([&] { run(code, {}); }), "");
}

TEST(Interpreter, CodeThatBreaksTheRulesIsRefused) {
  Code later = code_of(1, 1);
  later.add(ROSIN_NEGATE, ROSIN_SCALAR_INT32, {0});
  EXPECT_NE(refusal_of(later), "");

  Code types = code_of(1, 1);
  types.binary(ROSIN_ADD, types.int32(1), types.float32(1));
  EXPECT_NE(refusal_of(types), "");

  Code hidden = code_of(1, 1);
  hidden.when(hidden.add(ROSIN_LITERAL, ROSIN_SCALAR_BOOL, {}, 1));
  const Value inside = hidden.int32(1);
  hidden.end_if();
  hidden.add(ROSIN_NEGATE, ROSIN_SCALAR_INT32, {inside});
  EXPECT_NE(refusal_of(hidden), "");

  Code open = code_of(1, 1);
  open.loop(open.int32(0), open.int32(1), open.int32(1));
  EXPECT_NE(refusal_of(open), "");

  Code buffer = code_of(1, 1);
  buffer.load(1, ROSIN_SCALAR_INT32, buffer.int32(0));
  EXPECT_NE(refusal_of(buffer), "");

  Code floats = code_of(1, 1);
  floats.binary(ROSIN_SHIFT_LEFT, floats.float32(1), floats.float32(1));
  EXPECT_NE(refusal_of(floats), "");

  Code large = code_of(257, 0);
  EXPECT_NE(refusal_of(large), "");

  Code unknown = code_of(1, 0);
  unknown.int32(1);
  unknown.list.back().operation = 99;
  EXPECT_NE(refusal_of(unknown), "");
}

TEST(Interpreter, GroupsAndParametersReachTheItems) {
  Code code = code_of(4, 1);
  code.parameters.push_back(ROSIN_SCALAR_INT32);
  const Value at = code.global();
  code.when(code.less(at, code.int32(10)));
  code.store(0, at, code.binary(ROSIN_MULTIPLY, at, code.parameter(0)));
  code.end_if();
  std::vector<int32_t> out(10);
  rosin_number seven{};
  seven.int32 = 7;
  run(code, {&out}, 3, {seven});
  for (int32_t i = 0; i < 10; ++i) EXPECT_EQ(out[static_cast<size_t>(i)], 7 * i);
}

}  // namespace
}  // namespace rosin::reference
