// SPDX-License-Identifier: MIT
#include <sar/bindings/python/convert.hpp>
#include <sar/bindings/python/module.hpp>
#include <sar/bindings/python/samples.hpp>
#include <sar/core/memory/index_arrays.hpp>
#include <sar/graph/sampling/graph_samples.hpp>
#include <sar/nn/conv/global_pooling.hpp>

#include <memory>
#include <optional>
#include <vector>

namespace sar { inline namespace SAR_PRECISION { namespace python {
namespace {

/// The fields called `whose`: nodes, edges or graphs.
SampleFields& fields_of(GraphSamples& samples, const std::string& whose) {
  return whose == "nodes" ? samples.nodes : whose == "edges" ? samples.edges : samples.graphs;
}

nb::dict as_dict(const SampleFields& fields) {
  nb::dict all;
  for (const auto& [name, tensor] : fields.tensors) all[name.c_str()] = PyTensor{Variable(tensor)};
  for (const auto& [name, rows] : fields.integers) {
    const nb::object flat = numpy_of(std::span<const Index>(rows.values));
    all[name.c_str()] =
        rows.columns == 1 ? flat : nb::object(flat.attr("reshape")(rows.num_rows(), rows.columns));
  }
  return all;
}

std::vector<Index> whole(nb::handle given, const char* what) {
  const Ids ids(given, what);
  return {ids.span().begin(), ids.span().end()};
}

}  // namespace

void bind_samples(Definitions& module) {
  using namespace nb::literals;
  nb::class_<GraphSamples>(module, "SampleStore")
      .def(nb::init<>())
      .def(
          "add",
          [](GraphSamples& self, Index id, Index num_nodes, nb::handle src, nb::handle dst) {
            const Ids from(src, "sources of edges"), to(dst, "destinations of edges");
            self.add(id, num_nodes, from.span(), to.span());
          },
          "id"_a, "num_nodes"_a, "src"_a, "dst"_a)
      .def(
          "set_values",
          [](GraphSamples& self, const std::string& whose, const std::string& name, nb::handle rows) {
            fields_of(self, whose).tensors[name] = tensor_of(rows, true);
          },
          "whose"_a, "name"_a, "rows"_a)
      .def(
          "set_integers",
          [](GraphSamples& self, const std::string& whose, const std::string& name, nb::handle flat,
             Index columns) {
            const Ids values(flat, "integers");
            fields_of(self, whose).integers[name] =
                IntegerRows{columns, Array<Index>(values.span().begin(), values.span().end())};
          },
          "whose"_a, "name"_a, "flat"_a, "columns"_a)
      .def("sort_edges", [](GraphSamples& self) { compute([&] { sort_edges(self); }); })
      .def("add_reverse_edges", [](GraphSamples& self) { compute([&] { add_reverse_edges(self); }); })
      .def("add_self_loops", [](GraphSamples& self) { compute([&] { add_self_loops(self); }); })
      .def_prop_ro("num_graphs", [](const GraphSamples& self) { return self.num_graphs(); })
      .def(
          "batch",
          [](const GraphSamples& self, const Communicator& comm, nb::handle positions) {
            const std::vector<Index> chosen = whole(positions, "positions");
            return compute([&] { return SampleBatch(comm, self.select(chosen)); });
          },
          "comm"_a, "positions"_a);

  nb::class_<SampleBatch>(module, "_SampleBatch");
  nb::class_<BatchedGraph, Graph>(module, "BatchedGraph",
                                  "Some graphs as one, without edges between them (dgl.batch): layers "
                                  "compute what they compute on each. Each "
                                  "graph is whole on one rank.")
      .def_prop_ro(
          "batch_size", [](const BatchedGraph& self) { return self.batch.num_global_graphs(); },
          "Local. The number of graphs of all ranks.")
      .def_prop_ro(
          "num_graphs", [](const BatchedGraph& self) { return self.batch.num_graphs(); },
          "Local. The number of graphs of this rank.")
      .def_prop_ro(
          "graph_ids",
          [](const BatchedGraph& self) { return numpy_of(std::span<const Index>(self.batch.samples().ids)); },
          "Local. The number of each graph of this rank in the list that was given.")
      .def_prop_ro(
          "batch",
          [](const BatchedGraph& self) {
            return numpy_of(std::span<const Index>(self.batch.graph_of_nodes()));
          },
          "Local. The graph of each node, counted from 0 on this rank, as PyG's batch.")
      .def_prop_ro("_nodes", [](const BatchedGraph& self) { return as_dict(self.batch.samples().nodes); })
      .def_prop_ro("_edge_fields",
                   [](const BatchedGraph& self) { return as_dict(self.batch.samples().edges); })
      .def_prop_ro(
          "graph_data", [](const BatchedGraph& self) { return as_dict(self.batch.samples().graphs); },
          "Local. The fields of this rank's graphs by name, a row for each.")
      .def(
          "batch_num_nodes",
          [](const BatchedGraph& self) {
            const GraphSamples& samples = self.batch.samples();
            std::vector<Index> counts;
            for (Index g = 0; g < samples.num_graphs(); ++g) counts.push_back(samples.num_nodes(g));
            return numpy_of(std::span<const Index>(counts));
          },
          "Local. Of each graph of this rank.");
  module.def(
      "_batched", [](const SampleBatch& batch) { return BatchedGraph(batch); }, "batch"_a);
  module.def(
      "readout_nodes",
      [](const BatchedGraph& graph, const Variable& feat, const std::string& op) {
        const Reduce reduce = choice(reduce_names, op, "op");
        return compute([&] { return readout_nodes(graph.batch, feat, reduce); });
      },
      "graph"_a, "feat"_a, "op"_a = "sum",
      "Local. The sum, mean, max or min of the rows of each graph of a batch, [graphs of this rank, D].");

  nb::class_<SampleLoader>(module, "_SampleLoader")
      .def(
          "__init__",
          [](SampleLoader* self, const Communicator& comm, const GraphSamples& samples, nb::handle positions,
             Index batch_size, bool per_rank, bool shuffle, bool drop_last, std::uint64_t seed) {
            const std::vector<Index> chosen = whole(positions, "positions");
            const DataLoaderOptions options{.batch_size = batch_size,
                                            .per_rank = per_rank,
                                            .shuffle = shuffle,
                                            .drop_last = drop_last,
                                            .seed = seed};
            const Array<Index> all = consecutive(0, std::ssize(chosen));
            compute([&] {
              new (self) SampleLoader(comm, std::make_shared<const GraphSamples>(samples.select(chosen)), all,
                                      options);
            });
          },
          "comm"_a, "samples"_a, "positions"_a, "batch_size"_a, "per_rank"_a, "shuffle"_a, "drop_last"_a,
          "seed"_a)
      .def_prop_ro("num_batches", &SampleLoader::num_batches)
      .def("copy", [](const SampleLoader& self) { return SampleLoader(self); })
      .def("start_epoch", &SampleLoader::start_epoch, "epoch"_a, "first_batch"_a = 0)
      .def("next", [](SampleLoader& self) -> std::optional<SampleBatch> {
        return compute([&]() -> std::optional<SampleBatch> {
          auto next = self.next();
          if (!next) return std::nullopt;
          return next->batch;
        });
      });
}

}}}  // namespace sar
