// SPDX-License-Identifier: MIT

/// Energies of single atoms by least squares.
#include "support/rows.hpp"
#include "support/thrown.hpp"

#include <sar/core/error.hpp>
#include <sar/nn/atoms/energy_shifts.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

/// The shifts of structures that are spread over the ranks in each way.
void check_shifts(const std::vector<double>& counts, const std::vector<double>& energies,
                  const std::vector<double>& expected, const std::vector<Index>& undetermined) {
  const Communicator world = Communicator::world();
  const Index species = std::ssize(expected);
  for (const PartitionBook& book : row_splits(std::ssize(energies), world.size())) {
    const auto first = static_cast<std::size_t>(book.begin(world.rank()));
    const auto mine = static_cast<std::size_t>(book.num_nodes(world.rank()));
    const auto k = static_cast<std::size_t>(species);
    const auto [found, not_known] = fit_energy_shifts(world, std::span(counts).subspan(k * first, k * mine),
                                                      std::span(energies).subspan(first, mine), species);
    REQUIRE(found.size() == expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) CHECK(std::abs(found[i] - expected[i]) < 1e-8);
    CHECK(not_known == undetermined);
  }
}

}  // namespace

TEST_CASE("energy shifts: exact energies, the least squares of others, and the least norm") {
  check_shifts({1, 2, 0, 3, 1, 0, 5, 5, 0}, {1 * 3. + 2 * -7, 3 * 3. + 1 * -7, 5 * 3. + 5 * -7}, {3, -7, 0},
               {2});
  check_shifts({1, 1, 2, 2, 3, 3}, {8, 16, 24}, {4, 4}, {0, 1});
  check_shifts({2, 1, 0, 4, 2, 0, 2, 1, 3}, {-12, -24, -15}, {-4.8, -2.4, -1}, {0, 1});
  check_shifts({1, 2, 4}, {2, 6, 16}, {3}, {});  // the mean of 2, 3 and 4 an atom
}

TEST_CASE("energy shifts: what is refused, on all ranks") {
  const Communicator world = Communicator::world();
  const bool last = world.rank() == world.size() - 1;
  const auto refused = [&](const std::vector<double>& counts, const std::vector<double>& energies) {
    return thrown_by_all<InputError>(world, [&] { (void)fit_energy_shifts(world, counts, energies, 1); });
  };
  CHECK(refused({last ? 0. : 1.}, {1}) == "energy shifts: structure 0 of 0 atoms with the energy 1");
  CHECK(refused({2}, {last ? std::nan("") : 1}) ==
        "energy shifts: structure 0 of 2 atoms with the energy nan");
  CHECK(thrown_by_all<ShapeError>(world, [&] {
          (void)fit_energy_shifts(world, std::vector<double>(last ? 2 : 1, 1), std::vector<double>{1}, 1);
        }) == "energy shifts of 1 species got 2 counts for 1 energies");
}
