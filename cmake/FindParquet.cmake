# SPDX-License-Identifier: MIT

# Finds Apache Arrow's C++ libraries arrow and parquet, and defines Parquet::parquet. Their own CMake configuration is taken where it is
# installed; ARROW_ROOT points to an installation without one, such as the folder of Python's pyarrow (after pyarrow.create_library_symlinks()).
find_package(Arrow CONFIG QUIET)
find_package(Parquet CONFIG QUIET)
if(NOT TARGET Parquet::parquet_shared)
  find_path(ARROW_INCLUDE_DIR parquet/arrow/reader.h HINTS ${ARROW_ROOT} PATH_SUFFIXES include)
  find_library(ARROW_LIBRARY arrow HINTS ${ARROW_ROOT} PATH_SUFFIXES lib)
  find_library(PARQUET_LIBRARY parquet HINTS ${ARROW_ROOT} PATH_SUFFIXES lib)
  mark_as_advanced(ARROW_INCLUDE_DIR ARROW_LIBRARY PARQUET_LIBRARY)
  include(FindPackageHandleStandardArgs)
  find_package_handle_standard_args(Parquet REQUIRED_VARS PARQUET_LIBRARY ARROW_LIBRARY ARROW_INCLUDE_DIR)
endif()

if(Parquet_FOUND AND NOT TARGET Parquet::parquet)
  add_library(Parquet::parquet INTERFACE IMPORTED)
  if(TARGET Parquet::parquet_shared)
    target_link_libraries(Parquet::parquet INTERFACE Parquet::parquet_shared Arrow::arrow_shared)
  else()
    target_include_directories(Parquet::parquet SYSTEM INTERFACE ${ARROW_INCLUDE_DIR})
    target_link_libraries(Parquet::parquet INTERFACE ${PARQUET_LIBRARY} ${ARROW_LIBRARY})
  endif()
endif()
