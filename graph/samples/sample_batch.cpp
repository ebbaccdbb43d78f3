// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/graph/message/agreement.hpp>
#include <sar/graph/samples/sample_batch.hpp>

#include <array>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// The edges of all samples of this rank, whose first node has the global id `first`. They are in the order
/// in which the graph has them.
EdgeList edges_of(const GraphSamples& samples, Index first) {
  EdgeList edges;
  const auto count = static_cast<std::size_t>(samples.num_edges());
  edges.src.resize(count);
  edges.dst.resize(count);
  edges.id.resize(count);
  for (Index g = 0; g < samples.num_graphs(); ++g) {
    const Index offset = first + samples.node_begin[g], begin = samples.edge_begin[g];
    for (Index k = begin; k < samples.edge_begin[g + 1]; ++k) {
      edges.src[k] = offset + samples.src[k];
      edges.dst[k] = offset + samples.dst[k];
      edges.id[k] = id_in_samples(samples.ids[g], k - begin);
    }
  }
  return edges;
}

}  // namespace

SampleBatch::SampleBatch(const Communicator& comm, GraphSamples samples, const GraphOptions& options)
    : state_(comm.agree(
          [&] { return std::make_shared<const State>(make(comm, std::move(samples), options)); })) {}

SampleBatch::State SampleBatch::make(const Communicator& comm, GraphSamples samples,
                                     const GraphOptions& options) {
  samples.check();
  const CallScope compared(
      comm, CollectiveCall("SampleBatch").equal("list of fields", describe_fields(samples)).equal(options));
  const std::array<Index, 2> mine{samples.num_nodes(), samples.num_graphs()};
  std::vector<Index> offsets{0};
  Index graphs = 0;
  for (const std::array<Index, 2>& of_rank : comm.all_gather(mine)) {
    offsets.push_back(offsets.back() + of_rank[0]);
    graphs += of_rank[1];
  }
  require<InputError>(graphs > 0, "a batch of no graph samples, expected at least one on any rank");
  const PartitionBook book(std::move(offsets));
  Array<Index> ids(static_cast<std::size_t>(samples.num_nodes()));
  Array<Index> graph_of_nodes(ids.size());
  for (Index g = 0; g < samples.num_graphs(); ++g)
    for (Index v = samples.node_begin[g]; v < samples.node_begin[g + 1]; ++v) {
      ids[v] = id_in_samples(samples.ids[g], v - samples.node_begin[g]);
      graph_of_nodes[v] = g;
    }
  EdgeList edges = edges_of(samples, book.begin(comm.rank()));
  Graph graph(comm, book, book, std::move(edges), /*is_block=*/true, options, ids, ids);
  return {.samples = std::make_shared<const GraphSamples>(std::move(samples)),
          .graph_of_nodes = std::make_shared<const Array<Index>>(std::move(graph_of_nodes)),
          .graph = std::move(graph),
          .num_global_graphs = graphs};
}

}}  // namespace sar
