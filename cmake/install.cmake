# The install tree: headers, libraries, CMake package (find_package(rosin), targets rosin::rosin and
# rosin::rosin_static), pkg-config file.
# Nothing in it names the prefix, so the tree may be moved.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/rosin)
install(TARGETS rosin EXPORT rosinTargets)
if(TARGET rosin_static)
  install(TARGETS rosin_static EXPORT rosinTargets)
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/rosin DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h")
install(EXPORT rosinTargets NAMESPACE rosin:: DESTINATION ${package_dir})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/rosinConfig.cmake.in ${PROJECT_BINARY_DIR}/rosinConfig.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/rosinConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/rosinConfig.cmake ${PROJECT_BINARY_DIR}/rosinConfigVersion.cmake
  DESTINATION ${package_dir})

# pkg-config finds the prefix from the place of the .pc file.
file(RELATIVE_PATH prefix_from_pc /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
configure_file(${PROJECT_SOURCE_DIR}/cmake/rosin.pc.in ${PROJECT_BINARY_DIR}/rosin.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/rosin.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
if(TARGET rosin_command)
  set_target_properties(rosin_command PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
  install(TARGETS rosin_command)
endif()
