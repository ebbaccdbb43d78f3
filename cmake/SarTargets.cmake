# Settings shared by the library, its tests, examples and benchmarks.

# Makes <sar/folder/file.hpp> work in the build tree as it does when installed: build/include/sar/folder links to
# the source folder, next to the generated <sar/config.hpp>.
function(sar_public_headers)
  set(include_dir ${PROJECT_BINARY_DIR}/include)
  set(SAR_DOUBLE 0)
  if(SAR_PRECISION STREQUAL "double")
    set(SAR_DOUBLE 1)
  endif()
  configure_file(${PROJECT_SOURCE_DIR}/cmake/config.hpp.in ${include_dir}/sar/config.hpp @ONLY)
  foreach(name core autograd comm graph nn)
    file(CREATE_LINK ${PROJECT_SOURCE_DIR}/${name} ${include_dir}/sar/${name} SYMBOLIC)
  endforeach()
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/nn/sar.hpp ${include_dir}/sar/sar.hpp SYMBOLIC)
  target_include_directories(sar PUBLIC $<BUILD_INTERFACE:${include_dir}> $<INSTALL_INTERFACE:include>)
  target_compile_features(sar PUBLIC cxx_std_20)
endfunction()

# Warnings, architecture and sanitizers of one of our own targets; nothing of this reaches an embedding project.
function(sar_compile_settings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual
                                           $<$<BOOL:${SAR_WERROR}>:-Werror> $<$<BOOL:${SAR_NATIVE}>:-march=native>)
  if(SAR_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
                                             $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)  # false alarms in intrinsics when instrumented
    target_link_options(${target} PUBLIC -fsanitize=address,undefined)
  endif()
  if(SAR_FUZZ)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
endfunction()

# A program of ours that links the library: sar_program(NAME SOURCES...)
function(sar_program name)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE sar::sar)
  sar_compile_settings(${name})
endfunction()

# cmake --install: the library, its headers and a package config, so that find_package(sar 1) gives sar::sar.
function(sar_install)
  include(GNUInstallDirs)
  include(CMakePackageConfigHelpers)
  set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/sar)
  install(TARGETS sar EXPORT sarTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  foreach(folder core autograd comm graph nn)
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/${folder} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/sar FILES_MATCHING PATTERN "*.hpp"
            PATTERN sar.hpp EXCLUDE)
  endforeach()
  install(FILES ${PROJECT_BINARY_DIR}/include/sar/config.hpp ${PROJECT_SOURCE_DIR}/nn/sar.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/sar)
  install(EXPORT sarTargets NAMESPACE sar:: DESTINATION ${package_dir})
  configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/sarConfig.cmake.in ${PROJECT_BINARY_DIR}/sarConfig.cmake
                                INSTALL_DESTINATION ${package_dir})
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/sarConfigVersion.cmake COMPATIBILITY SameMajorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/sarConfig.cmake ${PROJECT_BINARY_DIR}/sarConfigVersion.cmake DESTINATION ${package_dir})
  if(SAR_HAVE_METIS)
    install(FILES ${PROJECT_SOURCE_DIR}/cmake/FindMETIS.cmake DESTINATION ${package_dir})
  endif()
endfunction()
