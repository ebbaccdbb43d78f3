// SPDX-License-Identifier: MIT

/// What the sources of comm/ share of MPI: its errors as exceptions, communicators, sessions.
#pragma once

#include <sar/config.hpp>

#include <mpi.h>

namespace sar { inline namespace SAR_PRECISION {

// Converts MPI errors to exceptions. For the sources of comm/ only.

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

// OwnedComm: an MPI communicator that is freed at the end of a scope. For the sources of comm/ only.

struct OwnedComm : NonCopyable {
  MPI_Comm comm = MPI_COMM_NULL;

  ~OwnedComm() {
    if (comm != MPI_COMM_NULL && mpi_runs()) MPI_Comm_free(&comm);
  }
};

// Programs that use sessions of MPI 4 and never call MPI_Init. They have neither MPI_COMM_WORLD nor
// MPI_COMM_SELF, MPI_Initialized returns false, and no call tells when the last session ends.

/// Returns whether `comm` comes from a session: MPI_Init was not called, and it is not MPI_COMM_WORLD,
/// MPI_COMM_SELF or MPI_COMM_NULL. Always false with an MPI that has no sessions. May be called before MPI is
/// initialized.
bool is_of_session(MPI_Comm comm);
/// The same for a communicator of Fortran.
bool is_of_session_f(MPI_Fint comm);

/// The number of this process, and how many there are: in MPI_COMM_WORLD, or in the process set mpi://WORLD
/// if MPI_Init was not called.
struct ProcessNumber {
  int process = 0, processes = 1;
};

/// Local. Throws CommunicationError for errors of MPI.
ProcessNumber process_number();
}}  // namespace sar
