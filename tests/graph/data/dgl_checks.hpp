/// Comparing a loaded partition with the graph it was made of.
#pragma once

#include <doctest/doctest.h>
#include <sar/comm/rows/distributed_rows.hpp>
#include <sar/graph/data/graph_data.hpp>
#include <sar/graph/io/npy.hpp>

#include <span>
#include <string>
#include <vector>

namespace sar::test {

inline std::vector<double> numbers(const DataArray& data) {
  std::vector<double> values(static_cast<std::size_t>(data.num_rows * data.row_size()));
  convert_elements(data.type, data.bytes.data(), static_cast<Index>(values.size()), values.data());
  return values;
}

/// Rows of the data are those of the ids in a .npy file.
inline bool same_rows(const DataArray& data, std::span<const Index> ids, const std::string& path) {
  const NpyFile file(path);
  std::vector<double> expected(ids.size() * static_cast<std::size_t>(file.row_size()));
  file.read_rows(ids, std::span(expected));
  return data.num_rows == static_cast<Index>(ids.size()) && numbers(data) == expected;
}

/// The edges of a type are those of the array [2, E], by original ids.
inline void check_edges(const Communicator& comm, const GraphData& graph, const std::string& type,
                        const std::string& path) {
  const EdgeTypeData& edges = graph.edge_type(type);
  const NodeTypeData& src = graph.node_type(edges.src_type);
  const NodeTypeData& dst = graph.node_type(edges.dst_type);
  const NpyFile file(path, NpyOrder::c_or_fortran);
  const Index total = file.size() / 2;
  CHECK(edges.num_edges == total);
  CHECK(comm.all_reduce(edges.edges.size()) == total);
  std::vector<Index> ends(static_cast<std::size_t>(2 * total));
  file.read(0, 2 * total, std::span(ends));
  const auto end = [&](Index row, Index e) {
    return ends[static_cast<std::size_t>(file.fortran_order() ? 2 * e + row : row * total + e)];
  };
  const Array<Index> from =
      fetch_values<Index>(comm, src.book, src.original_ids, std::span<const Index>(edges.edges.src));
  bool same = true, mine = true;
  for (std::size_t k = 0; k < from.size(); ++k) {
    const Index e = edges.edges.id[k], v = edges.edges.dst[k];
    mine = mine && dst.book.owner(v) == comm.rank();
    same = same && from[k] == end(0, e) &&
           dst.original_ids[static_cast<std::size_t>(v - dst.book.begin(comm.rank()))] == end(1, e);
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
