// SPDX-License-Identifier: MIT

/// How ranks learn at a synchronization point whether one of them failed or left the program. For the sources
/// of comm/ only.
#pragma once

#include <sar/comm/collective_call.hpp>
#include <sar/config.hpp>
#include <sar/core/error.hpp>
#include <sar/core/threads/parallel.hpp>

#include <mpi.h>

#include <cstdint>
#include <exception>
#include <string>

namespace sar { inline namespace SAR_PRECISION {

/// An exchange of rows ended because another rank gave it up. That rank's error is the cause.
class PeerGaveUp : public CommunicationError {
 public:
  using CommunicationError::CommunicationError;
};

/// The failure of this rank. Nothing is copied, so that it works without memory.
struct Failure {
  std::exception_ptr exception;  ///< empty: no failure
  ErrorKind kind = ErrorKind::general;
  const char* text = "";  ///< lives as long as `exception`
  bool consequence = false;

  /// Returns the failure for the exception being handled.
  static Failure current() noexcept;
};

/// What a rank is about to do at a synchronization point. All ranks must arrive with the same call.
struct CommCall {
  const char* name;
  std::int64_t length = -1;  ///< length of the data if it must be equal on all ranks, otherwise -1
  const char* unit = "bytes";
  int root = -1;
  const char* caller = "";           ///< the function whose agree() this rank is in; only for the message
  bool ends = false;                 ///< the end of `name`, not a call of it
  const CallChain* calls = nullptr;  ///< the calls with arguments that this rank is in
};

/// What all ranks know of each other after a synchronization point.
struct GroupStatus {
  bool failed = false;  ///< some ranks have failed, or the calls do not match
  int depth = 0;        ///< smallest depth of the failed ranks; 1 if calls do not match
  ErrorKind kind = ErrorKind::general;
  std::string text;               ///< text of the cause, with its rank unless all ranks have the same text
  bool arguments_differ = false;  ///< ranks make the same call with different arguments: `kind` and `text`
  bool all_equal = true;          ///< all ranks have the same value; only valid if none has failed
};

/// Collective. Exchanges the status of all ranks: one small all_reduce if no rank has failed and all arrive
/// with the same call, depth, arguments and value. The `depth` of a failed rank is at least 1. If calls
/// differ, the status is a failure that names two of them. `meanwhile` is called again and again while this
/// rank waits for others.
GroupStatus exchange_status(
    MPI_Comm comm, const Failure& mine, int depth, const CommCall& call, std::int64_t value = 0,
    FunctionRef<void()> meanwhile = [] {});

// Detects the exit of a rank, so that the other ranks throw instead of waiting for it forever. For the
// sources of comm/ only.

/// If `comm` (a duplicate made by the library) is the first communicator of all processes, takes it over
/// until MPI_Finalize and returns true. MPI_Finalize then begins with a synchronization point, at which a
/// rank that still makes a collective call of that communicator throws. For a communicator of a session,
/// which must be freed before the session ends, returns false: end_of_session() has that synchronization
/// point. All ranks of `comm` call it after a synchronization point.
bool keep_until_finalize(MPI_Comm comm);

/// Registers `action` to be called in MPI_Finalize with MPI_COMM_NULL: after all ranks of the communicator
/// above have reached it, or at once if there is none. end_of_session() calls it for each communicator of a
/// session. One action per program, registered with the communicator `comm`.
void at_program_end(MPI_Comm comm, void (*action)(MPI_Comm) noexcept);

/// To be called with a communicator of a session when its last handle is destroyed. If the ranks come here
/// together, synchronizes them where MPI_Finalize would, calls the action, and returns true. Otherwise it
/// returns false and the communicator must not be freed.
bool end_of_session(MPI_Comm comm, bool together) noexcept;

/// Waits until all ranks arrive here with `comm`: those that still make collective calls of it throw.
void wait_for_end(MPI_Comm comm);
}}  // namespace sar
