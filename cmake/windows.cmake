# A toolchain file: Debian's MinGW-w64 for Windows on x86-64, and Wine that runs what it makes.
# Used by the preset windows, for ./run test --cross windows.

set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(CMAKE_CXX_COMPILER x86_64-w64-mingw32-g++-posix)
set(CMAKE_RC_COMPILER x86_64-w64-mingw32-windres)
find_program(ROSIN_WINE NAMES wine64 wine PATHS /usr/lib/wine)
set(CMAKE_CROSSCOMPILING_EMULATOR ${ROSIN_WINE})

# Libraries are those of the target. Headers that need none stand in /usr/include among those of Linux, where this
# compiler must not look: they get a folder of their own.
set(headers ${CMAKE_BINARY_DIR}/headers/include)
foreach(header xbyak nlohmann toml++ CLI eigen3)
  if(EXISTS /usr/include/${header} AND NOT EXISTS ${headers}/${header})
    file(MAKE_DIRECTORY ${headers})
    file(CREATE_LINK /usr/include/${header} ${headers}/${header} SYMBOLIC)
  endif()
endforeach()
set(CMAKE_FIND_ROOT_PATH ${CMAKE_BINARY_DIR}/headers /usr/x86_64-w64-mingw32)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
