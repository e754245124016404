# How src/ becomes librosin. A room is a folder of src/ and one object library, so the tests can link the rooms and see
# what the shared library hides. Which room may include which is checked by tools/lint/check_layers.py, not here.

# Settings of everything that sees the inside: src/ on the include path, no exported symbol unless ROSIN_API says so.
function(rosin_internal target)
  target_link_libraries(${target} PRIVATE rosin_compile Threads::Threads)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  target_compile_definitions(${target} PRIVATE ROSIN_BUILDING_LIBRARY)
  set_target_properties(${target} PROPERTIES
    POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
endfunction()

# Where the linker puts code shall not matter: without the alignment a recorded op takes up to 10 % longer or not,
# depending on code that it never meets.
set(ROSIN_HOT_OPTIONS $<$<CONFIG:Release>:-O3>
    "$<$<AND:$<CONFIG:Release>,$<CXX_COMPILER_ID:GNU>>:-falign-functions=64;-falign-loops=64;-falign-jumps=32>")

# Files for one system end with its name: src/platform/*_SYSTEM.cpp. Those of this one are built.
if(WIN32)
  set(ROSIN_OTHER_SYSTEMS posix linux darwin)
elseif(APPLE)
  set(ROSIN_OTHER_SYSTEMS linux windows)
else()
  set(ROSIN_OTHER_SYSTEMS darwin windows)
endif()

# rosin_room(name [HOT] [VENDORS vendor...]): src/<name>/*.cpp as an object library; HOT: what its files do
# is paid for per element or per recorded op. A room without sources is left out.
function(rosin_room room)
  cmake_parse_arguments(ARG "HOT" "" "VENDORS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${room}/*.cpp)
  foreach(system IN LISTS ROSIN_OTHER_SYSTEMS)
    list(FILTER sources EXCLUDE REGEX "/src/platform/[^/]*_${system}\\.cpp$")
  endforeach()
  file(GLOB tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${room}/*_test.cpp)
  if(tests)
    list(REMOVE_ITEM sources ${tests})
    set_property(GLOBAL PROPERTY ROSIN_TESTS_OF_${room} ${tests})
  endif()
  set_property(GLOBAL APPEND PROPERTY ROSIN_ROOMS ${room})
  foreach(vendor IN LISTS ARG_VENDORS)
    set_property(GLOBAL APPEND PROPERTY ROSIN_VENDORS rosin_vendor_${vendor})
  endforeach()
  if(NOT sources)
    return()
  endif()
  add_library(rosin_${room} OBJECT ${sources})
  rosin_internal(rosin_${room})
  # librosin has static thread-local storage anyway (graph/context.hpp): so all of it is reached without a call.
  target_compile_options(rosin_${room} PRIVATE -ftls-model=initial-exec)
  # Without its groups (rosin_static_library) a unique symbol would clash with the one of a program that instantiates
  # the same template; a weak one does not.
  target_compile_options(rosin_${room} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fno-gnu-unique>)
  if(ARG_HOT)
    target_compile_options(rosin_${room} PRIVATE ${ROSIN_HOT_OPTIONS})
  endif()
  if(ROSIN_SANITIZE)
    # Read once for a room instead of once for each of its files; elsewhere each file shows what it forgets to include,
    # and warnings are heeded, which g++ 12 finds in headers of the system then.
    target_compile_options(rosin_${room} PRIVATE -w)
    target_precompile_headers(rosin_${room} PRIVATE <algorithm> <array> <cmath> <cstring> <functional> <map> <memory>
      <mutex> <optional> <span> <string> <string_view> <utility> <vector>)
  endif()
  list(TRANSFORM ARG_VENDORS PREPEND rosin_vendor_)
  target_link_libraries(rosin_${room} PRIVATE ${ARG_VENDORS})
  set_property(GLOBAL APPEND PROPERTY ROSIN_OBJECTS $<TARGET_OBJECTS:rosin_${room}>)
endfunction()

# rosin_take_rooms(target [EXCEPT room...]): puts the objects of rooms and the vendor libraries into a target.
function(rosin_take_rooms target)
  cmake_parse_arguments(ARG "" "" "EXCEPT" ${ARGN})
  get_property(objects GLOBAL PROPERTY ROSIN_OBJECTS)
  foreach(room IN LISTS ARG_EXCEPT)
    list(REMOVE_ITEM objects $<TARGET_OBJECTS:rosin_${room}>)
  endforeach()
  get_property(vendors GLOBAL PROPERTY ROSIN_VENDORS)
  list(REMOVE_DUPLICATES vendors)
  target_sources(${target} PRIVATE ${objects})
  target_link_libraries(${target} PRIVATE ${vendors} Threads::Threads ${CMAKE_DL_LIBS}
    $<$<PLATFORM_ID:Windows>:synchronization>)  # WaitOnAddress
endfunction()

# The shared library of all rooms declared so far.
function(rosin_library)
  file(WRITE ${PROJECT_BINARY_DIR}/empty.cpp.new "// Lets librosin link while no room has a source.\n")
  file(COPY_FILE ${PROJECT_BINARY_DIR}/empty.cpp.new ${PROJECT_BINARY_DIR}/empty.cpp ONLY_IF_DIFFERENT)
  add_library(rosin SHARED ${PROJECT_BINARY_DIR}/empty.cpp)
  add_library(rosin::rosin ALIAS rosin)
  rosin_take_rooms(rosin)
  target_compile_features(rosin PUBLIC cxx_std_20)
  target_include_directories(rosin PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  set_target_properties(rosin PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION 0)
  if(UNIX AND NOT APPLE)
    # The version script keeps foreign symbols (templates of std:: and of vendor headers) out of the library's surface.
    set(script ${PROJECT_SOURCE_DIR}/cmake/exports.map)
    target_link_options(rosin PRIVATE -Wl,--version-script=${script} -Wl,--exclude-libs,ALL -Wl,--as-needed)
    set_property(TARGET rosin APPEND PROPERTY LINK_DEPENDS ${script})
    if(NOT ROSIN_SANITIZE)
      target_link_options(rosin PRIVATE -Wl,-z,defs)
    endif()
  endif()
endfunction()

# The same objects as librosin.a. They are joined into one object first: an archive of many would lose those that only
# register something, ops for one. Its initialisers run before those of the program, so that global arrays and layers
# find the library ready, and hidden symbols stay inside.
function(rosin_static_library)
  get_property(objects GLOBAL PROPERTY ROSIN_OBJECTS)
  set(joined ${PROJECT_BINARY_DIR}/rosin_joined.o)
  add_custom_command(OUTPUT ${joined} DEPENDS ${objects} VERBATIM COMMAND_EXPAND_LISTS
    COMMAND ${CMAKE_LINKER} -r --force-group-allocation -o ${joined} ${objects}
    COMMAND ${CMAKE_OBJCOPY} --localize-hidden --rename-section .init_array=.init_array.00200 ${joined})
  add_library(rosin_static STATIC ${joined})
  add_library(rosin::rosin_static ALIAS rosin_static)
  set_target_properties(rosin_static PROPERTIES OUTPUT_NAME rosin LINKER_LANGUAGE CXX)
  target_compile_features(rosin_static INTERFACE cxx_std_20)
  target_include_directories(rosin_static INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  get_property(libraries GLOBAL PROPERTY ROSIN_VENDOR_LIBRARIES)
  target_link_libraries(rosin_static INTERFACE ${libraries} Threads::Threads ${CMAKE_DL_LIBS})
endfunction()
