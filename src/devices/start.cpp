// What is put together when the library is loaded: how graph evaluates and takes memory, and what runs on the CPU.
// Nothing else is installed anywhere.
#include "cpu/executor.hpp"
#include "graph/hooks.hpp"
#include "run/device_table.hpp"
#include "run/evaluate.hpp"
#include "run/recurrent_reserve.hpp"

namespace rosin {
namespace {

[[maybe_unused]] const bool started = [] {
  hooks = {.evaluate = evaluate,
           .allocate = allocate_memory,
           .recurrent_reserve = recurrent_reserve,
           .attends_bfloats = cpu::attends_bfloats};
  DeviceTable::instance().set_cpu(cpu::executor());
  return true;
}();

}  // namespace
}  // namespace rosin
