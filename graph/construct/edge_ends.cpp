// SPDX-License-Identifier: MIT

// With host ids, a rank looks its own nodes up in a hash table, in parallel, and collects every other id
// once. With local numbers, the ghosts are this list. The directory (comm/rows/node_directory.hpp) is
// asked for the list, 16 bytes per id; the answers then replace the placeholders -1 - position in one pass
// over the edges.
#include <sar/comm/rows/node_directory.hpp>
#include <sar/core/error.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/graph/construct/edge_ends.hpp>

#include <algorithm>

namespace sar { inline namespace SAR_PRECISION {
namespace {

using GlobalColumns = std::span<const EndColumn<std::int64_t>>;
using LocalColumns = std::span<const EndColumn<std::int32_t>>;

/// Writes the global ids of the nodes that this rank owns to each column. For any other node, writes -1 -
/// (position in the returned list of ids), which the directory is then asked for.
Array<Index> look_up(std::span<const Index> nodes, int, Index first, GlobalColumns columns) {
  Array<Index> asked;
  IdTable numbers(static_cast<Index>(nodes.size()));
  for (std::size_t i = 0; i < nodes.size(); ++i) numbers.insert(nodes[i], first + static_cast<Index>(i));
  for (const auto& [given, global, goes] : columns) {
    global.resize(given.size());
    parallel_for_each(static_cast<Index>(given.size()), edges_per_task,
                      [&](Index k) { global[k] = numbers.find(given[k]); });
    for (std::size_t k = 0; k < given.size(); ++k) {
      if (global[k] != IdTable::none) continue;
      const Index next = -1 - static_cast<Index>(asked.size());
      global[k] = numbers.insert(given[k], next);
      if (global[k] == next) asked.push_back(given[k]);
    }
  }
  return asked;
}

Array<Index> look_up(const LocalToGlobal& nodes, int rank, Index first, LocalColumns columns) {
  const auto size = static_cast<Index>(nodes.global_ids.size());
  for (const auto& [given, global, goes] : columns) {
    global.resize(given.size());
    for (std::size_t k = 0; k < given.size(); ++k) {
      const Index i = given[k];
      require<InputError>(0 <= i && i < size, "HostGraph: edge ", k, " of rank ", rank, " ", goes, " node ",
                          i, " of the local numbering, expected 0 to ", size - 1, " (", nodes.num_owned,
                          " nodes and ", size - nodes.num_owned, " ghosts)");
      global[k] = i < nodes.num_owned ? first + i : -1 - (i - nodes.num_owned);
    }
  }
  const auto ghosts = nodes.global_ids.subspan(nodes.num_owned);
  return {ghosts.begin(), ghosts.end()};
}

void require_found(int rank, const char* what, const GlobalEdges& edges, GlobalColumns columns,
                   const Array<Index>&, const Array<Index>& found) {
  if (std::find(found.begin(), found.end(), -1) == found.end()) return;
  for (std::size_t k = 0; k < edges.src.size(); ++k)
    for (const auto& [given, global, goes] : columns)
      require<InputError>(global[k] >= 0 || found[-1 - global[k]] >= 0, "HostGraph: edge ", k, " of rank ",
                          rank, " goes from node ", edges.src[k], " to node ", edges.dst[k],
                          ", but no rank gives ", what, " ", given[k]);
}

void require_found(int rank, const char* what, const LocalEdges&, LocalColumns, const Array<Index>& asked,
                   const Array<Index>& found) {
  for (std::size_t g = 0; g < found.size(); ++g)
    require<InputError>(found[g] >= 0, "HostGraph: ghost ", g, " of rank ", rank, " is ", what, " ", asked[g],
                        ", but no rank gives this ", what);
}

}  // namespace

template <class Nodes, class Id>
void find_ends(const Communicator& comm, const HostNodes<Nodes>& nodes, const HostEdges<Id>& edges,
               std::span<const EndColumn<Id>> columns) {
  const NodeDirectory directory(comm, nodes.book, own_nodes(nodes.nodes), nodes.what);
  Array<Index> asked;
  comm.agree([&] { asked = look_up(nodes.nodes, comm.rank(), nodes.book.begin(comm.rank()), columns); });
  const Array<Index> found = directory.find(asked);
  comm.agree([&] {
    require_found(comm.rank(), nodes.what, edges, columns, asked, found);
    for (const EndColumn<Id>& column : columns)
      for (Index& end : column.global)
        if (end < 0) end = found[-1 - end];
  });
}

template void find_ends(const Communicator&, const HostNodes<std::span<const Index>>&, const GlobalEdges&,
                        GlobalColumns);
template void find_ends(const Communicator&, const HostNodes<LocalToGlobal>&, const LocalEdges&,
                        LocalColumns);
}}  // namespace sar
