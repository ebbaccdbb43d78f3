# SPDX-License-Identifier: MIT

# Settings shared by the library, its tests, examples and benchmarks.
include(SarMpi)

# A cache variable with one of several values, the first of them unless DEFAULT says another: sar_choice(NAME VALUES... [DEFAULT value] DOC text)
function(sar_choice name)
  cmake_parse_arguments(arg "" "DEFAULT;DOC" "" ${ARGN})
  set(values ${arg_UNPARSED_ARGUMENTS})
  if(NOT DEFINED arg_DEFAULT)
    list(GET values 0 arg_DEFAULT)
  endif()
  set(${name} ${arg_DEFAULT} CACHE STRING "${arg_DOC}")
  set_property(CACHE ${name} PROPERTY STRINGS ${values})
  if(NOT "${${name}}" IN_LIST values)
    list(JOIN values "', '" values)
    message(FATAL_ERROR "${name} is '${${name}}'; it must be one of '${values}'")
  endif()
endfunction()

# An error for each of some options that is ON where the option NEEDED is OFF: sar_require(NEEDED FOR OPTIONS...)
function(sar_require needed for)
  foreach(option ${ARGN})
    if(${option} AND NOT ${option} STREQUAL "AUTO" AND NOT ${needed})
      message(FATAL_ERROR "${option} is ON, which needs ${needed}: set it ON as well, or set ${option}=OFF")
    endif()
  endforeach()
endfunction()

# Finds a package, unless the host has made its target TARGET, by FetchContent say: sar_find(TARGET PACKAGE ARGUMENTS...)
macro(sar_find target)
  if(NOT TARGET ${target})
    find_package(${ARGN} REQUIRED)
  endif()
endmacro()

# Looks for an optional package as the option OPTION, SAR_METIS say, demands; SAR_HAVE_METIS is whether it is used:
# sar_find_optional(OPTION PACKAGE [VERSION])
macro(sar_find_optional option)
  string(REPLACE SAR_ SAR_HAVE_ sar_have ${option})
  set(${sar_have} OFF)
  if(SAR_BUILD_DATA AND ${option} STREQUAL "ON")
    find_package(${ARGN} REQUIRED)
    set(${sar_have} ON)
  elseif(SAR_BUILD_DATA AND ${option} STREQUAL "AUTO")
    find_package(${ARGN})
    set(${sar_have} ${${ARGV1}_FOUND})
  endif()
endmacro()

# Makes <sar/folder/file.hpp> work in the build tree as it does when installed: build/include/sar/folder links to
# the source folder, next to the generated <sar/config.hpp> and <sar/mpi.h>.
function(sar_public_headers)
  set(include_dir ${PROJECT_BINARY_DIR}/include)
  set(SAR_DOUBLE 0)
  if(SAR_PRECISION STREQUAL "double")
    set(SAR_DOUBLE 1)
  endif()
  configure_file(${PROJECT_SOURCE_DIR}/cmake/config.hpp.in ${include_dir}/sar/config.hpp @ONLY)
  set(sar_is_other_mpi 0)  # where it is not known
  if(SAR_MPI MATCHES "^Open MPI")
    set(sar_is_other_mpi "!defined(OPEN_MPI)")
  elseif(SAR_MPI)
    set(sar_is_other_mpi "defined(OPEN_MPI)")
  endif()
  configure_file(${PROJECT_SOURCE_DIR}/cmake/mpi.h.in ${include_dir}/sar/mpi.h @ONLY)
  foreach(name core autograd comm graph nn bindings)
    file(CREATE_LINK ${PROJECT_SOURCE_DIR}/${name} ${include_dir}/sar/${name} SYMBOLIC)
  endforeach()
  foreach(header nn/sar.hpp graph/data/data.hpp nn/models/models.hpp)
    cmake_path(GET header FILENAME name)
    file(CREATE_LINK ${PROJECT_SOURCE_DIR}/${header} ${include_dir}/sar/${name} SYMBOLIC)
  endforeach()
  foreach(header sar.h sar_cxx11.hpp)
    file(CREATE_LINK ${PROJECT_SOURCE_DIR}/bindings/c/${header} ${include_dir}/${header} SYMBOLIC)
  endforeach()
endfunction()

# A library of one precision, without its sources, which other projects know as sar::NAME, without a prefix sar_: sar_library(NAME)
function(sar_library name)
  add_library(${name} STATIC)
  string(REPLACE sar_ "" exported ${name})
  set_target_properties(${name} PROPERTIES EXPORT_NAME ${exported})
  add_library(sar::${exported} ALIAS ${name})
  target_compile_features(${name} PUBLIC cxx_std_20)
  sar_unity(${name})
  set_target_properties(${name} PROPERTIES UNITY_BUILD_MODE GROUP) # see sar_sources
  target_include_directories(${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>)
  sar_compile_settings(${name})
  if(NOT SAR_SANITIZE)
    target_compile_options(${name} PRIVATE -Wframe-larger-than=49152)  # hosts have threads with small stacks
  endif()
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES AND NOT CMAKE_CXX_FLAGS MATCHES "(^| )-O")
    separate_arguments(optimized UNIX_COMMAND "${CMAKE_CXX_FLAGS_RELEASE}")
    target_compile_options(${name} PRIVATE ${optimized})
    message(STATUS "sar: there is no CMAKE_BUILD_TYPE, the library itself is compiled with ${CMAKE_CXX_FLAGS_RELEASE}")
  endif()
  # headers only, so that nobody who links the library needs them
  foreach(headers Eigen3::Eigen nlohmann_json::nlohmann_json)
    target_include_directories(${name} SYSTEM PRIVATE $<TARGET_PROPERTY:${headers},INTERFACE_INCLUDE_DIRECTORIES>)
  endforeach()
  # Eigen inside of our namespace: its templates are compiled here for this machine and with our settings, and must not
  # be merged by the linker with those of a program that uses Eigen itself. The JSON library likewise.
  target_compile_definitions(${name} PRIVATE Eigen=sar::eigen nlohmann=sar::json_library)
endfunction()

# The libraries, their settings and what they link: sar::sar has MPI and oneTBB, sar::data METIS and PT-Scotch as well.
function(sar_libraries)
  foreach(suffix "" ${SAR_SUFFIXES})
    sar_library(sar${suffix})
    # The C++ bindings of MPI-2 in mpi.h would make every host need the library of these bindings, also where it links with a
    # wrapper for C or Fortran.
    target_compile_definitions(sar${suffix} PUBLIC OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
    target_link_libraries(sar${suffix} PUBLIC MPI::MPI_CXX PRIVATE TBB::tbb TBB::tbbmalloc)
    sar_precompile_headers(sar${suffix})
    if(SAR_BUILD_DATA)
      sar_library(sar_data${suffix})
      target_link_libraries(sar_data${suffix} PUBLIC sar${suffix} PRIVATE $<$<BOOL:${SAR_HAVE_METIS}>:METIS::METIS>
                                                                          $<$<BOOL:${SAR_HAVE_SCOTCH}>:PTSCOTCH::PTSCOTCH>)
      target_compile_definitions(sar_data${suffix} PRIVATE SAR_HAVE_METIS=$<BOOL:${SAR_HAVE_METIS}>)
      target_precompile_headers(sar_data${suffix} REUSE_FROM sar${suffix})
    endif()
    if(SAR_BUILD_MODELS)
      sar_library(sar_models${suffix})
      target_link_libraries(sar_models${suffix} PUBLIC sar${suffix})
      target_precompile_headers(sar_models${suffix} REUSE_FROM sar${suffix})
    endif()
  endforeach()
  # the library of one precision under the name of its precision: sar::single, sar::double
  add_library(sar::${SAR_DEFAULT_PRECISION} ALIAS sar)
  if(TARGET sar_double)
    # the traces of two libraries in one program are two files
    target_compile_definitions(sar_double PUBLIC SAR_DOUBLE=1 PRIVATE SAR_TRACE_SUFFIX=".double")
  endif()
endfunction()

# Precompiled headers, which halve the time to compile a library: what most of its sources include. -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON
# builds without them.
function(sar_precompile_headers name)
  target_precompile_headers(${name} PRIVATE <algorithm> <array> <cmath> <cstdint> <cstring> <filesystem> <fstream> <functional> <map> <memory>
                            <mutex> <numeric> <optional> <span> <sstream> <string> <string_view> <unordered_map> <utility> <variant> <vector>
                            <sar/core/tensor/tensor.hpp> <sar/core/threads/parallel.hpp> <sar/autograd/variable.hpp>)
endfunction()

# Compiles up to 16 sources of a target as one, in half the time or less; -DCMAKE_UNITY_BUILD=OFF compiles each by itself.
function(sar_unity target)
  if(NOT DEFINED CMAKE_UNITY_BUILD)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 16)
  endif()
endfunction()

# Sources of a library, in each of its precisions: sar_sources(LIBRARY SOURCES...). Up to 16 that sar_unity compiles as one are of one room.
function(sar_sources library)
  set(sources ${ARGN})
  list(TRANSFORM sources PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/ REGEX "^[^/]")
  target_sources(${library} PRIVATE ${sources})
  if(TARGET ${library}_double)
    target_sources(${library}_double PRIVATE ${sources})
  endif()
  cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE room)
  string(REPLACE / _ room ${room})
  list(LENGTH sources size)
  math(EXPR groups "(${size} + 15) / 16")
  set(count 0)
  foreach(source ${sources})
    math(EXPR group "${count} * ${groups} / ${size}")
    math(EXPR count "${count} + 1")
    set_source_files_properties(${source} TARGET_DIRECTORY ${library} PROPERTIES UNITY_GROUP ${room}_${group})
  endforeach()
endfunction()

# What the compiler is told of the processor, SAR_MARCH, and the instruction sets that kernels are compiled for, SAR_ISAS, in increasing order:
# with SAR_NATIVE=OFF on x86-64 several, of which the first is what all other code is compiled for; otherwise none, which means what the compiler
# takes anyway. A set is a name (of a namespace, and of an enumerator of InstructionSet), the bytes of its vectors and the compiler's target.
set(SAR_MARCH "")
set(SAR_ISAS "")
macro(sar_isa name vector_bytes target)
  list(APPEND SAR_ISAS ${name})
  set(SAR_ISA_${name} "#define SAR_ISA ${name}\n#define SAR_VECTOR_BYTES ${vector_bytes}\n")
  if(NOT "${target}" STREQUAL "")
    string(APPEND SAR_ISA_${name} "#define SAR_ISA_TARGET \"${target}\"\n")
  endif()
endmacro()
if(SAR_NATIVE)
  set(SAR_MARCH -march=native)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
    list(APPEND SAR_MARCH -mprefer-vector-width=512) # where there are such vectors: GCC takes half of one by itself
  endif()
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$" AND CMAKE_SIZEOF_VOID_P EQUAL 8)
  set(SAR_MARCH -march=x86-64-v2)
  sar_isa(x86_64_v2 16 "")
  sar_isa(x86_64_v3 32 arch=x86-64-v3)
  sar_isa(x86_64_v4 64 arch=x86-64-v4)
endif()

# Sources of a library with a region of core/isa/isa_begin.hpp, compiled once for each instruction set:
# sar_kernels(LIBRARY SOURCES... [OPTIONS compiler options...])
function(sar_kernels library)
  cmake_parse_arguments(arg "" "" "OPTIONS" ${ARGN})
  list(TRANSFORM SAR_ISAS REPLACE "(.+)" " M(\\1, __VA_ARGS__)" OUTPUT_VARIABLE all_sets)
  list(JOIN all_sets "" all_sets)
  foreach(source ${arg_UNPARSED_ARGUMENTS})
    set(compiled ${CMAKE_CURRENT_SOURCE_DIR}/${source})
    cmake_path(RELATIVE_PATH compiled BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE path)
    if(SAR_ISAS)
      set(compiled "")
      foreach(isa ${SAR_ISAS})
        string(REPLACE ".cpp" "_${isa}.cpp" file ${PROJECT_BINARY_DIR}/isa/${path})
        list(FIND SAR_ISAS ${isa} number)
        file(CONFIGURE OUTPUT ${file} @ONLY
             CONTENT "${SAR_ISA_${isa}}#define SAR_ISA_NUMBER ${number}\n#define SAR_ISAS(M, ...)${all_sets}\n#include <sar/${path}>\n")
        list(APPEND compiled ${file})
      endforeach()
    endif()
    sar_sources(${library} ${compiled})
    set_source_files_properties(${compiled} TARGET_DIRECTORY ${library} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    if(arg_OPTIONS)  # which do not fit the precompiled headers
      set_source_files_properties(${compiled} TARGET_DIRECTORY ${library} PROPERTIES COMPILE_OPTIONS "${arg_OPTIONS}" SKIP_PRECOMPILE_HEADERS ON)
    endif()
  endforeach()
endfunction()

# Warnings, architecture and sanitizers of one of our own targets; nothing of this reaches an embedding project.
function(sar_compile_settings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wshadow -Wswitch-enum -Wnon-virtual-dtor -Woverloaded-virtual
                                           $<$<BOOL:${SAR_WERROR}>:-Werror> ${SAR_MARCH}
                                           -fno-fast-math # which a host may set for all: sums are exact, and NaN is found
                                           -Wno-psabi # wide vectors pass between functions of one file only
                                           $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations> # stable_sort of libstdc++, when precompiled
                                           # -march=native of clang 19 on a processor with AVX10
                                           $<$<AND:$<CXX_COMPILER_ID:Clang>,$<VERSION_GREATER_EQUAL:$<CXX_COMPILER_VERSION>,19>>:-Wno-invalid-feature-combination>)
  if(SAR_SANITIZE STREQUAL "thread")
    target_compile_options(${target} PRIVATE -fsanitize=thread -fno-omit-frame-pointer $<$<CXX_COMPILER_ID:GNU>:-Wno-tsan>)
    target_link_options(${target} PUBLIC -fsanitize=thread)
  elseif(SAR_SANITIZE STREQUAL "memory")
    # The standard library, MPI and oneTBB are not instrumented, so that what they write to the stack and to other blocks seems to be without
    # values. Only blocks of tensors and arrays begin without values, which memory.cpp says, and MSAN_OPTIONS of the tests.
    target_compile_definitions(${target} PRIVATE SAR_MEMORY_SANITIZER)
    target_compile_options(${target} PRIVATE -fsanitize=memory -fno-omit-frame-pointer -fno-sanitize-memory-use-after-dtor
                                             "SHELL:-mllvm -msan-poison-stack=0")
    target_link_options(${target} PUBLIC -fsanitize=memory)
  elseif(SAR_SANITIZE STREQUAL "address")
    # the address sanitizer reports accesses through null as well; without these three, sources are compiled in three quarters of the time
    target_compile_options(${target} PRIVATE -fsanitize=address,undefined -fno-sanitize=null,vptr,object-size
                                             -fno-sanitize-recover=undefined -fno-omit-frame-pointer
                                             $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)  # false alarms in intrinsics when instrumented
    target_link_options(${target} PUBLIC -fsanitize=address,undefined)
  elseif(SAR_SANITIZE STREQUAL "heap") # the address sanitizer without checks of the stack: compiled in half the time of "address"
    target_compile_options(${target} PRIVATE -fsanitize=address -fno-omit-frame-pointer
                                             $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>
                                             $<$<CXX_COMPILER_ID:GNU>:SHELL:--param asan-stack=0>)
    target_link_options(${target} PUBLIC -fsanitize=address)
  endif()
  if(SAR_FUZZ)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
endfunction()

# A program of ours that links the library: sar_program(NAME SOURCES...)
function(sar_program name)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE sar::data sar::models)
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
