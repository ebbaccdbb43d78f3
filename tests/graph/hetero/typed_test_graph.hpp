// SPDX-License-Identifier: MIT

/// A small graph of three node types and six edge types with everything that goes wrong: isolated nodes,
/// self loops, parallel edges, hubs, an edge type without edges, ranks without nodes of a type.
#pragma once

#include "graph/test_graphs.hpp"

#include <sar/graph/hetero/homogeneous_form.hpp>
#include <sar/graph/message/graph.hpp>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace sar::test {

struct TypedGraph {
  std::vector<std::pair<std::string, Index>> nodes;
  std::vector<std::pair<EdgeType, WholeGraph>> relations;

  [[nodiscard]] Index size(const std::string& type) const {
    for (const auto& [name, size] : nodes)
      if (name == type) return size;
    return -1;
  }
};

inline TypedGraph typed_graph() {
  TypedGraph typed{.nodes = {{"paper", 50}, {"author", 31}, {"field", 7}}, .relations = {}};
  const auto add = [&](const EdgeType& type, Index edges, std::uint64_t seed) {
    typed.relations.emplace_back(
        type, random_graph(type.relation, typed.size(type.source), typed.size(type.destination), edges, seed,
                           type.source == type.destination));
  };
  add({"author", "writes", "paper"}, 160, 11);
  add({"paper", "cites", "paper"}, 200, 12);
  add({"paper", "written_by", "author"}, 160, 13);
  add({"paper", "about", "field"}, 70, 14);
  add({"field", "of", "paper"}, 70, 15);
  add({"author", "knows", "author"}, 0, 16);
  return typed;
}

/// Even; all on the last rank; and each type on another rank.
inline std::vector<std::map<std::string, PartitionBook>> typed_books(const TypedGraph& typed, int parts) {
  std::vector<std::map<std::string, PartitionBook>> books(parts == 1 ? 1 : 3);
  int next = 0;
  for (const auto& [type, size] : typed.nodes) {
    const auto all_on = [size, parts](int rank) {
      std::vector<Index> offsets(static_cast<std::size_t>(parts) + 1, 0);
      std::fill(offsets.begin() + rank + 1, offsets.end(), size);
      return PartitionBook(offsets);
    };
    books[0][type] = PartitionBook::even(size, parts);
    if (parts == 1) continue;
    books[1][type] = all_on(parts - 1);
    books[2][type] = type == "paper" ? PartitionBook::even(size, parts) : all_on(next++ % parts);
  }
  return books;
}

inline Graph shard(const Communicator& comm, const TypedGraph& typed,
                   const std::map<std::string, PartitionBook>& books, const GraphOptions& options = {}) {
  std::vector<NodeTypeSpec> nodes;
  for (const auto& [type, size] : typed.nodes) nodes.push_back({.name = type, .book = books.at(type)});
  std::vector<EdgeTypeSpec> edges;
  for (const auto& [type, graph] : typed.relations)
    edges.push_back({.type = type, .edges = edges_of_rank(comm, graph, books.at(type.destination))});
  return {comm, std::move(nodes), std::move(edges), options};
}

}  // namespace sar::test
