#include <sar/core/error.hpp>
#include <sar/graph/data/hetero_graphs.hpp>

#include <algorithm>
#include <numeric>
#include <utility>

namespace sar::inline SAR_PRECISION {
namespace {

/// The position of each of `wanted` in `ids`, which holds the same numbers in another order.
Array<Index> places(const Array<Index>& ids, const Array<Index>& wanted) {
  Array<Index> by_id(ids.size());
  std::iota(by_id.begin(), by_id.end(), Index{0});
  const auto id_of = [&](Index place) { return ids[place]; };
  std::sort(by_id.begin(), by_id.end(), [&](Index a, Index b) { return id_of(a) < id_of(b); });
  Array<Index> result(wanted.size());
  std::transform(wanted.begin(), wanted.end(), result.begin(), [&](Index id) {
    return *std::lower_bound(by_id.begin(), by_id.end(), id,
                             [&](Index place, Index value) { return id_of(place) < value; });
  });
  return result;
}

}  // namespace

std::map<std::string, GraphShardManager> construct_hetero_graphs(const Communicator& comm, GraphData& graph,
                                                                 const GraphOptions& options) {
  return comm.agree([&] {
    std::map<std::string, GraphShardManager> graphs;
    for (EdgeTypeData& type : graph.edge_types) {
      const NodeTypeData& src = graph.node_type(type.src_type);
      const NodeTypeData& dst = graph.node_type(type.dst_type);
      const DataColumns data = std::exchange(type.data, {});
      const Array<Index> ids = data.empty() ? Array<Index>{} : type.edges.id;
      GraphShardManager shards(comm, src.book, dst.book, std::exchange(type.edges, {}),
                               type.src_type == type.dst_type, options, src.original_ids, dst.original_ids);
      if (!data.empty()) {
        const Array<Index> rows = places(ids, shards.edge_ids());
        for (const auto& [name, column] : data) shards.edata()[name] = column.take(rows).to_tensor();
      }
      const bool unique =
          std::count_if(graph.edge_types.begin(), graph.edge_types.end(),
                        [&](const EdgeTypeData& other) { return other.name == type.name; }) == 1;
      graphs.emplace(unique ? type.name : type.canonical_name(), std::move(shards));
    }
    return graphs;
  });
}

}  // namespace sar
