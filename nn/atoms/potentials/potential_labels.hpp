// SPDX-License-Identifier: MIT

/// What a potential learns from labels of structures: labels without the repulsion at short distances, shifts
/// and scales of its energies.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/tensor/tensor.hpp>
#include <sar/graph/sampling/graph_samples.hpp>
#include <sar/nn/atoms/cell.hpp>
#include <sar/nn/atoms/energy_shifts.hpp>
#include <sar/nn/atoms/zbl.hpp>

#include <cstdint>
#include <limits>
#include <span>

namespace sar { inline namespace SAR_PRECISION {

/// The labels of a structure besides its forces. NaN: it has none.
struct StructureLabels {
  double energy = std::numeric_limits<double>::quiet_NaN();
  double volume = 0;    ///< of the cell; 0: there is none, and no stress
  Matrix3 stress = {};  ///< dE/d strain / volume
};

/// Local. Subtracts from labels what a Potential adds to the output of its network at short distances: the
/// energies and forces of `zbl` and, of structures with a volume, its stresses. `structures`: those of
/// neighbor_samples(), with the number of each atom's species as field "species" of the nodes; `labels`: of
/// each structure; `forces` [atoms, 3]. Throws ShapeError for other numbers of labels or forces, InputError
/// for missing fields, and as Zbl::edge_rows().
void subtract_zbl(const Zbl& zbl, const GraphSamples& structures, std::span<StructureLabels> labels,
                  Tensor& forces);

struct PotentialFit {
  EnergyShifts shifts;      ///< of the species; none, if no structure has an energy
  double energy_scale = 1;  ///< root mean square of the forces; 1 if no atom has any
};

/// Collective. Fits energy_shifts and energy_scales of a ModelDescription to labels, from which
/// subtract_zbl() has subtracted: shifts by fit_energy_shifts(), with its `given`, to the structures that
/// have an energy, a scale for all species to the atoms whose forces are not NaN. `structures`, `labels` and
/// `forces`: those of this rank, as of subtract_zbl(); `trained`: not 0 for the structures that count. The
/// same on any number of ranks. Throws the same exception on every rank: ShapeError for other numbers of
/// labels, forces or flags, InputError for a species that is not below num_species, and as
/// fit_energy_shifts().
[[nodiscard]] PotentialFit fit_potential(const Communicator& comm, const GraphSamples& structures,
                                         std::span<const StructureLabels> labels, const Tensor& forces,
                                         std::span<const std::uint8_t> trained, Index num_species,
                                         std::span<const double> given = {});
}}  // namespace sar
