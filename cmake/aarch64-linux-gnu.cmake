# SPDX-License-Identifier: MIT

# Cross compilation for aarch64 with Debian's g++-aarch64-linux-gnu; programs run under qemu-user. AARCH64_SYSROOT: a folder that
# aarch64-sysroot.sh filled.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES AARCH64_SYSROOT)
set(CMAKE_SYSROOT ${AARCH64_SYSROOT})
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L ${AARCH64_SYSROOT})
set(CMAKE_FIND_ROOT_PATH ${AARCH64_SYSROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)  # compilers and mpirun are those of this machine
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE BOTH)  # headers without code, such as Eigen's, may be those of this machine
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE BOTH)
set(MPI_CXX_SKIP_MPICXX ON CACHE BOOL "")
set(MPI_CXX_LIB_NAMES mpi CACHE STRING "")
set(MPI_mpi_LIBRARY ${AARCH64_SYSROOT}/usr/lib/aarch64-linux-gnu/openmpi/lib/libmpi.so CACHE FILEPATH "")
set(MPI_CXX_HEADER_DIR ${AARCH64_SYSROOT}/usr/lib/aarch64-linux-gnu/openmpi/include CACHE PATH "")
set(TBB_DIR ${AARCH64_SYSROOT}/usr/lib/aarch64-linux-gnu/cmake/TBB CACHE PATH "")
