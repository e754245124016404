# How a folder of comm/ becomes a transport. Included by the CMakeLists.txt of each. Read next: backends.cmake.
include_guard()
include(${PROJECT_SOURCE_DIR}/cmake/backends.cmake)

# rosin_transport(name): the *.cpp of this folder and of comm/common as librosin_comm_<name>.so, the target
# rosin_comm_<name>, in the folder rosin/ beside librosin, where it is looked for; rosin_plugins builds it too.
function(rosin_transport name)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp ${PROJECT_SOURCE_DIR}/comm/common/*.cpp)
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
  set(target rosin_comm_${name})
  rosin_plugin_library(${target} comm_${name} $<TARGET_FILE_DIR:rosin>/rosin ${sources})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/comm)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O3>)
  target_link_libraries(${target} PRIVATE ${CMAKE_DL_LIBS})
  install(TARGETS ${target} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/rosin)
  if(NOT TARGET rosin_plugins)
    add_custom_target(rosin_plugins)
  endif()
  add_dependencies(rosin_plugins ${target})
endfunction()
