# SPDX-License-Identifier: MIT

# Finds METIS 5 (serial graph partitioning) and defines METIS::METIS. METIS_ROOT points to an installation elsewhere.
# Newer releases keep a part of themselves in a second library, GKlib.
find_path(METIS_INCLUDE_DIR metis.h)
find_library(METIS_LIBRARY metis)
find_library(METIS_GKLIB_LIBRARY GKlib)
mark_as_advanced(METIS_INCLUDE_DIR METIS_LIBRARY METIS_GKLIB_LIBRARY)

if(METIS_INCLUDE_DIR)
  file(STRINGS ${METIS_INCLUDE_DIR}/metis.h metis_version_lines REGEX "#define METIS_VER_(MAJOR|MINOR|SUBMINOR)")
  string(REGEX REPLACE "[^0-9;]" "" METIS_VERSION "${metis_version_lines}")
  string(REPLACE ";" "." METIS_VERSION "${METIS_VERSION}")
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(METIS REQUIRED_VARS METIS_LIBRARY METIS_INCLUDE_DIR VERSION_VAR METIS_VERSION)

if(METIS_FOUND AND NOT TARGET METIS::METIS)
  add_library(METIS::METIS UNKNOWN IMPORTED)
  set_target_properties(METIS::METIS PROPERTIES IMPORTED_LOCATION ${METIS_LIBRARY}
                                                INTERFACE_INCLUDE_DIRECTORIES ${METIS_INCLUDE_DIR})
  if(METIS_GKLIB_LIBRARY)
    set_target_properties(METIS::METIS PROPERTIES INTERFACE_LINK_LIBRARIES ${METIS_GKLIB_LIBRARY})
  endif()
endif()
