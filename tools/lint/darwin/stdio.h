#pragma once
#include <stdarg.h>
#include "types.h"
typedef struct __sFILE FILE;
typedef off_t fpos_t;
#define EOF (-1)
#define BUFSIZ 1024
#define SEEK_SET 0
#define SEEK_CUR 1
#define SEEK_END 2
#define _IOFBF 0
#define _IOLBF 1
#define _IONBF 2
DARWIN_C_BEGIN
extern FILE* __stdinp;
extern FILE* __stdoutp;
extern FILE* __stderrp;
#define stdin __stdinp
#define stdout __stdoutp
#define stderr __stderrp
FILE* fopen(const char*, const char*);
FILE* freopen(const char*, const char*, FILE*);
FILE* fdopen(int, const char*);
FILE* tmpfile(void);
int fclose(FILE*);
int feof(FILE*);
int ferror(FILE*);
int fflush(FILE*);
int fileno(FILE*);
int fgetc(FILE*);
char* fgets(char*, int, FILE*);
int fputc(int, FILE*);
int fputs(const char*, FILE*);
size_t fread(void*, size_t, size_t, FILE*);
size_t fwrite(const void*, size_t, size_t, FILE*);
int fseek(FILE*, long, int);
int fseeko(FILE*, off_t, int);
long ftell(FILE*);
off_t ftello(FILE*);
int getc(FILE*);
int getchar(void);
void perror(const char*);
int printf(const char*, ...) __attribute__((__format__(__printf__, 1, 2)));
int fprintf(FILE*, const char*, ...) __attribute__((__format__(__printf__, 2, 3)));
int snprintf(char*, size_t, const char*, ...) __attribute__((__format__(__printf__, 3, 4)));
int sprintf(char*, const char*, ...) __attribute__((__format__(__printf__, 2, 3)));
int vsnprintf(char*, size_t, const char*, va_list);
int vfprintf(FILE*, const char*, va_list);
int vasprintf(char**, const char*, va_list);
int asprintf(char**, const char*, ...);
int scanf(const char*, ...) __attribute__((__format__(__scanf__, 1, 2)));
int fscanf(FILE*, const char*, ...) __attribute__((__format__(__scanf__, 2, 3)));
int sscanf(const char*, const char*, ...) __attribute__((__format__(__scanf__, 2, 3)));
int vsscanf(const char*, const char*, va_list);
int putc(int, FILE*);
int putchar(int);
int puts(const char*);
int remove(const char*);
int rename(const char*, const char*);
void rewind(FILE*);
int setvbuf(FILE*, char*, int, size_t);
int ungetc(int, FILE*);
void setbuf(FILE*, char*);
DARWIN_C_END
