#pragma once
#include "types.h"
#define NL_CAT_LOCALE 1
typedef void* nl_catd;
DARWIN_C_BEGIN
nl_catd catopen(const char*, int);
char* catgets(nl_catd, int, int, const char*);
int catclose(nl_catd);
DARWIN_C_END
