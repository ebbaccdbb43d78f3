/// How the ranks tell each other whether they have failed. For the sources of comm/ only.
#pragma once

#include <sar/core/error.hpp>

#include <mpi.h>

#include <cstdint>
#include <exception>
#include <string>

namespace sar::inline SAR_PRECISION {

/// An exchange of rows that ended because another rank gave it up. The cause is the error of that rank.
class PeerGaveUp : public CommunicationError {
 public:
  using CommunicationError::CommunicationError;
};

/// What went wrong on this rank. Nothing is copied: that works without memory, too.
struct Failure {
  std::exception_ptr exception;  ///< empty: nothing went wrong
  ErrorKind kind = ErrorKind::general;
  const char* text = "";  ///< lives as long as `exception`
  bool consequence = false;

  /// The exception being handled.
  static Failure current() noexcept;
};

/// What all ranks know of each other after a synchronization point.
struct GroupStatus {
  int depth = 0;  ///< smallest of the ranks that have failed; 0: none has
  ErrorKind kind = ErrorKind::general;
  std::string text;       ///< of the cause, with its rank unless all ranks say the same
  bool all_equal = true;  ///< all ranks came with the same value; only if none has failed
};

/// One small all_reduce when nobody has failed. `depth` of this rank is at least 1. Collective.
GroupStatus exchange_status(MPI_Comm comm, const Failure& mine, int depth, std::int64_t value);

}  // namespace sar
