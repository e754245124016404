# fuzz_files: the program of libFuzzer for the readers of files (tests/fuzz; tools/fuzz.py runs it). Readers are
# compiled by clang-16 with libFuzzer, AddressSanitizer and UndefinedBehaviorSanitizer; everything else are the objects
# that this build has anyway, which read no file: so it costs a minute, not a build. Not part of `all`.

find_program(ROSIN_FUZZ_COMPILER NAMES clang++-16)
mark_as_advanced(ROSIN_FUZZ_COMPILER)
set(ROSIN_FUZZ_FLAGS -std=c++20 -O1 -g1 -fPIC -fno-omit-frame-pointer -ffp-contract=off -fno-math-errno
  -fno-trapping-math -fno-sanitize-recover=all)

# Of each vendor library: its definitions and files.
function(rosin_fuzz_vendors definitions libraries)
  get_property(vendors GLOBAL PROPERTY ROSIN_VENDORS)
  list(REMOVE_DUPLICATES vendors)
  set(all_definitions "")
  set(all_libraries "")
  foreach(vendor IN LISTS vendors)
    get_target_property(own ${vendor} INTERFACE_COMPILE_DEFINITIONS)
    get_target_property(files ${vendor} INTERFACE_LINK_LIBRARIES)
    list(APPEND all_definitions ${own})
    list(APPEND all_libraries ${files})
  endforeach()
  list(FILTER all_definitions EXCLUDE REGEX "NOTFOUND")
  list(FILTER all_libraries EXCLUDE REGEX "NOTFOUND")
  set(${definitions} ${all_definitions} PARENT_SCOPE)
  set(${libraries} ${all_libraries} PARENT_SCOPE)
endfunction()

# rosin_fuzz_program(name ROOMS room... FILES file...): from tests/fuzz, rooms and files compiled for fuzzing, and the
# objects of all others.
function(rosin_fuzz_program name)
  cmake_parse_arguments(ARG "" "" "ROOMS;FILES" ${ARGN})
  rosin_fuzz_vendors(definitions libraries)
  list(APPEND definitions ROSIN_BUILDING_LIBRARY "ROSIN_VERSION=\"${PROJECT_VERSION}\"")
  list(TRANSFORM definitions PREPEND -D)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/fuzz/*.cpp)
  foreach(room IN LISTS ARG_ROOMS)
    file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${room}/*.cpp)
    list(APPEND sources ${files})
  endforeach()
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
  list(TRANSFORM ARG_FILES PREPEND ${PROJECT_SOURCE_DIR}/src/ OUTPUT_VARIABLE files)
  list(APPEND sources ${files})
  set(objects "")
  foreach(source IN LISTS sources)
    file(RELATIVE_PATH stem ${PROJECT_SOURCE_DIR} ${source})
    set(object ${PROJECT_BINARY_DIR}/fuzz/${stem}.o)
    get_filename_component(folder ${object} DIRECTORY)
    file(MAKE_DIRECTORY ${folder})
    add_custom_command(OUTPUT ${object} DEPENDS ${source} DEPFILE ${object}.d VERBATIM COMMENT "Fuzzing: ${stem}"
      COMMAND ${CMAKE_CXX_COMPILER_LAUNCHER} ${ROSIN_FUZZ_COMPILER} ${ROSIN_FUZZ_FLAGS}
        -fsanitize=fuzzer-no-link,address,undefined
        -fsanitize-ignorelist=${PROJECT_SOURCE_DIR}/cmake/fuzz.ignore ${definitions}
        -I${PROJECT_SOURCE_DIR}/include -I${PROJECT_SOURCE_DIR}/src
        -MD -MF ${object}.d -c ${source} -o ${object})
    list(APPEND objects ${object})
  endforeach()
  list(JOIN ARG_FILES "|" replaced)
  get_property(rooms GLOBAL PROPERTY ROSIN_ROOMS)
  foreach(room IN LISTS rooms)
    if(TARGET rosin_${room} AND NOT room IN_LIST ARG_ROOMS)
      list(APPEND objects "$<FILTER:$<TARGET_OBJECTS:rosin_${room}>,EXCLUDE,${replaced}>")
    endif()
  endforeach()
  add_custom_command(OUTPUT ${PROJECT_BINARY_DIR}/fuzz/${name} DEPENDS ${objects} VERBATIM COMMAND_EXPAND_LISTS
    COMMAND ${ROSIN_FUZZ_COMPILER} -fsanitize=fuzzer,address,undefined -o ${PROJECT_BINARY_DIR}/fuzz/${name} ${objects}
      ${libraries} -pthread)
  add_custom_target(${name} DEPENDS ${PROJECT_BINARY_DIR}/fuzz/${name})
endfunction()

if(ROSIN_FUZZ_COMPILER)
  rosin_fuzz_program(fuzz_files ROOMS io onnx
    FILES data/idx_file.cpp data/gzip.cpp data/image.cpp data/png.cpp data/jpeg.cpp data/netpbm.cpp
      devices/toml_text.cpp devices/toml_bounds.cpp train/checkpoint.cpp)
endif()
