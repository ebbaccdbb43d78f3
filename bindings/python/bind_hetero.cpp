// SPDX-License-Identifier: MIT
#include <sar/bindings/python/convert.hpp>
#include <sar/bindings/python/module.hpp>
#include <sar/graph/construct/host_hetero_graph.hpp>
#include <sar/graph/hetero/cross_reduce.hpp>

namespace sar { inline namespace SAR_PRECISION { namespace python {
namespace {

constexpr EnumName<CrossReduce> cross_names[] = {{CrossReduce::sum, "sum"},
                                                 {CrossReduce::mean, "mean"},
                                                 {CrossReduce::max, "max"},
                                                 {CrossReduce::min, "min"},
                                                 {CrossReduce::stack, "stack"}};

EdgeType edge_type_of(nb::handle given) {
  const auto names = nb::cast<std::vector<std::string>>(given);
  require<InputError>(names.size() == 3, "an edge type of ", names.size(),
                      " names, expected (source type, relation, destination type)");
  return {names[0], names[1], names[2]};
}

const GraphShardManager& relation_of(const HostHeteroGraph& self, nb::handle type) {
  if (nb::isinstance<nb::str>(type)) return self[nb::cast<std::string>(type)];
  return self[edge_type_of(type)];
}

}  // namespace

void bind_hetero(nb::module_& module) {
  using namespace nb::literals;
  nb::class_<HostHeteroGraph>(module, "HostHeteroGraph", nb::dynamic_attr())
      .def(
          "__init__",
          [](HostHeteroGraph* self, const Communicator& comm, const nb::dict& nodes, const nb::dict& edges) {
            std::vector<Ids> kept;
            kept.reserve(nodes.size() + 2 * edges.size());
            std::vector<GlobalNodeType> node_types;
            for (const auto& [name, ids] : nodes) {
              kept.emplace_back(ids, "nodes");
              node_types.push_back({nb::cast<std::string>(name), kept.back().span()});
            }
            std::vector<GlobalEdgeType> edge_types;
            for (const auto& [type, ends] : edges) {
              kept.emplace_back(nb::object(ends[0]), "sources of edges");
              kept.emplace_back(nb::object(ends[1]), "destinations of edges");
              const Tensor weight = nb::len(ends) > 2 && !nb::object(ends[2]).is_none()
                                        ? tensor_of(nb::object(ends[2]))
                                        : Tensor();
              edge_types.push_back(
                  {edge_type_of(type),
                   {.src = kept[kept.size() - 2].span(), .dst = kept.back().span(), .weight = weight}});
            }
            compute([&] { new (self) HostHeteroGraph(comm, node_types, edge_types); });
          },
          "comm"_a, "nodes"_a, "edges"_a)
      .def_prop_ro("ntypes", [](const HostHeteroGraph& self) { return self.node_types(); })
      .def_prop_ro("canonical_etypes",
                   [](const HostHeteroGraph& self) {
                     nb::list all;
                     for (const EdgeType& type : self.edge_types())
                       all.append(nb::make_tuple(type.source, type.relation, type.destination));
                     return all;
                   })
      .def(
          "num_nodes",
          [](const HostHeteroGraph& self, const std::string& type) { return self.num_local_nodes(type); },
          "ntype"_a, "Local. Of this rank.")
      .def(
          "num_global_nodes",
          [](const HostHeteroGraph& self, const std::string& type) { return self.num_nodes(type); },
          "ntype"_a, "Local. Of the whole graph.")
      .def(
          "node_ids",
          [](const HostHeteroGraph& self, const std::string& type) { return numpy_of(self.node_ids(type)); },
          "ntype"_a, "Local. Original ids of this rank's nodes.")
      .def("__getitem__", &relation_of, nb::rv_policy::copy, "etype"_a,
           "The graph of an edge type: a name, or (source type, relation, destination type).")
      .def(
          "_multi_update_all",
          [](const HostHeteroGraph& self, const nb::dict& messages, const std::string& cross_reducer) {
            std::map<EdgeType, HeteroGraph::MessageReduce> all;
            for (const auto& [type, value] : messages)
              all.emplace(edge_type_of(type),
                          HeteroGraph::MessageReduce{
                              fn::copy_u(nb::cast<Variable>(nb::object(value[0]))),
                              choice(reduce_names, nb::cast<std::string>(nb::object(value[1])), "reduce")});
            const CrossReduce cross = choice(cross_names, cross_reducer, "cross_reducer");
            return compute([&] { return self.multi_update_all(all, cross); });
          },
          "messages"_a, "cross_reducer"_a)
      .def("__reduce__", [](nb::handle) -> nb::object {
        throw nb::type_error(
            "a graph of sar cannot be pickled: it is distributed over the ranks of its communicator");
      });
}

}}}  // namespace sar
