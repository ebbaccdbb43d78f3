// SPDX-License-Identifier: MIT
#include <sar/bindings/python/convert.hpp>
#include <sar/bindings/python/module.hpp>
#include <sar/graph/pairs/edge_set.hpp>
#include <sar/graph/pairs/negative_sampler.hpp>
#include <sar/graph/pairs/node_pairs.hpp>
#include <sar/graph/sampling/edge_data_loader.hpp>
#include <sar/graph/topology/graph_topology.hpp>

#include <memory>
#include <numeric>
#include <vector>

namespace sar { inline namespace SAR_PRECISION { namespace python {
namespace {

constexpr EnumName<Negatives> negative_names[] = {
    {Negatives::none, "none"}, {Negatives::per_source, "per_source"}, {Negatives::global, "global"}};
constexpr EnumName<ExcludeEdges> exclude_names[] = {
    {ExcludeEdges::none, "none"}, {ExcludeEdges::self, "self"}, {ExcludeEdges::reverse, "reverse"}};

/// Collective. The edges of a graph in their order, with global ids.
EdgeList edges_of(const Graph& graph) {
  const GraphTopology& topology = graph.topology();
  const int rank = graph.comm().rank();
  std::vector<Index> own(static_cast<std::size_t>(graph.num_src_nodes()));
  std::iota(own.begin(), own.end(), topology.src_book.begin(rank));
  const Array<Index> sources = topology.with_halo(own);
  EdgeList edges;
  topology.for_each_edge([&](Index source, Index destination, Index edge) {
    edges.src.push_back(sources[source]);
    edges.dst.push_back(topology.dst_book.begin(rank) + destination);
    edges.id.push_back(topology.edge_ids()[edge]);
  });
  return edges;
}

/// Negative pairs of a graph's nodes that are no edges of it.
struct PairDraws {
  Graph graph;
  NegativeSampler sampler;
};

NegativeOptions options_of(const Graph& graph, Index k, bool exclude_self_loops, bool exclude_edges,
                           std::uint64_t seed) {
  NegativeOptions options{.k = k, .seed = seed, .exclude_self_loops = exclude_self_loops};
  if (exclude_edges)
    options.exclude_edges =
        std::make_shared<const EdgeSet>(graph.comm(), graph.topology().dst_book, edges_of(graph));
  return options;
}

}  // namespace

void bind_links(Definitions& module) {
  using namespace nb::literals;
  nb::class_<NodePairs>(module, "_NodePairs")
      .def(
          "__init__",
          [](NodePairs* self, const Graph& graph, nb::handle src, nb::handle dst) {
            const Ids from(src, "sources of pairs"), to(dst, "destinations of pairs");
            const GraphTopology& topology = graph.topology();
            compute([&] {
              new (self) NodePairs(graph.comm(), topology.src_book, topology.dst_book, from.span(), to.span(),
                                   graph.options());
            });
          },
          "graph"_a, "src"_a, "dst"_a)
      .def_prop_ro("num_pairs", &NodePairs::num_pairs)
      .def(
          "src",
          [](const NodePairs& self, const Variable& x) { return compute([&] { return self.src(x); }); },
          "x"_a)
      .def(
          "dst",
          [](const NodePairs& self, const Variable& x) { return compute([&] { return self.dst(x); }); },
          "x"_a);

  nb::class_<EdgeSet>(module, "_EdgeSet")
      .def(
          "__init__",
          [](EdgeSet* self, const Graph& graph) {
            compute([&] { new (self) EdgeSet(graph.comm(), graph.topology().dst_book, edges_of(graph)); });
          },
          "graph"_a)
      .def(
          "contains",
          [](const EdgeSet& self, nb::handle src, nb::handle dst) {
            const Ids from(src, "sources of pairs"), to(dst, "destinations of pairs");
            Array<std::uint8_t> found;
            compute([&] { found = self.contains(from.span(), to.span()); });
            return numpy_of(std::span<const std::uint8_t>(found));
          },
          "src"_a, "dst"_a);

  nb::class_<PairDraws>(module, "_PairDraws")
      .def(
          "__init__",
          [](PairDraws* self, const Graph& graph, Index k, bool exclude_self_loops, bool exclude_edges,
             std::uint64_t seed) {
            compute([&] {
              new (self) PairDraws{graph, NegativeSampler(graph, options_of(graph, k, exclude_self_loops,
                                                                            exclude_edges, seed))};
            });
          },
          "graph"_a, "k"_a, "exclude_self_loops"_a, "exclude_edges"_a, "seed"_a)
      .def(
          "draw",
          [](const PairDraws& self, const std::string& how, nb::handle rows, std::uint64_t epoch) {
            const Negatives kind = choice(negative_names, how, "negatives");
            const Ids chosen(rows, "edges");
            NodePairList pairs;
            compute([&] {
              const EdgeList edges = edges_of(self.graph);
              std::vector<Index> src, ids;
              for (const Index row : chosen.span()) {
                src.push_back(edges.src[row]);
                ids.push_back(edges.id[row]);
              }
              pairs = kind == Negatives::per_source ? self.sampler.per_source(src, ids, epoch)
                                                    : self.sampler.global_uniform(ids, epoch);
            });
            return nb::make_tuple(numpy_of(pairs.src), numpy_of(pairs.dst));
          },
          "negatives"_a, "rows"_a, "epoch"_a);

  nb::class_<EdgeMiniBatch>(module, "_EdgeMiniBatch")
      .def_prop_ro("positions", [](const EdgeMiniBatch& self) { return numpy_of(self.positions); })
      .def_prop_ro("blocks", [](const EdgeMiniBatch& self) { return self.blocks; })
      .def_prop_ro("positive", [](const EdgeMiniBatch& self) { return self.positive; })
      .def_prop_ro("negative", [](const EdgeMiniBatch& self) { return self.negative; });
  nb::class_<EdgeDataLoader>(module, "_EdgeLoader")
      .def(
          "__init__",
          [](EdgeDataLoader* self, const NeighborSampler& sampler, const Graph& graph, nb::handle rows,
             const std::string& negatives, Index k, const std::string& exclude, bool exclude_self_loops,
             bool exclude_edges, Index batch_size, bool per_rank, bool shuffle, bool drop_last,
             std::uint64_t seed) {
            const Ids chosen(rows, "edges");
            EdgeDataLoaderOptions options{.batches = {.batch_size = batch_size,
                                                      .per_rank = per_rank,
                                                      .shuffle = shuffle,
                                                      .drop_last = drop_last,
                                                      .seed = seed},
                                          .exclude = choice(exclude_names, exclude, "exclude"),
                                          .negatives = choice(negative_names, negatives, "negatives")};
            compute([&] {
              options.negative = options_of(graph, k, exclude_self_loops, exclude_edges, seed);
              const EdgeList all = edges_of(graph);
              SeedEdges seeds;
              for (const Index row : chosen.span()) {
                seeds.src.push_back(all.src[row]);
                seeds.dst.push_back(all.dst[row]);
                seeds.id.push_back(all.id[row]);
              }
              new (self) EdgeDataLoader(sampler, std::move(seeds), options);
            });
          },
          "sampler"_a, "graph"_a, "rows"_a, "negatives"_a, "k"_a, "exclude"_a, "exclude_self_loops"_a,
          "exclude_edges"_a, "batch_size"_a, "per_rank"_a, "shuffle"_a, "drop_last"_a, "seed"_a)
      .def_prop_ro("num_batches", &EdgeDataLoader::num_batches)
      .def("copy", [](const EdgeDataLoader& self) { return EdgeDataLoader(self); })
      .def("start_epoch", &EdgeDataLoader::start_epoch, "epoch"_a, "first_batch"_a = 0)
      .def("next", [](EdgeDataLoader& self) { return compute([&] { return self.next(); }); });
}

}}}  // namespace sar
