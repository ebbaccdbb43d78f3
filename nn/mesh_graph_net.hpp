/// Networks that learn a simulation on a mesh: encode, process, decode.
#pragma once

#include <sar/graph/message/graph_shard_manager.hpp>
#include <sar/nn/mlp.hpp>
#include <sar/nn/module_list.hpp>
#include <sar/nn/normalizer.hpp>

#include <memory>
#include <optional>

namespace sar::inline SAR_PRECISION {

/// Rows of the nodes [local nodes, hidden] and of the edges [local edges, hidden], in the graph's edge order.
struct MeshLatents {
  Variable nodes, edges;
};

/// One step of message passing on rows h of nodes and e of edges, after Pfaff et al., arXiv 2010.03409:
///
///     e'_uv = e_uv + MLP_e(e_uv, h_u, h_v)        h'_v = h_v + MLP_v(h_v, sum_{u -> v} e'_uv)
///
/// with a LayerNorm at the end of both networks. The products with h_u and h_v of the first layer of MLP_e
/// are taken once a node, and it is these rows that travel.
///
/// Parameters, as in MLP: edge_mlp, whose first weight is [hidden, 3 hidden] for (e, h_u, h_v), and node_mlp,
/// whose first weight is [hidden, 2 hidden] for (h, sum). What MLP_e computes exists for options().edge_block
/// edges at a time, forward and again in the backward pass; while a tape records, e' is kept. Collective: one
/// apply_edges, and one update_all for which nothing travels.
class MeshGraphNetBlock : public Module {
 public:
  /// Both networks have `hidden_layers` layers of width `hidden` before their last. Throws InputError unless
  /// the numbers are positive and there is an activation.
  MeshGraphNetBlock(Index hidden, Generator& gen, int hidden_layers = 2, const Activation& activation = relu);

  /// On a graph whose sources and destinations are the same nodes. Throws, the same on every rank, ShapeError
  /// when shapes do not fit.
  [[nodiscard]] MeshLatents operator()(const GraphShardManager& graph, const MeshLatents& latents) const;

 private:
  Index hidden_;
  std::shared_ptr<MLP> edge_mlp_;  // shared with messages on the tape
  MLP node_mlp_;
};

struct MeshGraphNetOptions {
  Index node_feats = 0, edge_feats = 0,
        out_feats = 0;  ///< widths of x, of the edges' features, of the result
  Index hidden = 128;            ///< width of the rows of nodes and edges, and of the hidden layers
  int blocks = 15;               ///< how many edges far a node sees; may be 0
  int mlp_layers = 2;            ///< hidden layers of each network; at least 1
  Activation activation = relu;  ///< after each of them
  bool normalize = false;        ///< features and result, by statistics of what update_statistics() has seen
};

/// Pfaff et al., "Learning Mesh-Based Simulation with Graph Networks", arXiv 2010.03409:
///
///     h = node_encoder(x)    e = edge_encoder(edge features)
///     (h, e) = processor[i](h, e), i = 0 ..    y = decoder(h)
///
/// All networks are MLPs of the hidden width; all but the decoder end in a LayerNorm. The features of an edge
/// are what the problem says of it, relative_positions() above all. With `normalize`, the networks read
/// normalized features, and y = output_normalizer.inverse(decoder(h)).
///
/// Parameters, as in MLP and MeshGraphNetBlock: node_encoder, edge_encoder, processor.0, processor.1, ...,
/// decoder. Buffers with `normalize`: node_normalizer, edge_normalizer, output_normalizer, as in Normalizer.
/// The result is that of one rank, to rounding, in all modes. While a tape records, the rows of the edges are
/// kept after the encoder and after each block: hidden numbers an edge and block. Collective: what the blocks
/// do, and one apply_edges for which nothing travels.
class MeshGraphNet : public Module {
 public:
  /// Throws InputError unless widths are positive, numbers of layers and blocks are not negative, and
  /// mlp_layers is positive; also with `normalize`, whose statistics need a communicator.
  MeshGraphNet(const MeshGraphNetOptions& options, Generator& gen);
  /// With statistics over the ranks of `comm`, if `normalize` asks for them.
  MeshGraphNet(const MeshGraphNetOptions& options, const Communicator& comm, Generator& gen);

  /// x [local nodes, node_feats], edge_feats [local edges, edge_feats] in the graph's edge order -> [local
  /// nodes, out_feats]. Throws, the same on every rank, ShapeError when shapes do not fit.
  [[nodiscard]] Variable operator()(const GraphShardManager& graph, const Variable& x,
                                    const Variable& edge_feats) const;
  /// The result before output_normalizer.inverse(), for a loss against normalized_target(); without
  /// `normalize` the same as operator(). Errors as above. Collective.
  [[nodiscard]] Variable normalized(const GraphShardManager& graph, const Variable& x,
                                    const Variable& edge_feats) const;
  /// Targets [n, out_feats] in the units of normalized(). Throws ShapeError for another width. Local.
  [[nodiscard]] Variable normalized_target(const Variable& target) const;

  /// Adds the rows of all ranks to the statistics of the features and of the result: x [n, node_feats],
  /// edge_feats [m, edge_feats], target [k, out_feats]; a rank may have none. Throws, the same on every rank,
  /// InputError without `normalize` and for values that are not finite, ShapeError for other widths.
  /// Collective.
  void update_statistics(const Tensor& x, const Tensor& edge_feats, const Tensor& target);

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

}  // namespace sar
