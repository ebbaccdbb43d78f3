# SPDX-License-Identifier: MIT

# Finds PT-Scotch (parallel graph partitioning), with Open MPI or MPICH as SAR_MPI says, and defines PTSCOTCH::PTSCOTCH, a target without
# include directories: the folder of PTSCOTCH_INCLUDE_DIR may hold a metis.h, too. PTSCOTCH_ROOT points to an installation elsewhere,
# PTSCOTCH_VARIANT is a folder below the usual ones: Debian has 32-bit integers in scotch and 64-bit ones in scotch-int64.
set(PTSCOTCH_VARIANT "scotch" CACHE STRING "Folder of the PT-Scotch to take: scotch, scotch-int64, ...")
find_path(PTSCOTCH_INCLUDE_DIR ptscotch.h PATH_SUFFIXES ${PTSCOTCH_VARIANT})
find_library(PTSCOTCH_LIBRARY ptscotch PATH_SUFFIXES ${PTSCOTCH_VARIANT})
find_library(PTSCOTCH_ERROR_LIBRARY ptscotcherr PATH_SUFFIXES ${PTSCOTCH_VARIANT})
mark_as_advanced(PTSCOTCH_VARIANT PTSCOTCH_INCLUDE_DIR PTSCOTCH_LIBRARY PTSCOTCH_ERROR_LIBRARY)

# a shared library names its MPI; two in one program do not work
set(PTSCOTCH_SAME_MPI TRUE)
if(PTSCOTCH_LIBRARY AND SAR_MPI)
  file(STRINGS ${PTSCOTCH_LIBRARY} ptscotch_mpi REGEX "^libmpi(ch)?\\.so" LIMIT_COUNT 1)
  string(REGEX MATCH "^libmpi\\.so\\.[24]0" ptscotch_open_mpi "${ptscotch_mpi}")
  string(REGEX MATCH "^Open MPI" ptscotch_our_open_mpi "${SAR_MPI}")
  if(ptscotch_mpi AND NOT "${ptscotch_open_mpi}" STREQUAL "" AND NOT ptscotch_our_open_mpi)
    set(PTSCOTCH_SAME_MPI FALSE)
  elseif(ptscotch_mpi AND "${ptscotch_open_mpi}" STREQUAL "" AND ptscotch_our_open_mpi)
    set(PTSCOTCH_SAME_MPI FALSE)
  endif()
endif()
if(EXISTS "${PTSCOTCH_INCLUDE_DIR}/scotch.h")
  file(STRINGS ${PTSCOTCH_INCLUDE_DIR}/scotch.h PTSCOTCH_VERSION REGEX "^#define SCOTCH_(VERSION|RELEASE|PATCHLEVEL) ")
  string(REGEX REPLACE "[^0-9;]" "" PTSCOTCH_VERSION "${PTSCOTCH_VERSION}")
  string(REPLACE ";" "." PTSCOTCH_VERSION "${PTSCOTCH_VERSION}")
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(PTSCOTCH REQUIRED_VARS PTSCOTCH_LIBRARY PTSCOTCH_ERROR_LIBRARY PTSCOTCH_INCLUDE_DIR PTSCOTCH_SAME_MPI
                                  VERSION_VAR PTSCOTCH_VERSION)

if(PTSCOTCH_FOUND AND NOT TARGET PTSCOTCH::PTSCOTCH)
  add_library(PTSCOTCH::PTSCOTCH UNKNOWN IMPORTED)
  set_target_properties(PTSCOTCH::PTSCOTCH PROPERTIES IMPORTED_LOCATION ${PTSCOTCH_LIBRARY}
                                                      INTERFACE_LINK_LIBRARIES ${PTSCOTCH_ERROR_LIBRARY})
endif()
