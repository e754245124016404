// The compiler's own binary16, for tests of ours.
#pragma once

namespace rosin {

#ifdef __ARM_FP16_FORMAT_IEEE
using CompilersHalf = __fp16;  // g++ 12 knows the other name in C on this processor, but not in C++
#else
using CompilersHalf = _Float16;
#endif

}  // namespace rosin
