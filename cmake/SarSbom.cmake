# SPDX-License-Identifier: MIT

# The bill of materials: which other software is in the libraries and programs of this build, or is linked with them, with versions and
# licences, as an SPDX document (ISO/IEC 5962) that is installed. The file is read after all packages are found.

# Adds a package: sar_material(NAME VERSION LICENCE RELATIONSHIP). The relationship is that of sar to the package (STATIC_LINK, DEPENDS_ON), or,
# if it ends with _OF, that of the package to sar.
set(materials "")
set(relationships "")
macro(sar_material name version licence relationship)
  string(REGEX REPLACE "[^A-Za-z0-9]" "-" id "${name}")
  string(TOLOWER ${id} purl)
  list(APPEND materials "    { \"SPDXID\": \"SPDXRef-${id}\", \"name\": \"${name}\", \"versionInfo\": \"${version}\", \"downloadLocation\": \"NOASSERTION\",
      \"filesAnalyzed\": false, \"licenseConcluded\": \"NOASSERTION\", \"licenseDeclared\": \"${licence}\", \"copyrightText\": \"NOASSERTION\",
      \"externalRefs\": [{ \"referenceCategory\": \"PACKAGE-MANAGER\", \"referenceType\": \"purl\", \"referenceLocator\": \"pkg:generic/${purl}@${version}\" }] }")
  if("${relationship}" MATCHES "_OF$")
    set(ends "\"spdxElementId\": \"SPDXRef-${id}\", \"relatedSpdxElement\": \"SPDXRef-sar\"")
  else()
    set(ends "\"spdxElementId\": \"SPDXRef-sar\", \"relatedSpdxElement\": \"SPDXRef-${id}\"")
  endif()
  list(APPEND relationships "    { ${ends}, \"relationshipType\": \"${relationship}\" }")
endmacro()

sar_material("Eigen" "${Eigen3_VERSION}" MPL-2.0 STATIC_LINK)
sar_material("nlohmann-json" "${nlohmann_json_VERSION}" MIT STATIC_LINK)
sar_material("oneTBB" "${TBB_VERSION}" Apache-2.0 DEPENDS_ON)
if(SAR_MPI MATCHES "^(.*) ([0-9].*)$")
  set(name ${CMAKE_MATCH_1})
  set(version ${CMAKE_MATCH_2})
  set(licence BSD-3-Clause-Open-MPI)
  if(name STREQUAL "MPICH")
    set(licence mpich2)
  endif()
  sar_material("${name}" "${version}" ${licence} DEPENDS_ON)
endif()
if(SAR_HAVE_METIS)
  sar_material("METIS" "${METIS_VERSION}" Apache-2.0 DEPENDS_ON)
endif()
if(SAR_HAVE_SCOTCH)
  sar_material("PT-Scotch" "${PTSCOTCH_VERSION}" CECILL-C DEPENDS_ON)
endif()
if(SAR_BUILD_TOOLS)
  get_directory_property(version DIRECTORY ${PROJECT_SOURCE_DIR}/tools DEFINITION CLI11_VERSION)
  sar_material("CLI11" "${version}" BSD-3-Clause STATIC_LINK)
  get_directory_property(version DIRECTORY ${PROJECT_SOURCE_DIR}/tools/formats DEFINITION ZLIB_VERSION_STRING)
  sar_material("zlib" "${version}" Zlib DEPENDS_ON)
  if(SAR_HAVE_ARROW)
    sar_material("Apache Arrow" "${Arrow_VERSION}" Apache-2.0 DEPENDS_ON)
  endif()
  if(SAR_HAVE_SQLITE)
    sar_material("SQLite" "${SQLite3_VERSION}" blessing DEPENDS_ON)
  endif()
  if(SAR_HAVE_LMDB)
    sar_material("LMDB" "${LMDB_VERSION}" OLDAP-2.8 DEPENDS_ON)
  endif()
endif()
if(SAR_BUILD_TESTS)
  get_directory_property(version DIRECTORY ${PROJECT_SOURCE_DIR}/tests DEFINITION doctest_VERSION)
  sar_material("doctest" "${version}" MIT TEST_DEPENDENCY_OF)
endif()
string(REPLACE GNU GCC compiler ${CMAKE_CXX_COMPILER_ID})
sar_material("${compiler}" "${CMAKE_CXX_COMPILER_VERSION}" NOASSERTION BUILD_TOOL_OF)

list(JOIN materials ",\n" materials)
list(JOIN relationships ",\n" relationships)
string(UUID uuid NAMESPACE 6ba7b811-9dad-11d1-80b4-00c04fd430c8 NAME "sar ${PROJECT_VERSION} ${materials}" TYPE SHA1)
string(TIMESTAMP created "%Y-%m-%dT%H:%M:%SZ" UTC)  # SOURCE_DATE_EPOCH, where it is set
file(WRITE ${PROJECT_BINARY_DIR}/sar.spdx.json "{
  \"spdxVersion\": \"SPDX-2.3\",
  \"dataLicense\": \"CC0-1.0\",
  \"SPDXID\": \"SPDXRef-DOCUMENT\",
  \"name\": \"sar-${PROJECT_VERSION}\",
  \"documentNamespace\": \"urn:uuid:${uuid}\",
  \"creationInfo\": { \"created\": \"${created}\", \"creators\": [\"Organization: The SAR for C++ authors\", \"Tool: CMake-${CMAKE_VERSION}\"] },
  \"packages\": [
    { \"SPDXID\": \"SPDXRef-sar\", \"name\": \"sar\", \"versionInfo\": \"${PROJECT_VERSION}\", \"downloadLocation\": \"NOASSERTION\",
      \"filesAnalyzed\": false, \"licenseConcluded\": \"MIT\", \"licenseDeclared\": \"MIT\", \"copyrightText\": \"2026 The SAR for C++ authors\" },
${materials}
  ],
  \"relationships\": [
    { \"spdxElementId\": \"SPDXRef-DOCUMENT\", \"relatedSpdxElement\": \"SPDXRef-sar\", \"relationshipType\": \"DESCRIBES\" },
${relationships}
  ]
}
")
install(FILES ${PROJECT_BINARY_DIR}/sar.spdx.json DESTINATION ${CMAKE_INSTALL_DATADIR}/sar COMPONENT sar_dev)
