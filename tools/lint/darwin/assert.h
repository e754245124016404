#include "types.h"
#undef assert
#ifdef NDEBUG
#define assert(e) ((void)0)
#else
DARWIN_C_BEGIN
[[noreturn]] void __assert_rtn(const char*, const char*, int, const char*);
DARWIN_C_END
#define assert(e) (__builtin_expect(!(e), 0) ? __assert_rtn(__func__, __FILE__, __LINE__, #e) : (void)0)
#endif
