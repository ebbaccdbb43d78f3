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

/// What a rank is about to do at a synchronization point. All ranks must come with the same.
struct CommCall {
  const char* name;
  std::int64_t length = -1;  ///< of what travels, where it must be equal; -1: it need not
  const char* unit = "bytes";
  int root = -1;
  const char* caller = "";  ///< for the text only: the function whose agree() this rank is in
  bool ends = false;        ///< the end of what `name` says, not a call of it
};

/// What all ranks know of each other after a synchronization point.
struct GroupStatus {
  bool failed = false;  ///< some ranks have, or the calls of the ranks do not match
  int depth = 0;        ///< smallest of the ranks that have failed; 1 where calls do not match
  ErrorKind kind = ErrorKind::general;
  std::string text;       ///< of the cause, with its rank unless all ranks say the same
  bool all_equal = true;  ///< all ranks came with the same value; only if none has failed
};

/// One small all_reduce when nobody has failed and all ranks come with the same call, depth and value. `depth`
/// of a rank that has failed is at least 1. Where calls differ, the status is a failure that names two of
/// them. Collective.
GroupStatus exchange_status(MPI_Comm comm, const Failure& mine, int depth, const CommCall& call,
                            std::int64_t value = 0);

}  // namespace sar
