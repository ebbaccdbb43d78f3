// SPDX-License-Identifier: MIT

/// PaiNN: energies and forces of atoms.
///
/// Room nn/atoms: Potentials: networks for energies, forces and stresses of atoms, and their training.
#pragma once

#include <sar/autograd/row_ids.hpp>
#include <sar/graph/message/graph.hpp>
#include <sar/nn/atoms/painn_conv.hpp>
#include <sar/nn/modules/mlp.hpp>
#include <sar/nn/modules/module.hpp>

#include <vector>

namespace sar { inline namespace SAR_PRECISION {

struct PaiNNOptions {
  Index num_species = 0;  ///< number of atom species
  Index feats = 128;      ///< channels F
  int convs = 3;          ///< number of convolutions; at least 1
  double cutoff = 5;      ///< in the unit of the positions
  Index num_basis = 20;   ///< number of radial basis functions
  RadialBasis radial_basis = RadialBasis::sinc;
  CutoffFunction cutoff_function = CutoffFunction::cosine;
  /// Added under the root of the vectors' norms. With SchNetPack's 1e-8 the energy has nearly a cusp at
  /// symmetric sites of a crystal: give it only for weights that were trained with it.
  double norm_epsilon = 0.01;
  /// Factor a of the energies of each species, in the unit of the energies; empty: 1. The network learns
  /// best if it is of the size of the energies' deviations.
  std::vector<double> energy_scales = {};
  Index committee = 1;  ///< number of heads H: members of a committee that share all but the last layer
};

/// The energy E and the forces -dE/dx.
struct EnergyAndForces {
  double energy = 0;  ///< sum over the atoms of all ranks; the same on every rank
  Tensor forces;      ///< [local nodes, 3]
};

/// Schuett, Unke, Gastegger, arXiv 2102.03150, on a graph with all pairs within the cutoff, in both
/// directions:
///
///     s = embedding[species]        v = 0
///
///     (s, v) = convs[i](s, v), i = 0 .. convs - 1
///
///     E_ik = a[species_i] outnet(s_i)_k        E_i = mean over the heads k of E_ik        E = sum_i E_i
///
/// Parameters: embedding [num_species, F], uniform with variance 1; convs.0, convs.1, ..., as in PaiNNConv;
/// outnet, as in MLP, with a hidden layer of F / 2 channels, SiLU and H results. How far the H energies, or
/// the forces that belong to them, are from their mean says how sure the network is, if each head is trained
/// on other structures (LabelledAtoms::heads). E is invariant under rotation and
/// translation of all atoms, and the forces rotate with the atoms. E is continuous when a pair crosses the
/// cutoff: pairs farther apart contribute nothing, so that a neighbor list with a margin stays valid while
/// atoms move.
///
/// In a periodic cell, an edge may come from a periodic image of its source, given by `shifts` [local edges,
/// 3] in the graph's edge order, as in relative_positions(). If the shifts depend on a deformation of the
/// cell, they receive the gradient of the energy. The default is 0.
///
/// A host whose positions are in double precision, or far from the origin, gives the edge vectors itself: as
/// `shifts`, with positions that are all zero. Forces are the same.
///
/// An edge of length 0 has the direction 0 and no slope: NeighborList and Potential refuse two atoms at the
/// same place.
///
/// backward_potential_loss() trains it on energies, forces and stresses.
class PaiNN : public Module {
 public:
  /// Throws InputError unless the numbers and widths are positive, cutoff and norm_epsilon positive and
  /// finite, and energy_scales, if there are some, one for each species.
  PaiNN(const PaiNNOptions& options, Generator& gen);

  /// Returns E_ik [local nodes, H]. Collective; arguments and errors as of atomic_energies().
  [[nodiscard]] Variable head_energies(const Graph& graph, const RowIds& species, const Variable& positions,
                                       const Variable& shifts = {}) const;
  /// Returns E_i [local nodes, 1], or with `heads` [local nodes] the E_ik of a head k of each atom. Local.
  /// Throws ShapeError and InputError for other numbers of rows and for heads that do not exist.
  [[nodiscard]] static Variable energies_of_heads(const Variable& head_energies, const RowIds& heads = {});
  /// Returns E_i [local nodes, 1] for species (numbers below num_species) and positions [local nodes, 3].
  /// Throws the same exception on every rank: ShapeError if shapes do not match, InputError for an invalid
  /// species, a graph whose sources are not its destinations, or a node with other numbers of in-edges and
  /// out-edges, as in a half neighbor list. Collective: one update_all per convolution.
  [[nodiscard]] Variable atomic_energies(const Graph& graph, const RowIds& species, const Variable& positions,
                                         const Variable& shifts = {}) const;
  /// Collective. Returns E [1], a loss in the sense of nn/modules/reductions.hpp. Its gradient with respect
  /// to the positions is minus the forces. Errors as above.
  [[nodiscard]] Variable energy(const Graph& graph, const RowIds& species, const Variable& positions,
                                const Variable& shifts = {}) const;
  /// Collective. Returns energy and forces; the caller needs no tape. Gradients of parameters stay
  /// unchanged. Errors as above.
  [[nodiscard]] EnergyAndForces energy_and_forces(const Graph& graph, const RowIds& species,
                                                  const Tensor& positions, const Tensor& shifts = {}) const;
  [[nodiscard]] Index committee() const noexcept { return options_.committee; }

 private:
  PaiNNOptions options_;
  Variable embedding_;
  Tensor energy_scales_;  // [num_species, 1], if they are not 1
  ModuleList<PaiNNConv> convs_;
  MLP outnet_;
};

}}  // namespace sar
