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
    target_compile_options(${target} PRIVATE -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
    target_link_options(${target} PUBLIC -fsanitize=address,undefined)
  endif()
endfunction()

# A program of ours that links the library: sar_program(NAME SOURCES...)
function(sar_program name)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE sar::sar)
  sar_compile_settings(${name})
endfunction()
