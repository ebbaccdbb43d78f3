// SPDX-License-Identifier: MIT

/// The graph of a case of the group hetero, distributed over the ranks.
#pragma once

#include "graph/hetero/typed_test_graph.hpp"
#include "support/golden_graph.hpp"
#include "support/reference.hpp"

#include <map>
#include <numeric>
#include <string>
#include <vector>

namespace sar::test {

/// Nodes and edges in the order of the generator (tests/data/golden/hetero_cases.py).
inline TypedGraph golden_typed_graph(const Case& golden) {
  TypedGraph typed;
  for (const std::string type : {"paper", "author", "field"})
    typed.nodes.emplace_back(type, static_cast<Index>(golden.number("num_nodes." + type)));
  for (const EdgeType& type : std::vector<EdgeType>{{"author", "knows", "author"},
                                                    {"author", "writes", "paper"},
                                                    {"field", "of", "paper"},
                                                    {"paper", "about", "field"},
                                                    {"paper", "cites", "paper"},
                                                    {"paper", "written_by", "author"}})
    typed.relations.emplace_back(
        type, WholeGraph{type.relation, typed.size(type.source), typed.size(type.destination),
                         type.source == type.destination, golden.indices("src." + type.relation),
                         golden.indices("dst." + type.relation)});
  return typed;
}

/// The rows of a rank of a whole tensor.
inline Tensor rank_rows(const Tensor& whole, const PartitionBook& book, int rank) {
  return whole.slice_rows(book.begin(rank), book.end(rank)).clone();
}

/// The largest difference from the rank's part of a whole tensor, relative to the whole's largest element.
inline double error_of_rows(const Tensor& mine, const Tensor& whole, const PartitionBook& book, int rank) {
  return error_of_part(mine, rank_rows(whole, book, rank), whole);
}

}  // namespace sar::test
