// SPDX-License-Identifier: MIT

/// Comparing a loaded partition with the graph that was partitioned.
#pragma once

#include "graph/data/edge_type_of.hpp"

#include <doctest/doctest.h>
#include <sar/comm/rows/distributed_rows.hpp>
#include <sar/core/files/npy.hpp>
#include <sar/graph/data/graph_data.hpp>

#include <span>
#include <string>
#include <vector>

namespace sar::test {

inline std::vector<double> numbers(const DataArray& data) {
  std::vector<double> values(data.num_rows * data.row_size());
  convert_elements(data.type, data.bytes.data(), static_cast<Index>(values.size()), values.data());
  return values;
}

/// Checks that the rows of the data are those of a .npy file at the ids.
inline bool same_rows(const DataArray& data, std::span<const Index> ids, const std::string& path) {
  const NpyFile file(path);
  std::vector<double> expected(ids.size() * static_cast<std::size_t>(file.row_size()));
  file.read_rows(ids, std::span(expected));
  return data.num_rows == static_cast<Index>(ids.size()) && numbers(data) == expected;
}

/// Checks that the edges of a type are those of the array [2, E] in original ids.
inline void check_edges(const Communicator& comm, const GraphData& graph, const std::string& type,
                        const std::string& path) {
  const EdgeTypeData& edges = edge_type_of(graph, type);
  const NodeTypeData& src = graph.node_type(edges.src_type);
  const NodeTypeData& dst = graph.node_type(edges.dst_type);
  const NpyFile file(path);
  const Index total = file.size() / 2;
  CHECK(edges.num_edges == total);
  CHECK(comm.all_reduce(edges.edges.size()) == total);
  std::vector<Index> ends(2 * total);
  file.read(0, 2 * total, std::span(ends));
  const auto end = [&](Index row, Index e) {
    return ends[file.fortran_order() ? 2 * e + row : row * total + e];
  };
  const Array<Index> from =
      fetch_values<Index>(comm, src.book, src.original_ids, std::span<const Index>(edges.edges.src));
  bool same = true, mine = true;
  for (std::size_t k = 0; k < from.size(); ++k) {
    const Index e = edges.edges.id[k], v = edges.edges.dst[k];
    mine = mine && dst.book.owner(v) == comm.rank();
    same = same && from[k] == end(0, e) && dst.original_ids[v - dst.book.begin(comm.rank())] == end(1, e);
  }
  CHECK(mine);
  CHECK(same);
}

inline std::vector<double> mapped(const Array<Index>& ids, double (*value)(Index)) {
  std::vector<double> values;
  for (const Index id : ids) values.push_back(value(id));
  return values;
}

inline double identity(Index id) {
  return static_cast<double>(id);
}

}  // namespace sar::test
