// SPDX-License-Identifier: MIT

/// ZBL against values of LAMMPS, its derivative by differences, and what is refused.
#include "support/thrown.hpp"

#include <sar/core/error.hpp>
#include <sar/nn/atoms/zbl.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cmath>

using namespace sar;
using namespace sar::test;

TEST_CASE("ZBL: energies and forces of LAMMPS's pair_style zbl 1 2, units metal") {
  const Zbl zbl({"Si", "O"}, 1, 2);
  struct Expected {
    Index a, b;
    double r, energy, force;
  };
  for (const Expected& e : {Expected{0, 1, 0.05, 22064.1558393776, 588906.378672206},
                            {0, 1, 0.3, 1053.9643181472, 7902.08557212964},
                            {0, 1, 0.8, 69.0254664785459, 302.229860311018},
                            {1, 0, 1.0, 29.4036089938387, 124.30219946179},
                            {0, 1, 1.2, 12.3420791146322, 55.9766603769011},
                            {1, 0, 1.7, 0.523483066050619, 5.32694137068304},
                            {0, 1, 1.95, 0.00236612578761664, 0.142032940384701},
                            {0, 0, 1.2, 18.212400226124, 83.8070844697858},
                            {0, 0, 1.95, 0.00339047894902134, 0.203586984457155}}) {
    const auto [energy, slope] = zbl(e.a, e.b, e.r);
    CHECK(std::abs(energy - e.energy) < 1e-9 * e.energy);
    CHECK(std::abs(slope + e.force) < 1e-9 * e.force);
  }
}

TEST_CASE("ZBL: the slope by differences, and the smooth end") {
  const Zbl zbl({"H", "Og"}, 0, 1.5);
  const double step = 1e-5;
  for (double r = 0.1; r < 1.5; r += 0.1) {
    const double difference = (zbl(0, 1, r + step).energy - zbl(0, 1, r - step).energy) / (2 * step);
    CHECK(std::abs(zbl(0, 1, r).slope - difference) < 1e-6 * std::max(1.0, std::abs(difference)));
  }
  const auto [energy, slope] = zbl(1, 1, 1.5 - step);
  CHECK(std::abs(energy) < 1e-6);
  CHECK(std::abs(slope) < 1e-4);
  CHECK(zbl(1, 1, 1.5).energy == 0);
}

TEST_CASE("ZBL: rows of edges, and what is refused") {
  const Zbl zbl({"Si", "O"}, 1, 2);
  const std::vector<std::array<Index, 2>> species{{0, 1}, {1, 1}};
  const Tensor rows = zbl.edge_rows(Tensor::from({2, 3}, {0, -1.2, 0, 2, 0, 0.1}), species);
  const auto [energy, slope] = zbl(0, 1, 1.2);
  CHECK(rows.row(0)[0] == doctest::Approx(energy / 2));
  CHECK(rows.row(0)[1] == 0);
  CHECK(rows.row(0)[2] == doctest::Approx(-slope));
  for (Index c = 0; c < 4; ++c) CHECK(rows.row(1)[c] == 0);
  CHECK(thrown<InputError>([&] {
          (void)zbl.edge_rows(Tensor::zeros({1, 3}), species);
        }) == "ZBL of two atoms at the same place, expected a distance");
  CHECK(thrown<InputError>([] {
          Zbl({"Si", "X"}, 1, 2);
        }) == "ZBL of the species 'X', expected chemical symbols");
  CHECK(thrown<InputError>([] { Zbl({"Si"}, 2, 2); }) ==
        "ZBL from 2 to 2, expected two distances, the second one larger");
  CHECK(atomic_number("H") == 1);
  CHECK(atomic_number("Pb") == 82);
  CHECK(atomic_number("Og") == 118);
  CHECK(atomic_number("") == 0);
}
