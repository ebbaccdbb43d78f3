// SPDX-License-Identifier: MIT

/// PotentialNetwork: what PaiNN and MACE have in common.
#pragma once

#include <sar/autograd/gathered_rows.hpp>
#include <sar/graph/message/graph.hpp>
#include <sar/nn/modules/module.hpp>

#include <map>
#include <string>

namespace sar { inline namespace SAR_PRECISION {

/// The energy E and the forces -dE/dx.
struct EnergyAndForces {
  double energy = 0;  ///< sum over the atoms of all ranks; the same on every rank
  Tensor forces;      ///< [local nodes, 3]
};

/// A network that computes energies of atoms, on a graph with all pairs within the cutoff, in both
/// directions:
///
///     E_ik = head k of atom i        E_i = mean over the H heads k of E_ik        E = sum_i E_i
///
/// How far the H energies, or the forces that belong to them, are from their mean says how sure the network
/// is, if each head is trained on other structures (LabelledAtoms::heads). E is invariant under rotation and
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
class PotentialNetwork : public Module {
 public:
  /// Returns E_ik [local nodes, H]. Collective; arguments and errors as of atomic_energies().
  [[nodiscard]] virtual Variable head_energies(const Graph& graph, const RowIds& species,
                                               const Variable& positions,
                                               const Variable& shifts = {}) const = 0;
  /// Returns H.
  [[nodiscard]] virtual Index committee() const noexcept = 0;
  /// Returns whether the rows of a parameter belong to the species.
  [[nodiscard]] virtual bool is_by_species(const std::string& parameter) const = 0;
  /// Returns whether the energies are linear in a parameter, together with all others of which this is true.
  [[nodiscard]] virtual bool is_of_last_layer(const std::string& parameter) const = 0;
  /// Returns the factor of the learning rate of a parameter, so that one learning rate suits all parameters.
  [[nodiscard]] virtual double lr_factor(const std::string& /*parameter*/) const { return 1; }
  /// Returns lr_factor() of each parameter times the factor that `selected` has for it, as an Optimizer reads
  /// them: of the names that cover a parameter, the longest counts.
  [[nodiscard]] std::map<std::string, double> lr_factors(std::map<std::string, double> selected = {}) const;

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

 protected:
  /// Throws, with the name of the network, unless species and graph are those of atoms, as above.
  static void require_atoms(const char* name, const Graph& graph, const RowIds& species, Index num_species);
};

}}  // namespace sar
