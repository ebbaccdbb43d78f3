#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/graph/message/agreement.hpp>
#include <sar/nn/conv/edge_weight_norm.hpp>

#include <algorithm>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// Returns the sum over the out-edges of each source, computed as the backward pass of a sum over in-edges.
Variable out_sums(const GraphShardManager& graph, const Variable& weight) {
  const Tensor ones = Tensor::full({graph.num_dst_nodes(), 1}, 1);
  const Variable sources(Tensor::full({graph.num_src_nodes(), 1}, 1), true);
  {
    Tape tape;
    tape.backward(graph.update_all(fn::u_mul_e(sources, weight.detach()), fn::sum), ones);
  }
  Tensor sums = sources.grad();
  if (!recording({&weight})) return sums;
  return record_collective(graph.comm(), std::move(sums), [graph, to = weight.gradient()](Tensor grad) {
    to->add(graph.apply_edges(fn::copy_u(std::move(grad))).value().reshape(to->shape()));
  });
}

void check(const GraphShardManager& graph, const Variable& weight) {
  require<ShapeError>(
      weight.defined() && weight.num_rows() == graph.num_edges() && weight.shape().row_size() == 1,
      "edge weights have shape ", weight.shape(), " for ", graph.num_edges(), " edges");
  require<InputError>(std::ranges::all_of(weight.value().values(), [](real w) { return w > 0; }),
                      "edge weights that are normalised must be positive");
}

Variable column(const Variable& weight) {
  return reshape(weight, {weight.num_rows(), 1});
}

}  // namespace

WeightSums weight_sums(const GraphShardManager& graph, const Variable& edge_weight) {
  return graph.comm().agree([&]() -> WeightSums {
    check(graph, edge_weight);
    return {out_sums(graph, edge_weight), graph.update_all(fn::copy_e(column(edge_weight)), fn::sum)};
  });
}

Variable inverse_root(const Variable& weight_sum) {
  Tensor guard(weight_sum.shape());
  std::ranges::transform(weight_sum.value().values(), guard.data(),
                         [](real sum) { return sum > 0 ? real{0} : real{1}; });
  return exp(log(weight_sum + Variable(guard)) * real(-0.5));
}

Variable edge_weight_norm(const GraphShardManager& graph, const Variable& edge_weight, EdgeNorm norm) {
  return graph.comm().agree([&] {
    const WeightSums sums = weight_sums(graph, edge_weight);
    Variable normalised = norm == EdgeNorm::right
                              ? graph.apply_edges(fn::e_div_v(column(edge_weight), sums.in))
                              : column(edge_weight) * graph.apply_edges(fn::u_mul_v(inverse_root(sums.out),
                                                                                    inverse_root(sums.in)));
    return reshape(std::move(normalised), edge_weight.shape());
  });
}

}}  // namespace sar
