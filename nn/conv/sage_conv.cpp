// SPDX-License-Identifier: MIT

// mean and pool: the aggregation is started first, and the self term W_self x_v + b is computed while rows
// are in flight. The rest is added in the memory of the self term: the sum itself if the product with
// W_neigh comes first, otherwise the product of the aggregate. lstm: one row per edge is gathered, in the
// order of edge_sequences().
#include <sar/autograd/op_support.hpp>
#include <sar/core/memory/index_arrays.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/graph/message/degree_factors.hpp>
#include <sar/graph/topology/sharded_graph.hpp>
#include <sar/nn/conv/aggregate.hpp>
#include <sar/nn/conv/sage_conv.hpp>

#include <algorithm>
#include <numeric>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

namespace {

// The in-edges of each destination as a sequence in the order of their ids, for recurrent aggregators.

/// One sequence of edges per destination, sorted by decreasing length and stored step by step.
struct EdgeSequences {
  Array<Index> position;   ///< index of each local destination's sequence; equal lengths keep their order
  Array<Index> step_rows;  ///< for each step t, the number of sequences with more than t edges
  Array<Index> edges;      ///< local edges: first edges of all sequences, then second edges, ...
};

// A counting sort of the edges by destination, a sort of each destination's edges by id, and a sort of the
// destinations by length. Then one pass per step writes the edges of the sequences that still run:
// O(edges) together. On one thread.

/// Local. Returns the sequences. Time: O(edges log(largest degree) + n log(n)) for n destinations.
EdgeSequences edge_sequences(const Graph& graph) {
  const GraphTopology& shards = graph.topology();
  const auto num_dst = static_cast<std::size_t>(graph.num_dst_nodes());
  // counting sort by destination, then by id
  Array<Index> begin(num_dst + 1, 0), by_dst(static_cast<std::size_t>(graph.num_edges()));
  shards.for_each_edge([&](Index, Index v, Index) { ++begin[v + 1]; });
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  Array<Index> next(begin.begin(), begin.end() - 1);
  shards.for_each_edge([&](Index, Index v, Index edge) { by_dst[next[v]++] = edge; });
  const Array<Index>& ids = graph.edge_ids();
  for (std::size_t v = 0; v < num_dst; ++v)
    std::sort(by_dst.begin() + begin[v], by_dst.begin() + begin[v + 1],
              [&](Index a, Index b) { return ids[a] < ids[b]; });

  const auto length = [&](Index v) { return begin[v + 1] - begin[v]; };
  Array<Index> dst = consecutive(0, graph.num_dst_nodes());
  std::stable_sort(dst.begin(), dst.end(), [&](Index a, Index b) { return length(a) > length(b); });

  EdgeSequences sequences;
  sequences.position.resize(num_dst);
  for (std::size_t i = 0; i < num_dst; ++i) sequences.position[dst[i]] = static_cast<Index>(i);
  sequences.edges.reserve(by_dst.size());
  std::size_t running = num_dst;
  for (Index t = 0;; ++t) {
    while (running > 0 && length(dst[running - 1]) <= t) --running;
    if (running == 0) return sequences;
    sequences.step_rows.push_back(static_cast<Index>(running));
    for (std::size_t i = 0; i < running; ++i) sequences.edges.push_back(by_dst[begin[dst[i]] + t]);
  }
}

}  // namespace

SAGEConv::SAGEConv(const InFeatures& in_feats, Index out_feats, Generator& gen,
                   const SAGEConvOptions& options)
    : options_(options),
      in_feats_(in_feats),
      feat_drop_(options.feat_drop, gen),
      fc_neigh_(in_feats.src, out_feats, gen, false),
      cache_(options.cached, "SAGEConv") {
  const bool has_constant_aggregate =
      options.aggregator == SAGEAggregator::mean || options.aggregator == SAGEAggregator::gcn;
  require<InputError>(!options.cached || has_constant_aggregate,
                      "SAGEConv with cached and the aggregator pool or lstm, whose parameters change the "
                      "aggregate, expected mean or gcn");
  require<InputError>(!options.cached || options.feat_drop == 0, "SAGEConv with cached and feat_drop ",
                      options.feat_drop, ", which changes the features in every call, expected 0");
  const auto xavier = [&](const Linear& fc) {
    start_weight(fc, init::xavier_uniform(fc.weight().shape(), init::relu_gain, gen.next_stream()));
  };
  if (options.aggregator != SAGEAggregator::gcn) {
    fc_self_.emplace(in_feats.dst, out_feats, gen, options.bias);
    xavier(*fc_self_);
  } else {
    require<InputError>(in_feats.src == in_feats.dst, "SAGEConv with the gcn aggregator has sources of ",
                        in_feats.src, " and destinations of ", in_feats.dst,
                        " features, expected equal widths");
    if (options.bias) register_parameter("bias", bias_, Tensor::zeros({out_feats}));
  }
  xavier(fc_neigh_);
  register_module("feat_drop", feat_drop_);
  if (options.aggregator == SAGEAggregator::pool)
    xavier(make_module("fc_pool", fc_pool_, in_feats.src, in_feats.src, gen));
  if (options.aggregator == SAGEAggregator::lstm) make_module("lstm", lstm_, in_feats.src, in_feats.src, gen);
  register_module("fc_neigh", fc_neigh_);
  if (fc_self_) register_module("fc_self", *fc_self_);
}

Variable SAGEConv::operator()(const Graph& graph, const NodeFeatures& feat, const Variable& edge_weight,
                              const Linear* residual) {
  return graph.comm().agree([&] {
    require_feats(graph, feat, in_feats_, "SAGEConv");
    const Variable src = feat_drop_(feat.src, graph.src_ids());
    const Variable dst = feat.pair() ? feat_drop_(feat.dst, graph.dst_ids()) : Variable();
    const auto own_rows = [&] { return dst.defined() ? dst : dst_rows(graph, src); };
    if (options_.aggregator == SAGEAggregator::gcn) {
      Variable y = gcn(graph, src, dst, edge_weight);
      return residual == nullptr ? y : residual->add_to(std::move(y), own_rows());
    }
    const auto self = [&](NumberType type) {
      if (residual == nullptr) return linear(own_rows(), fc_self_->weight(), fc_self_->bias(), type);
      return linear(own_rows(), fc_self_->weight() + residual->weight(),
                    sum_of(fc_self_->bias(), residual->bias()), type);
    };
    // The self term is computed while halo rows are in flight.
    if (options_.aggregator == SAGEAggregator::mean && multiplies_first(graph, src)) {
      StartedSum sum = graph.start_update_all(message(fc_neigh_(src), edge_weight), fn::mean);
      return sum.finish(self(sum.base_type()));
    }
    if (!cache_.enabled() && !lstm_) {
      StartedSum sum = start_aggregate(graph, src, edge_weight);
      Variable self_term = self(type_of_results());
      return add_linear(std::move(self_term), sum.finish(), fc_neigh_.weight());
    }
    Variable self_term = self(type_of_results());
    const Variable neigh = cache_(graph, {&src, &edge_weight}, [&] {
      return lstm_ ? lstm_aggregate(graph, src, edge_weight)
                   : start_aggregate(graph, src, edge_weight).finish();
    });
    return add_linear(std::move(self_term), neigh, fc_neigh_.weight());
  });
}

StartedSum SAGEConv::start_aggregate(const Graph& graph, const Variable& src,
                                     const Variable& edge_weight) const {
  if (fc_pool_) return graph.start_update_all(message(relu((*fc_pool_)(src)), edge_weight), fn::max);
  return graph.start_update_all(message(src, edge_weight), fn::mean);
}

Variable SAGEConv::lstm_aggregate(const Graph& graph, const Variable& src,
                                  const Variable& edge_weight) const {
  EdgeSequences sequences = edge_sequences(graph);
  if (rank_sums() != nullptr) {  // the products of each step are then summed over all ranks
    const auto steps = static_cast<double>(sequences.step_rows.size());
    sequences.step_rows.resize(static_cast<std::size_t>(graph.comm().all_reduce(steps, ReduceOp::max)), 0);
  }
  const Variable rows = gather_rows(graph.apply_edges(message(src, edge_weight)), std::move(sequences.edges));
  return gather_rows(lstm_->last_hidden(rows, sequences.step_rows, graph.num_dst_nodes()),
                     std::move(sequences.position));
}

Variable SAGEConv::gcn(const Graph& graph, const Variable& src, const Variable& dst,
                       const Variable& edge_weight) {
  const bool multiply_first = multiplies_first(graph, src);
  const Variable rows = multiply_first ? fc_neigh_(src) : src;
  const auto self = [&] {
    if (!dst.defined()) return dst_rows(graph, rows);
    return multiply_first ? fc_neigh_(dst) : dst;
  };
  Variable y = cache_(graph, {&src, &dst, &edge_weight}, [&] {
    StartedSum sum =
        start_scaled_sum(graph, rows, edge_weight, {.src = {}, .dst = DegreeFactor::inverse_with_self});
    return sum.finish(
        scale_rows(self(), degree_factors(graph, NodeDegree::in, DegreeFactor::inverse_with_self)));
  });
  if (!multiply_first) return linear(std::move(y), fc_neigh_.weight(), bias_);
  return bias_.defined() ? add(std::move(y), bias_) : y;
}

bool SAGEConv::multiplies_first(const Graph& graph, const Variable& rows) const {
  return !cache_.enabled() && sar::multiplies_first(graph, rows, fc_neigh_.weight().shape()[0]);
}
}}  // namespace sar
