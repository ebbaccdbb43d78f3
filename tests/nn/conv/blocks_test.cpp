// SPDX-License-Identifier: MIT

/// Blocks of neighbor sampling against DGL's: their sources and edges for given draws, networks of two
/// layers on them, and edges that are left out.
#include "support/reference.hpp"
#include "support/rows.hpp"

#include <doctest/doctest.h>
#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/graph/construct/layer_graph.hpp>
#include <sar/graph/sampling/data_loader.hpp>
#include <sar/nn/conv/gat_conv.hpp>
#include <sar/nn/conv/graph_conv.hpp>
#include <sar/nn/conv/sage_conv.hpp>
#include <sar/nn/modules/module.hpp>
#include <sar/nn/train/distributed.hpp>

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

constexpr Index num_nodes = 43;

/// A case on the ranks: each has the nodes of `book`, with their in-edges.
struct Problem {
  const Communicator& comm;
  const Case& golden;
  const PartitionBook& book;
  std::vector<Index> src = golden.indices("src"), dst = golden.indices("dst");
  Graph graph = make_graph();

  [[nodiscard]] Graph make_graph() const {
    EdgeList edges;
    for (Index k = 0; k < std::ssize(src); ++k) {
      if (book.owner(dst[k]) != comm.rank()) continue;
      edges.src.push_back(src[k]);
      edges.dst.push_back(dst[k]);
      edges.id.push_back(k);
    }
    return {comm, book, book, std::move(edges), true};
  }
  [[nodiscard]] Index first() const { return book.begin(comm.rank()); }
  /// Those of the nodes that are this rank's, in the same order.
  [[nodiscard]] std::vector<Index> mine(const std::vector<Index>& nodes) const {
    std::vector<Index> found;
    std::ranges::copy_if(nodes, std::back_inserter(found),
                         [&](Index v) { return book.owner(v) == comm.rank(); });
    return found;
  }
  [[nodiscard]] std::vector<Index> of_all(std::vector<Index> values) const {
    std::vector<Index> all = comm.all_gather(std::span<const Index>(values));
    std::ranges::sort(all);
    return all;
  }

  /// The layer of these destinations and of those of the edges `drawn` that go to them.
  [[nodiscard]] MessageFlowGraph layer_of(const Array<Index>& dst_rows,
                                          const std::vector<Index>& drawn) const {
    std::map<Index, std::vector<local_index>> in_edges;  // by destination row
    for (Index e = 0; e < graph.num_edges(); ++e) {
      const Index id = graph.edge_ids()[e];
      for (auto times = std::ranges::count(drawn, id); times > 0; --times)
        in_edges[dst[id] - first()].push_back(static_cast<local_index>(e));
    }
    KeptEdges kept;
    for (const Index row : dst_rows) {
      kept.edge.insert(kept.edge.end(), in_edges[row].begin(), in_edges[row].end());
      kept.begin.push_back(std::ssize(kept.edge));
    }
    return {make_layer(*graph.shards(), dst_rows, kept), dst_rows, graph.options()};
  }
  /// From DGL's draws; with all edges, from those of the sampler.
  [[nodiscard]] std::vector<MessageFlowGraph> blocks() const {
    const std::vector<Index> seeds = mine(golden.indices("seeds"));
    if (golden.arg("draws") == "full") return NeighborSampler(graph, {-1, -1}).sample_blocks(seeds);
    Array<Index> rows;
    for (const Index seed : seeds) rows.push_back(seed - first());
    MessageFlowGraph last = layer_of(rows, golden.indices("block1.eid"));
    MessageFlowGraph before = layer_of(last.src_rows(), golden.indices("block0.eid"));
    return {std::move(before), std::move(last)};
  }

  /// Sources and edges are DGL's; the destinations are the first sources.
  void check_structure(const std::vector<MessageFlowGraph>& blocks) const {
    for (std::size_t l = 0; l < blocks.size(); ++l) {
      CAPTURE(l);
      const std::string name = "block" + std::to_string(l);
      const MessageFlowGraph& block = blocks[l];
      std::vector<Index> sources;
      for (const Index row : block.src_rows()) sources.push_back(first() + row);
      std::vector<Index> want = golden.indices(name + ".src");
      std::ranges::sort(want);
      CHECK(of_all(sources) == want);
      want = golden.indices(name + ".eid");
      std::ranges::sort(want);
      CHECK(of_all({block.edge_ids().begin(), block.edge_ids().end()}) == want);
      const Array<Index>& dst_rows = block.dst_rows();
      CHECK(std::equal(dst_rows.begin(), dst_rows.end(), block.src_rows().begin()));
      if (l > 0) CHECK(std::ranges::equal(blocks[l - 1].dst_rows(), block.src_rows()));
    }
  }
};

struct Net : Module {
  ModuleList<SAGEConv> sage;
  ModuleList<GraphConv> gcn;
  ModuleList<GATConv> gat;

  Net(const std::string& model, Index in) {
    Generator gen(1);
    if (model == "sage") {
      register_module("convs", sage);
      sage.emplace_back(in, 6, gen, SAGEConvOptions{.aggregator = SAGEAggregator::mean});
      sage.emplace_back(6, 3, gen, SAGEConvOptions{.aggregator = SAGEAggregator::mean});
    } else if (model == "gcn") {
      register_module("convs", gcn);
      gcn.emplace_back(in, 6, gen);
      gcn.emplace_back(6, 3, gen);
    } else {
      register_module("convs", gat);
      gat.emplace_back(in, 6, 2, gen);
      gat.emplace_back(12, 3, 2, gen);
    }
  }
  Variable layer(std::size_t l, const MessageFlowGraph& block, const Variable& h, const Variable& weight) {
    if (gat.size() > 0) return gat[l](block, h);
    const Variable w = gather_rows(weight, block.edge_rows());
    return sage.size() > 0 ? sage[l](block, h, w) : gcn[l](block, h, w);
  }
  Variable operator()(const std::vector<MessageFlowGraph>& blocks, const Variable& x,
                      const Variable& weight) {
    Variable h = layer(0, blocks[0], x, weight);
    h = gat.size() > 0 ? elu(reshape(h, {h.shape()[0], 12})) : relu(h);
    h = layer(1, blocks[1], h, weight);
    return gat.size() > 0 ? head_mean(h) : h;
  }
};

/// Rows `ids` of a whole tensor.
Tensor rows_of(const Tensor& whole, std::span<const Index> ids) {
  Tensor rows(whole.shape().with_rows(std::ssize(ids)));
  for (Index i = 0; i < rows.num_rows(); ++i) std::copy_n(whole.row(ids[i]), whole.row_size(), rows.row(i));
  return rows;
}

void check_network(const Problem& p, const std::vector<MessageFlowGraph>& blocks) {
  const Tensor whole_x = p.golden.tensor("x");
  const Variable x(my_rows(whole_x, p.book, p.comm.rank()), true);
  Variable weight;
  if (p.golden.has("weight")) weight = Variable(rows_of(p.golden.tensor("weight"), p.graph.edge_ids()), true);
  Net net(p.golden.arg("model"), whole_x.row_size());
  REQUIRE(net.named_parameters().size() == p.golden.arrays("param.").size());
  for (const auto& named : net.named_parameters())
    net.set_parameter(named.name, p.golden.tensor("param." + named.name));
  std::vector<Index> mine;  // of the seeds, as the case numbers them
  const std::vector<Index> seeds = p.golden.indices("seeds");
  for (Index i = 0; i < std::ssize(seeds); ++i)
    if (p.book.owner(seeds[i]) == p.comm.rank()) mine.push_back(i);

  Tape tape;
  const Variable y = net(blocks, gather_rows(x, blocks[0].src_rows()), weight);
  const Tensor out = p.golden.tensor("out"), grad_x = p.golden.tensor("grad_x");
  CHECK(error_of_part(y.value(), rows_of(out, mine), out) < tolerance());
  tape.backward(y, rows_of(p.golden.tensor("seed"), mine));
  CHECK(error_of_rows(x.grad(), grad_x, p.first()) < tolerance());
  if (weight.defined()) {
    const Tensor grad = p.golden.tensor("grad_weight");
    CHECK(error_of_part(weight.grad(), rows_of(grad, p.graph.edge_ids()), grad) < tolerance());
  }
  gather_grads(p.comm, net);
  for (const auto& named : net.named_parameters()) {
    CAPTURE(named.name);
    CHECK(relative_error(named.parameter.grad(), p.golden.values("grad_param." + named.name)) < tolerance());
  }
}

}  // namespace

TEST_CASE("blocks of DGL's draws, and networks on them") {
  const Communicator comm = Communicator::world();
  for (const std::string draws : {"full", "uniform", "replace"})
    for (const std::string model : {"sage", "gcn", "gat"})
      for (const PartitionBook& book : row_splits(num_nodes, comm.size())) {
        const std::string name = "blocks/" + draws + "_" + model;
        CAPTURE(name);
        const Case golden(name);
        const Problem p{comm, golden, book};
        const std::vector<MessageFlowGraph> blocks = p.blocks();
        p.check_structure(blocks);
        check_network(p, blocks);
      }
}

TEST_CASE("edges are left out as by DGL's edge sampler") {
  const Communicator comm = Communicator::world();
  const std::map<std::string, ExcludeEdges> kinds{
      {"none", ExcludeEdges::none}, {"self", ExcludeEdges::self}, {"reverse", ExcludeEdges::reverse}};
  for (const auto& [kind, exclude] : kinds)
    for (const PartitionBook& book : row_splits(num_nodes, comm.size())) {
      CAPTURE(kind);
      const Case golden("blocks/edges_" + kind);
      const Problem p{comm, golden, book};
      SeedEdges edges;
      const std::vector<Index> batch = golden.indices("batch");
      for (Index i = 0; i < std::ssize(batch); ++i) {
        if (i % comm.size() != comm.rank()) continue;
        edges.src.push_back(p.src[batch[i]]);
        edges.dst.push_back(p.dst[batch[i]]);
        edges.id.push_back(batch[i]);
      }
      EdgeDataLoader loader(NeighborSampler(p.graph, {-1, -1}), edges, {.exclude = exclude});
      loader.start_epoch(1);
      const auto found = loader.next();
      REQUIRE(found.has_value());
      p.check_structure(found->blocks);
    }
}
