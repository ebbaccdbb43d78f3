// SPDX-License-Identifier: MIT

/// What a graph knows of its types. For the sources of this room.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/error.hpp>
#include <sar/graph/message/edge_types.hpp>
#include <sar/graph/message/frame.hpp>
#include <sar/graph/message/graph.hpp>
#include <sar/graph/topology/graph_topology.hpp>
#include <sar/graph/topology/sharded_graph.hpp>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

struct GraphTypes {
  struct NodeType {
    PartitionBook book, dst_book;  ///< the same, except in a block
    SharedIds ids;
    std::shared_ptr<Frame> src_frame, dst_frame;  ///< the same, except in a block
    SharedIds ids_with_halo = nullptr;  ///< including halo ids, once a relation from here holds its halo
  };

  Communicator comm;
  GraphOptions options;
  bool is_block = false;
  std::vector<std::string> node_names;
  std::vector<NodeType> nodes;
  std::vector<EdgeType> edge_types;
  std::map<EdgeType, std::size_t> numbers;  ///< in edge_types
  std::vector<Graph> relations;
  std::vector<Index> most_halo_rows;  ///< of each relation, maximum over the ranks
  std::vector<std::optional<Graph>> holding_halo;
  std::shared_ptr<const HomogeneousForm> form;  ///< null until it is asked for

  GraphTypes(const Communicator& communicator, const GraphOptions& graph_options)
      : comm(communicator), options(graph_options) {}

  [[nodiscard]] const NodeType& node_type(const std::string& name) const {
    return nodes[find_node_type(node_names, name)];
  }
  [[nodiscard]] std::size_t edge_type_number(const EdgeType& type) const {
    const auto found = numbers.find(type);
    return found != numbers.end() ? found->second : find_edge_type(edge_types, type.canonical_name());
  }
  void take_nodes(std::vector<NodeTypeSpec> specs);
  /// Builds the relations; relations with the same sources share one halo. Collective.
  std::vector<std::shared_ptr<const ShardedGraph>> make_shards(std::vector<EdgeTypeSpec> specs) const;
  /// Creates the relations' graphs. Collective.
  void take_relations(std::vector<EdgeType> types,
                      const std::vector<std::shared_ptr<const ShardedGraph>>& shards);
  [[nodiscard]] Frames frames_of(const EdgeType& type) const {
    return {node_type(type.source).src_frame, node_type(type.destination).dst_frame, type};
  }
  /// Local. The types of a relation by itself; `relations` stays empty, because its handle refers to these.
  static std::shared_ptr<GraphTypes> of_relation(const GraphTopology& topology, const Frames& frames);
};

/// Inserts "edge type 'a:r:b': " at the start of an error message, or after its "rank 2: " if it begins with
/// one.
inline std::string with_type(const EdgeType& type, const std::string& text) {
  std::size_t at = 0;
  if (text.starts_with("rank ")) {
    const std::size_t end = text.find_first_not_of("0123456789", 5);
    if (end != std::string::npos && end > 5 && text.substr(end, 2) == ": ") at = end + 2;
  }
  return concat(text.substr(0, at), "edge type '", type, "': ", text.substr(at));
}

/// Returns the result of make(), which may be collective. Adds the type to InputError and ShapeError that it
/// throws.
template <class Make>
auto naming(const EdgeType& type, const Make& make) {
  try {
    return make();
  } catch (const InputError& error) {
    throw InputError(with_type(type, error.what()));
  } catch (const ShapeError& error) {
    throw ShapeError(with_type(type, error.what()));
  }
}
}}  // namespace sar
