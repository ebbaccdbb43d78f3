// SPDX-License-Identifier: MIT

// The edges of the task are translated to global ids of the homogeneous form before that exists: a rank's
// nodes are there type after type. So make_edge_task() serves graphs with and without types.
#include "train_edges.hpp"

#include "program.hpp"

#include <algorithm>
#include <memory>

namespace sar::tools {
namespace {

/// Drops edges of a type. Collective.
void drop(const Communicator& comm, const Array<std::uint8_t>& dropped, EdgeTypeData& type) {
  type.edges = without(type.edges, dropped);
  type.data.clear();
  type.num_edges = comm.all_reduce(type.edges.size());
}

/// Keeps the edges of the predicted type that are message edges. Collective.
void keep_messages(const Communicator& comm, const EdgeList& messages, EdgeTypeData& type) {
  Array<Index> ids = messages.id;
  std::ranges::sort(ids);
  Array<std::uint8_t> dropped;
  for (const Index id : type.edges.id) dropped.push_back(std::ranges::binary_search(ids, id) ? 0 : 1);
  drop(comm, dropped, type);
}

/// How edges of a type may be those of the predicted type.
Directions directions_of(const EdgeTypeData& type, const EdgeTypeData& predicted) {
  return {.same = type.src_type == predicted.src_type && type.dst_type == predicted.dst_type,
          .reverse = type.src_type == predicted.dst_type && type.dst_type == predicted.src_type};
}

Index count(const Communicator& comm, const Array<std::uint8_t>& flags) {
  return comm.all_reduce(std::ranges::count(flags, 1));
}

/// The edge types that o.reverse_relations name.
std::vector<std::size_t> named_reverses(const TrainOptions& o, const GraphData& graph, std::size_t k) {
  std::vector<std::size_t> named;
  for (const std::string& name : o.reverse_relations) {
    const std::size_t r = graph.edge_place_of(name);
    const EdgeTypeData& type = graph.edge_types[r];
    require<InputError>(r != k && directions_of(type, graph.edge_types[k]).any(), graph.name,
                        ": --reverse-relation ", type.canonical_name(), " does not join the node types of ",
                        graph.edge_types[k].canonical_name(), ", expected another edge type between them");
    named.push_back(r);
  }
  return named;
}

}  // namespace

EdgeTask make_relation_task(const Communicator& comm, const TrainOptions& o, GraphData& graph) {
  std::size_t k = 0;
  std::vector<std::size_t> named;
  comm.agree([&] {
    k = graph.edge_place_of(o.relation);
    named = named_reverses(o, graph, k);
  });
  EdgeTypeData& predicted = graph.edge_types[k];
  NodeData data;
  comm.agree([&] { data = relation_data(graph, k, o.data); });
  const bool listed = !data.edge_data.lists.empty();
  EdgeTask task = make_edge_task(comm, o, data);
  task.edge_types = {static_cast<Index>(k)};
  keep_messages(comm, data.edges, predicted);
  const std::shared_ptr<const EdgeSet> held_out = held_out_pairs(comm, data.book, task);
  for (std::size_t r = 0; r < graph.edge_types.size(); ++r) {
    EdgeTypeData& type = graph.edge_types[r];
    const Directions directions = directions_of(type, predicted);
    if (r == k || !directions.any() || type.num_edges == 0) continue;
    const EdgeList edges = edges_of_form(graph, type);
    const bool is_copy = std::ranges::count(named, r) > 0 ||
                         count(comm, directions.find(*task.of_graph, edges.src, edges.dst)) == type.num_edges;
    const Array<std::uint8_t> held = directions.find(*held_out, edges.src, edges.dst);
    const Index pairs = count(comm, held);
    if (is_copy) {
      task.edge_types.push_back(static_cast<Index>(r));
      say(comm, type.canonical_name(), " has the edges of ", predicted.canonical_name(), ": ", pairs,
          " of its ", type.num_edges, " edges are validation and test edges, which carry ",
          listed ? "messages, because the dataset lists pairs" : "no messages");
    } else if (pairs > 0) {
      say(comm, "WARNING: ", pairs, " edges of ", type.canonical_name(),
          " join validation and test pairs and carry messages, expected --reverse-relation ",
          type.canonical_name(), " if they are edges of ", predicted.canonical_name());
    }
    if (is_copy && !listed) drop(comm, held, type);
  }
  return task;
}

}  // namespace sar::tools
