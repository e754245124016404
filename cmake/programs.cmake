# Programs that see the public headers only: examples, the demo, the benchmarks, the command.
# A lone file examples/x.cpp is the program example_x, a folder examples/x/ the program x; bench/x.cpp is bench_x.

# rosin_program(name folder source...): an executable linked to librosin, placed in <build>/<folder>.
function(rosin_program name folder)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE rosin rosin_compile)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/${folder})
endfunction()

# rosin_programs(folder prefix): one program per file and one per sub-folder; the target rosin_<folder> builds all.
# What the programs of files share is in common.cpp, where there is one.
function(rosin_programs folder prefix)
  add_custom_target(rosin_${folder})
  file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.cpp)
  set(shared ${PROJECT_SOURCE_DIR}/${folder}/common.cpp)
  if(shared IN_LIST files)
    list(REMOVE_ITEM files ${shared})
    add_library(${prefix}_common STATIC ${shared})
    target_link_libraries(${prefix}_common PRIVATE rosin rosin_compile)
  endif()
  foreach(file IN LISTS files)
    get_filename_component(stem ${file} NAME_WE)
    rosin_program(${prefix}_${stem} ${folder} ${file})
    if(TARGET ${prefix}_common)
      target_link_libraries(${prefix}_${stem} PRIVATE ${prefix}_common)
    endif()
    add_dependencies(rosin_${folder} ${prefix}_${stem})
  endforeach()
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*/*.cpp)
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
  set(names ${sources})
  list(TRANSFORM names REPLACE "/[^/]*$" "")
  list(REMOVE_DUPLICATES names)
  foreach(path IN LISTS names)
    get_filename_component(name ${path} NAME)
    set(own ${sources})
    list(FILTER own INCLUDE REGEX "/${folder}/${name}/")
    rosin_program(${name} ${folder} ${own})
    add_dependencies(rosin_${folder} ${name})
  endforeach()
endfunction()

if(ROSIN_BUILD_EXAMPLES)
  rosin_programs(examples example)
endif()
if(ROSIN_BUILD_BENCH AND ROSIN_JSON_INCLUDE)
  rosin_programs(bench bench)
elseif(ROSIN_BUILD_BENCH)
  # The others read their inputs as JSON.
  rosin_program(bench_devices bench ${PROJECT_SOURCE_DIR}/bench/devices.cpp)
endif()

if(ROSIN_BUILD_TOOLS)
  # The command-line tool, where CLI11 and nlohmann-json are. Its target cannot be called rosin, which is the library.
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/rosin/*.cpp)
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
  if(sources AND ROSIN_CLI11_INCLUDE AND ROSIN_JSON_INCLUDE)
    rosin_program(rosin_command tools ${sources})
    target_link_libraries(rosin_command PRIVATE rosin_vendor_cli11 rosin_vendor_json)
    set_target_properties(rosin_command PROPERTIES OUTPUT_NAME rosin)
    # `rosin run` makes the memory that comm/local reads.
    target_include_directories(rosin_command PRIVATE ${PROJECT_SOURCE_DIR}/comm)
  endif()

  # What ./run gpu-check asks; it needs the library alone.
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/gpu_check/*.cpp)
  rosin_program(gpu_check tools ${sources})
endif()

# Back ends and transports bring their own CMakeLists.txt and see nothing of src/; adding one changes no file here.
# ROSIN_PLUGINS: the folders of those that are built, all where it is empty.
file(GLOB plugins CONFIGURE_DEPENDS
  ${PROJECT_SOURCE_DIR}/backends/*/CMakeLists.txt ${PROJECT_SOURCE_DIR}/comm/*/CMakeLists.txt)
list(TRANSFORM plugins REPLACE "/CMakeLists.txt$" "")
set(names ${plugins})
list(TRANSFORM names REPLACE ".*/" "")
foreach(name IN LISTS ROSIN_PLUGINS)
  if(NOT name IN_LIST names)
    message(FATAL_ERROR "ROSIN_PLUGINS: there is no plug-in ${name}; plug-ins are ${names}")
  endif()
endforeach()
foreach(folder name IN ZIP_LISTS plugins names)
  if(NOT ROSIN_PLUGINS OR name IN_LIST ROSIN_PLUGINS)
    add_subdirectory(${folder})
  endif()
endforeach()
