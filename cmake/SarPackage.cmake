# SPDX-License-Identifier: MIT

# Debian packages of an installation, by `cpack` or the target `package`, one of each component of the installation: libsar-dev, libsar-data-dev,
# libsar-models-dev, libsar-c-dev, libsar-fortran-dev, libsar-c0 (the shared library of the C interface; 0 is its SOVERSION), libsar-doc and sar-tools,
# of those that are built. The preset `package` has the options for packages that are given to others. The file is read after all targets
# are made.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME sar)
set(CPACK_PACKAGE_VENDOR "The SAR for C++ authors")
if(NOT CPACK_PACKAGE_CONTACT)  # who gives packages to others says -DCPACK_PACKAGE_CONTACT="Name <address>"
  set(CPACK_PACKAGE_CONTACT "The SAR for C++ authors <sar@localhost>")
endif()
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "training of graph neural networks under MPI")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/package_files.cmake)
set(CPACK_SAR_SOURCE_DIR ${PROJECT_SOURCE_DIR})  # for that script

# The package that compiles against the MPI of the build, and the one that has its mpirun.
set(sar_mpi_dev libopenmpi-dev)
set(sar_mpi_run openmpi-bin)
if(SAR_MPI MATCHES "^MPICH")
  set(sar_mpi_dev libmpich-dev)
  set(sar_mpi_run mpich)
endif()

# Makes a package of a component: sar_package(COMPONENT NAME SECTION DESCRIPTION DEPENDS...)
macro(sar_package component name section description)
  string(TOUPPER ${component} COMPONENT)
  list(APPEND CPACK_COMPONENTS_ALL ${component})
  set(CPACK_COMPONENT_${COMPONENT}_DESCRIPTION "${description}\nSAR_PRECISION is ${SAR_PRECISION}.")
  set(CPACK_DEBIAN_${COMPONENT}_PACKAGE_NAME ${name})
  set(CPACK_DEBIAN_${COMPONENT}_PACKAGE_SECTION ${section})
  string(REPLACE ";" ", " CPACK_DEBIAN_${COMPONENT}_PACKAGE_DEPENDS "${ARGN}")
endmacro()

set(same_version "(= ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})")
sar_package(sar_dev libsar-dev libdevel "Headers, static library, CMake package and pkg-config file." ${sar_mpi_dev} libtbb-dev)
if(TARGET sar_data)
  string(TOLOWER "${sar_partitioners}" partitioners)
  list(TRANSFORM partitioners REPLACE "(.+)" "lib\\1-dev")
  sar_package(sar_data_dev libsar-data-dev libdevel "Datasets, files, generators, partitioners: headers and static library."
              "libsar-dev ${same_version}" ${partitioners})
endif()
if(TARGET sar_models)
  sar_package(sar_models_dev libsar-models-dev libdevel "Networks from descriptions, for meshes, atoms and links: headers and static library."
              "libsar-dev ${same_version}")
  set(runtime "")
  if(TARGET sar_c)
    set(runtime libsar-c${PROJECT_VERSION_MAJOR})
    sar_package(sar_runtime ${runtime} libs "The shared library of the interface for C and Fortran.")
    set(CPACK_DEBIAN_SAR_RUNTIME_PACKAGE_SHLIBDEPS ON)
    set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
    set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
    set(CPACK_DEBIAN_SAR_RUNTIME_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/cmake/debian/triggers)  # ldconfig
    string(APPEND runtime " ${same_version}")
  endif()
  sar_package(sar_c_dev libsar-c-dev libdevel "The interface for C: headers and libraries; the source of the Fortran module."
              "libsar-models-dev ${same_version}" ${runtime})
endif()
if(TARGET sar_fortran)
  sar_package(sar_fortran_dev libsar-fortran-dev libdevel "The Fortran module, compiled by ${CMAKE_Fortran_COMPILER_ID} ${CMAKE_Fortran_COMPILER_VERSION}."
              "libsar-c-dev ${same_version}")
endif()
if(SAR_BUILD_TOOLS)
  sar_package(sar_tools sar-tools science "The programs sar-train, sar-partition, sar-plan and sar-generate." ${sar_mpi_run})
  set(CPACK_DEBIAN_SAR_TOOLS_PACKAGE_SHLIBDEPS ON)
endif()
sar_package(sar_doc libsar-doc doc "Guides, examples as projects of their own and, where Doxygen was found, the reference of the API.")
set(CPACK_DEBIAN_SAR_DOC_PACKAGE_ARCHITECTURE all)
include(CPack)
