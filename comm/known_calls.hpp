/// KnownCalls: collective work that all ranks have done before, in the same way.
///
/// While it is alive, in the body of Communicator::agree, the calls of agree() inside of that body do not
/// synchronize, and the arguments of operations are not compared between ranks. What is left are the end of
/// the outer agree(), the start of each exchange of rows, and what communicates by itself. A rank that fails
/// still meets the others at the next of these, and all ranks throw. For implementation files.
#pragma once

#include <sar/config.hpp>

#include <mpi.h>

namespace sar::inline SAR_PRECISION {

class KnownCalls {
 public:
  /// `comm`: Communicator::handle(). All ranks make it, for work whose calls they have found equal before.
  /// Without effect unless `known`. Local, for this thread.
  KnownCalls(MPI_Comm comm, bool known);
  ~KnownCalls();
  KnownCalls(const KnownCalls&) = delete;
  KnownCalls& operator=(const KnownCalls&) = delete;

  /// Whether one is alive for this communicator on this thread.
  [[nodiscard]] static bool of(MPI_Comm comm) noexcept;

 private:
  MPI_Comm outer_;
};

}  // namespace sar
