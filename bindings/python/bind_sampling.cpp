// SPDX-License-Identifier: MIT
#include <sar/bindings/python/convert.hpp>
#include <sar/bindings/python/module.hpp>
#include <sar/graph/sampling/data_loader.hpp>
#include <sar/graph/sampling/neighbor_sampler.hpp>

#include <map>
#include <string>
#include <variant>
#include <vector>

namespace sar { inline namespace SAR_PRECISION { namespace python {
namespace {

constexpr EnumName<NeighborMethod> method_names[] = {{NeighborMethod::uniform, "uniform"},
                                                     {NeighborMethod::labor, "labor"}};

}  // namespace

void bind_sampling(nb::module_& module) {
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
}

}}}  // namespace sar
