// SPDX-License-Identifier: MIT

/// The object behind the handle sar_graph.
#pragma once

#include <sar/bindings/c/handle_table.hpp>
#include <sar/core/tensor/tensor.hpp>
#include <sar/graph/construct/host_graph.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sar { inline namespace SAR_PRECISION { namespace c_interface {

/// Nodes and edges that the program has added for the next sar_graph_build().
struct AddedNodes {
  std::string type;
  std::vector<std::int64_t> ids;
};
struct AddedEdges {
  EdgeType type;
  std::vector<std::int64_t> src, dst;
  std::optional<std::vector<std::int64_t>> ids;
  Tensor weight;
  bool add_reverse_edges = false;
};
struct AddedTypes {
  std::vector<std::shared_ptr<const AddedNodes>> nodes;
  std::vector<std::shared_ptr<const AddedEdges>> edges;
};

struct GraphObject final : Object {
  static constexpr const char* name = "sar_graph";
  GraphObject(const Communicator& c, const HostGraphOptions& its) : Object(c, name), options(its) {}

  /// Returns the graph. Throws InputError if sar_graph_create() has made it and it has not been built.
  [[nodiscard]] const HostGraph& built() const;
  /// Returns the node type of this name, or the only one for null. Throws InputError that lists the types.
  [[nodiscard]] std::string node_type(const char* type) const;
  /// Returns the edge type of this name, or the only one for null. Throws InputError that lists the types.
  [[nodiscard]] EdgeType edge_type(const char* type) const;
  /// Takes a graph in place of the one that there is. Does not throw.
  void take(HostGraph made) noexcept;

  HostGraphOptions options;
  AddedTypes added;
  std::optional<HostGraph> graph;
  std::map<std::string, Tensor> rows;  ///< of node types, in the library's precision
  std::uint64_t num_rebuilds = 0;      ///< predictors compare it with the number they saw last
};

/// Adds what must be equal on all ranks in a call that makes a pass over the graph.
void add_arguments(CollectiveCall& call, const GraphObject& graph);

/// Throws InputError unless the graph has the types of the model's description, or one node type and one edge
/// type for a network that reads no relations.
void require_types(const ModelObject& model, const GraphObject& graph);
}}}  // namespace sar
