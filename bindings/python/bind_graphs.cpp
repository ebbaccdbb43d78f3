// SPDX-License-Identifier: MIT
#include <sar/bindings/python/convert.hpp>
#include <sar/bindings/python/module.hpp>
#include <sar/graph/construct/host_graph.hpp>
#include <sar/graph/construct/message_flow_graph.hpp>
#include <sar/graph/message/graph_shard_manager.hpp>
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

GraphShardManager one_at_a_time(GraphShardManager graph) {
  GraphOptions options = graph.options();
  options.serial_messages = true;
  graph.set_options(options);
  return graph;
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

GraphOptions options_of(const nb::dict& given) {
  GraphOptions options;
  for (const auto& [key, value] : given) {
    const std::string name = nb::cast<std::string>(key);
    bool known = false;
    for_each_field(options, [&](const char* field, auto& place) {
      if (name != field) return;
      known = true;
      using Field = std::decay_t<decltype(place)>;
      if constexpr (std::is_same_v<Field, HaloMode>)
        place = choice(halo_mode_names, nb::cast<std::string>(value), field);
      else if constexpr (std::is_same_v<Field, HaloFormat>) {
        const std::string wanted = nb::cast<std::string>(value);
        bool found = false;
        for (const HaloFormatTraits& traits : halo_format_traits)
          if (wanted == traits.name) place = traits.value, found = true;
        require<InputError>(found, "halo_format is '", wanted, "', expected one of ",
                            joined(halo_format_traits, [](const auto& t) { return std::string(t.name); }));
      } else
        place = nb::cast<Field>(value);
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

}  // namespace

void bind_graphs(nb::module_& module) {
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

  nb::class_<GraphShardManager>(module, "GraphBase", nb::dynamic_attr(), "A graph, distributed over ranks.")
      .def_prop_ro("comm", [](const GraphShardManager& self) { return self.comm(); })
      .def_prop_ro("is_block", &GraphShardManager::is_block)
      .def("num_nodes", &GraphShardManager::num_nodes, "Local. Of this rank.")
      .def("num_src_nodes", &GraphShardManager::num_src_nodes, "Local. Of this rank.")
      .def("num_dst_nodes", &GraphShardManager::num_dst_nodes, "Local. Of this rank.")
      .def("num_edges", &GraphShardManager::num_edges, "Local. In-edges of this rank's nodes.")
      .def("num_global_nodes", &GraphShardManager::num_global_nodes, "Local. Of the whole graph.")
      .def("num_global_edges", &GraphShardManager::num_global_edges, "Local. Of the whole graph.")
      .def(
          "in_degrees", [](const GraphShardManager& self) { return numpy_of(self.in_degrees()); }, "Local.")
      .def(
          "out_degrees", [](const GraphShardManager& self) { return numpy_of(self.out_degrees()); }, "Local.")
      .def_prop_ro(
          "src_ids", [](const GraphShardManager& self) { return numpy_of(self.src_ids()); },
          "Original ids of this rank's nodes, or sources.")
      .def_prop_ro("dst_ids", [](const GraphShardManager& self) { return numpy_of(self.dst_ids()); })
      .def_prop_ro(
          "edge_ids", [](const GraphShardManager& self) { return numpy_of(self.edge_ids()); },
          "Original ids of the edges, in the order of the rows of edge tensors.")
      .def_prop_ro("edge_weight",
                   [](const GraphShardManager& self) -> std::optional<PyTensor> {
                     if (!self.edge_weight().defined()) return std::nullopt;
                     return PyTensor{Variable(self.edge_weight())};
                   })
      .def("_first_id",
           [](const GraphShardManager& self) { return self.topology().src_book.begin(self.comm().rank()); })
      .def("drop_edge_ids", &GraphShardManager::drop_edge_ids,
           "Local, on all ranks. Frees the ids of edges, which max, min and samplers need.")
      .def(
          "set_options",
          [](GraphShardManager& self, const nb::kwargs& options) { self.set_options(options_of(options)); },
          "Local. mode, pipeline_depth, max_halo_bytes, edge_chunk, reproducible, halo_format; the "
          "same on all "
          "ranks.")
      .def(
          "_update_all",
          [](const GraphShardManager& self, const std::string& op, const std::string& lhs,
             const std::string& rhs, std::optional<Variable> u, std::optional<Variable> v,
             std::optional<Variable> e, const std::string& reduce) {
            const Message message = built_in(op, lhs, rhs, std::move(u), std::move(v), std::move(e));
            const Reduce chosen = choice(reduce_names, reduce, "reduce");
            return compute([&] { return self.update_all(message, chosen); });
          },
          "op"_a, "lhs"_a, "rhs"_a, "u"_a.none(), "v"_a.none(), "e"_a.none(), "reduce"_a)
      .def(
          "_apply_edges",
          [](const GraphShardManager& self, const std::string& op, const std::string& lhs,
             const std::string& rhs, std::optional<Variable> u, std::optional<Variable> v,
             std::optional<Variable> e) {
            const Message message = built_in(op, lhs, rhs, std::move(u), std::move(v), std::move(e));
            return compute([&] { return self.apply_edges(message); });
          },
          "op"_a, "lhs"_a, "rhs"_a, "u"_a.none(), "v"_a.none(), "e"_a.none())
      .def(
          "_update_all_by",
          [](const GraphShardManager& self, nb::callable function, const std::string& reduce) {
            const MessageFunction message = message_of(std::move(function));
            const Reduce chosen = choice(reduce_names, reduce, "reduce");
            return compute([&] { return one_at_a_time(self).update_all(message, chosen); });
          },
          "message"_a, "reduce"_a)
      .def(
          "_apply_edges_by",
          [](const GraphShardManager& self, nb::callable function) {
            const MessageFunction message = message_of(std::move(function));
            return compute([&] { return one_at_a_time(self).apply_edges(message); });
          },
          "message"_a)
      .def("__reduce__", [](nb::handle) -> nb::object {
        throw nb::type_error(
            "a graph of sar cannot be pickled: it is distributed over the ranks of its communicator");
      });

  nb::class_<HostGraph, GraphShardManager>(module, "HostGraph")
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
      .def("num_given_edges", &HostGraph::num_given_edges)
      .def(
          "_to_graph_order",
          [](const HostGraph& self, nb::handle rows) {
            const Tensor given = tensor_of(rows);
            return compute([&] { return self.to_graph_order(given); });
          },
          "rows"_a);

  nb::class_<MessageFlowGraph, GraphShardManager>(
      module, "Block",
      "The graph of a layer of a mini-batch. The destinations are its first "
      "sources.")
      .def_prop_ro(
          "src_rows", [](const MessageFlowGraph& self) { return numpy_of(self.src_rows()); },
          "Rows of the whole graph's node tensors that the layer reads.")
      .def_prop_ro("dst_rows", [](const MessageFlowGraph& self) { return numpy_of(self.dst_rows()); })
      .def_prop_ro("edge_rows", [](const MessageFlowGraph& self) { return numpy_of(self.edge_rows()); });
  module.def(
      "construct_mfgs",
      [](const GraphShardManager& graph, nb::handle seeds, int num_layers) {
        const Ids nodes(seeds, "seeds");
        return compute([&] { return construct_mfgs(graph, nodes.span(), num_layers); });
      },
      "graph"_a, "seeds"_a, "num_layers"_a,
      "Collective. The blocks of all layers that compute the seeds, global ids of this rank, from all their "
      "in-edges.");
}

}}}  // namespace sar
