#pragma once
#include "../types.h"
struct winsize {
  unsigned short ws_row, ws_col, ws_xpixel, ws_ypixel;
};
#define TIOCGWINSZ 0x40087468UL
DARWIN_C_BEGIN
int ioctl(int, unsigned long, ...);
DARWIN_C_END
