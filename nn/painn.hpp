/// Energies and forces of atoms.
#pragma once

#include <sar/autograd/row_ids.hpp>
#include <sar/graph/message/graph_shard_manager.hpp>
#include <sar/nn/mlp.hpp>
#include <sar/nn/module_list.hpp>
#include <sar/nn/painn_conv.hpp>

namespace sar::inline SAR_PRECISION {

struct PaiNNOptions {
  Index num_species = 0;  ///< kinds of atoms
  Index feats = 128;      ///< channels F
  int convs = 3;          ///< at least 1
  double cutoff = 5;      ///< in the unit of the positions
  Index num_basis = 20;   ///< functions of the distance
};

/// E and -dE/dx.
struct EnergyAndForces {
  double energy = 0;  ///< of the atoms of all ranks, the same on every rank
  Tensor forces;      ///< [local nodes, 3]
};

/// The network of arXiv 2102.03150 on a graph of all pairs within the cutoff, in both directions:
///
///     s = embedding[species]    v = 0    (s, v) = convs[i](s, v), i = 0 ..
///     E_i = outnet(s_i)    E = sum_i E_i
///
/// Parameters: embedding [num_species, F], uniform with variance 1 at the start; convs.0, convs.1, ..., as in
/// PaiNNConv; outnet, as in MLP, with a hidden layer of F / 2 channels and SiLU. E does not change when all
/// atoms are turned or moved, and forces are turned with them. It jumps nowhere as pairs pass the cutoff:
/// pairs farther apart may be left out or in, so that a list of pairs with a margin stays valid for a while.
///
/// In a periodic cell, an edge comes from an image of its source: `shifts` [local edges, 3] in the graph's
/// edge order, as those of relative_positions(). Where they depend on a deformation of the cell, the gradient
/// of the energy goes back to it. Without shifts they are 0.
///
/// Losses of energies train it. Losses of forces need second derivatives, which tapes do not have.
class PaiNN : public Module {
 public:
  /// Throws InputError unless numbers and widths are positive and the cutoff is positive and finite.
  PaiNN(const PaiNNOptions& options, Generator& gen);

  /// E_i [local nodes, 1] for species (numbers below num_species) and positions [local nodes, 3]. Throws, the
  /// same on every rank, ShapeError when shapes do not fit, InputError for another species or a graph whose
  /// sources are not its destinations. Collective: one update_all a convolution.
  [[nodiscard]] Variable atomic_energies(const GraphShardManager& graph, const RowIds& species,
                                         const Variable& positions, const Variable& shifts = {}) const;
  /// E [1], a loss in the sense of nn/reductions.hpp: its gradient in the positions is minus the forces.
  /// Errors as above. Collective.
  [[nodiscard]] Variable energy(const GraphShardManager& graph, const RowIds& species,
                                const Variable& positions, const Variable& shifts = {}) const;
  /// Energy and forces without a tape of the caller's. Gradients of parameters stay as they are. Errors as
  /// above. Collective.
  [[nodiscard]] EnergyAndForces energy_and_forces(const GraphShardManager& graph, const RowIds& species,
                                                  const Tensor& positions, const Tensor& shifts = {}) const;

 private:
  PaiNNOptions options_;
  Variable embedding_;
  ModuleList<PaiNNConv> convs_;
  MLP outnet_;
};

}  // namespace sar
