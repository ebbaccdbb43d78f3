#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/core/reduce.hpp>
#include <sar/core/trace.hpp>
#include <sar/graph/kernels/attention.hpp>
#include <sar/graph/message/agreement.hpp>
#include <sar/graph/message/attention.hpp>
#include <sar/graph/message/source_rows.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

namespace sar {
namespace {

/// `width`: columns of the result, all heads together.
void check_options(const GraphShardManager& graph, const AttentionOptions& options, Index width) {
  require(options.dropout >= 0 && options.dropout < 1,
          "the probability of dropout must be at least 0 and below 1, not ", options.dropout);
  const Shape& shape = options.edge_weight.shape();
  require<ShapeError>(
      !options.edge_weight.defined() || (shape[0] == graph.num_edges() && shape.row_size() == 1),
      "the edge weights have shape ", shape, ", the graph has ", graph.num_edges(), " edges on rank ",
      graph.comm().rank(), " and wants one number for each");
  require<ShapeError>(!options.bias.defined() || options.bias.shape().size() == width, "the bias has shape ",
                      options.bias.shape(), " for a result of width ", width);
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

std::int64_t bits(double x) {
  return std::bit_cast<std::int64_t>(x);
}

std::vector<AgreedItem> agreed(const GraphShardManager& graph, const AttentionOptions& options) {
  std::vector<AgreedItem> items = agreed_items(graph.options());
  items.emplace_back("dropout (bits of the number)", bits(options.dropout));
  items.emplace_back("seed of dropout", options.dropout > 0 ? options.dropout_key.seed : 0);
  items.emplace_back("stream of dropout", options.dropout > 0 ? options.dropout_key.stream : 0);
  items.emplace_back("step of dropout", options.dropout > 0 ? options.dropout_key.step : 0);
  items.emplace_back("tape in scope", Tape::current() != nullptr);
  items.emplace_back("presence of edge weights", options.edge_weight.defined());
  items.emplace_back("wish for the edge weights' gradient", options.edge_weight.requires_grad());
  items.emplace_back("presence of a bias", options.bias.defined());
  items.emplace_back("wish for the bias's gradient", options.bias.requires_grad());
  return items;
}

real* data_or_null(Tensor& tensor) {
  return tensor.defined() ? tensor.data() : nullptr;
}
const real* data_or_null(const Variable& x) {
  return x.defined() ? x.value().data() : nullptr;
}

/// One call, from the rows that travel to the gradients. Copied into its record.
struct Attention {
  AttentionScore score;
  AttentionOperands operands;  ///< sizes and numbers
  Variable attn, dst;          ///< attn only where the score has one
  AttentionOptions options;

  std::shared_ptr<const DropoutMask> mask = {};
  Tensor out = {}, max = {}, log_sum = {};

  /// With what does not change between forward and backward.
  [[nodiscard]] AttentionOperands common(const ShardedGraph& graph) const {
    AttentionOperands o = operands;
    const Tensor& weight = options.edge_weight.value();
    o.attn = attn.defined() ? attn.value().data() : nullptr;
    o.dst = dst.value().data();
    o.edge_weight = weight.defined() ? weight.data() : nullptr;
    o.mask = mask.get();
    o.edge_ids = graph.edge_ids.data();
    return o;
  }

  void forward(const SourceRows& source, const Variable& rows) {
    const Index num_dst = source.graph().local.num_dst;
    out = Tensor(Shape{num_dst, operands.heads, operands.dim});
    max = Tensor(Shape{num_dst, operands.heads});
    log_sum = Tensor(Shape{num_dst, operands.heads});
    if (options.dropout > 0) mask = std::make_shared<const DropoutMask>(options.dropout_key, options.dropout);
    AttentionOperands o = common(source.graph());
    o.out = out.data();
    o.max = max.data();
    o.sum = log_sum.data();
    source.forward(rows, *make_attention(score, o), [] {});
    finish_attention(num_dst, o.heads, o.dim, data_or_null(options.bias), o.out, o.max, o.sum);
  }

  /// Once: gives the result up as soon as it is not needed any more.
  void backward(const SourceRows& source, const Tensor& grad) {
    AttentionOperands o = common(source.graph());
    const bool additive = score == AttentionScore::additive;
    Tensor stats(Shape{grad.num_rows(), additive ? 4 : 3, o.heads});
    if (options.bias.requires_grad())
      options.bias.gradient()->add([&](Tensor& sum, bool accumulate) {
        Tensor row = sum.reshape({sum.size()});
        sum_to(grad.reshape({grad.num_rows(), sum.size()}), row, accumulate);
      });
    attention_stats(grad.num_rows(), o.heads, o.dim, data_or_null(options.bias), out.data(), max.data(),
                    log_sum.data(), grad.data(), additive ? o.dst : nullptr, stats.data());
    out = max = log_sum = Tensor();
    Tensor grad_edge_weight, grad_dst;
    std::vector<double> grad_attn;
    if (options.edge_weight.requires_grad()) grad_edge_weight = Tensor(options.edge_weight.shape());
    if (dst.requires_grad()) grad_dst = Tensor::zeros(dst.shape());
    if (attn.requires_grad()) grad_attn.resize(attn.value().size());
    o.grad_out = grad.data();
    o.stats = stats.data();
    o.grad_edge_weight = data_or_null(grad_edge_weight);
    o.grad_dst = data_or_null(grad_dst);
    o.grad_attn = attn.requires_grad() ? grad_attn.data() : nullptr;
    source.backward(*make_attention(score, o));
    if (grad_edge_weight.defined()) options.edge_weight.gradient()->add(std::move(grad_edge_weight));
    if (grad_dst.defined()) dst.gradient()->add(std::move(grad_dst));
    if (attn.requires_grad()) {
      Tensor sums(attn.shape());
      std::copy(grad_attn.begin(), grad_attn.end(), sums.data());
      attn.gradient()->add(std::move(sums));
    }
  }
};

/// `rows` travel; the result has the shape [destinations, heads, dim].
Variable attend(const GraphShardManager& graph, const Variable& rows, Attention attention) {
  const bool recorded = recording(
      {&rows, &attention.attn, &attention.dst, &attention.options.edge_weight, &attention.options.bias});
  const SourceRows source(graph, rows, recorded);
  {
    const TraceScope scope("attention", TraceKind::compute);
    attention.forward(source, rows);
  }
  Tensor out = attention.out;
  if (!recorded) return out;
  return record_collective(graph.comm(), std::move(out),
                           [source, attention = std::move(attention)](Tensor grad) mutable {
                             const TraceScope scope("attention backward", TraceKind::compute);
                             attention.backward(source, grad);
                           });
}

constexpr double smallest_norm = 1e-12;

/// beta x / |x|, row by row; norms at least 1e-12. Keeps x and beta.
Variable scaled_units(const Variable& x, const Variable& beta) {
  const Index width = x.value().row_size();
  const auto norm = [width](const real* row) {
    double sum = 0;
    for (Index j = 0; j < width; ++j) sum += static_cast<double>(row[j]) * static_cast<double>(row[j]);
    return std::sqrt(sum);
  };
  const Index grain = std::max<Index>((1 << 15) / width, 1);
  Tensor out(x.shape());
  const real factor = beta.value().item();
  parallel_for(x.num_rows(), grain, [&](Index first, Index last) {
    for (Index i = first; i < last; ++i) {
      const real* row = x.value().row(i);
      const auto scale = static_cast<real>(static_cast<double>(factor) / std::max(norm(row), smallest_norm));
      for (Index j = 0; j < width; ++j) out.row(i)[j] = scale * row[j];
    }
  });
  if (!recording({&x, &beta})) return out;
  return record(std::move(out), [x, beta, norm, width](Tensor grad) {
    const auto scale = static_cast<double>(beta.value().item());
    Tensor grad_x;
    if (x.requires_grad()) grad_x = Tensor(x.shape());
    double grad_beta = 0;
    sum_row_blocks(
        x.num_rows(), width,
        [&](Index first, Index last, double* partial) {
          for (Index i = first; i < last; ++i) {
            const real* row = x.value().row(i);
            const real* g = grad.row(i);
            const double length = norm(row);
            const double inverse = 1 / std::max(length, smallest_norm);
            double dot = 0;
            for (Index j = 0; j < width; ++j) dot += static_cast<double>(row[j]) * static_cast<double>(g[j]);
            *partial += dot * inverse;
            if (!grad_x.defined()) continue;
            const double along = length > smallest_norm ? dot * inverse * inverse : 0;
            for (Index j = 0; j < width; ++j)
              grad_x.row(i)[j] = static_cast<real>(
                  scale * inverse * (static_cast<double>(g[j]) - along * static_cast<double>(row[j])));
          }
        },
        {&grad_beta, 1});
    if (grad_x.defined()) x.gradient()->add(std::move(grad_x));
    if (beta.requires_grad()) beta.gradient()->add(Tensor::full(beta.shape(), static_cast<real>(grad_beta)));
  });
}

/// [n, heads, dim] as [n, heads dim].
Variable flat(const Variable& x) {
  return reshape(x, Shape{x.num_rows(), x.shape().row_size()});
}

}  // namespace

Variable gat_attention(const GraphShardManager& graph, const Variable& x, const Variable& attn_src,
                       const Variable& score_dst, real negative_slope, const AttentionOptions& options) {
  return graph.comm().agree([&] {
    check_heads(graph, "x", x, graph.num_src_nodes());
    check_shape("attn_src", attn_src, x.shape().with_rows(1));
    const Index rows = graph.num_dst_nodes();
    const Index heads = x.shape()[1];
    require<ShapeError>(score_dst.shape() == Shape{rows, heads} || score_dst.shape() == Shape{rows, heads, 1},
                        "score_dst has shape ", score_dst.shape(), "; on rank ", graph.comm().rank(),
                        " it must be ", Shape{rows, heads});
    check_options(graph, options, x.shape().row_size());
    std::vector<AgreedItem> items = agreed(graph, options);
    items.emplace_back("shape of x", x.shape());
    items.emplace_back("negative slope (bits of the number)", bits(negative_slope));
    items.emplace_back("wish for the gradient of x", x.requires_grad());
    items.emplace_back("wish for the gradient of attn_src", attn_src.requires_grad());
    items.emplace_back("wish for the gradient of score_dst", score_dst.requires_grad());
    agree_on_call(graph.comm(), "gat_attention", items);
    const Index dim = x.shape()[2];
    return attend(graph, x,
                  {AttentionScore::additive,
                   {.heads = x.shape()[1], .dim = dim, .key_dim = dim, .slope = negative_slope},
                   attn_src,
                   score_dst,
                   options});
  });
}

Variable gatv2_attention(const GraphShardManager& graph, const Variable& x_src, const Variable& x_dst,
                         const Variable& attn, real negative_slope, const AttentionOptions& options) {
  return graph.comm().agree([&] {
    check_heads(graph, "x_src", x_src, graph.num_src_nodes());
    check_shape("x_dst", x_dst, x_src.shape().with_rows(graph.num_dst_nodes()));
    check_shape("attn", attn, x_src.shape().with_rows(1));
    check_options(graph, options, x_src.shape().row_size());
    std::vector<AgreedItem> items = agreed(graph, options);
    items.emplace_back("shape of x_src", x_src.shape());
    items.emplace_back("negative slope (bits of the number)", bits(negative_slope));
    items.emplace_back("wish for the gradient of x_src", x_src.requires_grad());
    items.emplace_back("wish for the gradient of x_dst", x_dst.requires_grad());
    items.emplace_back("wish for the gradient of attn", attn.requires_grad());
    agree_on_call(graph.comm(), "gatv2_attention", items);
    const Index dim = x_src.shape()[2];
    return attend(graph, x_src,
                  {AttentionScore::additive_v2,
                   {.heads = x_src.shape()[1], .dim = dim, .key_dim = dim, .slope = negative_slope},
                   attn,
                   x_dst,
                   options});
  });
}

Variable dot_attention(const GraphShardManager& graph, const Variable& key, const Variable& query,
                       const Variable& value, real scale, const AttentionOptions& options) {
  return graph.comm().agree([&] {
    check_heads(graph, "key", key, graph.num_src_nodes());
    check_shape("query", query, key.shape().with_rows(graph.num_dst_nodes()));
    if (value.defined()) {
      check_heads(graph, "value", value, graph.num_src_nodes());
      require<ShapeError>(value.shape()[1] == key.shape()[1], "value has shape ", value.shape(),
                          ", key has shape ", key.shape(), ": the heads differ");
    }
    check_options(graph, options, (value.defined() ? value : key).shape().row_size());
    std::vector<AgreedItem> items = agreed(graph, options);
    items.emplace_back("shape of key", key.shape());
    items.emplace_back("shape of value", value.shape());
    items.emplace_back("scale (bits of the number)", bits(scale));
    items.emplace_back("wish for the gradient of key", key.requires_grad());
    items.emplace_back("wish for the gradient of query", query.requires_grad());
    items.emplace_back("wish for the gradient of value", value.requires_grad());
    agree_on_call(graph.comm(), "dot_attention", items);
    const Index dim = key.shape()[2];
    const bool separate = value.defined();
    // A statement of its own: GCC 12 destroys a list inside of ?: once more when something throws.
    Variable source = key;
    if (separate) source = concat_columns({flat(key), flat(value)});
    return attend(graph, source,
                  {AttentionScore::dot,
                   {.heads = key.shape()[1],
                    .dim = separate ? value.shape()[2] : dim,
                    .key_dim = dim,
                    .separate_value = separate,
                    .scale = scale},
                   {},
                   query,
                   options});
  });
}

Variable cosine_attention(const GraphShardManager& graph, const Variable& x_src, const Variable& x_dst,
                          const Variable& beta, const AttentionOptions& options) {
  return graph.comm().agree([&] {
    const Index rows = graph.num_src_nodes();
    require<ShapeError>(x_src.shape().dims() == 2 && x_src.num_rows() == rows && x_src.shape().row_size() > 0,
                        "x_src has shape ", x_src.shape(), "; on rank ", graph.comm().rank(), " it must be [",
                        rows, ", features]");
    check_shape("x_dst", x_dst, x_src.shape().with_rows(graph.num_dst_nodes()));
    check_shape("beta", beta, Shape{1});
    check_options(graph, options, x_src.shape().row_size());
    std::vector<AgreedItem> items = agreed(graph, options);
    items.emplace_back("shape of x_src", x_src.shape());
    items.emplace_back("wish for the gradient of x_src", x_src.requires_grad());
    items.emplace_back("wish for the gradient of x_dst", x_dst.requires_grad());
    items.emplace_back("wish for the gradient of beta", beta.requires_grad());
    agree_on_call(graph.comm(), "cosine_attention", items);
    const Index dim = x_src.shape()[1];
    return flat(attend(graph, x_src,
                       {AttentionScore::dot,
                        {.heads = 1, .dim = dim, .key_dim = dim, .unit_sources = true},
                        {},
                        scaled_units(x_dst, beta),
                        options}));
  });
}

}  // namespace sar
