#include <sar/autograd/tape.hpp>
#include <sar/core/matmul.hpp>
#include <sar/nn/aggregate.hpp>

namespace sar {

void require_feats(const GraphShardManager& graph, const NodeFeatures& feat, const InFeatures& in_feats,
                   const std::string& layer) {
  if (feat.pair()) {
    require_rows(feat.src, graph.num_src_nodes(), in_feats.src, layer + ", source features");
    require_rows(feat.dst, graph.num_dst_nodes(), in_feats.dst, layer + ", destination features");
    return;
  }
  require_one_kind(graph, layer);
  require<ShapeError>(in_feats.src == in_feats.dst, layer, " from ", in_feats.src, " and ", in_feats.dst,
                      " features got features of one kind of nodes");
  require_rows(feat.src, graph.num_src_nodes(), in_feats.src, layer + ", features");
}

Variable add_linear(Variable base, const Variable& x, const Variable& weight) {
  require<ShapeError>(x.shape().dims() == 2 && weight.shape().dims() == 2 &&
                          x.shape()[1] == weight.shape()[1] &&
                          base.shape() == Shape{x.num_rows(), weight.shape()[0]},
                      "cannot add x of shape ", x.shape(), " times the transposed weight of shape ",
                      weight.shape(), " to a tensor of shape ", base.shape());
  const bool records = recording({&base, &x, &weight});
  Tensor y = std::exchange(base.value(), Tensor());
  if (!y.unique()) y = y.clone();
  matmul_nt(x.value(), weight.value(), y, true);
  if (!records) return y;
  return record(std::move(y), [rows = weight.requires_grad() ? x.value() : Tensor(),
                               w = x.requires_grad() ? weight.value() : Tensor(), to_base = base.gradient(),
                               to_x = x.gradient(), to_weight = weight.gradient()](Tensor grad) {
    if (to_weight != nullptr)
      to_weight->add([&](Tensor& out, bool accumulate) { matmul_tn(grad, rows, out, accumulate); });
    if (to_x != nullptr) to_x->add([&](Tensor& out, bool accumulate) { matmul(grad, w, out, accumulate); });
    if (to_base != nullptr) to_base->add(std::move(grad));
  });
}

}  // namespace sar
