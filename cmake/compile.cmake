# What every file of ours is compiled with: the target rosin_compile. Users of the installed library inherit none of it.

add_library(rosin_compile INTERFACE)
target_compile_features(rosin_compile INTERFACE cxx_std_20)
# No contraction: every executor must round alike. Errno and floating-point traps are never looked at.
target_compile_options(rosin_compile INTERFACE -ffp-contract=off -fno-math-errno -fno-trapping-math)
target_compile_options(rosin_compile INTERFACE -Wall -Wextra -Wconversion -Wshadow)
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
