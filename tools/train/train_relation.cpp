// SPDX-License-Identifier: MIT

// The edges of the task are translated to global ids of the homogeneous form before that exists: a rank's
// nodes are there type after type. So make_edge_task() serves graphs with and without types.
#include "train_relation.hpp"

#include <algorithm>
#include <memory>
#include <utility>

namespace sar::tools {
namespace {

/// Drops the edges of a type that are not kept. Collective.
void keep(const Communicator& comm, const Array<std::uint8_t>& kept, EdgeTypeData& type) {
  const EdgeList all = std::exchange(type.edges, {});
  for (Index e = 0; e < all.size(); ++e)
    if (kept[e] != 0) type.edges.append(all, e);
  type.data.clear();
  type.num_edges = comm.all_reduce(type.edges.size());
}

/// Keeps the edges of the predicted type that are message edges. Collective.
void keep_messages(const Communicator& comm, const EdgeList& messages, EdgeTypeData& type) {
  Array<Index> ids = messages.id;
  std::ranges::sort(ids);
  Array<std::uint8_t> kept;
  for (const Index id : type.edges.id) kept.push_back(std::ranges::binary_search(ids, id) ? 1 : 0);
  keep(comm, kept, type);
}

/// Whether edges of a type may be those of the predicted type, in either direction.
struct Directions {
  bool same, reverse;

  Directions(const EdgeTypeData& type, const EdgeTypeData& predicted)
      : same(type.src_type == predicted.src_type && type.dst_type == predicted.dst_type),
        reverse(type.src_type == predicted.dst_type && type.dst_type == predicted.src_type) {}
  [[nodiscard]] bool any() const { return same || reverse; }

  /// Returns which edges are in the set. Collective.
  [[nodiscard]] Array<std::uint8_t> find(const EdgeSet& set, const EdgeList& edges) const {
    Array<std::uint8_t> found(edges.id.size(), 0);
    const auto add = [&](const Array<std::uint8_t>& some) {
      for (std::size_t e = 0; e < found.size(); ++e) found[e] = found[e] | some[e];
    };
    if (same) add(set.contains(edges.src, edges.dst));
    if (reverse) add(set.contains(edges.dst, edges.src));
    return found;
  }
};

Index count(const Communicator& comm, const Array<std::uint8_t>& flags) {
  return comm.all_reduce(std::ranges::count(flags, 1));
}

/// The edge types that o.reverse_relations name.
std::vector<std::size_t> named_reverses(const TrainOptions& o, const GraphData& graph, std::size_t k) {
  std::vector<std::size_t> named;
  for (const std::string& name : o.reverse_relations) {
    const std::size_t r = graph.edge_place_of(name);
    const EdgeTypeData& type = graph.edge_types[r];
    require<InputError>(r != k && Directions(type, graph.edge_types[k]).any(), graph.name,
                        ": --reverse-relation ", type.canonical_name(), " does not join the node types of ",
                        graph.edge_types[k].canonical_name(), ", expected another edge type between them");
    named.push_back(r);
  }
  return named;
}

}  // namespace

RelationTask make_relation_task(const Communicator& comm, const TrainOptions& o, GraphData& graph) {
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
  RelationTask task{.edges = make_edge_task(comm, o, data), .types = {static_cast<Index>(k)}, .notes = {}};
  keep_messages(comm, data.edges, predicted);
  const std::shared_ptr<const EdgeSet> held_out = held_out_pairs(comm, data.book, task.edges);
  for (std::size_t r = 0; r < graph.edge_types.size(); ++r) {
    EdgeTypeData& type = graph.edge_types[r];
    const Directions directions(type, predicted);
    if (r == k || !directions.any() || type.num_edges == 0) continue;
    const EdgeList edges = edges_of_form(graph, type);
    const bool is_copy = std::ranges::count(named, r) > 0 ||
                         count(comm, directions.find(*task.edges.of_graph, edges)) == type.num_edges;
    Array<std::uint8_t> held = directions.find(*held_out, edges);
    const Index pairs = count(comm, held);
    if (is_copy) {
      task.types.push_back(static_cast<Index>(r));
      task.notes.push_back(concat(type.canonical_name(), " has the edges of ", predicted.canonical_name(),
                                  ": ", pairs, " of its ", type.num_edges,
                                  " edges are validation and test edges, which carry ",
                                  listed ? "messages, because the dataset lists pairs" : "no messages"));
    } else if (pairs > 0) {
      task.notes.push_back(concat("WARNING: ", pairs, " edges of ", type.canonical_name(),
                                  " join validation and test pairs and carry messages, expected "
                                  "--reverse-relation ",
                                  type.canonical_name(), " if they are edges of ",
                                  predicted.canonical_name()));
    }
    if (!is_copy || listed) continue;
    for (std::uint8_t& flag : held) flag = flag == 0 ? 1 : 0;
    keep(comm, held, type);
  }
  return task;
}

}  // namespace sar::tools
