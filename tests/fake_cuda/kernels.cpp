// Running kernels: the blocks of a launch one after another in a random order, the items of a block as fibers where
// they meet at barriers. See machine.hpp.
#include <ucontext.h>

#include <algorithm>
#include <exception>
#include <numeric>
#include <optional>
#include <random>

#include "machine.hpp"

namespace fake {
namespace {

constexpr size_t stack_bytes = size_t{64} << 10;

[[noreturn]] void throw_fault(const char* what) { throw Trouble{illegal_address, what}; }

Block find_block(u64 address) { return Machine::instance().find(address); }

/// The items of one block that run beside each other, and where they wait.
class Fibers {
 public:
  static Fibers& instance() {
    static Fibers fibers;
    return fibers;
  }

  void run(const Function& function, void** parameters, u32 first) {
    function_ = &function;
    parameters_ = parameters;
    const auto count = static_cast<size_t>(function.items);
    while (fibers_.size() < count) fibers_.push_back(std::make_unique<Fiber>());
    for (size_t i = 0; i < count; ++i) start(*fibers_[i]);
    for (size_t left = count; left > 0;) {
      const size_t waiting = left;
      for (size_t i = 0; i < count; ++i) {
        Fiber& fiber = *fibers_[i];
        if (fiber.done) continue;
        function.item->item = static_cast<u32>(i);
        function.item->number = first + static_cast<u32>(i);
        now_ = &fiber;
        swapcontext(&scheduler_, &fiber.context);
        if (fiber.trouble) throw Trouble(*fiber.trouble);
        left -= fiber.done;
      }
      if (left != 0 && left != waiting) throw_fault("some items of a block ended while others wait at a barrier");
      ++function.item->phase;
    }
  }

  static void barrier() {
    Fibers& self = instance();
    swapcontext(&self.now_->context, &self.scheduler_);
  }

 private:
  struct Fiber {
    ucontext_t context{};
    std::unique_ptr<unsigned char[]> stack = std::make_unique<unsigned char[]>(stack_bytes);
    bool done = false;
    std::optional<Trouble> trouble;
  };

  void start(Fiber& fiber) {
    fiber.done = false;
    fiber.trouble.reset();
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.get();
    fiber.context.uc_stack.ss_size = stack_bytes;
    fiber.context.uc_link = &scheduler_;
    makecontext(&fiber.context, &Fibers::enter, 0);
  }

  static void enter() {
    Fibers& self = instance();
    Fiber& fiber = *self.now_;
    try {
      self.function_->run(self.parameters_);
    } catch (const Trouble& trouble) {
      fiber.trouble = trouble;
    }
    fiber.done = true;
  }

  const Function* function_ = nullptr;
  void** parameters_ = nullptr;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  Fiber* now_ = nullptr;
  ucontext_t scheduler_{};
};

void run_alone(const Function& function, void** parameters, u32 first) {
  for (int i = 0; i < function.items; ++i) {
    function.item->item = static_cast<u32>(i);
    function.item->number = first + static_cast<u32>(i);
    function.run(parameters);
  }
}

/// Numbers of items go on from launch to launch; after 2^32 of them nobody knows who touched what.
u32 numbers_for(uint64_t items) {
  static uint64_t next = 1;
  if (next + items >= 0xFFFFFFFEull) next = 1;
  const auto first = static_cast<u32>(next);
  next += items;
  return first;
}

}  // namespace

void run_kernel(const Function& function, const unsigned (&grid)[3], std::vector<std::vector<unsigned char>> values) {
  std::vector<void*> parameters;
  for (auto& value : values) parameters.push_back(value.data());
  const uint64_t blocks = uint64_t{grid[0]} * grid[1] * grid[2];
  const auto items = static_cast<uint64_t>(function.items);
  Item& item = *function.item;
  const u32 start = numbers_for(blocks * items);
  item.first = start;
  item.checks = Machine::instance().options.checks;
  item.barrier = &Fibers::barrier;
  item.fault = &throw_fault;
  item.find = &find_block;
  for (uint64_t n = 0; n < blocks; ++n) {
    const uint64_t block = start % 2 == 0 ? n : blocks - 1 - n;  // first to last, or last to first
    item.block[0] = static_cast<u32>(block % grid[0]);
    item.block[1] = static_cast<u32>(block / grid[0] % grid[1]);
    item.block[2] = static_cast<u32>(block / grid[0] / grid[1]);
    ++item.phase;
    const u32 first = start + static_cast<u32>(n * items);
    try {
      if (function.barrier) Fibers::instance().run(function, parameters.data(), first);
      else run_alone(function, parameters.data(), first);
    } catch (const Trouble& trouble) {
      throw Trouble{trouble.code, function.name + ": " + trouble.text};
    }
  }
}

}  // namespace fake
