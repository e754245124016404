# What every file of ours is compiled with: the target rosin_compile. Users of the installed library inherit none of it.

add_library(rosin_compile INTERFACE)
target_compile_features(rosin_compile INTERFACE cxx_std_20)
# No contraction: every executor must round alike. Errno and floating-point traps are never looked at.
target_compile_options(rosin_compile INTERFACE -ffp-contract=off -fno-math-errno -fno-trapping-math)
target_compile_options(rosin_compile INTERFACE -Wall -Wextra -Wconversion -Wshadow)
if(WIN32)
  # MinGW-w64's own printf knows %zu, Windows 10 is the oldest system, and g++ keeps vectors on a stack that Windows
  # aligns to 16 bytes only (its bug 54412): the assembler writes moves that take any address. Visibility and models of
  # thread-local storage, which this system does not have, are passed over.
  target_compile_definitions(rosin_compile INTERFACE __USE_MINGW_ANSI_STDIO=1 _WIN32_WINNT=0x0A00 NOMINMAX
    WIN32_LEAN_AND_MEAN)
  target_compile_options(rosin_compile INTERFACE -Wa,-muse-unaligned-vector-move -Wno-attributes)
endif()
if(ROSIN_WERROR)
  target_compile_options(rosin_compile INTERFACE -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(rosin_compile INTERFACE -Wundefined-var-template)
endif()

# -O2 for what runs once a step; rooms with work per element or per op ask for -O3 (rosin_room(... HOT)).
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)

if(ROSIN_SANITIZE)
  add_compile_options(-fsanitize=${ROSIN_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  # A quarter of the time to compile, for what AddressSanitizer finds too; fuzzing looks at alignment.
  add_compile_options(-fno-sanitize=null,vptr,object-size,pointer-overflow,alignment)
  add_link_options(-fsanitize=${ROSIN_SANITIZE})
endif()
