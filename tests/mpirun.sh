#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# mpirun.sh MPIEXEC RANKS PROGRAM [ARG...]: starts an MPI program on this machine, with Open MPI or MPICH, as root or
# not, with more ranks than cores if need be.
set -euo pipefail
mpiexec=$1 ranks=$2
shift 2
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_pml=ob1  # by shared memory: Open MPI starts in two thirds of the time where it looks for no fast network
export OMPI_MCA_mpi_yield_when_idle=1  # ranks that wait leave the core to those that compute
# Where the machine stands still while a program ends, MPI_Finalize of Open MPI stops waiting for mpiexec after two seconds,
# and mpiexec then takes the end for one without MPI_Finalize. The tests ask for the exit code.
export OMPI_MCA_orte_allowed_exit_without_sync=1
case "$("$mpiexec" --version 2>&1)" in
  *"Open MPI"* | *OpenRTE*) exec "$mpiexec" --oversubscribe --bind-to none -n "$ranks" "$@" ;;
  *) exec "$mpiexec" -n "$ranks" "$@" ;;
esac
