# How a folder of backends/ becomes a plug-in. Included by the CMakeLists.txt of each.
# Read next: docs/how_to_add_backend.md, backends/reference/CMakeLists.txt.
include_guard()

# What every plug-in is built with: it sees the public headers only, and exports functions rosin_* that say so.
function(rosin_plugin_settings target)
  target_link_libraries(${target} PRIVATE rosin_compile Threads::Threads)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/backends)
  target_compile_definitions(${target} PRIVATE ROSIN_VERSION="${PROJECT_VERSION}")
  set_target_properties(${target} PROPERTIES
    POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
endfunction()

# rosin_plugin_library(target name folder source...): librosin_<name>.so in a folder of the build.
function(rosin_plugin_library target name folder)
  add_library(${target} MODULE ${ARGN})
  rosin_plugin_settings(${target})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME rosin_${name} LIBRARY_OUTPUT_DIRECTORY ${folder})
  if(WIN32)
    target_link_options(${target} PRIVATE -static)  # a plug-in is opened wherever the compiler's own libraries are not
  elseif(UNIX AND NOT APPLE)
    set(script ${PROJECT_SOURCE_DIR}/cmake/plugin_exports.map)
    target_link_options(${target} PRIVATE -Wl,--version-script=${script} -Wl,--as-needed)
    set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${script})
    if(NOT ROSIN_SANITIZE)
      target_link_options(${target} PRIVATE -Wl,-z,defs)
    endif()
  endif()
endfunction()

# rosin_plugin_sources(out folder...): the sources of folders of backends/ that plug-ins share.
function(rosin_plugin_sources out)
  set(sources "")
  foreach(folder IN LISTS ARGN)
    file(GLOB found CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/backends/${folder}/*.cpp)
    list(FILTER found EXCLUDE REGEX "_test\\.cpp$")
    list(APPEND sources ${found})
  endforeach()
  set(${out} ${sources} PARENT_SCOPE)
endfunction()

# rosin_plugin(name [source...]): the *.cpp of this folder, or the sources named, as librosin_<name>.so, the target
# rosin_<name>, in the folder rosin/ beside librosin, where it is looked for. The target rosin_plugins builds them all.
function(rosin_plugin name)
  set(sources ${ARGN})
  if(NOT sources)
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
    list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
  endif()
  rosin_plugin_library(rosin_${name} ${name} $<TARGET_FILE_DIR:rosin>/rosin ${sources})
  install(TARGETS rosin_${name} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/rosin)
  if(NOT TARGET rosin_plugins)
    add_custom_target(rosin_plugins)
  endif()
  add_dependencies(rosin_plugins rosin_${name})
endfunction()
