#include <sar/autograd/ops.hpp>
#include <sar/core/error.hpp>
#include <sar/nn/aggregate.hpp>
#include <sar/nn/link_predictor.hpp>

#include <string>
#include <utility>
#include <vector>

namespace sar::inline SAR_PRECISION {
namespace {

void require_ends(const Variable& h_src, const Variable& h_dst, Index feats, const char* predictor) {
  require<ShapeError>(h_src.shape().dims() == 2 && h_src.shape() == h_dst.shape() &&
                          (feats == 0 || h_src.shape()[1] == feats),
                      predictor, ": the ends have shapes ", h_src.shape(), " and ", h_dst.shape(),
                      ", expected [pairs, ", feats == 0 ? "width" : std::to_string(feats), "] for both");
}

/// Rows of both ends on a graph.
struct Ends {
  Variable src, dst;
};

Ends ends_of(const GraphShardManager& graph, const NodeFeatures& h, Index feats, const char* predictor) {
  if (!h.pair()) require_block(graph, predictor);
  const std::string what = std::string(predictor) + ", representations";
  require_num_rows(h.src, graph.num_src_nodes(), what);
  Ends ends{h.src, dst_feats(graph, h)};
  require_rows(ends.src, graph.num_src_nodes(), feats == 0 ? ends.src.shape().row_size() : feats, what);
  require_rows(ends.dst, graph.num_dst_nodes(), ends.src.shape()[1], what);
  return ends;
}

}  // namespace

Variable DotPredictor::operator()(const Variable& h_src, const Variable& h_dst) const {
  require_ends(h_src, h_dst, 0, "DotPredictor");
  return sum(mul(h_src, h_dst), ReduceDim::columns);
}

Variable DotPredictor::operator()(const GraphShardManager& graph, const NodeFeatures& h) const {
  return graph.comm().agree([&] {
    const Ends ends = ends_of(graph, h, 0, "DotPredictor");
    return graph.apply_edges(fn::u_dot_v(ends.src, ends.dst));
  });
}

MLPPredictor::MLPPredictor(Index feats, Generator& gen, const MLPPredictorOptions& options)
    : feats_(feats),
      w1_(2 * feats, options.hidden == 0 ? feats : options.hidden, gen),
      w2_(options.hidden == 0 ? feats : options.hidden, options.out, gen) {
  register_module("W1", w1_);
  register_module("W2", w2_);
}

Variable MLPPredictor::hidden_of_src(const Variable& h) const {
  return linear(h, slice_columns(w1_.weight(), 0, feats_));
}

Variable MLPPredictor::hidden_of_dst(const Variable& h) const {
  return linear(h, slice_columns(w1_.weight(), feats_, 2 * feats_), w1_.bias());
}

Variable MLPPredictor::operator()(const Variable& h_src, const Variable& h_dst) const {
  require_ends(h_src, h_dst, feats_, "MLPPredictor");
  return w2_(relu(hidden_of_src(h_src) + hidden_of_dst(h_dst)));
}

Variable MLPPredictor::operator()(const GraphShardManager& graph, const NodeFeatures& h) const {
  return graph.comm().agree([&] {
    const Ends ends = ends_of(graph, h, feats_, "MLPPredictor");
    const Variable u = hidden_of_src(ends.src), v = hidden_of_dst(ends.dst);
    return graph.apply_edges([u, v, weight = w2_.weight(), bias = w2_.bias()](const EdgeBatch& edges) {
      return linear(relu(edges.src(u) + edges.dst(v)), weight, bias);
    });
  });
}

DistMultPredictor::DistMultPredictor(Index num_rels, Index feats, Generator& gen) {
  require<InputError>(num_rels > 0 && feats > 0, "DistMultPredictor with ", num_rels, " relations and ",
                      feats, " features, expected positive numbers");
  w_relation_ = Variable(init::xavier_uniform({num_rels, feats}, init::relu_gain, gen.next_stream()), true);
  register_parameter("w_relation", w_relation_);
}

void DistMultPredictor::require_relations(Index pairs, const RowIds& rels) const {
  require<ShapeError>(rels.size() == pairs, "DistMultPredictor: ", rels.size(), " relations for ", pairs,
                      " pairs");
  for (const Index rel : rels.span())
    require<InputError>(rel >= 0 && rel < w_relation_.num_rows(), "DistMultPredictor: relation ", rel,
                        ", expected 0 to ", w_relation_.num_rows() - 1);
}

Variable DistMultPredictor::operator()(const Variable& h_src, const Variable& h_dst, RowIds rels) const {
  require_ends(h_src, h_dst, w_relation_.shape()[1], "DistMultPredictor");
  require_relations(h_src.num_rows(), rels);
  return sum(h_src * gather_rows(w_relation_, std::move(rels)) * h_dst, ReduceDim::columns);
}

Variable DistMultPredictor::operator()(const GraphShardManager& graph, const NodeFeatures& h,
                                       RowIds rels) const {
  return graph.comm().agree([&] {
    const Ends ends = ends_of(graph, h, w_relation_.shape()[1], "DistMultPredictor");
    require_relations(graph.num_edges(), rels);
    return graph.apply_edges([ends, w = w_relation_, rels](const EdgeBatch& edges) {
      std::vector<Index> of_block;
      for (const Index row : edges.rows().span())
        of_block.push_back(rels.span()[static_cast<std::size_t>(row)]);
      return sum(edges.src(ends.src) * gather_rows(w, std::move(of_block)) * edges.dst(ends.dst),
                 ReduceDim::columns);
    });
  });
}

}  // namespace sar
