// SPDX-License-Identifier: MIT

/// Converts MPI errors to exceptions. For the sources of comm/ only.
#pragma once

#include <sar/config.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// Throws CommunicationError with the name of the call and MPI's message unless `code` is MPI_SUCCESS.
void check_mpi(int code, const char* call);

/// Throws CommunicationError if the process runs another MPI than the one that the library was compiled with:
/// the dynamic linker takes the functions of the MPI library that it finds first. It may be called before MPI
/// is initialized, and needs no handles, whose types differ.
void require_mpi_of_build();

/// Returns whether this process is a fork of the one that used MPI first, whose messages it would disturb by
/// calls of MPI.
bool is_fork() noexcept;

/// Returns whether calls of MPI are allowed in a destructor: MPI is not finalized, and this process is not a
/// fork.
bool mpi_runs() noexcept;

/// Throws CommunicationError, with the name `what` of the caller's feature, unless MPI is initialized and not
/// finalized, is the one that the library was built with, and this process is not a fork. A communicator
/// `of_session` needs no MPI_Init.
void require_running_mpi(const char* what, bool of_session = false);

/// Throws CommunicationError if MPI was initialized with a `level` that does not allow calls from several
/// threads.
void check_thread_level(int level);

}}  // namespace sar
