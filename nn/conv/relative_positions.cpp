// SPDX-License-Identifier: MIT
#include <sar/autograd/tape.hpp>
#include <sar/nn/conv/aggregate.hpp>
#include <sar/nn/conv/relative_positions.hpp>
#include <sar/nn/modules/row_distance.hpp>

#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// Checks the shapes and returns the number of coordinates.
Index checked_positions(const Graph& graph, const NodeFeatures& positions, std::string_view function) {
  require<ShapeError>(positions.src.defined() && positions.src.shape().dims() == 2, function,
                      ": positions of shape ", positions.src.shape(), ", expected [nodes, dimensions]");
  const Index dim = positions.src.shape()[1];
  require_feats(graph, positions, dim, function);
  return dim;
}

}  // namespace

Variable relative_positions(const Graph& graph, const NodeFeatures& positions, const Variable& shifts) {
  return graph.comm().agree([&] {
    const Index dim = checked_positions(graph, positions, "relative_positions");
    if (shifts.defined()) require_rows(shifts, graph.num_edges(), dim, "relative_positions, shifts");
    return graph.apply_edges(
        [x = positions.src, y = dst_feats(graph, positions), shifts](const EdgeBatch& edges) {
          Variable from = edges.src(x);
          if (shifts.defined()) from = std::exchange(from, {}) + edges.edata(shifts);
          const Variable to = edges.dst(y);
          return concat_columns({from - to, row_distance(from, to, RowComparison::l2)});
        });
  });
}

Tensor minimum_image_shifts(const Graph& graph, const NodeFeatures& positions, std::span<const double> box) {
  return graph.comm().agree([&] {
    const Index dim = checked_positions(graph, positions, "minimum_image_shifts");
    require<ShapeError>(std::ssize(box) == dim, "minimum_image_shifts: a box of ", box.size(),
                        " sides for positions of ", dim, " coordinates");
    for (const double side : box)
      require<InputError>(side > 0 && std::isfinite(side), "minimum_image_shifts: a box with a side of ",
                          side, ", expected a positive number");
    CollectiveCall call("minimum_image_shifts");
    for (const double side : box) call.equal("side of the box", side);
    const CallScope compared(graph.comm(), call);
    const NoTape values_only;
    return graph
        .apply_edges([x = positions.src, y = dst_feats(graph, positions),
                      sides = std::vector<double>(box.begin(), box.end())](const EdgeBatch& edges) {
          Tensor shifts = (edges.src(x) - edges.dst(y)).value();
          for (Index e = 0; e < shifts.num_rows(); ++e)
            for (std::size_t k = 0; k < sides.size(); ++k) {
              real& value = shifts.row(e)[k];
              value = static_cast<real>(-sides[k] * std::round(static_cast<double>(value) / sides[k]));
            }
          return Variable(shifts);
        })
        .value();
  });
}
}}  // namespace sar
