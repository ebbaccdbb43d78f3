// SPDX-License-Identifier: MIT

// A rank draws among its own nodes, asks the owners of the sources of their in-edges which of these are in
// the batch, and builds the subgraph of the edges whose sources are. Counting does the same without building.
#include <sar/core/error.hpp>
#include <sar/core/memory/index_set.hpp>
#include <sar/core/trace/trace.hpp>
#include <sar/graph/construct/layer_graph.hpp>
#include <sar/graph/message/agreement.hpp>
#include <sar/graph/sampling/saint_draws.hpp>
#include <sar/graph/sampling/saint_loader.hpp>
#include <sar/graph/topology/sharded_graph.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

/// The rows of this rank in a batch, and the edges between nodes of the batch.
struct SaintLoader::Nodes {
  Array<Index> rows;
  KeptEdges kept;
};

namespace {

constexpr const char* method_names[] = {"node", "edge", "walk"};

void check_options(const Graph& graph, const SaintOptions& options) {
  require<InputError>(
      graph.topology().is_homogeneous(),
      "subgraphs are drawn from a graph of one node type, not from a bipartite graph or a block");
  const auto at_least = [](Index number, Index least, const char* name) {
    require<InputError>(number >= least, "SaintLoader: ", name, " is ", number, ", expected ", least,
                        " or more");
  };
  at_least(options.draws, 1, "draws");
  at_least(options.walk_length, 1, "walk_length");
  at_least(options.batches, 0, "batches");
  at_least(options.coverage, 1, "coverage");
  if (options.method != SaintMethod::node) (void)graph.edge_ids();
}

/// Nodes that a batch draws, without those drawn twice.
double nodes_of_batch(const SaintOptions& options) {
  const auto draws = static_cast<double>(options.draws);
  switch (options.method) {
    case SaintMethod::edge:
      return 2 * draws;
    case SaintMethod::walk:
      return draws * (static_cast<double>(options.walk_length) + 1);
    case SaintMethod::node:
      break;
  }
  return draws;
}

}  // namespace

SaintLoader::SaintLoader(const Graph& graph, const SaintOptions& options) : graph_(graph), options_(options) {
  const Communicator& comm = graph_.comm();
  comm.agree([&] {
    check_options(graph_, options_);
    comm.require_equal(CollectiveCall("SaintLoader")
                           .equal("method", method_names[static_cast<std::size_t>(options.method)])
                           .equal("draws", options.draws)
                           .equal("walk_length", options.walk_length)
                           .equal("batches", options.batches)
                           .equal("coverage", options.coverage)
                           .equal("scale_messages", options.scale_messages)
                           .equal("seed", options.seed));
    const double shares = static_cast<double>(graph_.num_global_nodes()) / nodes_of_batch(options_);
    num_batches_ =
        options.batches > 0 ? options.batches : std::max(static_cast<Index>(std::ceil(shares)), Index{1});
    draws_ = std::make_shared<const SaintDraws>(graph_, options_);
    if (options_.method != SaintMethod::node) count();
  });
}

SaintLoader::Nodes SaintLoader::draw(std::uint64_t epoch, Index batch) const {
  const GraphTopology& whole = graph_.topology();
  const std::vector<std::uint8_t> is_in = draws_->draw(epoch + (static_cast<std::uint64_t>(batch) << 32));
  Nodes nodes;
  for (Index row = 0; row < std::ssize(is_in); ++row)
    if (is_in[static_cast<std::size_t>(row)] != 0) nodes.rows.push_back(row);
  nodes.kept = all_in_edges(*graph_.shards(), nodes.rows);

  const Index local = whole.local.num_src_rows;
  IndexSet read(whole.remote.num_src_rows), in_batch(whole.remote.num_src_rows);
  for (const local_index edge : nodes.kept.edge)
    if (const Index source = source_of(whole, edge); source >= local) read.insert(source - local);
  const Array<Index> asked = read.members();
  const OwnerRequests sources(whole, {asked.data(), asked.size()});
  std::vector<std::uint8_t> answers;
  for (const local_index row : sources.rows()) answers.push_back(is_in[static_cast<std::size_t>(row)]);
  answers = sources.answer<std::uint8_t>(answers);
  for (std::size_t i = 0; i < answers.size(); ++i)
    if (answers[i] != 0) in_batch.insert(asked[i]);

  Index count = 0;
  for (Index i = 0; i < std::ssize(nodes.rows); ++i) {
    const Index begin = nodes.kept.begin[i], end = nodes.kept.begin[i + 1];
    nodes.kept.begin[i] = count;
    for (Index k = begin; k < end; ++k) {
      const local_index edge = nodes.kept.edge[k];
      const Index source = source_of(whole, edge);
      const bool is_kept =
          source < local ? is_in[static_cast<std::size_t>(source)] != 0 : in_batch.contains(source - local);
      if (is_kept) nodes.kept.edge[count++] = edge;
    }
  }
  nodes.kept.begin.back() = count;
  nodes.kept.edge.resize(static_cast<std::size_t>(count));
  return nodes;
}

void SaintLoader::count() {
  const Communicator& comm = graph_.comm();
  node_counts_.assign(static_cast<std::size_t>(graph_.num_dst_nodes()), 0);
  edge_counts_.assign(static_cast<std::size_t>(graph_.num_edges()), 0);
  const Index wanted = options_.coverage * graph_.num_global_nodes();
  Index seen = 0, without_nodes = 0;
  while (seen < wanted && without_nodes < 100) {  // a graph without edges has none to draw
    const Nodes nodes = draw(0, num_counted_++);
    for (const Index row : nodes.rows) ++node_counts_[row];
    for (const local_index edge : nodes.kept.edge) ++edge_counts_[edge];
    const Index drawn = comm.all_reduce(std::ssize(nodes.rows));
    without_nodes = drawn == 0 ? without_nodes + 1 : 0;
    seen += drawn;
  }
}

double SaintLoader::node_probability(Index row) const {
  if (options_.method == SaintMethod::node) return draws_->node_probabilities()[row];
  return static_cast<double>(std::max<local_index>(node_counts_[row], 1)) /
         static_cast<double>(std::max<Index>(num_counted_, 1));
}

double SaintLoader::edge_probability(Index edge) const {
  const GraphTopology& whole = graph_.topology();
  const GraphShard& shard = edge < whole.remote.first_edge ? whole.local : whole.remote;
  const auto next = std::ranges::upper_bound(shard.row_begin, edge - shard.first_edge);
  const Index row = shard.dst_row(next - shard.row_begin.begin() - 1);
  if (options_.method == SaintMethod::node) {
    const Index source = source_of(whole, edge);
    return source == row ? 1 : draws_->node_probabilities()[source];
  }
  return static_cast<double>(std::max<local_index>(edge_counts_[edge], 1)) /
         static_cast<double>(std::max<local_index>(node_counts_[row], 1));
}

void SaintLoader::start_epoch(std::uint64_t epoch, Index first_batch) {
  require<InputError>(0 <= first_batch && first_batch <= num_batches_, "there is no batch ", first_batch,
                      ", expected ", index_range(num_batches_ + 1));
  const Transaction transaction;
  epoch_ = epoch;
  number_ = first_batch;
}

std::optional<SaintBatch> SaintLoader::next() {
  const TraceScope scope("saint batch", TraceKind::compute);
  const Communicator& comm = graph_.comm();
  return comm.agree([&]() -> std::optional<SaintBatch> {
    comm.require_equal(
        CollectiveCall("SaintLoader::next").equal("epoch", epoch_.get()).equal("batch", number_.get()));
    if (number_ == num_batches_) return std::nullopt;
    Nodes nodes = draw(epoch_, number_);
    SaintBatch batch{
        .number = number_,
        .graph = MessageFlowGraph(options_.scale_messages
                                      ? make_subgraph(*graph_.shards(), nodes.rows, nodes.kept,
                                                      [&](Index edge) { return 1 / edge_probability(edge); })
                                      : make_subgraph(*graph_.shards(), nodes.rows, nodes.kept),
                                  nodes.rows, graph_.options()),
        .loss_weights = Tensor(Shape{std::ssize(nodes.rows)})};
    std::ranges::transform(nodes.rows, batch.loss_weights.data(),
                           [&](Index row) { return static_cast<real>(1 / node_probability(row)); });
    ++number_.change();
    return batch;
  });
}

}}  // namespace sar
