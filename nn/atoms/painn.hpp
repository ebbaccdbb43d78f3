// SPDX-License-Identifier: MIT

/// PaiNN: energies and forces of atoms.
///
/// Room nn/atoms: Networks for energies, forces and stresses of atoms, and their losses.
#pragma once

#include <sar/nn/atoms/painn_conv.hpp>
#include <sar/nn/atoms/potential_network.hpp>
#include <sar/nn/modules/linear.hpp>

#include <string>
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

/// Schuett, Unke, Gastegger, arXiv 2102.03150:
///
///     s = embedding[species]        v = 0
///
///     (s, v) = convs[i](s, v), i = 0 .. convs - 1
///
///     E_ik = a[species_i] outnet(s_i)_k
///
/// Parameters: embedding [num_species, F], uniform with variance 1; convs.0, convs.1, ..., as in PaiNNConv;
/// outnet, as in MLP, with a hidden layer of F / 2 channels, SiLU and H results.
class PaiNN : public PotentialNetwork {
 public:
  /// Throws InputError unless the numbers and widths are positive, cutoff and norm_epsilon positive and
  /// finite, and energy_scales, if there are some, one for each species.
  PaiNN(const PaiNNOptions& options, Generator& gen);

  [[nodiscard]] Variable head_energies(const Graph& graph, const RowIds& species, const Variable& positions,
                                       const Variable& shifts = {}) const override;
  [[nodiscard]] Index committee() const noexcept override { return options_.committee; }
  [[nodiscard]] bool is_by_species(const std::string& parameter) const override;
  [[nodiscard]] bool is_of_last_layer(const std::string& parameter) const override;

 private:
  PaiNNOptions options_;
  Variable embedding_;
  Tensor energy_scales_;  // [num_species, 1], if they are not 1
  ModuleList<PaiNNConv> convs_;
  MLP outnet_;
};
}}  // namespace sar
