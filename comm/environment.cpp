// SPDX-License-Identifier: MIT
#include <sar/comm/communicator.hpp>
#include <sar/comm/environment.hpp>
#include <sar/comm/mpi_objects.hpp>
#include <sar/core/error.hpp>

#include <mpi.h>

#ifdef __linux__
#include <sched.h>
#endif

#include <algorithm>
#include <array>
#include <bit>
#include <exception>
#include <thread>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// Initializes MPI if necessary, at the level `wanted` if it offers that; returns whether it did.
bool initialize(int* argc, char*** argv, int wanted) {
  require_mpi_of_build();
  int finalized = 0;
  check_mpi(MPI_Finalized(&finalized), "MPI_Finalized");
  require<CommunicationError>(finalized == 0, "MPI was finalized already and cannot be initialized again");
  int initialized = 0;
  check_mpi(MPI_Initialized(&initialized), "MPI_Initialized");
  int level = MPI_THREAD_SINGLE;
  if (initialized != 0)
    check_mpi(MPI_Query_thread(&level), "MPI_Query_thread");
  else
    check_mpi(MPI_Init_thread(argc, argv, wanted, &level), "MPI_Init_thread");
  if (level < MPI_THREAD_FUNNELED && initialized == 0) MPI_Finalize();
  check_thread_level(level);
  return initialized == 0;
}

/// The processors that a process may run on, one bit each; all zero if unknown.
struct ProcessorMask {
  std::array<std::uint64_t, 1024> words{};  // 65536 processors, 8 KiB
  bool operator==(const ProcessorMask&) const = default;
};

ProcessorMask my_processors() {
  ProcessorMask mask;
#ifdef __linux__
  if (sched_getaffinity(0, sizeof mask.words, reinterpret_cast<cpu_set_t*>(mask.words.data())) != 0)
    mask = {};
#endif
  return mask;
}

}  // namespace

Environment::Environment(CallingThreads threads)
    : owned_(initialize(nullptr, nullptr,
                        threads == CallingThreads::main ? MPI_THREAD_FUNNELED : MPI_THREAD_SERIALIZED)),
      exceptions_(std::uncaught_exceptions()) {}
Environment::Environment(int& argc, char**& argv)
    : owned_(initialize(&argc, &argv, MPI_THREAD_FUNNELED)), exceptions_(std::uncaught_exceptions()) {}

Environment::~Environment() {
  if (owned_ && mpi_runs() && std::uncaught_exceptions() <= exceptions_) MPI_Finalize();
}

int default_num_threads(const Communicator& comm) {
  const ProcessorMask mine = my_processors();
  const int sharers = comm.agree([&] {
    comm.synchronize("default_num_threads");
    OwnedComm shared;
    check_mpi(
        MPI_Comm_split_type(comm.handle(), MPI_COMM_TYPE_SHARED, comm.rank(), MPI_INFO_NULL, &shared.comm),
        "MPI_Comm_split_type");
    const Communicator node(shared.comm);
    return node.agree([&] {
      const std::vector<ProcessorMask> masks = node.all_gather(mine);
      return static_cast<int>(std::count(masks.begin(), masks.end(), mine));
    });
  });
  int processors = 0;
  for (const std::uint64_t word : mine.words) processors += std::popcount(word);
  if (processors == 0) processors = static_cast<int>(std::thread::hardware_concurrency());
  return std::max(1, processors / sharers);
}

}}  // namespace sar
