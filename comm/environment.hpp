// SPDX-License-Identifier: MIT

/// Initialization of MPI, for programs that do not manage it themselves.
#pragma once

#include <sar/config.hpp>

namespace sar { inline namespace SAR_PRECISION {

class Communicator;

/// The threads of a program that call the library.
enum class CallingThreads {
  main,           ///< the one that initializes MPI: MPI_THREAD_FUNNELED
  one_at_a_time,  ///< any: MPI_THREAD_SERIALIZED, if MPI offers it
};

/// Initializes MPI (MPI_THREAD_FUNNELED) unless the host program has done so, and finalizes it in its
/// destructor if it initialized it. A host program that manages MPI does not need this class.
///
/// If an exception ends its lifetime, MPI is not finalized, because MPI_Finalize would wait for ranks that
/// wait for this one. The program should then exit with a nonzero code: mpirun ends the other ranks.
///
/// @code
/// const Environment environment(argc, argv);                  // first in main()
/// const Communicator comm = Communicator::world();
/// @endcode
class Environment : NonCopyable {
 public:
  /// Throws CommunicationError if MPI is finalized already or offers less than MPI_THREAD_FUNNELED.
  explicit Environment(CallingThreads threads = CallingThreads::main);
  Environment(int& argc, char**& argv);
  ~Environment();

 private:
  bool owned_ = false;
  int exceptions_ = 0;  // uncaught exceptions at construction
};

/// Collective. Returns the number of threads with which the ranks of a node share its cores: the number of
/// processors that this rank is bound to, divided by the number of ranks of the node bound to the same
/// processors; at least 1.
int default_num_threads(const Communicator& comm);

}}  // namespace sar
