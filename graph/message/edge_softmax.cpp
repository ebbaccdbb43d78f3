// SPDX-License-Identifier: MIT

// Forward, in passes over the edges: the maximum per node, x - maximum, exp (in parallel blocks of the
// edge rows), the sum per node, the product with 1 / sum. Backward: the sum of g y per node, then y (g -
// sum). Bytes moved per element: x is read twice, y written three times and read three times; backward
// reads y and g twice and writes once. By source, each value per node costs one push to the owners and one
// fetch, with exact rows.
#include <sar/autograd/ops.hpp>
#include <sar/core/error.hpp>
#include <sar/core/rows/elementwise.hpp>
#include <sar/core/simd/vector_math.hpp>
#include <sar/graph/kernels/edge_softmax_kernel.hpp>
#include <sar/graph/message/edge_messages.hpp>
#include <sar/graph/message/edge_softmax.hpp>
#include <sar/graph/message/operation.hpp>

#include <limits>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// Values per node, from those of its edges on all ranks and back to the edges.
class NodeValues {
 public:
  NodeValues(const Driver& driver, NormBy by, Index width) : driver_(driver), by_(by), width_(width) {}

  /// [nodes, width]: combine(real* node, edge) over all edges, from `start`; `op` combines those of ranks.
  template <class Combine>
  [[nodiscard]] Tensor from_edges(real start, ReduceOp op, const Combine& combine) const {
    const GraphShard& local = driver_.graph().local;
    const bool by_dst = by_ == NormBy::dst;
    Tensor nodes = Tensor::full(Shape{by_dst ? local.num_dst : local.num_src_rows, width_}, start);
    EdgesToNodes<Combine> kernel(by_, width_, start, by_dst ? nodes.data() : nullptr, combine);
    if (by_dst)
      driver_.forward(Tensor(), kernel);
    else
      driver_.backward(Tensor(), nodes.shape(), kernel, &nodes, true, op);
    return nodes;
  }
  /// apply(const real* node, edge) for all edges.
  template <class Apply>
  void to_edges(const Tensor& nodes, const Apply& apply) const {
    const bool by_dst = by_ == NormBy::dst;
    NodesToEdges<Apply> kernel(by_, width_, by_dst ? nodes.data() : nullptr, apply);
    driver_.forward(by_dst ? Tensor() : nodes, kernel);
  }

 private:
  const Driver& driver_;
  NormBy by_;
  Index width_;
};

/// The largest number of the edges of each node.
Tensor maxima(const NodeValues& nodes, const Tensor& x) {
  const Index width = x.row_size();
  return nodes.from_edges(-std::numeric_limits<real>::infinity(), ReduceOp::max, [&](real* m, Index edge) {
    const real* row = x.row(edge);
    for (Index j = 0; j < width; ++j) m[j] = row[j] > m[j] ? row[j] : m[j];
  });
}

Tensor softmax_of_edges(const NodeValues& nodes, const Tensor& x) {
  const Index width = x.row_size();
  const Tensor maximum = maxima(nodes, x);
  Tensor y(x.shape());
  nodes.to_edges(maximum, [&](const real* m, Index edge) {
    const real* row = x.row(edge);
    real* out = y.row(edge);
    for (Index j = 0; j < width; ++j) out[j] = row[j] - m[j];
  });
  parallel_for(y.size(), 1 << 14, [&](Index first, Index last) {
    vector_math::exp(y.data() + first, y.data() + first, last - first);
  });
  Tensor factor = nodes.from_edges(0, ReduceOp::sum, [&](real* s, Index edge) {
    const real* row = std::as_const(y).row(edge);
    for (Index j = 0; j < width; ++j) s[j] += row[j];
  });
  binary(BinaryOp::div, Tensor::full({1}, 1), factor, factor);
  nodes.to_edges(factor, [&](const real* f, Index edge) {
    real* out = y.row(edge);
    for (Index j = 0; j < width; ++j) out[j] *= f[j];
  });
  return y;
}

Tensor softmax_gradient(const NodeValues& nodes, const Tensor& y, const Tensor& grad) {
  const Index width = y.row_size();
  const Tensor sum = nodes.from_edges(0, ReduceOp::sum, [&](real* s, Index edge) {
    const real* g = grad.row(edge);
    const real* row = y.row(edge);
    for (Index j = 0; j < width; ++j) s[j] += g[j] * row[j];
  });
  Tensor result(y.shape());
  nodes.to_edges(sum, [&](const real* s, Index edge) {
    const real* g = grad.row(edge);
    const real* row = y.row(edge);
    real* out = result.row(edge);
    for (Index j = 0; j < width; ++j) out[j] = row[j] * (g[j] - s[j]);
  });
  return result;
}

/// One call. Copied into its record.
struct EdgeSoftmax {
  NormBy by;
  Tensor x;  ///< until the forward pass has read it
  GradientPtr gradient;
  Tensor y = {};

  TypedRows forward(const Driver& driver) {
    const Tensor rows = std::exchange(x, {});
    y = softmax_of_edges(NodeValues(driver, by, rows.row_size()), rows);
    return y;
  }
  void backward(const Driver& driver, const Tensor& grad) const {
    gradient->add(softmax_gradient(NodeValues(driver, by, y.row_size()), y, grad));
  }
};

/// Edges of all ranks see the same maximum and the same sum.
Driver exact_driver(const Graph& graph) {
  const ExactHaloRows exact;
  return {graph.shards()->holds_halo() ? graph.shards()->travelling : graph.shards(), graph.options(), false};
}

/// From sums over in-edges that do not depend on their order: exp(x - max) / sum exp(x - max).
Variable exact_edge_softmax(const Graph& graph, const Variable& x, NormBy norm_by) {
  require<InputError>(
      norm_by == NormBy::dst,
      "edge_softmax over the out-edges of sources on a reproducible graph, expected over in-edges");
  const Shape shape = x.shape().with_rows(graph.num_dst_nodes());
  const Driver driver = exact_driver(graph);
  const Variable largest(maxima(NodeValues(driver, norm_by, x.shape().row_size()), x.value()).reshape(shape));
  const Variable exponentials = exp(graph.apply_edges(fn::e_sub_v(x, largest)));
  const Variable sums = graph.update_all(fn::copy_e(exponentials), fn::sum);
  return graph.apply_edges(fn::e_div_v(exponentials, sums));
}

}  // namespace

Variable edge_softmax(const Graph& graph, const Variable& x, NormBy norm_by) {
  return collective(
      graph.comm(),
      [&] {
        require<ShapeError>(x.defined() && x.num_rows() == graph.num_edges(), "edge_softmax of shape ",
                            x.shape(), ", the graph has ", graph.num_edges(), " edges on rank ",
                            graph.comm().rank());
        return OperationCall("edge_softmax", graph).operand("the edge rows", x).equal("norm_by", norm_by);
      },
      [&]() -> Variable {
        if (graph.options().reproducible) return exact_edge_softmax(graph, x, norm_by);
        return run_pass(exact_driver(graph), {"edge_softmax", "edge_softmax backward"}, recording({&x}),
                        EdgeSoftmax{norm_by, x.value(), x.gradient()});
      });
}
}}  // namespace sar
