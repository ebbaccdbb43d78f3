// SPDX-License-Identifier: MIT

/// Networks that learn a simulation on a mesh: encode, process, decode (MeshGraphNet).
#pragma once

#include <sar/graph/message/graph.hpp>
#include <sar/nn/modules/linear.hpp>
#include <sar/nn/modules/module.hpp>
#include <sar/nn/modules/norms.hpp>

#include <memory>
#include <optional>

namespace sar { inline namespace SAR_PRECISION {

/// Latent rows of the nodes [local nodes, hidden] and of the edges [local edges, hidden], in the graph's edge
/// order.
struct MeshLatents {
  Variable nodes, edges;
};

/// One message passing step on node rows h and edge rows e, after Pfaff et al., arXiv 2010.03409:
///
///     e'_uv = e_uv + MLP_e(e_uv, h_u, h_v)
///
///     h'_v = h_v + MLP_v(h_v, sum_{u -> v} e'_uv)
///
/// Both networks end in a LayerNorm. The products of h_u and h_v with the first layer of MLP_e are computed
/// once per node; the halo rows are the products of h_u.
///
/// Parameters, as in MLP: edge_mlp, whose first weight is [hidden, 3 hidden] for (e, h_u, h_v), and node_mlp,
/// whose first weight is [hidden, 2 hidden] for (h, sum). MLP_e is evaluated for options().edge_chunk edges
/// at a time, and evaluated again in the backward pass. While a tape records, e' is kept. Collective: one
/// apply_edges, and one update_all that needs no halo rows.
class MeshGraphNetBlock : public Module {
 public:
  /// Both networks have `hidden_layers` hidden layers of width `hidden`. Throws InputError unless the numbers
  /// are positive and there is an activation.
  MeshGraphNetBlock(Index hidden, Generator& gen, int hidden_layers = 2, const Activation& activation = relu);

  /// The sources and destinations of the graph must be the same nodes. Throws ShapeError on every rank if
  /// shapes do not match.
  [[nodiscard]] MeshLatents operator()(const Graph& graph, const MeshLatents& latents) const;

 private:
  Index hidden_;
  std::shared_ptr<MLP> edge_mlp_;  // shared with messages on the tape
  MLP node_mlp_;
};

struct MeshGraphNetOptions {
  Index node_feats = 0, edge_feats = 0,
        out_feats = 0;  ///< widths of the node features, edge features and results
  Index hidden = 128;            ///< width of the latent rows and of the hidden layers
  int blocks = 15;               ///< message passing steps: how many edges far a node sees; may be 0
  int mlp_layers = 2;            ///< number of hidden layers of each network; at least 1
  Activation activation = relu;  ///< after each hidden layer
  bool normalize = false;        ///< normalize features and results with the statistics of
                                 ///< update_statistics()
};

/// Pfaff et al., "Learning Mesh-Based Simulation with Graph Networks", arXiv 2010.03409:
///
///     h = node_encoder(x)        e = edge_encoder(edge features)
///
///     (h, e) = processor[i](h, e), i = 0 .. blocks - 1
///
///     y = decoder(h)
///
/// All networks are MLPs of the hidden width; all but the decoder end in a LayerNorm. Edge features describe
/// the problem and usually contain relative_positions(). With `normalize`, the networks read normalized
/// features, and y = output_normalizer.inverse(decoder(h)).
///
/// Parameters, as in MLP and MeshGraphNetBlock: node_encoder, edge_encoder, processor.0, processor.1, ...,
/// decoder. Buffers with `normalize`: node_normalizer, edge_normalizer, output_normalizer, as in Normalizer.
/// The result does not depend on the number of ranks, up to rounding, in all modes. While a tape records,
/// edge rows are kept after the encoder and after each block: hidden values per edge and block. Collective:
/// the calls of the blocks, and one apply_edges that needs no halo rows.
class MeshGraphNet : public Module {
 public:
  /// Throws InputError unless the widths and mlp_layers are positive and the number of blocks is not
  /// negative. Also throws with `normalize`, whose statistics need a communicator.
  MeshGraphNet(const MeshGraphNetOptions& options, Generator& gen);
  /// The same, with statistics over the ranks of `comm` if `normalize` is set.
  MeshGraphNet(const MeshGraphNetOptions& options, const Communicator& comm, Generator& gen);

  /// x [local nodes, node_feats], edge_feats [local edges, edge_feats] in the graph's edge order -> [local
  /// nodes, out_feats]. Throws ShapeError on every rank if shapes do not match.
  [[nodiscard]] Variable operator()(const Graph& graph, const Variable& x, const Variable& edge_feats) const;
  /// Collective. Returns the result before output_normalizer.inverse(), for a loss against
  /// normalized_target(). Without `normalize`, the same as operator(). Errors as above.
  [[nodiscard]] Variable normalized(const Graph& graph, const Variable& x, const Variable& edge_feats) const;
  /// Local. Converts targets [n, out_feats] to the units of normalized(). Throws ShapeError for another
  /// width.
  [[nodiscard]] Variable normalized_target(const Variable& target) const;

  /// Collective. Adds the rows of all ranks to the statistics of features and results: x [n, node_feats],
  /// edge_feats [m, edge_feats], target [k, out_feats]; a rank may have none. Throws the same exception on
  /// every rank: InputError without `normalize` and for values that are not finite, ShapeError for other
  /// widths.
  void update_statistics(const Tensor& x, const Tensor& edge_feats, const Tensor& target);

  /// Local. Returns whether the normalizers have statistics of at least one row each, or there are none.
  [[nodiscard]] bool has_statistics() const noexcept;

  [[nodiscard]] const MeshGraphNetOptions& options() const noexcept { return options_; }

 private:
  MeshGraphNet(const MeshGraphNetOptions& options, const Communicator* comm, Generator& gen);

  MeshGraphNetOptions options_;
  MLP node_encoder_;
  std::shared_ptr<MLP> edge_encoder_;  // shared with messages on the tape
  ModuleList<MeshGraphNetBlock> processor_;
  MLP decoder_;
  std::optional<Normalizer> node_normalizer_, edge_normalizer_, output_normalizer_;
};

}}  // namespace sar
