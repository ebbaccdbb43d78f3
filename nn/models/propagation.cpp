// SPDX-License-Identifier: MIT
#include <sar/nn/conv/aggregate.hpp>
#include <sar/nn/models/propagation.hpp>

#include <algorithm>
#include <cmath>

namespace sar { inline namespace SAR_PRECISION {
namespace {

Tensor inverse_roots(const Array<Index>& degrees) {
  return degree_column(degrees, [](double degree) { return 1 / std::sqrt(std::max(degree, 1.0)); });
}

}  // namespace

void require_can_propagate(const Graph& graph, const Variable& x) {
  require<ShapeError>(graph.is_block() && graph.num_global_src_nodes() == graph.num_global_dst_nodes(),
                      "propagate needs a graph whose sources and destinations are the same nodes; this one "
                      "goes from ",
                      graph.num_global_src_nodes(), " to ", graph.num_global_dst_nodes(), " nodes");
  require_num_rows(x, graph.num_src_nodes(), "propagate, rows");
}

Variable propagate(const Graph& graph, const Variable& x, HopNorm norm) {
  return graph.comm().agree([&] {
    require_can_propagate(graph, x);
    const CallScope compared(graph.comm(), CollectiveCall("propagate").equal("norm", norm));
    if (norm == HopNorm::mean) return graph.update_all(fn::copy_u(x), fn::mean);
    const Variable scaled = scale_rows(x, inverse_roots(graph.out_degrees()));
    return scale_rows(graph.update_all(fn::copy_u(scaled), fn::sum), inverse_roots(graph.in_degrees()));
  });
}
}}  // namespace sar
