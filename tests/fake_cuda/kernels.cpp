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
    for (size_t i = 0; i < count; ++i) start(*fibers_[i], i);
    for (std::vector<u32>& given : given_) given.resize(std::max(given.size(), count * most_given));
    first_ = first;
    const size_t warp = function.item->warp;
    for (size_t left = count; left > 0;) {
      const size_t waiting = left;
      for (size_t begin = 0; begin < count; begin += warp) left -= run_warp(begin, std::min(begin + warp, count));
      if (left != 0 && left != waiting) throw_fault("some items of a block ended while others wait at a barrier");
      ++function.item->phase;
    }
  }

  static void barrier() { instance().wait(Fiber::At::barrier); }

  /// Items of a warp go on when all of them have given what they exchange. A fast one gives the next words to the other
  /// place, as slow ones have not read the first yet.
  static const u32* exchange(const u32* words, int count) {
    Fibers& self = instance();
    Fiber& mine = *self.now_;
    std::vector<u32>& given = self.given_[mine.exchanges++ % 2];
    std::copy_n(words, count, given.begin() + static_cast<ptrdiff_t>(mine.number) * most_given);
    self.wait(Fiber::At::shuffle);
    const size_t warp = self.function_->item->warp;
    return given.data() + mine.number / warp * warp * most_given;
  }

 private:
  struct Fiber {
    ucontext_t context{};
    std::unique_ptr<unsigned char[]> stack = std::make_unique<unsigned char[]>(stack_bytes);
    size_t number = 0;
    bool done = false;
    enum class At { nothing, barrier, shuffle } at = At::nothing;
    size_t exchanges = 0;
    std::optional<Trouble> trouble;
  };

  void wait(Fiber::At at) {
    now_->at = at;
    swapcontext(&now_->context, &scheduler_);
  }

  /// Runs the items to their next barrier or end; how many have ended.
  size_t run_warp(size_t begin, size_t end) {
    size_t ended = 0;
    for (bool again = true; again;) {
      size_t shuffles = 0, others = 0;
      for (size_t i = begin; i < end; ++i) {
        Fiber& fiber = *fibers_[i];
        if (!fiber.done) step(fiber);
        ended += fiber.done && fiber.at != Fiber::At::nothing;
        if (fiber.done) fiber.at = Fiber::At::nothing;
        ++(!fiber.done && fiber.at == Fiber::At::shuffle ? shuffles : others);
      }
      again = shuffles > 0;
      if (again && (others > 0 || shuffles != function_->item->warp))
        throw_fault("some items of a warp miss a shuffle");
    }
    return ended;
  }

  void step(Fiber& fiber) {
    function_->item->item = static_cast<u32>(fiber.number);
    function_->item->number = first_ + static_cast<u32>(fiber.number);
    now_ = &fiber;
    fiber.at = Fiber::At::barrier;  // unless it says otherwise
    swapcontext(&scheduler_, &fiber.context);
    if (fiber.trouble) throw Trouble(*fiber.trouble);
  }

  void start(Fiber& fiber, size_t number) {
    fiber.number = number;
    fiber.exchanges = 0;
    fiber.at = Fiber::At::nothing;
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
  u32 first_ = 0;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<u32> given_[2];  // most_given words of each item
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

void run_kernel(const Function& function, const unsigned (&grid)[3], std::vector<std::vector<unsigned char>> values,
                unsigned shared) {
  if (Machine::instance().options.idle) return;
  std::vector<void*> parameters;
  for (auto& value : values) parameters.push_back(value.data());
  const uint64_t blocks = uint64_t{grid[0]} * grid[1] * grid[2];
  const auto items = static_cast<uint64_t>(function.items);
  Item& item = *function.item;
  const u32 start = numbers_for(blocks * items + 1);
  item.first = start;
  item.nobody = start + static_cast<u32>(blocks * items);
  std::vector<unsigned char> large(shared, 0xff);
  std::vector<Touch> written(shared), read(shared);
  item.large = large.data();
  item.large_bytes = shared;
  item.large_written = written.data();
  item.large_read = read.data();
  item.warp = Machine::instance().options.warp;
  item.checks = Machine::instance().options.checks;
  item.barrier = &Fibers::barrier;
  item.exchange = &Fibers::exchange;
  item.fault = &throw_fault;
  item.find = function.find ? function.find : &find_block;
  std::vector<u64> arrived(blocks, 0);
  item.arrived = arrived.data();
  item.items = static_cast<u32>(items);
  for (uint64_t n = 0; n < blocks; ++n) {
    const uint64_t block = start % 2 == 0 ? n : blocks - 1 - n;  // first to last, or last to first
    item.block[0] = static_cast<u32>(block % grid[0]);
    item.block[1] = static_cast<u32>(block / grid[0] % grid[1]);
    item.block[2] = static_cast<u32>(block / grid[0] / grid[1]);
    ++item.phase;
    item.blocks = static_cast<u32>(n);
    item.released = false;
    item.arriving = item.acquired = 0;
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
