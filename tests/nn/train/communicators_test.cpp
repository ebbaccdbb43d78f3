// SPDX-License-Identifier: MIT

/// Several trainings at once: on communicators that share no rank, and on the same one.
#include "host_training.hpp"

#include <doctest/doctest.h>

#include <mpi.h>

#include <vector>

using namespace sar;
using namespace sar::test;

TEST_CASE("trainings on disjoint communicators at once are those that run alone") {
  const Communicator world = Communicator::world();
  const int color = world.rank() % 2;
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, color, -world.rank(), &half);  // ranks in the opposite order
  std::vector<double> alone;
  for (const int turn : {0, 1}) {
    if (turn == color) alone = HostTraining(Communicator(half), static_cast<std::uint64_t>(color)).steps(6);
    world.barrier();
  }
  CHECK(HostTraining(Communicator(half), static_cast<std::uint64_t>(color)).steps(6) == alone);
  MPI_Comm_free(&half);
}

TEST_CASE("two trainings that take turns on one communicator do not see each other") {
  const Communicator comm = Communicator::world();
  const std::vector<double> first = HostTraining(comm, 1).steps(6), second = HostTraining(comm, 2).steps(6);
  HostTraining a(comm, 1), b(comm, 2);
  for (std::size_t i = 0; i < first.size(); ++i) {
    CHECK(a.step() == first[i]);
    CHECK(b.step() == second[i]);
  }
}

TEST_CASE("a training on any number of ranks is the same to rounding") {
  const std::vector<double> one = HostTraining(Communicator::self(), 1).steps(6);
  const std::vector<double> all = HostTraining(Communicator::world(), 1).steps(6);
  for (std::size_t i = 0; i < one.size(); ++i) CHECK(all[i] == doctest::Approx(one[i]).epsilon(1e-4));
}
