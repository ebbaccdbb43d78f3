// SPDX-License-Identifier: MIT
#include <sar/bindings/python/convert.hpp>
#include <sar/bindings/python/module.hpp>
#include <sar/graph/partition/clusters.hpp>
#include <sar/graph/sampling/cluster_loader.hpp>
#include <sar/graph/sampling/data_loader.hpp>
#include <sar/graph/sampling/neighbor_sampler.hpp>
#include <sar/graph/sampling/saint_loader.hpp>
#include <sar/graph/topology/graph_topology.hpp>

#include <limits>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace sar { inline namespace SAR_PRECISION { namespace python {
namespace {

constexpr EnumName<NeighborMethod> method_names[] = {{NeighborMethod::uniform, "uniform"},
                                                     {NeighborMethod::labor, "labor"}};
constexpr EnumName<SaintMethod> saint_names[] = {
    {SaintMethod::node, "node"}, {SaintMethod::edge, "edge"}, {SaintMethod::walk, "walk"}};

}  // namespace

void bind_sampling(Definitions& module) {
  using namespace nb::literals;
  nb::class_<NeighborSampler>(module, "NeighborSampler",
                              "dgl.dataloading.NeighborSampler: in-edges that are drawn for each layer.")
      .def(
          "__init__",
          [](NeighborSampler* self, const Graph& graph,
             const std::variant<std::vector<Index>, std::vector<std::map<std::string, Index>>>& fanouts,
             bool replace, nb::handle prob, bool redraw, std::uint64_t seed, const std::string& method) {
            const NeighborSamplerOptions options{.method = choice(method_names, method, "method"),
                                                 .replace = replace,
                                                 .prob = prob.is_none() ? Tensor() : tensor_of(prob),
                                                 .redraw = redraw,
                                                 .seed = seed};
            compute([&] {
              std::visit([&](const auto& given) { new (self) NeighborSampler(graph, given, options); },
                         fanouts);
            });
          },
          "graph"_a, "fanouts"_a, "replace"_a = false, "prob"_a = nb::none(), "redraw"_a = false,
          "seed"_a = 0, "method"_a = "uniform",
          "Collective. fanouts: one for each layer, the first layer first, or a dict of them by edge type; "
          "-1: all in-edges. method: uniform or labor.")
      .def(
          "sample_blocks",
          [](const NeighborSampler& self, nb::handle seeds, std::uint64_t epoch) {
            if (nb::isinstance<nb::dict>(seeds)) {
              const NodesByType nodes = nodes_by_type(seeds);
              return compute([&] { return self.sample_blocks(nodes, epoch); });
            }
            const Ids nodes(seeds, "seeds");
            return compute([&] { return self.sample_blocks(nodes.span(), epoch); });
          },
          "seeds"_a, "epoch"_a = 0,
          "Collective. seeds: global ids of this rank's nodes, or a dict of them by node type.");

  nb::class_<MiniBatch>(module, "MiniBatch")
      .def_ro("number", &MiniBatch::number)
      .def_prop_ro(
          "seeds", [](const MiniBatch& self) { return numpy_of(self.seeds); }, "Global ids.")
      .def_prop_ro("blocks", [](const MiniBatch& self) { return self.blocks; });
  nb::class_<DataLoader>(module, "BatchLoader")
      .def(
          "__init__",
          [](DataLoader* self, const NeighborSampler& sampler, nb::handle seeds, Index batch_size,
             bool per_rank, bool shuffle, bool drop_last, std::uint64_t seed) {
            const DataLoaderOptions options{.batch_size = batch_size,
                                            .per_rank = per_rank,
                                            .shuffle = shuffle,
                                            .drop_last = drop_last,
                                            .seed = seed};
            if (nb::isinstance<nb::dict>(seeds)) {
              const NodesByType nodes = nodes_by_type(seeds);
              compute([&] { new (self) DataLoader(sampler, nodes, options); });
              return;
            }
            const Ids nodes(seeds, "seeds");
            compute([&] { new (self) DataLoader(sampler, nodes.span(), options); });
          },
          "sampler"_a, "seeds"_a, "batch_size"_a, "per_rank"_a, "shuffle"_a, "drop_last"_a, "seed"_a)
      .def_prop_ro("num_batches", &DataLoader::num_batches)
      .def_prop_ro("num_seeds", &DataLoader::num_seeds)
      .def(
          "copy", [](const DataLoader& self) { return DataLoader(self); },
          "Local. A loader of the same seeds with a position of its own.")
      .def("start_epoch", &DataLoader::start_epoch, "epoch"_a, "first_batch"_a = 0)
      .def(
          "next", [](DataLoader& self) { return compute([&] { return self.next(); }); }, "Collective.");

  nb::class_<ClusterLoader>(module, "_ClusterLoader")
      .def(
          "__init__",
          [](ClusterLoader* self, const Graph& graph, nb::handle cluster_of, Index clusters_per_batch,
             bool shuffle, std::uint64_t seed) {
            const Ids given(cluster_of, "clusters");
            std::vector<std::int32_t> clusters;
            const ClusterLoaderOptions options{
                .clusters_per_batch = clusters_per_batch, .shuffle = shuffle, .seed = seed};
            compute([&] {
              graph.comm().agree([&] {
                for (const std::int64_t cluster : given.span()) {
                  require<InputError>(0 <= cluster && cluster < std::numeric_limits<std::int32_t>::max(),
                                      "a cluster is ", cluster,
                                      ", expected 0 or more and less than 2^31 - 1");
                  clusters.push_back(static_cast<std::int32_t>(cluster));
                }
              });
              new (self) ClusterLoader(graph, clusters, options);
            });
          },
          "graph"_a, "cluster_of"_a, "clusters_per_batch"_a, "shuffle"_a, "seed"_a)
      .def_prop_ro("num_batches", &ClusterLoader::num_batches)
      .def_prop_ro("num_clusters", &ClusterLoader::num_clusters)
      .def("copy", [](const ClusterLoader& self) { return ClusterLoader(self); })
      .def("start_epoch", &ClusterLoader::start_epoch, "epoch"_a, "first_batch"_a = 0)
      .def("next", [](ClusterLoader& self) -> std::optional<MessageFlowGraph> {
        return compute([&]() -> std::optional<MessageFlowGraph> {
          auto next = self.next();
          if (!next) return std::nullopt;
          return next->graph;
        });
      });
  nb::class_<SaintBatch>(module, "_SaintBatch")
      .def_prop_ro("graph", [](const SaintBatch& self) { return self.graph; })
      .def_prop_ro("loss_weights",
                   [](const SaintBatch& self) { return PyTensor{Variable(self.loss_weights)}; });
  nb::class_<SaintLoader>(module, "_SaintLoader")
      .def(
          "__init__",
          [](SaintLoader* self, const Graph& graph, const std::string& method, Index draws, Index walk_length,
             Index batches, Index coverage, bool scale_messages, std::uint64_t seed) {
            const SaintOptions options{.method = choice(saint_names, method, "method"),
                                       .draws = draws,
                                       .walk_length = walk_length,
                                       .batches = batches,
                                       .coverage = coverage,
                                       .scale_messages = scale_messages,
                                       .seed = seed};
            compute([&] { new (self) SaintLoader(graph, options); });
          },
          "graph"_a, "method"_a, "draws"_a, "walk_length"_a, "batches"_a, "coverage"_a, "scale_messages"_a,
          "seed"_a)
      .def_prop_ro("num_batches", &SaintLoader::num_batches)
      .def("copy", [](const SaintLoader& self) { return SaintLoader(self); })
      .def("start_epoch", &SaintLoader::start_epoch, "epoch"_a, "first_batch"_a = 0)
      .def("next", [](SaintLoader& self) { return compute([&] { return self.next(); }); });
  module.def(
      "_cluster_nodes",
      [](const Graph& graph, nb::handle src, nb::handle dst, nb::handle ids, Index clusters,
         const std::string& method, std::uint64_t seed) {
        const Ids from(src, "sources"), to(dst, "destinations"), numbers(ids, "edge ids");
        static constexpr EnumName<PartitionMethod> methods[] = {{PartitionMethod::automatic, "automatic"},
                                                                {PartitionMethod::metis, "metis"},
                                                                {PartitionMethod::ldg, "ldg"},
                                                                {PartitionMethod::contiguous, "contiguous"},
                                                                {PartitionMethod::random, "random"}};
        const ClusterOptions options{
            .clusters = clusters, .method = choice(methods, method, "method"), .seed = seed};
        EdgeList edges;
        edges.src = Array<Index>(from.span().begin(), from.span().end());
        edges.dst = Array<Index>(to.span().begin(), to.span().end());
        edges.id = Array<Index>(numbers.span().begin(), numbers.span().end());
        std::vector<Index> found;
        compute([&] {
          for (const std::int32_t cluster :
               cluster_nodes(graph.comm(), graph.topology().dst_book, graph.dst_ids(), edges, options))
            found.push_back(cluster);
        });
        return numpy_of(found);
      },
      "graph"_a, "src"_a, "dst"_a, "edge_ids"_a, "clusters"_a, "method"_a, "seed"_a);
}

}}}  // namespace sar
