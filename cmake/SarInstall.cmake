# SPDX-License-Identifier: MIT

# cmake --install: the libraries with their public headers, what find_package(sar) and pkg-config read, and the programs. All of it finds
# the rest of the installation from where it lies. The components of the installation, of which SarPackage.cmake makes packages:
#   sar_dev, sar_data_dev, sar_models_dev, sar_c_dev, sar_fortran_dev   each library, with its targets in a file of their own:
#                                                                       find_package(sar) reads those that a project asks for
#   sar_runtime                                                         the shared library of the interface for C
#   sar_tools                                                           the programs, with manual pages and completion for bash
#   sar_doc                                                             guides, and examples as projects of their own
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(sar_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/sar)

# Installs static libraries as the targets sar::..., which find_package reads for the component NAME: sar_install_targets(NAME LIBRARIES...)
function(sar_install_targets name)
  install(TARGETS ${ARGN} EXPORT ${name}
          ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${name}_dev
          INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(EXPORT ${name} FILE ${name}Targets.cmake NAMESPACE sar:: DESTINATION ${sar_package_dir} COMPONENT ${name}_dev)
endfunction()

# Installs the headers that UMBRELLA includes, directly or not, without those of sar.hpp: sar_install_headers(NAME UMBRELLA)
function(sar_install_headers name umbrella)
  install(CODE "set(sar_headers \"${PROJECT_BINARY_DIR}/include/sar\")
                set(sar_includedir \"${CMAKE_INSTALL_INCLUDEDIR}\")
                set(sar_umbrella ${umbrella})" COMPONENT ${name}_dev)
  install(SCRIPT ${PROJECT_SOURCE_DIR}/cmake/install_headers.cmake COMPONENT ${name}_dev)
endfunction()

# Installs PC_NAME.pc: sar_install_pc(PC_NAME COMPONENT PC_REQUIRES PC_CFLAGS PC_LIBS)
function(sar_install_pc pc_name component pc_requires pc_cflags pc_libs)
  set(pc_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
  file(RELATIVE_PATH pc_to_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
  set(pc_libdir "\${prefix}")
  set(pc_includedir "\${prefix}")
  cmake_path(APPEND pc_libdir ${CMAKE_INSTALL_LIBDIR})  # an absolute path takes the place of the prefix
  cmake_path(APPEND pc_includedir ${CMAKE_INSTALL_INCLUDEDIR})
  set(file ${PROJECT_BINARY_DIR}/${pc_name}.pc)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/sar.pc.in ${file}.in @ONLY)
  file(GENERATE OUTPUT ${file} INPUT ${file}.in)
  install(FILES ${file} DESTINATION ${pc_dir} COMPONENT ${component})
endfunction()

# sar::sar
set(pc_libs "-L$<TARGET_LINKER_FILE_DIR:TBB::tbb> -ltbb -ltbbmalloc")
list(TRANSFORM SAR_SUFFIXES PREPEND sar OUTPUT_VARIABLE second)
sar_install_targets(sar sar ${second})
sar_install_headers(sar sar.hpp)
install(FILES ${PROJECT_BINARY_DIR}/include/sar/mpi.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/sar COMPONENT sar_dev)
sar_install_pc(sar sar_dev "" "" "-lsar ${pc_libs}")
foreach(suffix ${SAR_SUFFIXES})
  sar_install_pc(sar-double sar_dev "" -DSAR_DOUBLE=1 "-lsar_double ${pc_libs}")
endforeach()
set(sar_precisions ${SAR_PRECISION})
if(SAR_PRECISION STREQUAL "both")
  set(sar_precisions single double)
endif()
set(sar_partitioners "")  # packages of sar::data
if(SAR_HAVE_METIS)
  list(APPEND sar_partitioners METIS)
endif()
if(SAR_HAVE_SCOTCH)
  list(APPEND sar_partitioners PTSCOTCH)
endif()
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/sarConfig.cmake.in ${PROJECT_BINARY_DIR}/sarConfig.cmake
                              INSTALL_DESTINATION ${sar_package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/sarConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/sarConfig.cmake ${PROJECT_BINARY_DIR}/sarConfigVersion.cmake
              ${PROJECT_SOURCE_DIR}/cmake/SarMpi.cmake DESTINATION ${sar_package_dir} COMPONENT sar_dev)

# sar::data and sar::models
set(pc_data_libs "")
if(SAR_HAVE_METIS)
  string(APPEND pc_data_libs " ${METIS_LIBRARY} $<$<BOOL:${METIS_GKLIB_LIBRARY}>:${METIS_GKLIB_LIBRARY}>")
endif()
if(SAR_HAVE_SCOTCH)
  string(APPEND pc_data_libs " ${PTSCOTCH_LIBRARY} ${PTSCOTCH_ERROR_LIBRARY}")
endif()
foreach(part data models)
  if(TARGET sar_${part})
    list(TRANSFORM SAR_SUFFIXES PREPEND sar_${part} OUTPUT_VARIABLE second)
    sar_install_targets(sar_${part} sar_${part} ${second})
    sar_install_headers(sar_${part} ${part}.hpp)
    foreach(suffix "" ${SAR_SUFFIXES})
      string(REPLACE _ - pc_suffix "${suffix}")
      sar_install_pc(sar-${part}${pc_suffix} sar_${part}_dev sar${pc_suffix} "" "-lsar_${part}${suffix}${pc_${part}_libs}")
    endforeach()
  endif()
endforeach()
foreach(partitioner ${sar_partitioners})
  install(FILES ${PROJECT_SOURCE_DIR}/cmake/Find${partitioner}.cmake DESTINATION ${sar_package_dir} COMPONENT sar_data_dev)
endforeach()

# sar::c_static; sar::c in a file of its own, for projects without C++; sar::fortran
if(TARGET sar_c_static)
  sar_install_targets(sar_c sar_c_static)
  install(FILES ${PROJECT_SOURCE_DIR}/bindings/c/sar.h ${PROJECT_SOURCE_DIR}/bindings/c/sar_cxx11.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
          COMPONENT sar_c_dev)
  # without Requires: the shared library needs nothing of sar.pc
  set(pc_c_libs "-lsar_c -lsar_models -lsar ${pc_libs} -lstdc++ -lm")
  if(TARGET sar_c)
    install(TARGETS sar_c EXPORT sar_c_shared
            LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT sar_runtime NAMELINK_COMPONENT sar_c_dev
            INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
    install(EXPORT sar_c_shared FILE sar_c_sharedTargets.cmake NAMESPACE sar:: DESTINATION ${sar_package_dir} COMPONENT sar_c_dev)
    set(pc_c_libs -lsar_c)
  endif()
  sar_install_pc(sar-c sar_c_dev "" "" "${pc_c_libs}")
  # the source, too: other compilers cannot read the module file
  set(module_dir ${CMAKE_INSTALL_INCLUDEDIR}/sar/fortran)
  set(module_source ${PROJECT_SOURCE_DIR}/bindings/fortran)
  install(FILES ${module_source}/sar.f90 ${module_source}/sar_interface.inc ${module_source}/sar_procedures.inc DESTINATION ${module_dir} COMPONENT sar_c_dev)
  if(TARGET sar_fortran)
    sar_install_targets(sar_fortran sar_fortran)
    install(FILES ${PROJECT_BINARY_DIR}/include/fortran/sar.mod DESTINATION ${module_dir} COMPONENT sar_fortran_dev)
    sar_install_pc(sar-fortran sar_fortran_dev sar-c "-I\${includedir}/sar/fortran" -lsar_fortran)
  endif()
endif()

# Guides and examples in the folders that they have in the sources, so that their links work.
set(sar_doc_dir ${CMAKE_INSTALL_DOCDIR})
if(NOT PROJECT_IS_TOP_LEVEL)  # then it may be that of the host
  set(sar_doc_dir ${CMAKE_INSTALL_DATAROOTDIR}/doc/sar)
endif()
install(FILES README.md CHANGELOG.md CONTRIBUTING.md LICENSE NOTICE DESTINATION ${sar_doc_dir} COMPONENT sar_doc)
install(FILES bench/RESULTS.md DESTINATION ${sar_doc_dir}/bench COMPONENT sar_doc)
install(DIRECTORY docs examples DESTINATION ${sar_doc_dir} COMPONENT sar_doc
        FILES_MATCHING PATTERN *.md PATTERN *.ipynb PATTERN *.svg PATTERN *.png PATTERN *.[ch]pp PATTERN *.[ch] PATTERN *.f90 PATTERN picture.py PATTERN CMakeLists.txt)
