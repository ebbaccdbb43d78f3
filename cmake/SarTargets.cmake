# Settings shared by the library, its tests, examples and benchmarks.
include(${CMAKE_CURRENT_LIST_DIR}/SarMpi.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/Version1Headers.cmake)

# Makes <sar/folder/file.hpp> work in the build tree as it does when installed: build/include/sar/folder links to
# the source folder, next to the generated <sar/config.hpp>.
function(sar_public_headers)
  set(include_dir ${PROJECT_BINARY_DIR}/include)
  set(SAR_DOUBLE 0)
  if(SAR_PRECISION STREQUAL "double")
    set(SAR_DOUBLE 1)
  endif()
  sar_mpi_name(SAR_MPI)
  set(SAR_MPI ${SAR_MPI} PARENT_SCOPE)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/config.hpp.in ${include_dir}/sar/config.hpp @ONLY)
  foreach(name core autograd comm graph nn)
    file(CREATE_LINK ${PROJECT_SOURCE_DIR}/${name} ${include_dir}/sar/${name} SYMBOLIC)
  endforeach()
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/nn/sar.hpp ${include_dir}/sar/sar.hpp SYMBOLIC)
  foreach(header sar.h sar_cxx11.hpp)
    file(CREATE_LINK ${PROJECT_SOURCE_DIR}/nn/c/${header} ${include_dir}/${header} SYMBOLIC)
  endforeach()
  sar_version_1_headers(${PROJECT_BINARY_DIR}/version_1_include)
endfunction()

# A library of one precision, without its sources: sar_library(NAME).
function(sar_library name)
  add_library(${name} STATIC)
  target_compile_features(${name} PUBLIC cxx_std_20)
  target_include_directories(${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
                                            $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/version_1_include>)
  sar_compile_settings(${name})
  if(NOT SAR_SANITIZE)
    target_compile_options(${name} PRIVATE -Wframe-larger-than=49152)  # hosts have threads with small stacks
  endif()
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES AND NOT CMAKE_CXX_FLAGS MATCHES "(^| )-O")
    separate_arguments(optimized UNIX_COMMAND "${CMAKE_CXX_FLAGS_RELEASE}")
    target_compile_options(${name} PRIVATE ${optimized})
    message(STATUS "sar: there is no CMAKE_BUILD_TYPE, the library itself is compiled with ${CMAKE_CXX_FLAGS_RELEASE}")
  endif()
  # The C++ bindings of MPI-2 in mpi.h would make every host need the library of these bindings, also where it links with a
  # wrapper for C or Fortran.
  target_compile_definitions(${name} PUBLIC OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
  target_link_libraries(${name} PUBLIC MPI::MPI_CXX PRIVATE TBB::tbb TBB::tbbmalloc)
  # headers only, so that nobody who links the library needs them
  foreach(headers Eigen3::Eigen nlohmann_json::nlohmann_json)
    target_include_directories(${name} SYSTEM PRIVATE $<TARGET_PROPERTY:${headers},INTERFACE_INCLUDE_DIRECTORIES>)
  endforeach()
  # Eigen inside of our namespace: its templates are compiled here for this machine and with our settings, and must not
  # be merged by the linker with those of a program that uses Eigen itself. The JSON library likewise.
  target_compile_definitions(${name} PRIVATE Eigen=sar::eigen nlohmann=sar::json_library SAR_HAVE_METIS=$<BOOL:${SAR_HAVE_METIS}>)
  if(SAR_HAVE_METIS)
    target_link_libraries(${name} PRIVATE METIS::METIS)
  endif()
  if(SAR_HAVE_SCOTCH)
    target_link_libraries(${name} PRIVATE PTSCOTCH::PTSCOTCH)
  endif()
  if(SAR_BLAS)
    target_link_libraries(${name} PRIVATE BLAS::BLAS)
  endif()
endfunction()

# libsar_c.so: the objects of the static library behind sar.h. A host needs no compiler for C++ to link it.
function(sar_shared_c)
  set_target_properties(sar PROPERTIES POSITION_INDEPENDENT_CODE ON)
  set(map ${PROJECT_SOURCE_DIR}/nn/c/sar_c.map)
  add_library(sar_c SHARED $<TARGET_OBJECTS:sar>)
  add_library(sar::c ALIAS sar_c)
  get_target_property(libraries sar LINK_LIBRARIES)
  target_link_libraries(sar_c PRIVATE ${libraries})
  target_link_options(sar_c PRIVATE -Wl,--version-script=${map} $<$<NOT:$<BOOL:${SAR_SANITIZE}>>:-Wl,--no-undefined> $<TARGET_PROPERTY:sar,INTERFACE_LINK_OPTIONS>)
  target_include_directories(sar_c INTERFACE $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>)
  target_compile_definitions(sar_c INTERFACE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
  set_target_properties(sar_c PROPERTIES LINKER_LANGUAGE CXX VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
                                         LINK_DEPENDS ${map} EXPORT_NAME c)
endfunction()

# What the compiler is told of the processor, SAR_MARCH, and the instruction sets that kernels are compiled for, SAR_ISA_LEVELS: with
# SAR_NATIVE=OFF levels of x86-64, elsewhere none, which means what the compiler takes anyway.
set(SAR_MARCH "")
set(SAR_ISA_LEVELS "")
if(SAR_NATIVE)
  set(SAR_MARCH -march=native)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
    list(APPEND SAR_MARCH -mprefer-vector-width=512) # where there are such vectors: GCC takes half of one by itself
  endif()
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$" AND CMAKE_SIZEOF_VOID_P EQUAL 8)
  set(SAR_MARCH -march=x86-64-v2)
  set(SAR_ISA_LEVELS 2 3 4)
endif()

# Sources with a region of core/isa_begin.hpp, compiled once for each instruction set: sar_kernels(SOURCES... [OPTIONS compiler options...])
function(sar_kernels)
  cmake_parse_arguments(arg "" "" "OPTIONS" ${ARGN})
  foreach(source ${arg_UNPARSED_ARGUMENTS})
    set(compiled ${CMAKE_CURRENT_SOURCE_DIR}/${source})
    cmake_path(RELATIVE_PATH compiled BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE path)
    if(SAR_ISA_LEVELS)
      set(compiled "")
      foreach(level ${SAR_ISA_LEVELS})
        string(REPLACE ".cpp" "_v${level}.cpp" file ${PROJECT_BINARY_DIR}/isa/${path})
        set(text "#define SAR_ISA x86_64_v${level}\n#define SAR_ISA_LEVEL ${level}\n#include <sar/${path}>\n")
        file(CONFIGURE OUTPUT ${file} CONTENT "${text}" @ONLY)
        list(APPEND compiled ${file})
      endforeach()
    endif()
    target_sources(sar PRIVATE ${compiled})
    set_source_files_properties(${compiled} TARGET_DIRECTORY sar PROPERTIES COMPILE_OPTIONS "${arg_OPTIONS}")
  endforeach()
endfunction()

# Warnings, architecture and sanitizers of one of our own targets; nothing of this reaches an embedding project.
function(sar_compile_settings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual
                                           $<$<BOOL:${SAR_WERROR}>:-Werror> ${SAR_MARCH}
                                           $<$<CXX_COMPILER_ID:GNU>:-Wno-psabi>) # wide vectors pass between functions of one file only
  if(SAR_SANITIZE STREQUAL "thread")
    target_compile_options(${target} PRIVATE -fsanitize=thread -fno-omit-frame-pointer $<$<CXX_COMPILER_ID:GNU>:-Wno-tsan>)
    target_link_options(${target} PUBLIC -fsanitize=thread)
  elseif(SAR_SANITIZE STREQUAL "address")
    # the address sanitizer reports accesses through null as well; without these three, sources are compiled in three quarters of the time
    target_compile_options(${target} PRIVATE -fsanitize=address,undefined -fno-sanitize=null,vptr,object-size
                                             -fno-sanitize-recover=undefined -fno-omit-frame-pointer
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

# The folders that imported targets come from are those of the scope that finds them. A parent project links what our
# static library links, so that it must see them, too; those that it has found itself it sees already.
function(sar_show_to_parent)
  get_property(found_here DIRECTORY PROPERTY IMPORTED_TARGETS)
  foreach(target ${ARGN})
    if(target IN_LIST found_here)
      set_target_properties(${target} PROPERTIES IMPORTED_GLOBAL TRUE)
    endif()
  endforeach()
endfunction()

# Installs libsar_c.so, sar-c.pc, and a list of targets of its own: a project in C sees no other.
function(sar_install_shared_c package_dir pc_dir pc_to_prefix)
  install(TARGETS sar_c EXPORT sarSharedTargets
          LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT sar_runtime NAMELINK_COMPONENT sar_dev
          INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(EXPORT sarSharedTargets NAMESPACE sar:: DESTINATION ${package_dir})
  configure_file(${PROJECT_SOURCE_DIR}/cmake/sar-c.pc.in ${PROJECT_BINARY_DIR}/sar-c.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/sar-c.pc DESTINATION ${pc_dir})
endfunction()

# The module for Fortran, if it has been built, and its source for other compilers, which cannot read the .mod file. In an export of its own:
# a project that does not ask for it needs no Fortran compiler.
function(sar_install_fortran package_dir)
  set(module_dir ${CMAKE_INSTALL_INCLUDEDIR}/sar/fortran)
  install(FILES ${PROJECT_SOURCE_DIR}/nn/fortran/sar.f90 DESTINATION ${module_dir})
  if(TARGET sar_fortran)
    install(TARGETS sar_fortran EXPORT sarFortranTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} OPTIONAL)
    install(FILES ${PROJECT_BINARY_DIR}/include/fortran/sar.mod DESTINATION ${module_dir} OPTIONAL)
    install(EXPORT sarFortranTargets NAMESPACE sar:: DESTINATION ${package_dir})
  endif()
endfunction()

# cmake --install: the libraries, their public headers, a package config, so that find_package(sar 1) gives sar::sar and
# sar::single or sar::double, sar.pc, and sar-double.pc if there are two libraries. All of them find the rest of the installation
# from where they lie. The components are sar_dev and, for the shared library, sar_runtime; SarPackage.cmake makes packages of them.
function(sar_install)
  set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME sar_dev)
  include(GNUInstallDirs)
  include(CMakePackageConfigHelpers)
  set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/sar)
  set(libraries sar)
  set(SAR_HAS_SINGLE TRUE)
  set(SAR_HAS_DOUBLE TRUE)
  if(SAR_PRECISION STREQUAL "both")
    list(APPEND libraries sar_double)
    set_target_properties(sar_double PROPERTIES EXPORT_NAME double)
  elseif(SAR_PRECISION STREQUAL "single")
    set(SAR_HAS_DOUBLE FALSE)
  else()
    set(SAR_HAS_SINGLE FALSE)
  endif()
  install(TARGETS ${libraries} EXPORT sarTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(CODE "set(sar_headers \"${PROJECT_BINARY_DIR}/include/sar\")
                set(sar_includedir \"${CMAKE_INSTALL_INCLUDEDIR}\")")
  install(SCRIPT ${PROJECT_SOURCE_DIR}/cmake/install_headers.cmake)
  install(FILES ${PROJECT_SOURCE_DIR}/nn/c/sar.h ${PROJECT_SOURCE_DIR}/nn/c/sar_cxx11.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(DIRECTORY ${PROJECT_BINARY_DIR}/version_1_include/sar DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(EXPORT sarTargets NAMESPACE sar:: DESTINATION ${package_dir})
  sar_install_fortran(${package_dir})
  configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/sarConfig.cmake.in ${PROJECT_BINARY_DIR}/sarConfig.cmake
                                INSTALL_DESTINATION ${package_dir})
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/sarConfigVersion.cmake COMPATIBILITY SameMajorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/sarConfig.cmake ${PROJECT_BINARY_DIR}/sarConfigVersion.cmake
                ${PROJECT_SOURCE_DIR}/cmake/SarMpi.cmake DESTINATION ${package_dir})
  if(SAR_HAVE_METIS)
    install(FILES ${PROJECT_SOURCE_DIR}/cmake/FindMETIS.cmake DESTINATION ${package_dir})
  endif()
  if(SAR_HAVE_SCOTCH)
    install(FILES ${PROJECT_SOURCE_DIR}/cmake/FindPTSCOTCH.cmake DESTINATION ${package_dir})
  endif()

  set(pc_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
  file(RELATIVE_PATH pc_to_prefix /prefix/${pc_dir} /prefix)
  set(pc_libs "-L$<TARGET_LINKER_FILE_DIR:TBB::tbb> -ltbb -ltbbmalloc")
  if(SAR_HAVE_METIS)
    string(APPEND pc_libs " ${METIS_LIBRARY} $<$<BOOL:${METIS_GKLIB_LIBRARY}>:${METIS_GKLIB_LIBRARY}>")
  endif()
  if(SAR_HAVE_SCOTCH)
    string(APPEND pc_libs " ${PTSCOTCH_LIBRARY} ${PTSCOTCH_ERROR_LIBRARY}")
  endif()
  if(SAR_BLAS)
    string(REPLACE ";" " " blas_libraries "${BLAS_LINKER_FLAGS} ${BLAS_LIBRARIES}")
    string(APPEND pc_libs " ${blas_libraries}")
  endif()
  foreach(library ${libraries})
    string(REPLACE "_" "-" pc_name ${library})
    set(pc_define "")
    if(library STREQUAL "sar_double")
      set(pc_define "-DSAR_DOUBLE=1")
    endif()
    configure_file(${PROJECT_SOURCE_DIR}/cmake/sar.pc.in ${PROJECT_BINARY_DIR}/${pc_name}.pc.in @ONLY)
    file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/${pc_name}.pc INPUT ${PROJECT_BINARY_DIR}/${pc_name}.pc.in)
    install(FILES ${PROJECT_BINARY_DIR}/${pc_name}.pc DESTINATION ${pc_dir})
  endforeach()
  if(SAR_SHARED_C)
    sar_install_shared_c(${package_dir} ${pc_dir} ${pc_to_prefix})
  endif()
endfunction()
