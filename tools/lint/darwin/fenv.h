#pragma once
#include "types.h"
typedef struct {
  unsigned long long __fpsr;
  unsigned long long __fpcr;
} fenv_t;
typedef unsigned short fexcept_t;
#define FE_INVALID 0x0001
#define FE_DIVBYZERO 0x0002
#define FE_OVERFLOW 0x0004
#define FE_UNDERFLOW 0x0008
#define FE_INEXACT 0x0010
#define FE_TONEAREST 0x00000000
#define FE_UPWARD 0x00400000
#define FE_DOWNWARD 0x00800000
#define FE_TOWARDZERO 0x00C00000
DARWIN_C_BEGIN
int fegetround(void);
int fesetround(int);
int feclearexcept(int);
int fetestexcept(int);
DARWIN_C_END
