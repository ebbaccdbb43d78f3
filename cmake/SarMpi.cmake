# SPDX-License-Identifier: MIT

# sar_mpi_name(VARIABLE [LANGUAGE]): which MPI find_package(MPI) has found for the language, CXX by default, as its mpi.h says: "Open MPI 4.1.4", "MPICH 4.0.2", or an
# empty string where CMake does not know its folder of headers (the compiler is an MPI wrapper). MPI libraries with the
# binary interface of MPICH count as MPICH.
function(sar_mpi_name variable)
  set(name "")
  set(language CXX)
  if(ARGC GREATER 1)
    set(language ${ARGV1})
  endif()
  find_file(sar_mpi_h mpi.h PATHS ${MPI_${language}_INCLUDE_DIRS} NO_DEFAULT_PATH NO_CACHE)
  if(sar_mpi_h)
    file(STRINGS ${sar_mpi_h} defined REGEX "^#define (OMPI_(MAJOR|MINOR|RELEASE)_VERSION|(MPICH|I_MPI)_VERSION) ")
    list(TRANSFORM defined REPLACE "^#define [^ ]+ +\"?([0-9a-z.]+).*" "\\1" OUTPUT_VARIABLE numbers)
    list(JOIN numbers "." version)
    if(defined MATCHES "OMPI_MAJOR_VERSION")
      set(name "Open MPI ${version}")
    elseif(defined)
      list(GET numbers 0 version)
      set(name "MPICH ${version}")
    endif()
  endif()
  set(${variable} ${name} PARENT_SCOPE)
endfunction()
