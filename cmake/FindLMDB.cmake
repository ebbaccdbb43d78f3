# SPDX-License-Identifier: MIT

# Finds LMDB, and defines LMDB::lmdb.
find_path(LMDB_INCLUDE_DIR lmdb.h)
find_library(LMDB_LIBRARY lmdb)
mark_as_advanced(LMDB_INCLUDE_DIR LMDB_LIBRARY)
if(LMDB_INCLUDE_DIR)
  file(STRINGS ${LMDB_INCLUDE_DIR}/lmdb.h numbers REGEX "#define MDB_VERSION_(MAJOR|MINOR|PATCH)")
  string(REGEX MATCHALL "[0-9]+" numbers "${numbers}")
  list(JOIN numbers . LMDB_VERSION)
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LMDB REQUIRED_VARS LMDB_LIBRARY LMDB_INCLUDE_DIR VERSION_VAR LMDB_VERSION)

if(LMDB_FOUND AND NOT TARGET LMDB::lmdb)
  add_library(LMDB::lmdb INTERFACE IMPORTED)
  target_include_directories(LMDB::lmdb SYSTEM INTERFACE ${LMDB_INCLUDE_DIR})
  target_link_libraries(LMDB::lmdb INTERFACE ${LMDB_LIBRARY})
endif()
