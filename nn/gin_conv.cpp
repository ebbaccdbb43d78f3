#include <sar/nn/aggregate.hpp>
#include <sar/nn/gin_conv.hpp>

namespace sar {

GINConv::GINConv(RowFunction apply_func, const GINConvOptions& options)
    : options_(options), apply_func_(std::move(apply_func)) {
  const Tensor eps = Tensor::full({1}, static_cast<real>(options.init_eps));
  if (options.learn_eps) {
    eps_ = Variable(eps, true);
    register_parameter("eps", eps_);
  } else {
    fixed_eps_ = eps;
    register_buffer("eps", fixed_eps_);
  }
  if (apply_func_) register_module("apply_func", apply_func_.module());
}

Variable GINConv::operator()(const GraphShardManager& graph, const Variable& feat,
                             const Variable& edge_weight) const {
  require_one_kind(graph, "GINConv");
  require_num_rows(feat, graph.num_src_nodes(), "GINConv, features");
  return (*this)(graph, {feat, first_rows(feat, graph.num_dst_nodes())}, edge_weight);
}

Variable GINConv::operator()(const GraphShardManager& graph, const std::pair<Variable, Variable>& feat,
                             const Variable& edge_weight) const {
  const auto& [src, dst] = feat;
  require_num_rows(src, graph.num_src_nodes(), "GINConv, source features");
  require<ShapeError>(dst.shape() == src.shape().with_rows(graph.num_dst_nodes()),
                      "GINConv, destination features have shape ", dst.shape(), ", expected ",
                      src.shape().with_rows(graph.num_dst_nodes()));
  const auto self = [&, &x = dst] {
    return options_.learn_eps ? mul(x, eps_ + 1) : scale_shift(x, 1 + fixed_eps_.item());
  };
  Variable y = graph.update_all(message(src, edge_weight), options_.aggregator, self);
  return apply_func_ ? apply_func_(std::move(y)) : y;
}

}  // namespace sar
