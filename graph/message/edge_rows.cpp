// SPDX-License-Identifier: MIT
#include <sar/comm/rows/distributed_rows.hpp>
#include <sar/core/error.hpp>
#include <sar/graph/message/edge_rows.hpp>

namespace sar { inline namespace SAR_PRECISION {

Tensor fetch_edge_rows(const Graph& graph, const PartitionBook& ids, const Tensor& mine) {
  const Communicator& comm = graph.comm();
  return comm.agree([&] {
    require<ShapeError>(ids.num_parts() == comm.size() && mine.num_rows() == ids.num_nodes(comm.rank()),
                        "edge data of shape ", mine.shape(), " of rank ", comm.rank(),
                        " has not a row for each of its edge ids");
    require<ShapeError>(comm.all_equal(mine.row_size(), "fetch_edge_rows"),
                        "the ranks have edge data of different widths, rank ", comm.rank(), " of ",
                        mine.row_size());
    Tensor rows(mine.shape().with_rows(graph.num_edges()));
    fetch_row_bytes(comm, ids, reinterpret_cast<const std::byte*>(mine.data()),
                    mine.row_size() * static_cast<Index>(sizeof(real)), graph.edge_ids(),
                    reinterpret_cast<std::byte*>(rows.data()));
    return rows;
  });
}
}}  // namespace sar
