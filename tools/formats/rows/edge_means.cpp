// SPDX-License-Identifier: MIT
#include "edge_means.hpp"

#include <sar/core/error.hpp>
#include <sar/core/numbers.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/graph/data/columns.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

namespace sar::formats {
namespace {

constexpr Index chunk_edges = 1 << 16;  // whose rows are in memory at a time

/// The edges of this rank that have data: all but added self loops.
std::vector<Index> edges_with_data(const EdgeList& list, Index first_added) {
  std::vector<Index> edges;
  for (Index e = 0; e < list.size(); ++e)
    if (list.id[e] < first_added || list.src[e] != list.dst[e]) edges.push_back(e);
  return edges;
}

/// read(edges) returns the rows of some edges of this rank. Collective, as is `read`.
Tensor means_of(const Communicator& comm, const std::string& place, const PartitionBook& book,
                const EdgeList& list, Index first_added, Index width,
                FunctionRef<DataArray(std::span<const Index> edges)> read) {
  const std::vector<Index> edges = edges_with_data(list, first_added);
  const Index n = book.num_nodes(comm.rank()), begin = book.begin(comm.rank());
  std::vector<ExactSum> sums(static_cast<std::size_t>(n * width));  // edges come in the order of the ranks
  std::vector<double> counts(static_cast<std::size_t>(n), 0);
  for_each_range(comm, std::ssize(edges), chunk_edges, [&](Index first, Index end) {
    const std::span<const Index> some(edges.begin() + first, edges.begin() + end);
    const DataArray rows = read(some);
    comm.agree([&] {
      if (some.empty()) return;
      const Tensor values = rows.to_tensor();
      for (Index i = 0; i < end - first; ++i) {
        const Index edge = some[i], v = list.dst[edge] - begin;
        const real* row = values.data() + i * width;
        for (Index j = 0; j < width; ++j) {
          if (!std::isfinite(row[j]))
            throw InputError(concat(place, ": value ", j, " of edge ", list.id[edge], " is ",
                                    element_text(rows.type, rows.row(i) + j * element_bytes(rows.type)),
                                    ", expected finite numbers of the library's precision"));
          sums[static_cast<std::size_t>(v * width + j)].add(static_cast<double>(row[j]));
        }
        ++counts[v];
      }
    });
  });
  Tensor means({n, width});
  for (Index v = 0; v < n; ++v)
    for (Index j = 0; j < width; ++j)
      means.row(v)[j] =
          static_cast<real>(sums[static_cast<std::size_t>(v * width + j)].value() / std::max(counts[v], 1.0));
  return means;
}

void require_data(const std::string& place, const std::string& field, const std::string& option, bool has,
                  Index width, const std::vector<DataField>& fields) {
  require<InputError>(has && width > 0, place, ": the data of the edges are ",
                      fields.empty() ? "none" : joined(fields, &DataField::name), ", expected ", field,
                      " among them for ", option);
}

}  // namespace

Tensor edge_means(const Communicator& comm, const std::string& field, const std::string& option,
                  GraphSource& source, const NodeData& data) {
  const std::vector<DataField>& fields = source.types().edge_types[0].unread;
  const auto found = std::ranges::find(fields, field, &DataField::name);
  const Index width = found == fields.end() ? 0 : found->row_size(), num_edges = source.num_edges();
  require_data(source.name(), field, option, found != fields.end(), width, fields);
  return means_of(comm, source.place_of(field), data.book, data.edges, num_edges, width,
                  [&](std::span<const Index> edges) {
                    std::vector<Index> ids;
                    for (const Index e : edges)
                      ids.push_back(data.edges.id[e] - (data.edges.id[e] < num_edges ? 0 : num_edges));
                    return source.read_edge_data(0, field, ids);
                  });
}

Tensor edge_means(const Communicator& comm, const std::string& field, const std::string& option,
                  const GraphData& partition) {
  const EdgeTypeData& edges = partition.edge_types[0];
  const auto found = edges.data.find(field);
  const Index width = found == edges.data.end() ? 0 : found->second.row_size();
  require_data(partition.name, field, option, found != edges.data.end(), width, fields_of(edges.data));
  return means_of(comm, concat(partition.name, ": ", field), partition.node_types[0].book, edges.edges,
                  edges.first_added_id, width, [&](std::span<const Index> rows) {
                    return found->second.take(Array<Index>(rows.begin(), rows.end()));
                  });
}

}  // namespace sar::formats
