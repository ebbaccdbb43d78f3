#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# symbols_test.sh PREFIX: the libraries in C++ define names in sar:: only, besides those of sar.h, in libsar_c.a, and instances of the templates
# of the standard library and of oneTBB, which every program may define; and they call no function of MPI that makes handles unless
# tests/support/mpi_handles.cpp counts them.
set -euo pipefail
libraries=$(find "$1" -name "libsar*.a" ! -name libsar_fortran.a)
here=$(cd "$(dirname "$0")" && pwd)
# symbols LIBRARY OPTION
symbols() { nm --extern-only "$2" "$1" 2>/dev/null; }

# A mangled name: what it is (a table of a class, a variable of a function), then its outermost scope.
what='_Z(GVZ?|GR|T[ISVTC]|Z)*[NKVROPF]*'
for library in $libraries; do
  symbols "$library" --defined-only | awk 'NF == 3 { print $2, $3 }' | sort -u >"$1/symbols"
  few=50 of_c='^$'
  case $library in
    */libsar.a | */libsar_double.a) few=300 ;;
    */libsar_c.a) few=10 of_c='^T sar_' ;;
  esac
  [ "$(grep -cE "^T ${what}3sar" "$1/symbols")" -ge $few ] || { echo "FAILED: few functions in $library"; exit 1; }
  grep -Ev "^[A-Zu] ${what}3sar|$of_c" "$1/symbols" | grep -Ev "^[WVu] (DW\.ref\.|$what(S[tabsiod]|9__gnu_cxx|3tbb6detail))" | c++filt &&
    { echo "FAILED: these names of $library are not in sar::"; exit 1; }
done

counted=$(grep -oE '^int MPI_\w+' "$here/../support/mpi_handles.cpp" | cut -d' ' -f2)
harmless="MPI_Allgather MPI_Allgatherv MPI_Allreduce MPI_Alltoall MPI_Barrier MPI_Bcast MPI_Cancel MPI_Comm_create_keyval
  MPI_Comm_f2c MPI_Get_library_version MPI_Group_free MPI_Group_from_session_pset MPI_Group_rank MPI_Group_size MPI_Session_finalize MPI_Session_init
  MPI_Comm_free_keyval MPI_Comm_rank MPI_Comm_set_attr MPI_Comm_set_errhandler
  MPI_Comm_size MPI_Comm_test_inter MPI_Error_string MPI_Finalize MPI_Finalized MPI_Get MPI_Get_count MPI_Improbe MPI_Init_thread MPI_Initialized
  MPI_Is_thread_main MPI_Query_thread MPI_Type_commit MPI_Win_flush_all MPI_Win_lock_all MPI_Win_set_errhandler MPI_Win_sync
  MPI_Win_unlock_all"
for library in $libraries; do symbols "$library" --undefined-only; done | grep -oE '\bMPI_\w+' | sort -u | grep -vxF -f <(printf '%s\n' $counted $harmless) &&
  { echo "FAILED: handles of these calls are not counted by mpi_handles.cpp"; exit 1; }
rm "$1/symbols"
