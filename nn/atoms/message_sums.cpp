// SPDX-License-Identifier: MIT

// On a reproducible graph, messages are a function of edges, whose sums are exact. Otherwise a kernel sums
// them without rows of messages. Operands and tangents of the sources are the columns of one tensor, and so
// are values and tangents of the sums: gradients of the parts are those of concat_columns() and
// slice_columns().
#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/graph/message/operation.hpp>
#include <sar/graph/topology/sharded_graph.hpp>
#include <sar/nn/atoms/edge_rows.hpp>
#include <sar/nn/atoms/message_sum_kernel.hpp>
#include <sar/nn/atoms/message_sums.hpp>
#include <sar/nn/conv/aggregate.hpp>
#include <sar/nn/modules/row_distance.hpp>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// Sums of a function of edges.
Variable sums_of_function(const GraphShardManager& graph, const MessageSumOperands& o) {
  const Variable own = first_rows(o.positions, graph.num_dst_nodes());
  const auto message = [o, own](const EdgeBatch& edges) {
    const Index columns = o.functions.columns();
    const Variable radial = radial_rows(edge_vectors(edges.src(o.positions), edges.dst(own),
                                                     o.shifts.defined() ? edges.edata(o.shifts) : Variable()),
                                        o.functions);
    return vector_messages(edges.src(o.phi), linear(slice_columns(radial, 0, columns - 3), o.filter),
                           slice_columns(radial, columns - 3, columns),
                           o.vectors.defined() ? edges.src(o.vectors) : Variable());
  };
  return graph.update_all(message, fn::sum);
}

/// One call, as its record keeps it.
struct MessageSum {
  std::shared_ptr<const ShardedGraph> graph;
  GraphOptions options;
  RadialFunctions radial;
  bool vectors;
  Variable sources;                // all source operands side by side
  Variable positions, positions_tangent;  // x and its tangent; undefined without tangents
  Variable shifts, shifts_tangent;        // undefined: 0
  Variable filter;

  [[nodiscard]] MessageSumKernel::Operands operands() const {
    const auto tensor = [](const Variable& x) { return x.defined() ? x.value() : Tensor(); };
    const Index feats = filter.num_rows() / 3;
    return {.radial = radial,
            .feats = feats,
            .vectors = vectors,
            // chunks whose rows stay in the second-level cache
            .edge_chunk = std::clamp<Index>((1 << 14) / feats, 1, options.edge_chunk),
            .filter = filter.value(),
            .own = positions.value(),
            .own_tangent = tensor(positions_tangent),
            .shifts = tensor(shifts),
            .shifts_tangent = tensor(shifts_tangent)};
  }
  [[nodiscard]] TypedRows forward(const Driver& driver) const {
    MessageSumKernel::Operands o = operands();
    const Tensor out({graph->topology->local.num_dst, (o.tangents() ? 8 : 4) * o.feats});
    o.out = out;
    MessageSumKernel kernel(std::move(o));
    driver.forward(sources.value(), kernel);
    return out;
  }
  void backward(const Driver& driver, const Tensor& grad) const;
  void give_edge_gradients(const Tensor& of_edges, const Variable& x, const Variable& shift) const;
};

void MessageSum::backward(const Driver& driver, const Tensor& grad) const {
  const auto wants = [](const Variable& x) { return x.defined() && x.requires_grad(); };
  MessageSumKernel::Operands o = operands();
  o.grad_out = grad;
  if (filter.requires_grad()) o.grad_filter = Tensor::zeros(filter.shape());
  if (wants(positions) || wants(shifts) || wants(positions_tangent) || wants(shifts_tangent)) {
    o.grad_edges = Tensor({graph->topology->num_edges(), 3});
    if (o.tangents()) o.grad_tangents = Tensor(o.grad_edges.shape());
  }
  const Tensor of_filter = o.grad_filter, of_edges = o.grad_edges, of_tangents = o.grad_tangents;
  MessageSumKernel kernel(std::move(o));
  driver.backward(sources.value(), sources.shape(), kernel, sources.gradient());
  if (of_filter.defined()) filter.gradient()->add(of_filter);
  if (of_edges.defined()) give_edge_gradients(of_edges, positions, shifts);
  if (of_tangents.defined()) give_edge_gradients(of_tangents, positions_tangent, shifts_tangent);
}

/// Adds the gradients of edge vectors to those of the destinations' positions and of the shifts. Sources have
/// theirs from the kernel.
void MessageSum::give_edge_gradients(const Tensor& of_edges, const Variable& x, const Variable& shift) const {
  if (x.requires_grad()) {
    Tensor of_x = Tensor::zeros(x.shape());
    for (const GraphShard* shard : {&graph->topology->local, &graph->topology->remote})
      for (Index i = 0; i < shard->num_rows(); ++i) {
        double sum[3] = {};
        for (Index e = shard->row_begin[i]; e < shard->row_begin[i + 1]; ++e)
          for (Index k = 0; k < 3; ++k) sum[k] += static_cast<double>(of_edges.row(shard->edge(e))[k]);
        for (Index k = 0; k < 3; ++k) of_x.row(shard->dst_row(i))[k] -= static_cast<real>(sum[k]);
      }
    x.gradient()->add(std::move(of_x));
  }
  if (shift.defined() && shift.requires_grad()) shift.gradient()->add(of_edges);
}

}  // namespace

Variable message_sums(const GraphShardManager& graph, const MessageSumOperands& o) {
  if (graph.options().reproducible) return sums_of_function(graph, o);
  const Index n = graph.num_src_nodes(), feats = o.filter.num_rows() / 3;
  const bool dual = any_dual({&o.phi, &o.vectors, &o.positions, &o.shifts});
  return collective(
      graph.comm(),
      [&] {
        refuse_tangents({&o.filter}, "PaiNNConv");
        return OperationCall("PaiNNConv", graph, Tangents::known)
            .sources("phi", o.phi)
            .operand("vectors", o.vectors)
            .operand("positions", o.positions)
            .operand("shifts", o.shifts)
            .operand("the filter", o.filter)
            .equal("number of channels", feats)
            .equal("number of radial functions", o.functions.num_basis);
      },
      [&]() -> Variable {
        const auto tangent = [&](const Variable& x) { return dual ? tangent_or_zeros(x) : Variable(); };
        const auto flat = [&](const Variable& v) { return reshape(v, {n, 3 * feats}); };
        std::vector<Variable> parts{o.phi.primal()};
        if (o.vectors.defined()) parts.push_back(flat(o.vectors.primal()));
        if (dual) parts.push_back(tangent(o.phi));
        if (dual && o.vectors.defined()) parts.push_back(flat(tangent(o.vectors)));
        parts.push_back(o.positions.primal());
        if (dual) parts.push_back(tangent(o.positions));
        const MessageSum call{.graph = graph.shards(),
                              .options = graph.options(),
                              .radial = o.functions,
                              .vectors = o.vectors.defined(),
                              .sources = concat_columns(parts),
                              .positions = o.positions.primal(),
                              .positions_tangent = tangent(o.positions),
                              .shifts = o.shifts.primal(),
                              .shifts_tangent = o.shifts.defined() ? tangent(o.shifts) : Variable(),
                              .filter = o.filter};
        const bool recorded = recording({&call.sources, &call.positions, &call.shifts, &call.filter});
        const Variable out = run_pass(graph, {"update_all", "update_all backward"}, recorded, call);
        if (!dual) return out;
        return make_dual(slice_columns(out, 0, 4 * feats), slice_columns(out, 4 * feats, 8 * feats));
      });
}

}}  // namespace sar
