// SPDX-License-Identifier: MIT

/// The object behind the handle sar_hetero.
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

namespace sar { inline namespace SAR_PRECISION {
namespace c_interface {

/// Nodes and edges that the program has added for the next sar_hetero_build().
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

struct HeteroObject final : Object {
  static constexpr const char* name = "sar_hetero";
  HeteroObject(const Communicator& c, const GraphOptions& its) : Object(c, name), options(its) {}

  GraphOptions options;
  AddedTypes added;
  std::optional<HostGraph> graph;        ///< none before the first build
  std::map<std::string, Tensor> rows;    ///< of the node types, in the library's precision
};

/// Return the graph, and the number of a type's nodes on this rank. Throw InputError before the first build
/// and for a type that the graph does not have.
const HostGraph& built(const HeteroObject& hetero);
Index num_nodes_of(const HeteroObject& hetero, const std::string& type);

/// Adds what must be equal on all ranks in a pass over the graph.
void add_arguments(CollectiveCall& call, const HeteroObject& hetero);

}  // namespace c_interface
}}  // namespace sar
