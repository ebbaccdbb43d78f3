// SPDX-License-Identifier: MIT
#include <sar/bindings/python/convert.hpp>
#include <sar/bindings/python/module.hpp>
#include <sar/graph/construct/host_graph.hpp>
#include <sar/graph/construct/message_flow_graph.hpp>
#include <sar/graph/hetero/cross_reduce.hpp>
#include <sar/graph/message/graph.hpp>
#include <sar/graph/topology/graph_topology.hpp>

namespace sar { inline namespace SAR_PRECISION { namespace python {
namespace {

/// A chunk of edges while the function of the user runs on it.
struct Edges {
  const EdgeBatch* batch;
  const EdgeBatch& get() const {
    require(batch != nullptr, "the edges of a message function are used after it has returned");
    return *batch;
  }
};

/// Returns a message that Python computes. Chunks come one at a time, because the interpreter has one lock.
MessageFunction message_of(nb::callable function) {
  return [owner = owner_of(std::move(function))](const EdgeBatch& batch) -> Variable {
    const nb::gil_scoped_acquire locked;
    const MessageScope scope;
    try {
      nb::object edges = nb::cast(Edges{&batch});
      const auto forget = [&] { nb::cast<Edges&>(edges).batch = nullptr; };
      try {
        const nb::object result = nb::handle(static_cast<PyObject*>(owner.get()))(edges);
        forget();
        return nb::cast<Variable>(result);
      } catch (...) {
        forget();
        throw;
      }
    } catch (const nb::python_error& error) {
      throw_as_error(error);
    } catch (const nb::cast_error&) {
      throw Error("a message function returned no sar.Tensor, expected one with a row for each edge");
    }
  };
}

Message built_in(const std::string& op, const std::string& lhs, const std::string& rhs,
                 std::optional<Variable> u, std::optional<Variable> v, std::optional<Variable> e) {
  return {.op = choice(message_op_names, op, "op"),
          .lhs = choice(message_target_names, lhs, "lhs"),
          .rhs = choice(message_target_names, rhs, "rhs"),
          .u = or_undefined(u),
          .v = or_undefined(v),
          .e = or_undefined(e)};
}

/// The options with the fields that are given.
GraphOptions options_of(const nb::dict& given, GraphOptions options = {}) {
  for (const auto& [key, value] : given) {
    const std::string name = nb::cast<std::string>(key);
    bool known = false;
    for_each_field(options, [&](const char* field, auto& place) {
      if (name != field) return;
      known = true;
      using Field = std::decay_t<decltype(place)>;
      constexpr bool is_name = std::is_same_v<Field, HaloMode> || std::is_same_v<Field, HaloFormat>;
      std::conditional_t<is_name, std::string, Field> read{};
      if (!nb::try_cast(value, read))
        throw nb::type_error(concat("the option ", field, " of a graph is ", in_words(value), ", expected ",
                                    is_name                       ? "a name"
                                    : std::is_same_v<Field, bool> ? "a bool"
                                                                  : "an integer")
                                 .c_str());
      if constexpr (std::is_same_v<Field, HaloMode>)
        place = choice(halo_mode_names, read, field);
      else if constexpr (std::is_same_v<Field, HaloFormat>)
        place = choice(halo_format_traits, read, field);
      else
        place = read;
    });
    require<InputError>(known, "a graph has no option '", name, "'");
  }
  return options;
}

GlobalEdges edges_of(const Ids& src, const Ids& dst, const std::optional<Ids>& ids, const Tensor& weight) {
  return {.src = src.span(),
          .dst = dst.span(),
          .ids = ids ? ids->span() : std::span<const Index>(),
          .weight = weight};
}

std::optional<Ids> optional_ids(nb::handle given, const char* what) {
  if (given.is_none()) return std::nullopt;
  return Ids(given, what);
}

Tensor optional_tensor(nb::handle given) {
  return given.is_none() ? Tensor() : tensor_of(given);
}

template <class Row, std::size_t n>
nb::list names_of(const Row (&rows)[n]) {
  nb::list names;
  for (const Row& row : rows) names.append(row.name);
  return names;
}

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

/// Rows of nodes of a mini-batch.
nb::object batch_rows(std::span<const Index> rows) {
  return numpy_of(rows).attr("view")(nb::module_::import_("sar._tensor").attr("BatchRows"));
}

/// rows(type) of each node type, or of the only one.
template <class RowsOf>
nb::object by_type(const Graph& graph, const RowsOf& rows) {
  if (graph.is_homogeneous()) return rows(graph.node_types().front());
  nb::dict all;
  for (const std::string& type : graph.node_types()) all[type.c_str()] = rows(type);
  return all;
}

}  // namespace

void bind_graphs(Definitions& module) {
  using namespace nb::literals;
  module.attr("message_ops") = nb::tuple(names_of(message_op_names));
  module.attr("reductions") = nb::tuple(names_of(reduce_names));
  nb::class_<Edges>(module, "EdgeBatch", "The edges that a message function computes in one call.")
      .def_prop_ro("num_edges", [](const Edges& self) { return self.get().num_edges(); })
      .def(
          "src", [](const Edges& self, const Variable& x) { return to_python(self.get().src(x)); }, "x"_a,
          "x[u] for the source u of each edge.")
      .def(
          "dst", [](const Edges& self, const Variable& x) { return to_python(self.get().dst(x)); }, "x"_a,
          "x[v] for the destination v of each edge.")
      .def(
          "edata", [](const Edges& self, const Variable& x) { return to_python(self.get().edata(x)); }, "x"_a,
          "x[e] for each edge e.");

  nb::class_<Graph>(module, "GraphBase", nb::dynamic_attr(), "A graph, distributed over ranks.")
      .def_prop_ro("comm", [](const Graph& self) { return self.comm(); })
      .def_prop_ro("is_block", &Graph::is_block)
      .def_prop_ro("is_homogeneous", &Graph::is_homogeneous,
                   "Whether there are one node type and one edge type.")
      .def(
          "num_nodes",
          [](const Graph& self, const std::optional<std::string>& type) {
            return type ? self.num_nodes(*type) : self.num_nodes();
          },
          "ntype"_a = nb::none(), "Local. Of this rank; by default of all types.")
      .def("num_src_nodes", &Graph::num_src_nodes, "Local. Of this rank.")
      .def(
          "num_dst_nodes",
          [](const Graph& self, const std::optional<std::string>& type) {
            return type ? self.num_dst_nodes(*type) : self.num_dst_nodes();
          },
          "ntype"_a = nb::none(), "Local. Of this rank.")
      .def("num_edges", &Graph::num_edges, "Local. In-edges of this rank's nodes.")
      .def(
          "num_global_nodes",
          [](const Graph& self, const std::optional<std::string>& type) {
            return type ? self.num_global_nodes(*type) : self.num_global_nodes();
          },
          "ntype"_a = nb::none(), "Local. Of the whole graph; by default of all types.")
      .def("num_global_edges", &Graph::num_global_edges, "Local. Of the whole graph.")
      .def(
          "in_degrees", [](const Graph& self) { return numpy_of(self.in_degrees()); }, "Local.")
      .def(
          "out_degrees", [](const Graph& self) { return numpy_of(self.out_degrees()); }, "Local.")
      .def_prop_ro(
          "src_ids", [](const Graph& self) { return numpy_of(self.src_ids()); },
          "Original ids of this rank's nodes, or sources.")
      .def_prop_ro("dst_ids", [](const Graph& self) { return numpy_of(self.dst_ids()); })
      .def_prop_ro(
          "edge_ids", [](const Graph& self) { return numpy_of(self.edge_ids()); },
          "Original ids of the edges, in the order of the rows of edge tensors.")
      .def("_edges",
           [](const Graph& self) {
             const GraphTopology& topology = self.topology();
             const Array<Index> sources =
                 compute([&] { return topology.with_halo(std::span<const Index>(topology.src_ids())); });
             const Array<Index>& destinations = topology.dst_ids();
             Array<Index> src, dst, rows;
             topology.for_each_edge([&](Index source, Index destination, Index) {
               src.push_back(sources[source]);
               dst.push_back(destinations[destination]);
               rows.push_back(destination);
             });
             return nb::make_tuple(numpy_of(src), numpy_of(dst), numpy_of(rows));
           })
      .def_prop_ro("ntypes", [](const Graph& self) { return self.node_types(); })
      .def_prop_ro("canonical_etypes",
                   [](const Graph& self) {
                     nb::list all;
                     for (const EdgeType& type : self.edge_types())
                       all.append(nb::make_tuple(type.source, type.relation, type.destination));
                     return all;
                   })
      .def(
          "node_ids",
          [](const Graph& self, const std::string& type) { return numpy_of(self.node_ids(type)); }, "ntype"_a,
          "Local. Original ids of this rank's nodes.")
      .def(
          "__getitem__",
          [](const Graph& self, nb::handle type) {
            return nb::isinstance<nb::str>(type) ? self[nb::cast<std::string>(type)]
                                                 : self[edge_type_of(type)];
          },
          "etype"_a, "The graph of an edge type: a name, or (source type, relation, destination type).")
      .def(
          "_multi_update_all",
          [](const Graph& self, const nb::dict& messages, const std::string& cross_reducer) {
            std::map<EdgeType, Graph::MessageReduce> all;
            for (const auto& [type, value] : messages)
              all.emplace(edge_type_of(type),
                          Graph::MessageReduce{
                              fn::copy_u(nb::cast<Variable>(nb::object(value[0]))),
                              choice(reduce_names, nb::cast<std::string>(nb::object(value[1])), "reduce")});
            const CrossReduce cross = choice(cross_names, cross_reducer, "cross_reducer");
            return compute([&] { return self.multi_update_all(all, cross); });
          },
          "messages"_a, "cross_reducer"_a)
      .def_prop_ro("edge_weight",
                   [](const Graph& self) -> std::optional<PyTensor> {
                     if (!self.edge_weight().defined()) return std::nullopt;
                     return PyTensor{Variable(self.edge_weight())};
                   })
      .def(
          "_first_id",
          [](const Graph& self, const std::optional<std::string>& type) {
            return (type ? self.book(*type) : self.topology().src_book).begin(self.comm().rank());
          },
          "ntype"_a = nb::none())
      .def("drop_edge_ids", &Graph::drop_edge_ids,
           "Local, on all ranks. Frees the ids of edges, which max, min and samplers need.")
      .def(
          "set_options",
          [](Graph& self, const nb::kwargs& options) {
            self.set_options(options_of(options, self.options()));
          },
          "Local. Sets mode, pipeline_depth, max_halo_bytes, edge_chunk, reproducible or halo_format; others "
          "stay as they are. The same "
          "on all ranks.")
      .def(
          "_take_options", [](Graph& self, const Graph& of) { self.set_options(of.options()); }, "of"_a)
      .def(
          "_update_all",
          [](const Graph& self, const std::string& op, const std::string& lhs, const std::string& rhs,
             std::optional<Variable> u, std::optional<Variable> v, std::optional<Variable> e,
             const std::string& reduce) {
            const Message message = built_in(op, lhs, rhs, std::move(u), std::move(v), std::move(e));
            const Reduce chosen = choice(reduce_names, reduce, "reduce");
            return compute([&] { return self.update_all(message, chosen); });
          },
          "op"_a, "lhs"_a, "rhs"_a, "u"_a.none(), "v"_a.none(), "e"_a.none(), "reduce"_a)
      .def(
          "_apply_edges",
          [](const Graph& self, const std::string& op, const std::string& lhs, const std::string& rhs,
             std::optional<Variable> u, std::optional<Variable> v, std::optional<Variable> e) {
            const Message message = built_in(op, lhs, rhs, std::move(u), std::move(v), std::move(e));
            return compute([&] { return self.apply_edges(message); });
          },
          "op"_a, "lhs"_a, "rhs"_a, "u"_a.none(), "v"_a.none(), "e"_a.none())
      .def(
          "_update_all_by",
          [](const Graph& self, nb::callable function, const std::string& reduce) {
            const MessageFunction message = message_of(std::move(function));
            const Reduce chosen = choice(reduce_names, reduce, "reduce");
            return compute([&] { return one_at_a_time(self).update_all(message, chosen); });
          },
          "message"_a, "reduce"_a)
      .def(
          "_apply_edges_by",
          [](const Graph& self, nb::callable function) {
            const MessageFunction message = message_of(std::move(function));
            return compute([&] { return one_at_a_time(self).apply_edges(message); });
          },
          "message"_a)
      .def("__reduce__", [](nb::handle) -> nb::object {
        throw nb::type_error(
            "a graph of sar cannot be pickled: it is distributed over the ranks of its communicator");
      });

  nb::class_<HostGraph, Graph>(module, "HostGraph")
      .def(
          "__init__",
          [](HostGraph* self, const Communicator& comm, nb::handle nodes, nb::handle src, nb::handle dst,
             nb::handle ids, nb::handle weight, bool add_reverse_edges, const nb::dict& options) {
            const bool bipartite = nb::isinstance<nb::tuple>(nodes) && nb::len(nodes) == 2;
            const Ids sources(bipartite ? nb::object(nodes[0]) : nb::borrow(nodes), "nodes");
            const std::optional<Ids> destinations =
                bipartite ? std::optional<Ids>(std::in_place, nb::object(nodes[1]), "destinations")
                          : std::nullopt;
            const Ids from(src, "sources of edges"), to(dst, "destinations of edges");
            const std::optional<Ids> numbers = optional_ids(ids, "edge ids");
            const GlobalEdges edges = edges_of(from, to, numbers, optional_tensor(weight));
            const HostGraphOptions wanted{.add_reverse_edges = add_reverse_edges,
                                          .graph = options_of(options)};
            compute([&] {
              if (destinations)
                new (self) HostGraph(comm, GlobalEnds{sources.span(), destinations->span()}, edges, wanted);
              else
                new (self) HostGraph(comm, sources.span(), edges, wanted);
            });
          },
          "comm"_a, "nodes"_a, "src"_a, "dst"_a, "edge_ids"_a.none(), "edge_weight"_a.none(),
          "add_reverse_edges"_a = false, "options"_a = nb::dict())
      .def(
          "__init__",
          [](HostGraph* self, const Communicator& comm, const nb::dict& nodes, const nb::dict& edges) {
            std::vector<Ids> kept;
            kept.reserve(nodes.size() + 3 * edges.size());
            std::vector<GlobalNodeType> node_types;
            for (const auto& [name, ids] : nodes) {
              kept.emplace_back(ids, "nodes");
              node_types.push_back({nb::cast<std::string>(name), kept.back().span()});
            }
            std::vector<GlobalEdgeType> edge_types;
            for (const auto& [type, ends] : edges) {
              kept.emplace_back(nb::object(ends[0]), "sources of edges");
              kept.emplace_back(nb::object(ends[1]), "destinations of edges");
              const nb::object given_weight = ends[2], given_ids = ends[3];
              const Tensor weight = given_weight.is_none() ? Tensor() : tensor_of(given_weight);
              GlobalEdges of_type{
                  .src = kept[kept.size() - 2].span(), .dst = kept.back().span(), .weight = weight};
              if (!given_ids.is_none()) of_type.ids = kept.emplace_back(given_ids, "edge ids").span();
              edge_types.push_back({edge_type_of(type), of_type});
            }
            compute([&] { new (self) HostGraph(comm, node_types, edge_types); });
          },
          "comm"_a, "nodes"_a, "edges"_a)
      .def("num_given_edges", [](const HostGraph& self) { return self.num_given_edges(); })
      .def(
          "_to_graph_order",
          [](const HostGraph& self, nb::handle type, nb::handle rows) {
            const Tensor given = tensor_of(rows);
            const EdgeType of = edge_type_of(type);
            return compute([&] { return self.to_graph_order(of, given); });
          },
          "etype"_a, "rows"_a);

  nb::class_<MessageFlowGraph, Graph>(module, "Block",
                                      "The graph of a layer of a mini-batch. The destinations are its first "
                                      "sources.")
      .def_prop_ro(
          "src_rows",
          [](const MessageFlowGraph& self) {
            return by_type(self, [&](const std::string& type) { return batch_rows(self.src_rows(type)); });
          },
          "Rows of the whole graph's node tensors that the layer reads; with types a dict of them.")
      .def_prop_ro(
          "dst_rows",
          [](const MessageFlowGraph& self) {
            return by_type(self, [&](const std::string& type) { return batch_rows(self.dst_rows(type)); });
          },
          "Those that it computes.")
      .def_prop_ro(
          "edge_rows",
          [](const MessageFlowGraph& self) -> nb::object {
            if (self.is_homogeneous()) return numpy_of(self.edge_rows());
            nb::dict all;
            for (const EdgeType& type : self.edge_types())
              all[nb::make_tuple(type.source, type.relation, type.destination)] =
                  numpy_of(self.edge_rows(type));
            return all;
          },
          "Rows of the whole graph's edge tensors; with types a dict of them by canonical edge type.");
  module.def(
      "construct_mfgs",
      [](const Graph& graph, nb::handle seeds, int num_layers) {
        if (nb::isinstance<nb::dict>(seeds)) {
          const NodesByType nodes = nodes_by_type(seeds);
          return compute([&] { return construct_mfgs(graph, nodes, num_layers); });
        }
        const Ids nodes(seeds, "seeds");
        return compute([&] { return construct_mfgs(graph, nodes.span(), num_layers); });
      },
      "graph"_a, "seeds"_a, "num_layers"_a,
      "Collective. The blocks of all layers that compute the seeds, global ids of this rank or a dict of "
      "them by node type, from all their in-edges.");
}

}}}  // namespace sar
