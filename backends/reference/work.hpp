// What streams and graphs run: checked arguments, and what is done with them. Read first: stream.hpp.
#pragma once

#include "matmul.hpp"
#include "program.hpp"
#include "stream.hpp"

namespace rosin::reference {

// Each throws Failure where the arguments break backend.h; the work owns all it needs but the memory.
Work launch_work(rosin_device& device, const rosin_kernel& kernel, const rosin_launch* launch);
Work call_work(const rosin_device& device, const rosin_call& call, const rosin_place* buffers, rosin_place workspace,
               const rosin_call_numbers* numbers);
Work fill_work(const rosin_device& device, rosin_place to, uint64_t bytes, uint8_t value);
Work copy_work(const rosin_device& device, rosin_place to, rosin_place from, uint64_t bytes);

}  // namespace rosin::reference
