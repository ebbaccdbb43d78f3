// SPDX-License-Identifier: MIT
#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/graph/data/sparse_choice.hpp>
#include <sar/graph/data/sparse_fields.hpp>

#include <algorithm>
#include <numeric>

namespace sar { inline namespace SAR_PRECISION {
namespace {

constexpr Index bytes_of_chunk = Index{1} << 24;

}  // namespace

bool is_sparse_field(const Communicator& comm, SparseFeatures sparse, const DataField& field, Index num_nodes,
                     std::span<const Index> ids, ReadRows read) {
  const bool at_best = becomes_sparse(sparse, field, 1, 0);
  if (!at_best || sparse != SparseFeatures::automatic) return at_best;
  Array<Index> sampled;
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (is_sampled(ids[i], num_nodes)) sampled.push_back(static_cast<Index>(i));
  const DataArray rows = read(sampled);
  const Index stored = comm.all_reduce(count_stored(rows));
  return becomes_sparse(sparse, field, comm.all_reduce(rows.num_rows), stored);
}

SparseArray read_sparse(const Communicator& comm, const DataField& field, Index count,
                        const std::string& place, ReadRows read) {
  SparseArray array{.type = field.type, .row_shape = field.row_shape};
  const Index chunk = std::max<Index>(1, bytes_of_chunk / std::max<Index>(field.row_bytes(), 1));
  const Index chunks = comm.all_reduce((count + chunk - 1) / chunk, ReduceOp::max);
  array.row_offsets.reserve(count + 1);
  for (Index i = 0; i < chunks; ++i) {
    const Index begin = std::min(count, i * chunk);
    Array<Index> rows(std::min(count, begin + chunk) - begin);
    std::iota(rows.begin(), rows.end(), begin);
    const DataArray dense = read(rows);
    comm.agree([&] { array.append(dense, count - begin - dense.num_rows, place); });
  }
  return array;
}

void choose_sparse_fields(GraphSource& source, const DatasetOptions& options, GraphData& graph) {
  const Communicator& comm = source.comm();
  for (std::size_t t = 0; t < graph.node_types.size(); ++t) {
    const Index num_nodes = graph.node_types[t].num_nodes();
    // each rank reads a share of the nodes: parts are not known yet
    const PartitionBook shares = PartitionBook::even(num_nodes, comm.size());
    Array<Index> ids(shares.num_nodes(comm.rank()));
    std::iota(ids.begin(), ids.end(), shares.begin(comm.rank()));
    for (DataField& field : graph.node_types[t].unread)
      field.is_sparse = is_sparse_field(comm, options.sparse_features, field, num_nodes, ids,
                                        [&](std::span<const Index> rows) {
                                          Array<Index> nodes;
                                          for (const Index row : rows) nodes.push_back(ids[row]);
                                          return source.read_node_data(t, field.name, nodes);
                                        });
  }
}

}}  // namespace sar
