/// MPI's life time, for programs that do not manage it themselves.
#pragma once

#include <sar/config.hpp>

namespace sar::inline SAR_PRECISION {

class Communicator;

/// Initializes MPI (MPI_THREAD_FUNNELED) unless the host program has done so, and finalizes it at the end of
/// its life only if it initialized it. A host that owns MPI does not need this class.
///
/// When an exception ends its life, MPI is not finalized, because that would wait for ranks that wait for
/// this one. Let the program end then, with another exit code than 0: mpirun ends the other ranks.
class Environment {
 public:
  /// Throws CommunicationError when MPI was finalized already, or offers less than MPI_THREAD_FUNNELED.
  Environment();
  Environment(int& argc, char**& argv);
  ~Environment();
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  bool owned_ = false;
  int exceptions_ = 0;  // under way when this was made
};

/// How many threads this rank should use so that the ranks of a node share its cores: the number of
/// processors that this rank is bound to, divided by the number of ranks of the node that are bound to the
/// same ones; at least 1. Collective.
int default_num_threads(const Communicator& comm);

}  // namespace sar
