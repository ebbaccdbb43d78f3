/// A host program that owns MPI: the library uses it, leaves it alone, and its handles may outlive it.
#include <sar/comm/environment.hpp>
#include <sar/comm/halo.hpp>
#include <sar/core/error.hpp>

#include <mpi.h>

#include <cstdio>
#include <optional>
#include <vector>

namespace {

int failures = 0;

void check(bool condition, const char* what) {
  if (condition) return;
  ++failures;
  std::fprintf(stderr, "failed: %s\n", what);
}

template <class F>
void check_throws(const F& f, const char* what) {
  try {
    f();
  } catch (const sar::CommunicationError&) {
    return;
  }
  check(false, what);
}

}  // namespace

int main(int argc, char** argv) {
  check_throws([] { sar::Communicator::world(); }, "a communicator before MPI_Init throws");

  int level = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  std::optional<sar::Communicator> world;
  {
    const sar::Environment environment;
    world.emplace(MPI_COMM_WORLD);
  }
  int finalized = 0;
  MPI_Finalized(&finalized);
  check(finalized == 0, "an Environment of a host that owns MPI does not finalize it");
  check(world->all_reduce(1) == world->size(), "all_reduce after the Environment is gone");
  const sar::Communicator copy = *world;
  world.reset();
  copy.barrier();
  MPI_Finalize();

  check_throws([] { const sar::Environment environment; }, "an Environment after MPI_Finalize throws");
  check_throws([] { sar::Communicator::self(); }, "a communicator after MPI_Finalize throws");
  return failures == 0 ? 0 : 1;
}
