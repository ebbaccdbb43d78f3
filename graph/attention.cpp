#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/graph/agreement.hpp>
#include <sar/graph/attention.hpp>
#include <sar/graph/kernels/attention.hpp>
#include <sar/graph/source_rows.hpp>

#include <algorithm>
#include <bit>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace sar {
namespace {

void check_options(const GraphShardManager& graph, const AttentionOptions& options) {
  require(options.dropout >= 0 && options.dropout < 1,
          "the probability of dropout must be at least 0 and below 1, not ", options.dropout);
  const Shape& shape = options.edge_weight.shape();
  require<ShapeError>(
      !options.edge_weight.defined() || (shape[0] == graph.num_edges() && shape.row_size() == 1),
      "the edge weights have shape ", shape, ", the graph has ", graph.num_edges(), " edges on rank ",
      graph.comm().rank(), " and wants one number for each");
}

/// Rows of [heads, dim] for the source or destination nodes.
void check_heads(const GraphShardManager& graph, const char* what, const Variable& x, Index nodes) {
  require<ShapeError>(x.shape().dims() == 3 && x.num_rows() == nodes && x.shape().row_size() > 0, what,
                      " has shape ", x.shape(), "; on rank ", graph.comm().rank(), " it must be [", nodes,
                      ", heads, features]");
}

void check_shape(const char* what, const Variable& x, const Shape& shape) {
  require<ShapeError>(x.shape() == shape, what, " has shape ", x.shape(), "; it must be ", shape);
}

/// What every attention does on the way back, apart from its score.
struct WayBack {
  SourceRows source;
  AttentionOptions options;
  std::optional<DropoutMask> mask;
  Index heads, dim;  ///< of the result
  Tensor out, max, log_sum;

  /// The kernel's operands that do not depend on the score.
  [[nodiscard]] AttentionOperands operands() const {
    const Tensor& weight = options.edge_weight.value();
    return {.heads = heads,
            .dim = dim,
            .edge_weight = weight.defined() ? weight.data() : nullptr,
            .mask = mask ? &*mask : nullptr,
            .edge_ids = source.graph().edge_ids.data()};
  }
};

Tensor rows_of_heads(const ShardedGraph& graph, Index heads) {
  return Tensor(Shape{graph.local.num_dst, heads});
}

/// A gradient of `x` to be collected in, zero at first; undefined when none is wanted.
Tensor zero_gradient(const GradientPtr& x) {
  return x != nullptr ? Tensor::zeros(x->shape()) : Tensor();
}

void add_if_wanted(const GradientPtr& to, Tensor gradient) {
  if (to != nullptr) to->add(std::move(gradient));
}

real* data_or_null(Tensor& tensor) {
  return tensor.defined() ? tensor.data() : nullptr;
}

/// Sums in double precision as the gradient of a parameter.
void add_sums(const GradientPtr& to, const std::vector<double>& sums) {
  if (to == nullptr) return;
  Tensor gradient(to->shape());
  std::copy(sums.begin(), sums.end(), gradient.data());
  to->add(std::move(gradient));
}

std::vector<AgreedItem> agreed(const GraphShardManager& graph, const AttentionOptions& options) {
  std::vector<AgreedItem> items = agreed_items(graph.options());
  items.emplace_back("dropout (bits of the number)", std::bit_cast<std::int64_t>(options.dropout));
  items.emplace_back("seed of dropout", options.dropout > 0 ? options.dropout_key.seed : 0);
  items.emplace_back("stream of dropout", options.dropout > 0 ? options.dropout_key.stream : 0);
  items.emplace_back("step of dropout", options.dropout > 0 ? options.dropout_key.step : 0);
  items.emplace_back("presence of edge weights", options.edge_weight.defined());
  items.emplace_back("wish for the edge weights' gradient", options.edge_weight.requires_grad());
  return items;
}

/// `rows` as they travel; `make(operands)` gives the kernel.
template <class MakeKernel>
Tensor forward(WayBack& back, const Variable& rows, const MakeKernel& make) {
  const ShardedGraph& graph = back.source.graph();
  back.out = Tensor(Shape{graph.local.num_dst, back.heads, back.dim});
  back.max = rows_of_heads(graph, back.heads);
  back.log_sum = rows_of_heads(graph, back.heads);
  AttentionOperands operands = back.operands();
  operands.out = back.out.data();
  operands.max = back.max.data();
  operands.sum = back.log_sum.data();
  const std::unique_ptr<ShardKernel> kernel = make(operands);
  back.source.forward(rows, *kernel, [] {});
  finish_attention(back.out.num_rows(), back.heads, back.dim, operands.out, operands.max, operands.sum);
  return back.out;
}

/// `dst`: what the statistics of a destination end with, if anything.
template <class MakeKernel>
void backward(const WayBack& back, const Tensor& grad, const Tensor& dst, const MakeKernel& make) {
  const Index rows = grad.num_rows();
  Tensor stats(Shape{rows, dst.defined() ? 4 : 3, back.heads});
  attention_stats(rows, back.heads, back.dim, back.out.data(), back.max.data(), back.log_sum.data(),
                  grad.data(), dst.defined() ? dst.data() : nullptr, stats.data());
  Tensor grad_edge_weight;
  const GradientPtr& edge_weight = back.options.edge_weight.gradient();
  if (edge_weight != nullptr) grad_edge_weight = Tensor(edge_weight->shape());
  AttentionOperands operands = back.operands();
  operands.grad_out = grad.data();
  operands.stats = stats.data();
  operands.grad_edge_weight = data_or_null(grad_edge_weight);
  const std::unique_ptr<ShardKernel> kernel = make(operands);
  back.source.backward(*kernel);
  add_if_wanted(edge_weight, std::move(grad_edge_weight));
}

WayBack way_back(const GraphShardManager& graph, const Variable& rows, bool recorded, Index heads, Index dim,
                 const AttentionOptions& options) {
  WayBack back{SourceRows(graph, rows, recorded), options, {}, heads, dim, {}, {}, {}};
  if (options.dropout > 0) back.mask.emplace(options.dropout_key, options.dropout);
  return back;
}

}  // namespace

Variable gat_attention(const GraphShardManager& graph, const Variable& x, const Variable& attn_src,
                       const Variable& score_dst, real negative_slope, const AttentionOptions& options) {
  std::vector<AgreedItem> items = agreed(graph, options);
  items.emplace_back("shape of x", x.shape());
  items.emplace_back("negative slope (bits of the number)", std::bit_cast<std::int64_t>(static_cast<double>(negative_slope)));
  items.emplace_back("wish for the gradient of x", x.requires_grad());
  items.emplace_back("wish for the gradient of attn_src", attn_src.requires_grad());
  items.emplace_back("wish for the gradient of score_dst", score_dst.requires_grad());
  agree_on_call(
      graph.comm(), "gat_attention",
      [&] {
        check_heads(graph, "x", x, graph.num_src_nodes());
        check_shape("attn_src", attn_src, x.shape().with_rows(1));
        const Index rows = graph.num_dst_nodes();
        const Index heads = x.shape()[1];
        require<ShapeError>(
            score_dst.shape() == Shape{rows, heads} || score_dst.shape() == Shape{rows, heads, 1},
            "score_dst has shape ", score_dst.shape(), "; on rank ", graph.comm().rank(), " it must be ",
            Shape{rows, heads});
        check_options(graph, options);
      },
      items);

  const bool recorded = recording({&x, &attn_src, &score_dst, &options.edge_weight});
  WayBack back = way_back(graph, x, recorded, x.shape()[1], x.shape()[2], options);
  const auto with_score = [negative_slope, attn = attn_src.value(),
                           dst = score_dst.value()](AttentionOperands operands) {
    operands.attn = attn.data();
    operands.dst = dst.data();
    operands.slope = negative_slope;
    return operands;
  };
  Tensor out = forward(back, x, [&](const AttentionOperands& operands) {
    return make_additive_attention(with_score(operands));
  });
  if (!recorded) return out;
  return record(std::move(out), [back = std::move(back), with_score, dst = score_dst.value(),
                                 attn_gradient = attn_src.gradient(),
                                 dst_gradient = score_dst.gradient()](Tensor grad) {
    Tensor grad_dst = zero_gradient(dst_gradient);
    std::vector<double> grad_attn(attn_gradient != nullptr ? static_cast<std::size_t>(back.heads * back.dim)
                                                           : 0);
    backward(back, grad, dst, [&](const AttentionOperands& operands) {
      AttentionOperands all = with_score(operands);
      all.grad_dst = data_or_null(grad_dst);
      all.grad_attn = attn_gradient != nullptr ? grad_attn.data() : nullptr;
      return make_additive_attention(all);
    });
    add_if_wanted(dst_gradient, std::move(grad_dst));
    add_sums(attn_gradient, grad_attn);
  });
}

}  // namespace sar
