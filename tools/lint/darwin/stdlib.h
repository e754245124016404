#pragma once
#include "alloca.h"
#include "types.h"
typedef struct {
  int quot, rem;
} div_t;
typedef struct {
  long quot, rem;
} ldiv_t;
typedef struct {
  long long quot, rem;
} lldiv_t;
#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1
#define RAND_MAX 0x7fffffff
#define MB_CUR_MAX 4
DARWIN_C_BEGIN
[[noreturn]] void abort(void);
int abs(int);
long labs(long);
long long llabs(long long);
int atexit(void (*)(void));
double atof(const char*);
int atoi(const char*);
long atol(const char*);
long long atoll(const char*);
void* bsearch(const void*, const void*, size_t, size_t, int (*)(const void*, const void*));
void* calloc(size_t, size_t);
div_t div(int, int);
ldiv_t ldiv(long, long);
lldiv_t lldiv(long long, long long);
[[noreturn]] void exit(int);
[[noreturn]] void _Exit(int);
void free(void*);
char* getenv(const char*);
void* malloc(size_t);
void* aligned_alloc(size_t, size_t);
int posix_memalign(void**, size_t, size_t);
int mblen(const char*, size_t);
size_t mbstowcs(wchar_t*, const char*, size_t);
int mbtowc(wchar_t*, const char*, size_t);
void qsort(void*, size_t, size_t, int (*)(const void*, const void*));
int rand(void);
void srand(unsigned);
void* realloc(void*, size_t);
char* realpath(const char*, char*);
int setenv(const char*, const char*, int);
int unsetenv(const char*);
double strtod(const char*, char**);
float strtof(const char*, char**);
long double strtold(const char*, char**);
long strtol(const char*, char**, int);
long long strtoll(const char*, char**, int);
unsigned long strtoul(const char*, char**, int);
unsigned long long strtoull(const char*, char**, int);
int system(const char*);
size_t wcstombs(char*, const wchar_t*, size_t);
int wctomb(char*, wchar_t);
DARWIN_C_END
