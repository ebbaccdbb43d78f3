// SPDX-License-Identifier: MIT

/// A host with threads of its own, which its first argument names: teams of OpenMP, or arenas, limits and
/// tasks of oneTBB. Called by the thread that initialized MPI, the library computes the bits that it computes
/// in a host without threads.
#define DOCTEST_CONFIG_IMPLEMENT
#include "host_training.hpp"

#include <mpi.h>
#include <omp.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>

#include <atomic>
#include <cmath>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

namespace {

using Losses = std::vector<double>;
constexpr int steps = 4;

Losses train(const sar::Communicator& comm) {
  return sar::test::HostTraining(comm, 1).steps(steps);
}

double busy_work(int i) {
  return std::sin(static_cast<double>(i));
}

/// A step between two parallel loops of the host, whose threads wait meanwhile.
Losses between_loops(const sar::Communicator& comm) {
  sar::test::HostTraining training(comm, 1);
  Losses losses;
  for (int step = 0; step < steps; ++step) {
    double sum = 0;
#pragma omp parallel for num_threads(3) reduction(+ : sum)
    for (int i = 0; i < 10000; ++i) sum += busy_work(i);
    losses.push_back(std::isfinite(sum) ? training.step() : 0);
  }
  return losses;
}

/// The master thread of a team trains; the others wait at the barrier.
Losses in_master(const sar::Communicator& comm) {
  Losses losses;
#pragma omp parallel num_threads(3)
  {
#pragma omp master
    losses = train(comm);
#pragma omp barrier
  }
  return losses;
}

/// The master thread of a team trains, while the other thread opens teams of its own.
Losses beside_nested_teams(const sar::Communicator& comm) {
  omp_set_max_active_levels(2);
  Losses losses;
  std::atomic<bool> done{false};
#pragma omp parallel num_threads(2)
  if (omp_get_thread_num() == 0) {
    losses = train(comm);
    done = true;
  } else {
    while (!done) {
      double sum = 0;
#pragma omp parallel for num_threads(2) reduction(+ : sum)
      for (int i = 0; i < 10000; ++i) sum += busy_work(i);
      if (!std::isfinite(sum)) std::terminate();
    }
  }
  return losses;
}

/// Another thread of a team than the one that initialized MPI can neither call nor make a communicator; the
/// next call trains.
Losses after_wrong_thread(const sar::Communicator& comm) {
  int level = 0;
  MPI_Query_thread(&level);
  const bool any_may_call = level >= MPI_THREAD_SERIALIZED;  // MPI may give more than was asked for
  int refused = any_may_call ? 2 : 0;
#pragma omp parallel num_threads(2) shared(refused)
  if (omp_get_thread_num() == 1 && !any_may_call) {
    try {
      train(comm);
    } catch (const sar::CommunicationError&) {
      ++refused;
    }
    try {
      (void)sar::Communicator(MPI_COMM_SELF);
    } catch (const sar::CommunicationError&) {
      ++refused;
    }
  }
  return refused == 2 ? train(comm) : Losses{};
}

/// Arenas of the host, of one thread and of two.
Losses in_arenas(const sar::Communicator& comm) {
  Losses one, two;
  tbb::task_arena(1).execute([&] {
    if (sar::num_threads() == 1) one = train(comm);
  });
  tbb::task_arena(2).execute([&] {
    if (sar::num_threads() <= 2) two = train(comm);
  });
  return one == two ? one : Losses{};
}

/// The smallest limit of host and library counts, and the library leaves none behind.
Losses under_limits(const sar::Communicator& comm) {
  constexpr auto parallelism = tbb::global_control::max_allowed_parallelism;
  const auto before = tbb::global_control::active_value(parallelism);
  Losses losses;
  {
    const tbb::global_control one(parallelism, 1);
    const sar::ThreadLimit two(2);
    if (sar::num_threads() == 1) losses = train(comm);
  }
  {
    const sar::ThreadLimit two(2);
    if (train(comm) != losses) losses.clear();
  }
  {
    const sar::ThreadLimit one(1);
    if (train(comm) != losses) losses.clear();
  }
  return tbb::global_control::active_value(parallelism) == before ? losses : Losses{};
}

/// Tasks of the host keep the threads of its arena busy.
Losses beside_tasks(const sar::Communicator& comm) {
  std::atomic<bool> done{false};
  tbb::task_group group;
  for (int task = 0; task < 2; ++task)
    group.run([&] {
      for (int i = 0; !done; ++i)
        if (!std::isfinite(busy_work(i))) std::terminate();
    });
  const Losses losses = train(comm);
  done = true;
  group.wait();
  return losses;
}

}  // namespace

int main(int argc, char** argv) {
  int level = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  bool good = false;
  try {
    const std::string_view name = argc > 1 ? argv[1] : "";
    const sar::Communicator comm(MPI_COMM_WORLD);
    const Losses expected = train(comm);
    std::vector<Losses> found;
    if (name == "openmp")
      found = {between_loops(comm), in_master(comm), beside_nested_teams(comm), after_wrong_thread(comm)};
    if (name == "tbb") found = {in_arenas(comm), under_limits(comm), beside_tasks(comm)};
    good = !found.empty();
    for (const Losses& losses : found) good = good && losses == expected;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "failed: %s\n", error.what());
    good = false;
  }
  if (!good) std::fprintf(stderr, "failed: other losses than without threads of the host\n");
  MPI_Finalize();
  return good ? 0 : 1;
}
