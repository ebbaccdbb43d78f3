// SPDX-License-Identifier: MIT
#include <sar/bindings/python/convert.hpp>
#include <sar/bindings/python/module.hpp>
#include <sar/comm/rows/row_route.hpp>
#include <sar/core/memory/index_arrays.hpp>
#include <sar/graph/hetero/homogeneous_form.hpp>
#include <sar/graph/sampling/data_loader.hpp>
#include <sar/graph/sampling/negative_sampler.hpp>
#include <sar/graph/sampling/node_pairs.hpp>
#include <sar/graph/topology/graph_topology.hpp>

#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <utility>
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
  const Array<Index> sources =
      topology.with_halo(consecutive(topology.src_book.begin(rank), graph.num_src_nodes()));
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

/// The numbers that sorted nodes of the ranks have one after another, for nodes of any rank. Collective.
struct Numbering {
  const Communicator& comm;
  const PartitionBook& owners;
  std::span<const Index> own;
  PartitionBook book;

  [[nodiscard]] Array<Index> of(std::span<const Index> nodes) const {
    std::vector<std::int32_t> ranks;
    for (const Index node : nodes) ranks.push_back(static_cast<std::int32_t>(owners.owner(node)));
    const RowRoute route(comm, ranks);
    Array<Index> arrived = route.forward(nodes);
    for (Index& node : arrived)
      node = book.begin(comm.rank()) + (std::ranges::lower_bound(own, node) - own.begin());
    return route.back<Index>(arrived);
  }
};

/// Batches of edges of several types. Pairs of a relation are pairs of its own source and destination types.
class TypedEdgeLoader {
 public:
  struct Batch {
    std::vector<MessageFlowGraph> blocks;
    std::vector<std::vector<Index>> positions;  ///< by relation, among its rows
    std::vector<NodePairs> positive, negative;  ///< by relation
  };

  /// Collective. `relations`: edge types of the graph, and `rows` edges of each.
  TypedEdgeLoader(const NeighborSampler& sampler, const Graph& graph, const std::vector<EdgeType>& relations,
                  const std::vector<std::vector<Index>>& rows, EdgeDataLoaderOptions options,
                  NegativeOptions negative, bool exclude_edges) {
    Edges& edges = *edges_;
    edges.form = &graph.to_homogeneous();
    const HomogeneousForm& form = *edges.form;
    const auto index_of = [](const auto& all, const auto& one) {
      return std::ranges::find(all, one) - all.begin();
    };
    SeedEdges seeds;
    std::set<Index> excluded;
    for (std::size_t r = 0; r < relations.size(); ++r) {
      const EdgeType& type = relations[r];
      const Graph relation = graph[type];
      const Index t = index_of(form.edge_types, type);
      edges.ends.push_back(
          {index_of(form.node_types, type.source), index_of(form.node_types, type.destination)});
      const EdgeList all = edges_of(relation);
      for (std::size_t i = 0; i < rows[r].size(); ++i) {
        const Index row = rows[r][i];
        edges.relation.push_back(static_cast<Index>(r));
        edges.position.push_back(static_cast<Index>(i));
        edges.typed.src.push_back(all.src[row]);
        edges.typed.dst.push_back(all.dst[row]);
        edges.typed.id.push_back(all.id[row]);
        seeds.src.push_back(edges.homogeneous(edges.ends[r].first, all.src[row]));
        seeds.dst.push_back(edges.homogeneous(edges.ends[r].second, all.dst[row]));
        seeds.id.push_back(form.first_edge_id[t] + all.id[row]);
      }
      excluded.insert(t);
      if (options.exclude == ExcludeEdges::reverse)
        for (const EdgeType& other : form.edge_types)
          if (other.source == type.destination && other.destination == type.source)
            excluded.insert(index_of(form.edge_types, other));
      if (options.negatives == Negatives::none) continue;
      NegativeOptions own = negative;
      own.exclude_self_loops = negative.exclude_self_loops && type.source == type.destination;
      if (exclude_edges)
        own.exclude_edges = std::make_shared<const EdgeSet>(graph.comm(), relation.topology().dst_book, all);
      edges.samplers.emplace_back(relation, own);
    }
    options.types = form.etypes;
    options.excluded_types.assign(excluded.begin(), excluded.end());
    if (options.negatives != Negatives::none)
      options.draw = [drawn = edges_, how = options.negatives](std::span<const Index> positions,
                                                               std::uint64_t epoch) {
        return drawn->draw(how, positions, epoch);
      };
    options.negatives = Negatives::none;
    loader_.emplace(sampler, std::move(seeds), options);
  }

  [[nodiscard]] Index num_batches() const { return loader_->num_batches(); }
  void start_epoch(std::uint64_t epoch, Index first_batch) { loader_->start_epoch(epoch, first_batch); }

  /// Collective.
  std::optional<Batch> next() {
    std::optional<EdgeMiniBatch> found = loader_->next();
    if (!found) return std::nullopt;
    const Edges& edges = *edges_;
    const HomogeneousForm& form = *edges.form;
    const Communicator& comm = form.graph.comm();
    Batch batch{.blocks = std::move(found->blocks), .positions = {}, .positive = {}, .negative = {}};
    std::vector<std::vector<Index>> seeds;
    std::vector<Numbering> numbers;
    seeds.reserve(form.node_types.size());
    for (std::size_t t = 0; t < form.node_types.size(); ++t) {
      std::vector<Index>& own = seeds.emplace_back();
      for (const Index row : batch.blocks.back().dst_rows(form.node_types[t]))
        own.push_back(form.books[t].begin(comm.rank()) + row);
      numbers.push_back({comm, form.books[t], own, gather_book(comm, std::ssize(own))});
    }
    for (std::size_t r = 0; r < edges.ends.size(); ++r) {
      const Numbering &from = numbers[edges.ends[r].first], &to = numbers[edges.ends[r].second];
      NodePairList positive;
      std::vector<Index>& positions = batch.positions.emplace_back();
      for (const Index i : found->positions) {
        if (edges.relation[i] != static_cast<Index>(r)) continue;
        positions.push_back(edges.position[i]);
        positive.src.push_back(edges.typed.src[i]);
        positive.dst.push_back(edges.typed.dst[i]);
      }
      const auto pairs = [&](const NodePairList& of) {
        const Array<Index> src = from.of(of.src), dst = to.of(of.dst);
        return NodePairs(comm, from.book, to.book, src, dst, form.graph.options());
      };
      batch.positive.push_back(pairs(positive));
      if (!edges.samplers.empty()) batch.negative.push_back(pairs(edges.drawn[r]));
    }
    return batch;
  }

 private:
  /// The edges of all relations, in types and in the homogeneous form.
  struct Edges {
    const HomogeneousForm* form = nullptr;
    std::vector<std::pair<Index, Index>> ends;  // node types of each relation
    std::vector<Index> relation, position;      // of each edge
    SeedEdges typed;
    std::vector<NegativeSampler> samplers;
    std::vector<NodePairList> drawn;  // by relation, of the last batch

    /// The id of a node of a type.
    [[nodiscard]] Index homogeneous(Index type, Index node) const {
      const int rank = form->books[type].owner(node);
      Index id = form->graph.topology().dst_book.begin(rank) + node - form->books[type].begin(rank);
      for (Index t = 0; t < type; ++t) id += form->books[t].num_nodes(rank);
      return id;
    }

    NodePairList draw(Negatives how, std::span<const Index> positions, std::uint64_t epoch) {
      NodePairList all;
      drawn.clear();
      for (std::size_t r = 0; r < ends.size(); ++r) {
        std::vector<Index> src, ids;
        for (const Index i : positions) {
          if (relation[i] != static_cast<Index>(r)) continue;
          src.push_back(typed.src[i]);
          ids.push_back(typed.id[i]);
        }
        drawn.push_back(how == Negatives::per_source ? samplers[r].per_source(src, ids, epoch)
                                                     : samplers[r].global_uniform(ids, epoch));
        for (const Index node : drawn[r].src) all.src.push_back(homogeneous(ends[r].first, node));
        for (const Index node : drawn[r].dst) all.dst.push_back(homogeneous(ends[r].second, node));
      }
      return all;
    }
  };

  std::shared_ptr<Edges> edges_ = std::make_shared<Edges>();
  std::optional<EdgeDataLoader> loader_;
};

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

  nb::class_<TypedEdgeLoader::Batch>(module, "_TypedEdgeBatch")
      .def_prop_ro("positions",
                   [](const TypedEdgeLoader::Batch& self) {
                     nb::list all;
                     for (const std::vector<Index>& of_relation : self.positions)
                       all.append(numpy_of(std::span<const Index>(of_relation)));
                     return all;
                   })
      .def_prop_ro("blocks", [](const TypedEdgeLoader::Batch& self) { return self.blocks; })
      .def_prop_ro("positive", [](const TypedEdgeLoader::Batch& self) { return self.positive; })
      .def_prop_ro("negative", [](const TypedEdgeLoader::Batch& self) { return self.negative; });
  nb::class_<TypedEdgeLoader>(module, "_TypedEdgeLoader")
      .def(
          "__init__",
          [](TypedEdgeLoader* self, const NeighborSampler& sampler, const Graph& graph,
             const std::vector<std::tuple<std::string, std::string, std::string>>& types,
             const nb::list& rows, const std::string& negatives, Index k, const std::string& exclude,
             bool exclude_self_loops, bool exclude_edges, Index batch_size, bool per_rank, bool shuffle,
             bool drop_last, std::uint64_t seed) {
            std::vector<EdgeType> relations;
            for (const auto& [source, relation, destination] : types)
              relations.push_back({source, relation, destination});
            std::vector<std::vector<Index>> chosen;
            for (const nb::handle of_relation : rows) {
              const Ids ids(of_relation, "edges");
              chosen.emplace_back(ids.span().begin(), ids.span().end());
            }
            const EdgeDataLoaderOptions options{.batches = {.batch_size = batch_size,
                                                            .per_rank = per_rank,
                                                            .shuffle = shuffle,
                                                            .drop_last = drop_last,
                                                            .seed = seed},
                                                .exclude = choice(exclude_names, exclude, "exclude"),
                                                .negatives = choice(negative_names, negatives, "negatives")};
            const NegativeOptions negative{.k = k, .seed = seed, .exclude_self_loops = exclude_self_loops};
            compute([&] {
              new (self) TypedEdgeLoader(sampler, graph, relations, chosen, options, negative, exclude_edges);
            });
          },
          "sampler"_a, "graph"_a, "types"_a, "rows"_a, "negatives"_a, "k"_a, "exclude"_a,
          "exclude_self_loops"_a, "exclude_edges"_a, "batch_size"_a, "per_rank"_a, "shuffle"_a, "drop_last"_a,
          "seed"_a)
      .def_prop_ro("num_batches", &TypedEdgeLoader::num_batches)
      .def("copy", [](const TypedEdgeLoader& self) { return TypedEdgeLoader(self); })
      .def("start_epoch", &TypedEdgeLoader::start_epoch, "epoch"_a, "first_batch"_a = 0)
      .def("next", [](TypedEdgeLoader& self) { return compute([&] { return self.next(); }); });
}

}}}  // namespace sar
