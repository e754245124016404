#pragma once
#include "../types.h"
#define PROT_READ 0x01
#define PROT_WRITE 0x02
#define PROT_EXEC 0x04
#define MAP_SHARED 0x0001
#define MAP_PRIVATE 0x0002
#define MAP_JIT 0x0800
#define MAP_ANON 0x1000
#define MAP_ANONYMOUS MAP_ANON
#define MAP_FAILED ((void*)-1)
DARWIN_C_BEGIN
void* mmap(void*, size_t, int, int, int, off_t);
int mprotect(void*, size_t, int);
int munmap(void*, size_t);
DARWIN_C_END
