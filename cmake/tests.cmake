# The tests. unit_tests: src/**/*_test.cpp, backends/**/*_test.cpp; suite_tests: tests/*_test.cpp; both linked from the
# rooms' objects, so they see the inside. public_tests: tests/public/*_test.cpp against librosin and its public headers,
# as a user would.
# seeds_tests: tests/seeds/*.cpp, as a user would, one process for each situation of devices and preferences.
# opinfo_tests: tests/opinfo/*.cpp, as a user would: PyTorch's own tests of its ops.
# steady_tests: what training takes from the heap; a program of its own, as it replaces operator new.
# conformance: tests/conformance, checks any plug-in of backends/ by its path.
# surface: each public header by itself, the examples, the reflection tests, and what the library has for one processor,
# only compiled (clang-16 does).
# All test programs run in the root of the checkout.

enable_testing()

# rosin_test_program(name source...): a GoogleTest program, known to CTest as one test. No sources: no program.
function(rosin_test_program name)
  if(NOT ARGN OR NOT GTest_FOUND)
    return()
  endif()
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE ROSIN_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # The macros of GoogleTest compare through const references to temporaries, which g++ 12 misreads in deep inlining.
    target_compile_options(${name} PRIVATE -Wno-maybe-uninitialized)
  endif()
  if(ROSIN_SANITIZE)
    # Compiled in a third of the time; the library that they test stays optimised and is checked for all.
    target_compile_options(${name} PRIVATE -O0 -fno-sanitize=undefined)
    # Read once for a program instead of once for each of its files. (With optimisation g++ 12 warns of what stands in
    # headers of the system then.)
    target_precompile_headers(${name} PRIVATE <gtest/gtest.h>)
  endif()
  add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_property(GLOBAL APPEND PROPERTY ROSIN_TEST_PROGRAMS ${name})
endfunction()

# The same, linked from the rooms' objects.
function(rosin_inside_tests name)
  rosin_test_program(${name} ${ARGN})
  if(TARGET ${name})
    rosin_internal(${name})
    rosin_take_rooms(${name} EXCEPT ${ROSIN_TEST_ROOMS_APART})
    # Most of a build's files are theirs: compiled in two thirds of the time, and the rooms are optimised. (Those that
    # compute much themselves are optimised too, see below.)
    target_compile_options(${name} PRIVATE -O0)
  endif()
endfunction()

# ROSIN_TEST_ROOMS: those whose unit tests are built, all where it is empty; ROSIN_TEST_ROOMS_APART: those that these
# tests do without, which are not compiled for them then.
get_property(rooms GLOBAL PROPERTY ROSIN_ROOMS)
if(ROSIN_TEST_ROOMS)
  foreach(room IN LISTS ROSIN_TEST_ROOMS)
    if(NOT room IN_LIST rooms)
      message(FATAL_ERROR "ROSIN_TEST_ROOMS: there is no room ${room}; rooms are ${rooms}")
    endif()
  endforeach()
  set(rooms ${ROSIN_TEST_ROOMS})
endif()
set(unit_sources "")
# Eight files of a room are compiled as one, in a third of the time: what their headers bring is read once. So a name
# in one file's unnamed namespace shall not stand in another's of its room: what is the same goes to a header of tests.
# (Files with options of their own are compiled alone.)
set(files_together 8)
foreach(room IN LISTS rooms)
  get_property(tests GLOBAL PROPERTY ROSIN_TESTS_OF_${room})
  list(APPEND unit_sources ${tests})
  set(position 0)
  foreach(test IN LISTS tests)
    math(EXPR group "${position} / ${files_together}")
    set_source_files_properties(${test} PROPERTIES UNITY_GROUP ${room}_${group})
    math(EXPR position "${position} + 1")
  endforeach()
endforeach()
file(GLOB backend_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/backends/*/*_test.cpp)
if(WIN32)
  # What needs forks, shells, links, modes of files, limits of resources, pseudo terminals or XDG's folders is left
  # out, what waits by std::latch and std::barrier, of which libstdc++ 12 loses wake-ups there, and tests of parts of
  # plug-ins that are not built; docs/platforms.md says so.
  foreach(left_out base/environment base/file base/log devices/backends devices/diagnostics devices/preferences
      graph/context grad/shared_model io/damaged_files io/python_reads io/save_load run/arena run/device_stream
      run/evaluate_threads run/kernel_files train/progress)
    list(REMOVE_ITEM unit_sources ${PROJECT_SOURCE_DIR}/src/${left_out}_test.cpp)
  endforeach()
endif()
if(ROSIN_PLUGINS)
  list(FILTER backend_sources INCLUDE REGEX "/reference/")
endif()
list(APPEND unit_sources ${backend_sources})
file(GLOB computing CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/engines/*_test.cpp)
set_source_files_properties(${computing} ${PROJECT_SOURCE_DIR}/src/data/drawn_digits_test.cpp
  ${PROJECT_SOURCE_DIR}/src/run/cpu_stream_test.cpp
  PROPERTIES COMPILE_OPTIONS -O2 SKIP_PRECOMPILE_HEADERS ON)
rosin_inside_tests(unit_tests ${unit_sources})
if(TARGET unit_tests)
  set_target_properties(unit_tests PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # Tests of device kernels run them in the interpreter of the reference back end.
  target_sources(unit_tests PRIVATE $<TARGET_OBJECTS:rosin_interpreter>)
  if(WIN32)
    set_target_properties(unit_tests PROPERTIES CXX_EXTENSIONS ON)  # names of POSIX that it has too
    target_compile_options(unit_tests PRIVATE -include ${PROJECT_SOURCE_DIR}/tests/windows/posix.hpp)
    target_link_options(unit_tests PRIVATE -static)  # Wine knows no folder of the compiler's libraries
  endif()
  if(NOT ROSIN_PLUGINS)
    foreach(source cuda/attention cuda/cudnn_attention cuda/cudnn_attention_steps cuda/cudnn_graph
        cuda/cudnn_graph_parts cuda/cudnn_library cuda/cudnn_plan driver/libraries metal/attention metal/graph_arrays
        vendor/convolution vendor/matmul)
      target_sources(unit_tests PRIVATE ${PROJECT_SOURCE_DIR}/backends/${source}.cpp)
    endforeach()
  endif()
  target_include_directories(unit_tests PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/backends)
  add_dependencies(unit_tests rosin_plugins)
endif()

file(GLOB suite_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/*_test.cpp)
list(APPEND suite_sources ${PROJECT_SOURCE_DIR}/tests/op_table_losses.cpp
     ${PROJECT_SOURCE_DIR}/tests/op_table_resample.cpp ${PROJECT_SOURCE_DIR}/tests/op_table_untabled.cpp)
rosin_inside_tests(suite_tests ${suite_sources})
if(TARGET suite_tests)
  add_dependencies(suite_tests rosin_plugins)
  # The op suite on the device of the reference back end; tools/run_tests.py runs it on OpenCL devices too.
  add_test(NAME suite_on_reference WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
    COMMAND suite_tests --gtest_filter=OpSuite*:*/OpSuite*:EngineFuzz*:*DeviceSteps*:DeviceMemory*)
  set_tests_properties(suite_on_reference PROPERTIES ENVIRONMENT ROSIN_TEST_DEVICE=reference:0)
endif()

file(GLOB public_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/public/*_test.cpp)
rosin_test_program(public_tests ${public_sources})
if(TARGET public_tests)
  target_link_libraries(public_tests PRIVATE rosin rosin_compile)
endif()

file(GLOB opinfo_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/opinfo/*.cpp)
rosin_test_program(opinfo_tests ${opinfo_sources})
if(TARGET opinfo_tests)
  target_link_libraries(opinfo_tests PRIVATE rosin rosin_compile)
endif()

# seeds_tests: skips everything by itself; tests/seeds/seeds_test.py runs it in each situation.
file(GLOB seeds_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/seeds/*.cpp)
rosin_test_program(seeds_tests ${seeds_sources})
if(TARGET seeds_tests)
  target_link_libraries(seeds_tests PRIVATE rosin rosin_compile)
  add_dependencies(seeds_tests rosin_plugins)
  set_tests_properties(seeds_tests PROPERTIES DISABLED TRUE)
  add_test(NAME seeds COMMAND python3 ${PROJECT_SOURCE_DIR}/tests/seeds/seeds_test.py)
  set_tests_properties(seeds PROPERTIES ENVIRONMENT ROSIN_TEST_BUILD=${PROJECT_BINARY_DIR})
endif()

# ranks_tests: as a user would, in several processes at once, which tests/ranks_test.py starts.
file(GLOB ranks_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/ranks/*_test.cpp)
rosin_test_program(ranks_tests ${ranks_sources})
if(TARGET ranks_tests)
  target_link_libraries(ranks_tests PRIVATE rosin rosin_compile)
  add_dependencies(ranks_tests rosin_plugins)
endif()
add_executable(ranks_training ${PROJECT_SOURCE_DIR}/tests/ranks/training.cpp)
target_link_libraries(ranks_training PRIVATE rosin rosin_compile)

file(GLOB steady_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/steady/*_test.cpp)
rosin_inside_tests(steady_tests ${steady_sources})
if(TARGET steady_tests AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(steady_tests PRIVATE -Wno-mismatched-new-delete)
endif()

# conformance: no librosin; it shares with it the text of kernels.
file(GLOB conformance_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/conformance/*.cpp)
add_executable(conformance ${conformance_sources})
rosin_internal(conformance)
foreach(room platform base scalar graph plan kernels)
  target_sources(conformance PRIVATE $<TARGET_OBJECTS:rosin_${room}>)
endforeach()
target_link_libraries(conformance PRIVATE ${CMAKE_DL_LIBS})
add_dependencies(conformance rosin_plugins)
add_test(NAME conformance COMMAND conformance $<TARGET_FILE:rosin_reference>)

# surface: one generated source per public header, beside the examples and the reflection tests.
file(GLOB headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/include
  ${PROJECT_SOURCE_DIR}/include/rosin/*.hpp ${PROJECT_SOURCE_DIR}/include/rosin/*.h)
set(surface "")
foreach(header IN LISTS headers)
  string(REPLACE "/" "_" stem ${header})
  file(WRITE ${PROJECT_BINARY_DIR}/surface/${stem}.new "#include <${header}>\n")
  file(COPY_FILE ${PROJECT_BINARY_DIR}/surface/${stem}.new ${PROJECT_BINARY_DIR}/surface/${stem}.cpp ONLY_IF_DIFFERENT)
  list(APPEND surface ${PROJECT_BINARY_DIR}/surface/${stem}.cpp)
endforeach()
file(GLOB more CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/examples/*.cpp ${PROJECT_SOURCE_DIR}/examples/*/*.cpp
  ${PROJECT_SOURCE_DIR}/tests/reflect*.cpp ${PROJECT_SOURCE_DIR}/tests/public/reflect*.cpp)
if(NOT GTest_FOUND)
  list(FILTER more EXCLUDE REGEX "_test\\.cpp$")
endif()
list(APPEND surface ${more})
add_library(surface OBJECT EXCLUDE_FROM_ALL ${surface})
target_include_directories(surface PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(surface PRIVATE rosin_compile)
if(GTest_FOUND)
  target_link_libraries(surface PRIVATE GTest::gtest)
endif()
# What the library has for one processor, where compilers differ. (Of signs g++ and clang say different things.)
set(of_processors "")
file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*.cpp)
list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
foreach(source IN LISTS sources)
  file(STRINGS ${source} found LIMIT_COUNT 1 REGEX "__x86_64__")
  if(found)
    list(APPEND of_processors ${source})
  endif()
endforeach()
add_library(surface_of_processors OBJECT EXCLUDE_FROM_ALL ${of_processors})
target_include_directories(surface_of_processors PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(surface_of_processors PRIVATE rosin_compile)
target_compile_options(surface_of_processors PRIVATE $<$<CXX_COMPILER_ID:Clang>:-Wno-sign-conversion>)
add_dependencies(surface surface_of_processors)
list(APPEND surface ${of_processors})
list(LENGTH surface count)
file(WRITE ${PROJECT_BINARY_DIR}/surface/count "${count}\n")

# fake_cuda: libcuda, NVRTC, cuBLASLt and cuDNN on the CPU, for the real plug-in of CUDA; tests/fake_cuda/README.md.
if(UNIX AND NOT APPLE)
  set(fake ${PROJECT_SOURCE_DIR}/tests/fake_cuda)
  # Kernels that a cache keeps from before these files changed are refused, as those of another architecture are.
  set(fake_shared ${fake}/kernel_runtime.hpp ${fake}/kernel_prologue.hpp
    ${PROJECT_SOURCE_DIR}/tests/fake_hip/matrix_cores.hpp)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${fake_shared})
  set(fake_mark "")
  foreach(file IN LISTS fake_shared)
    file(SHA256 ${file} hash)
    string(SUBSTRING ${hash} 0 4 hash)
    string(APPEND fake_mark ${hash})
  endforeach()
  add_library(fake_cuda SHARED ${fake}/libcuda.cpp ${fake}/graphs.cpp ${fake}/machine.cpp ${fake}/kernels.cpp
    ${fake}/library_work.cpp)
  target_include_directories(fake_cuda PRIVATE ${PROJECT_SOURCE_DIR}/backends)
  set_target_properties(fake_cuda PROPERTIES OUTPUT_NAME cuda SUFFIX .so.1)
  add_library(fake_nvrtc SHARED ${fake}/nvrtc.cpp ${fake}/host_program.cpp)
  set_target_properties(fake_nvrtc PROPERTIES OUTPUT_NAME nvrtc SUFFIX .so.13)
  target_compile_definitions(fake_nvrtc PRIVATE
    FAKE_CUDA_SOURCES="${fake}" FAKE_CUDA_COMPILER="${CMAKE_CXX_COMPILER}")
  add_library(fake_cublaslt SHARED ${fake}/cublaslt.cpp ${fake}/product.cpp)
  target_include_directories(fake_cublaslt PRIVATE ${PROJECT_SOURCE_DIR}/backends)
  add_dependencies(fake_cublaslt fake_cuda)
  set_target_properties(fake_cublaslt PROPERTIES OUTPUT_NAME cublasLt SUFFIX .so.13)
  add_library(fake_cudnn SHARED ${fake}/cudnn.cpp ${fake}/cudnn_rules.cpp ${fake}/convolve.cpp
    ${fake}/plan_text.cpp ${fake}/cudnn_attention.cpp ${fake}/cudnn_steps.cpp
    ${fake}/cudnn_recurrent.cpp ${fake}/recurrent_steps.cpp)
  target_include_directories(fake_cudnn PRIVATE ${PROJECT_SOURCE_DIR}/backends)
  add_dependencies(fake_cudnn fake_cuda)
  set_target_properties(fake_cudnn PROPERTIES OUTPUT_NAME cudnn SUFFIX .so.9)
  add_library(fake_nccl SHARED ${fake}/nccl.cpp ${fake}/nccl_page.cpp ${PROJECT_SOURCE_DIR}/comm/common/combine.cpp
    ${PROJECT_SOURCE_DIR}/comm/common/describe.cpp)
  target_include_directories(fake_nccl PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/comm)
  add_dependencies(fake_nccl fake_cuda)
  set_target_properties(fake_nccl PROPERTIES OUTPUT_NAME nccl SUFFIX .so.2)
  # fake_hip: the same machine under HIP's names, for the plug-in of AMDGPU.
  set(fake_hip ${PROJECT_SOURCE_DIR}/tests/fake_hip)
  add_library(fake_hip SHARED ${fake_hip}/libamdhip64.cpp ${fake}/libcuda.cpp ${fake}/graphs.cpp ${fake}/machine.cpp
    ${fake}/kernels.cpp ${fake}/library_work.cpp)
  target_include_directories(fake_hip PRIVATE ${PROJECT_SOURCE_DIR}/backends)
  target_compile_definitions(fake_hip PRIVATE FAKE_HIP)
  set_target_properties(fake_hip PROPERTIES OUTPUT_NAME amdhip64 SUFFIX .so.6)
  add_library(fake_hiprtc SHARED ${fake_hip}/hiprtc.cpp ${fake}/host_program.cpp)
  set_target_properties(fake_hiprtc PROPERTIES OUTPUT_NAME hiprtc SUFFIX .so.6)
  target_compile_definitions(fake_hiprtc PRIVATE
    FAKE_CUDA_SOURCES="${fake}" FAKE_CUDA_COMPILER="${CMAKE_CXX_COMPILER}")
  add_library(fake_hipblaslt SHARED ${fake}/cublaslt.cpp ${fake}/product.cpp)
  add_dependencies(fake_hipblaslt fake_hip)
  set_target_properties(fake_hipblaslt PROPERTIES OUTPUT_NAME hipblaslt SUFFIX .so.1)
  add_library(fake_rccl SHARED ${fake}/nccl.cpp ${fake}/nccl_page.cpp ${PROJECT_SOURCE_DIR}/comm/common/combine.cpp
    ${PROJECT_SOURCE_DIR}/comm/common/describe.cpp)
  target_include_directories(fake_rccl PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/comm)
  add_dependencies(fake_rccl fake_hip)
  set_target_properties(fake_rccl PROPERTIES OUTPUT_NAME rccl SUFFIX .so.1)
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/fake_hip/hipblaslt/library)
  foreach(architecture gfx90a gfx942 gfx1100 gfx1201)  # for which it says to have kernels
    file(TOUCH ${PROJECT_BINARY_DIR}/fake_hip/hipblaslt/library/TensileLibrary_lazy_${architecture}.dat)
  endforeach()
  add_library(fake_miopen SHARED ${fake_hip}/miopen.cpp ${fake_hip}/miopen_problem.cpp ${fake}/convolve.cpp)
  add_dependencies(fake_miopen fake_hip)
  set_target_properties(fake_miopen PROPERTIES OUTPUT_NAME MIOpen SUFFIX .so.1)
  set(fakes_of_hip fake_hip fake_hiprtc fake_hipblaslt fake_rccl fake_miopen)
  foreach(library fake_hipblaslt fake_rccl fake_miopen)
    target_include_directories(${library} PRIVATE ${PROJECT_SOURCE_DIR}/backends)
    target_compile_definitions(${library} PRIVATE FAKE_HIP)
  endforeach()
  # fake_metal_machine: the same machine for the stand-in of Metal, with the text of its kernels.
  set(fake_metal ${PROJECT_SOURCE_DIR}/tests/fake_metal)
  # Kernels that are kept from before these files changed are compiled anew.
  set(fake_metal_shared ${fake_metal}/metal_stdlib ${fake_metal}/syntax/metal_stdlib ${fake_metal}/msl.cpp
    ${fake}/host_program.cpp)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${fake_metal_shared})
  set(fake_metal_mark "")
  foreach(file IN LISTS fake_metal_shared)
    file(SHA256 ${file} hash)
    string(SUBSTRING ${hash} 0 4 hash)
    string(APPEND fake_metal_mark ${hash})
  endforeach()
  find_program(ROSIN_CLANG_FOR_METAL NAMES clang-20 clang-19 clang-18 clang-17 clang-16)
  mark_as_advanced(ROSIN_CLANG_FOR_METAL)
  add_library(fake_metal_machine STATIC EXCLUDE_FROM_ALL ${fake_metal}/msl.cpp ${fake}/host_program.cpp
    ${fake}/machine.cpp ${fake}/kernels.cpp)
  target_include_directories(fake_metal_machine PUBLIC ${fake_metal} ${fake})
  target_compile_definitions(fake_metal_machine
    PUBLIC FAKE_METAL FAKE_METAL_CLANG="$<$<BOOL:${ROSIN_CLANG_FOR_METAL}>:${ROSIN_CLANG_FOR_METAL}>"
    PRIVATE FAKE_MARK="${fake_mark}" FAKE_CUDA_SOURCES="${fake}" FAKE_CUDA_COMPILER="${CMAKE_CXX_COMPILER}"
    FAKE_METAL_SOURCES="${fake_metal}" FAKE_METAL_MARK="${fake_metal_mark}"
    FAKE_METAL_KERNELS="${PROJECT_BINARY_DIR}/fake_metal/kernels")
  set_target_properties(fake_metal_machine PROPERTIES POSITION_INDEPENDENT_CODE ON)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(fake_metal_machine PRIVATE -Wno-maybe-uninitialized)
  endif()
  target_link_libraries(fake_metal_machine PRIVATE rosin_compile PUBLIC ${CMAKE_DL_LIBS})
  if(TARGET suite_tests)
    target_link_libraries(suite_tests PRIVATE fake_metal_machine)
    target_sources(suite_tests PRIVATE $<TARGET_OBJECTS:rosin_interpreter>)
    target_include_directories(suite_tests PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/backends)
  endif()
  # fake_metal: the Objective-C runtime and Metal on it, in one file under both names.
  add_library(fake_metal SHARED ${fake_metal}/runtime.cpp ${fake_metal}/foundation.cpp ${fake_metal}/device.cpp
    ${fake_metal}/commands.cpp ${fake_metal}/graphs.cpp ${fake_metal}/graph_numbers.cpp)
  set_target_properties(fake_metal PROPERTIES PREFIX "" OUTPUT_NAME Metal SUFFIX "" NO_SONAME ON
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fake_metal CXX_VISIBILITY_PRESET hidden)
  target_link_libraries(fake_metal PRIVATE rosin_compile fake_metal_machine)
  add_custom_command(TARGET fake_metal POST_BUILD
    COMMAND ${CMAKE_COMMAND} -E create_symlink Metal ${PROJECT_BINARY_DIR}/fake_metal/libobjc.A.dylib
    COMMAND ${CMAKE_COMMAND} -E create_symlink Metal
      ${PROJECT_BINARY_DIR}/fake_metal/MetalPerformanceShadersGraph)
  foreach(library fake_cuda fake_nvrtc fake_cublaslt fake_cudnn fake_nccl ${fakes_of_hip})
    target_compile_definitions(${library} PRIVATE FAKE_MARK="${fake_mark}")
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      # g++ 12 misreads std::regex where it is compiled with sanitizers.
      target_compile_options(${library} PRIVATE -Wno-maybe-uninitialized)
    endif()
    target_link_libraries(${library} PRIVATE rosin_compile ${CMAKE_DL_LIBS})
    # They state no names of their own: the real NVRTC looks for a driver by its name, and crashes on this one.
    set_target_properties(${library} PROPERTIES NO_SONAME ON
      LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fake_cuda CXX_VISIBILITY_PRESET hidden)
  endforeach()
  foreach(library ${fakes_of_hip})
    target_include_directories(${library} PRIVATE ${fake})
    set_target_properties(${library} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fake_hip)
  endforeach()
  add_dependencies(conformance fake_cuda fake_nvrtc fake_cublaslt fake_cudnn ${fakes_of_hip} fake_metal)
  foreach(program suite_tests ranks_tests)
    if(TARGET ${program})
      add_dependencies(${program} fake_cuda fake_nvrtc fake_cublaslt fake_cudnn fake_nccl ${fakes_of_hip} fake_metal)
    endif()
  endforeach()
  # fault_steps: training while the driver fails; tests/cuda_faults_test.py starts it.
  add_executable(fault_steps ${PROJECT_SOURCE_DIR}/tests/faults/steps.cpp)
  target_link_libraries(fault_steps PRIVATE rosin rosin_compile ${CMAKE_DL_LIBS})
  add_dependencies(fault_steps rosin_plugins fake_cuda fake_nvrtc fake_cublaslt fake_cudnn fake_metal)
endif()

# comm_conformance: tests/comm, checks a transport of comm/ by its path; tests/comm_test.py starts several ranks of it.
file(GLOB comm_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/comm/*.cpp)
add_executable(comm_conformance ${comm_sources})
target_include_directories(comm_conformance PRIVATE ${PROJECT_SOURCE_DIR}/include)
target_link_libraries(comm_conformance PRIVATE rosin_compile Threads::Threads ${CMAKE_DL_LIBS})
add_dependencies(comm_conformance rosin_plugins)
if(TARGET fake_nccl)
  add_dependencies(comm_conformance fake_cuda fake_nccl fake_hip fake_rccl)
endif()
