#include <sar/nn/aggregate.hpp>
#include <sar/nn/relative_positions.hpp>
#include <sar/nn/row_distance.hpp>

namespace sar::inline SAR_PRECISION {

Variable relative_positions(const GraphShardManager& graph, const NodeFeatures& positions) {
  return graph.comm().agree([&] {
    require<ShapeError>(positions.src.defined() && positions.src.shape().dims() == 2,
                        "relative_positions: positions of shape ", positions.src.shape(),
                        ", expected [nodes, dimensions]");
    require_feats(graph, positions, positions.src.shape()[1], "relative_positions");
    return graph.apply_edges([x = positions.src, y = dst_feats(graph, positions)](const EdgeBatch& edges) {
      const Variable from = edges.src(x), to = edges.dst(y);
      return concat_columns({from - to, row_distance(from, to, RowComparison::l2)});
    });
  });
}

}  // namespace sar
