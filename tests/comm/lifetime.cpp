// SPDX-License-Identifier: MIT

/// A host program that owns MPI: the library uses it, leaves it alone, and its handles may outlive it.
#include <sar/comm/environment.hpp>
#include <sar/comm/halo/halo_exchange.hpp>
#include <sar/comm/rows/distributed_tensor.hpp>
#include <sar/core/error.hpp>

#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

/// In place of MPI's: a text without a comma or a line break, as SimGrid has one.
extern "C" int MPI_Get_library_version(char* version, int* length) {
  constexpr std::string_view text = "MPI of a test";
  *std::ranges::copy(text, version).out = '\0';
  *length = static_cast<int>(text.size());
  return MPI_SUCCESS;
}

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

/// A host that calls MPI_Init is told what to call instead.
int initialized_without_threads() {
  MPI_Init(nullptr, nullptr);
  int level = 0;
  MPI_Query_thread(&level);
  if (level == MPI_THREAD_SINGLE) {  // MPI may give more than was asked for
    check_throws([] { const sar::Communicator comm(MPI_COMM_WORLD); }, "a communicator at SINGLE throws");
    check_throws([] { const sar::Environment environment; }, "an Environment at SINGLE throws");
  }
  MPI_Finalize();
  return failures == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) return initialized_without_threads();
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

  const auto no_rounds = std::make_shared<const std::vector<sar::HaloRound>>();
  const sar::Tensor rows({2, 2});
  if (level < MPI_THREAD_SERIALIZED)
    std::thread([&] {
      check_throws([] { sar::Communicator::self(); }, "a communicator on another thread throws");
      check_throws([&] { copy.barrier(); }, "a collective call on another thread throws");
      check_throws([&] { copy.agree([] {}); }, "agree on another thread throws");
      check_throws([&] { sar::HaloFetch(copy, rows, sar::plan_halo(no_rounds)); },
                   "an exchange on another thread throws");
    }).join();
  check_throws([] { sar::Communicator{MPI_COMM_NULL}; }, "MPI_COMM_NULL throws");
  if (copy.size() > 1) {
    MPI_Comm half = MPI_COMM_NULL, inter = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, copy.rank() % 2, 0, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - copy.rank() % 2, 5, &inter);
    check_throws([&] { sar::Communicator{inter}; }, "an inter-communicator throws");
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
  }
  MPI_Errhandler handler{};
  MPI_Comm_get_errhandler(MPI_COMM_WORLD, &handler);
  check(handler == MPI_ERRORS_ARE_FATAL, "the error handler of MPI_COMM_WORLD is left alone");
  const sar::DistributedTensor<> left(copy, sar::PartitionBook::even(4, copy.size()), sar::Shape{4, 2});
  const std::vector<sar::Index> ids{3, 0};
  check(left.pull(ids).num_rows() == 2, "a rank reads the rows of others");
  MPI_Finalize();

  check_throws([&] { (void)left.pull(ids); }, "a pull after MPI_Finalize throws");
  check_throws([&] { copy.barrier(); }, "a collective call after MPI_Finalize throws");
  check_throws([&] { copy.agree([] {}); }, "agree after MPI_Finalize throws");
  check_throws([&] { sar::HaloFetch(copy, rows, sar::plan_halo(no_rounds)); },
               "an exchange after MPI_Finalize throws");

  check_throws([] { const sar::Environment environment; }, "an Environment after MPI_Finalize throws");
  check_throws([] { sar::Communicator::self(); }, "a communicator after MPI_Finalize throws");
  return failures == 0 ? 0 : 1;
}
