// SPDX-License-Identifier: MIT

/// Energies of single atoms, by least squares.
#pragma once

#include <sar/comm/communicator.hpp>

#include <span>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

struct EnergyShifts {
  std::vector<double> energies;     ///< b of each species
  std::vector<Index> undetermined;  ///< species whose b other energies would fit as well
};

/// Collective. Returns the energy b_k of an atom of each species k that minimizes, over the structures s of
/// all ranks,
///
///     sum_s ((E_s - sum_k n_sk b_k) / N_s)^2,        N_s = sum_k n_sk
///
/// and of all such b the one with the least norm: species that only occur in a fixed proportion share their
/// energy, and a species that does not occur has 0; the energies of both are undetermined. `given` b
/// [num_species], the same on every rank: those that are not NaN stay as they are; empty: all are fitted.
/// `counts` n [structures of this rank, num_species]; `energies` E of these structures. A rank may have none.
/// Throws on every rank: ShapeError if lengths do not match, InputError for a structure without atoms or with
/// an energy that is not finite, and for another num_species or other given b on other ranks.
[[nodiscard]] EnergyShifts fit_energy_shifts(const Communicator& comm, std::span<const double> counts,
                                             std::span<const double> energies, Index num_species,
                                             std::span<const double> given = {});
}}  // namespace sar
