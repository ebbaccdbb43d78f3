// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/graph/data/sources/edge_index.hpp>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// Reads the ends of edges [begin, end). NumPy writes the transpose of an [E, 2] array in Fortran order; then
/// the two ends of an edge lie side by side.
void read_ends(const NpyFile& edge_index, Index begin, Index end, EdgeList& edges) {
  if (!edge_index.fortran_order()) {
    edge_index.read(begin, end, std::span<Index>(edges.src));
    edge_index.read(edge_index.row_size() + begin, edge_index.row_size() + end, std::span<Index>(edges.dst));
    return;
  }
  constexpr Index chunk = Index{1} << 16;
  std::vector<Index> pairs;
  for (Index first = begin; first < end; first += chunk) {
    const Index count = std::min(chunk, end - first);
    pairs.resize(2 * count);
    edge_index.read(2 * first, 2 * (first + count), std::span<Index>(pairs));
    for (Index i = 0; i < count; ++i) {
      edges.src[first - begin + i] = pairs[2 * i];
      edges.dst[first - begin + i] = pairs[2 * i + 1];
    }
  }
}

}  // namespace

void require_nodes(const std::string& place, const EdgeList& edges, Index num_sources,
                   Index num_destinations) {
  for (Index e = 0; e < edges.size(); ++e)
    for (const auto& [node, nodes] : {std::pair{edges.src[e], num_sources}, {edges.dst[e], num_destinations}})
      if (node < 0 || node >= nodes)
        throw InputError(concat(place, ": edge ", edges.id[e], " is (", edges.src[e], ", ", edges.dst[e],
                                "), but there is no node ", node, ", expected ", index_range(nodes)));
}

EdgeList read_edge_range(const NpyFile& edge_index, Index num_sources, Index num_destinations, Index begin,
                         Index end) {
  EdgeList edges;
  edges.src.resize(end - begin);
  edges.dst.resize(end - begin);
  edges.id.resize(end - begin);
  std::iota(edges.id.begin(), edges.id.end(), begin);
  read_ends(edge_index, begin, end, edges);
  require_nodes(edge_index.path(), edges, num_sources, num_destinations);
  return edges;
}

}}  // namespace sar
