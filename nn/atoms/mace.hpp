// SPDX-License-Identifier: MIT

/// MACE: energies of atoms from equivariant messages of higher body order.
#pragma once

#include <sar/nn/atoms/couplings.hpp>
#include <sar/nn/atoms/harmonic_rows.hpp>
#include <sar/nn/atoms/potential_network.hpp>
#include <sar/nn/atoms/radial_table.hpp>
#include <sar/nn/modules/linear.hpp>

#include <memory>
#include <string>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

struct MACEOptions {
  Index num_species = 0;                   ///< number of atom species
  Index feats = 128;                       ///< channels F
  int layers = 2;                          ///< at least 1
  int hidden_l = 1;                        ///< degrees 0 .. hidden_l of the rows between layers
  int correlation = 3;                     ///< atoms of a product besides the center: 1 to 3
  bool residual_first = false;             ///< whether the first layer has a residual connection, too
  bool density = false;                    ///< whether sums of messages are divided by a density of neighbors
  HarmonicFunctions functions{};           ///< radial functions, and degrees 0 .. max_l of the messages
  std::vector<double> radii = {};          ///< covalent radius of each species, with a distance transform
  Index radial_feats = 64;                 ///< width of the hidden layers of the radial network
  int radial_layers = 3;                   ///< and their number
  Index readout_feats = 16;                ///< width of the last readout's hidden layer
  double neighbors = 1;                    ///< their mean number; weights `linear` are already divided by it
  std::vector<double> energy_scales = {};  ///< as in PaiNNOptions
  Index committee = 1;                     ///< number of heads H, as in PaiNNOptions
};

/// One linear map for each degree l of rows [n, (max_l + 1)^2, F]. Parameters: "0.weight", "1.weight", ... as
/// in Linear without a bias; `widths`: input channels of each degree.
class DegreeLinear : public Module {
 public:
  DegreeLinear(const std::vector<Index>& widths, Index out, Generator& gen);
  [[nodiscard]] Variable operator()(const Variable& x) const;

 private:
  std::vector<Index> widths_;
  ModuleList<Linear> maps_;
};

/// A layer of MACE: rows h [nodes, (l + 1)^2, F] to rows of degrees up to out_l. Collective.
class MACELayer : public Module {
 public:
  MACELayer(const MACEOptions& options, int in_l, int out_l, bool residual, Generator& gen);

  /// `radii` [local nodes, 1]: covalent radii; undefined without a transform. `sums_of_radii`: sums of two of
  /// them, which edges may have, sorted and the same on all ranks; empty: there is no table with a transform.
  [[nodiscard]] Variable operator()(const Graph& graph, const Variable& rows, const RowIds& species,
                                    const Variable& positions, const Variable& shifts, const Variable& radii,
                                    const std::vector<real>& sums_of_radii = {}) const;

  [[nodiscard]] const SymmetricBasis& basis() const { return *basis_; }
  [[nodiscard]] const TensorProduct& product() const { return *product_; }

 private:
  [[nodiscard]] Variable sums_of_messages(const Graph& graph, const Variable& rows, const Variable& positions,
                                          const Variable& shifts, const Variable& radii,
                                          const std::vector<real>& sums_of_radii) const;
  /// Returns the table of the radial network; null: there is none.
  [[nodiscard]] std::shared_ptr<const RadialTable> table(const std::vector<Variable>& network,
                                                         const Variable& of_density,
                                                         const std::vector<real>& sums_of_radii) const;
  /// The maps of skip for degrees 0 .. l of the rows; higher degrees of the result are 0.
  [[nodiscard]] Variable skip(const Variable& rows, const RowIds& species, int in_l, int out_l) const;

  HarmonicFunctions functions_;
  mutable std::vector<Tensor> weights_;               // of the radial network and the density
  mutable std::shared_ptr<const RadialTable> table_;  // of these weights
  Index feats_;
  int in_l_, out_l_;
  bool residual_, density_;
  std::shared_ptr<const TensorProduct> product_;
  std::shared_ptr<const SymmetricBasis> basis_;
  DegreeLinear linear_up_;
  ModuleList<Linear> radial_;
  std::unique_ptr<Linear> density_net_;
  DegreeLinear linear_;
  struct Weights : Module {
    using Module::register_parameter;
  } skip_;
  std::vector<Variable> skip_weights_;
  Variable contraction_;
  DegreeLinear product_linear_;
};

/// Batatia, Kovacs, Simm, Ortner, Csanyi, arXiv 2206.07697, as mace-torch computes it with the interaction
/// blocks RealAgnostic(Density)(Residual)InteractionBlock. With h = embedding[species] and s the species of
/// an atom, a layer computes for edges u -> v
///
///     A_v = linear(sum over u of R_uv (linear_up(h_u) x Y_uv)) / (1 + density_v)
///
///     R_uv = radial(b_uv)        density_v = sum over u of tanh((w . b_uv)^2)
///
///     h_v <- product(B(A_v; W_s)) + skip_s(h_v)
///
/// with the radial functions b and the harmonics Y of HarmonicFunctions, the products x of TensorProduct, and
/// the symmetric contraction B (symmetric_contraction()). Without the residual connection, A_v <- skip_s(A_v)
/// in its place. linear_up, linear, product and skip act on the channels of each degree; radial is a network
/// without biases and with SiLU. The density is 0 unless `density`. The last layer has degree 0 alone. Then,
/// with h_i of degree 0 behind layer i,
///
///     E_k = a[species] (sum over the layers but the last of readouts_i(h_i)_k + readout(h_last)_k)
///
/// where readout has a hidden layer with SiLU and no biases.
///
/// Weights include the constants that mace-torch multiplies by, such as one over the root of the number of
/// channels or the average number of neighbors. Initial weights have the distribution of mace-torch's: normal
/// numbers times these constants, c of a parameter. lr_factor() is c, so that Adam with a learning rate does
/// what it does to the weights of mace-torch without constants, except that those of products, which are
/// coefficients of more polynomials, change along fewer directions. Parameters: embedding
/// [num_species, F]; layers.I.linear_up.L, layers.I.linear.L, layers.I.product.L [out, in];
/// layers.I.radial.K.weight; layers.I.density.weight; layers.I.skip.L [num_species, in, out];
/// layers.I.contraction [num_species, paths, F] in the order of SymmetricBasis; readouts.I.weight [H, F];
/// readout.0.weight, readout.1.weight. Rows of halo atoms are exchanged once in each layer, so that edges of
/// one cutoff suffice. In single precision and in evaluation mode (Module::eval()), the radial networks of
/// constant weights are a RadialTable, which is made at the first call and when weights change.
class MACE : public PotentialNetwork {
 public:
  /// Throws InputError unless numbers and widths are positive, 0 <= hidden_l <= max_l <= 3, correlation 1 to
  /// 3, the cutoff positive and finite, and radii and energy_scales, if there are some, one for each species.
  MACE(const MACEOptions& options, Generator& gen);

  [[nodiscard]] Variable head_energies(const Graph& graph, const RowIds& species, const Variable& positions,
                                       const Variable& shifts = {}) const override;
  [[nodiscard]] Index committee() const noexcept override { return options_.committee; }
  [[nodiscard]] bool is_by_species(const std::string& parameter) const override;
  [[nodiscard]] bool is_of_last_layer(const std::string& parameter) const override;
  [[nodiscard]] double lr_factor(const std::string& parameter) const override;

 private:
  void draw_weights(Generator& gen);
  /// Collective. Returns the sums of the covalent radii of two atoms of the graph.
  [[nodiscard]] std::vector<real> sums_of_present_radii(const Communicator& comm,
                                                        const RowIds& species) const;

  MACEOptions options_;
  Variable embedding_;
  Tensor radii_, energy_scales_;  // [num_species, 1]
  ModuleList<MACELayer> layers_;
  ModuleList<Linear> readouts_;
  ModuleList<Linear> readout_;
};

}}  // namespace sar
