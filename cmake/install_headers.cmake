# SPDX-License-Identifier: MIT

# At installation: the headers that the umbrella header of a library includes, directly or not, without those of sar.hpp where it is
# another; headers that no umbrella header includes are for our own sources.
# Given: sar_umbrella, sar_headers, the folder of all headers, and sar_includedir, the folder of headers under the prefix.
cmake_policy(VERSION 3.22)
function(read_included umbrella result)
  set(to_read ${umbrella})
  set(read)
  while(to_read)
    list(POP_FRONT to_read header)
    if(NOT header IN_LIST read)
      list(APPEND read ${header})
      file(STRINGS ${sar_headers}/${header} included REGEX "^#include <sar/")
      list(TRANSFORM included REPLACE "^#include <sar/(.*)>.*" "\\1")
      list(APPEND to_read ${included})
    endif()
  endwhile()
  set(${result} ${read} PARENT_SCOPE)
endfunction()

read_included(${sar_umbrella} public)
if(NOT sar_umbrella STREQUAL "sar.hpp")
  read_included(sar.hpp of_sar)
  list(REMOVE_ITEM public ${of_sar})
endif()
cmake_path(ABSOLUTE_PATH sar_includedir BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX})
foreach(header ${public})
  file(REAL_PATH ${sar_headers}/${header} file)
  cmake_path(GET header PARENT_PATH folder)
  file(INSTALL ${file} DESTINATION ${sar_includedir}/sar/${folder})
endforeach()
