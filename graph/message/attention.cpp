// SPDX-License-Identifier: MIT

// An operation is one call of the driver with the kernel of its score. The dot product with separate
// values sends keys and values as one row, [key | value]. Cosine attention is a dot product of source rows
// that the kernel normalizes with destination rows that are normalized before. Gradients of attn and of
// type terms are added in double precision, over this rank's edges.
#include <sar/autograd/activations.hpp>
#include <sar/autograd/ops.hpp>
#include <sar/autograd/row_sums.hpp>
#include <sar/core/error.hpp>
#include <sar/core/rows/elementwise.hpp>
#include <sar/core/rows/rows.hpp>
#include <sar/core/simd/vector_math.hpp>
#include <sar/core/threads/mixed_precision.hpp>
#include <sar/graph/kernels/edge_softmax_kernel.hpp>
#include <sar/graph/kernels/gat_attention.hpp>
#include <sar/graph/kernels/pair_attention.hpp>
#include <sar/graph/message/attention.hpp>
#include <sar/graph/message/edge_messages.hpp>
#include <sar/graph/message/operation.hpp>

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

// Forward, in passes over the edges: the maximum per node, x - maximum, exp (in parallel blocks of the
// edge rows), the sum per node, the product with 1 / sum. Backward: the sum of g y per node, then y (g -
// sum). Bytes moved per element: x is read twice, y written three times and read three times; backward
// reads y and g twice and writes once. By source, each value per node costs one push to the owners and one
// fetch, with exact rows.

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

/// The largest number of the edges of each node; 0 where all are -infinity.
Tensor maxima(const NodeValues& nodes, const Tensor& x) {
  const Index width = x.row_size();
  constexpr real least = -std::numeric_limits<real>::infinity();
  Tensor most = nodes.from_edges(least, ReduceOp::max, [&](real* m, Index edge) {
    const real* row = x.row(edge);
    for (Index j = 0; j < width; ++j) m[j] = row[j] > m[j] ? row[j] : m[j];
  });
  std::ranges::replace(most.values(), least, real{0});
  return most;
}

/// A sum of exponentials is 1 or more, unless all are of -infinity.
constexpr real least_sum = 1, most_sum = std::numeric_limits<real>::infinity();

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
  clamp(factor, least_sum, most_sum, factor);
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
  const Variable sums = clamp(graph.update_all(fn::copy_e(exponentials), fn::sum), least_sum, most_sum);
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

namespace {

/// An operand of a call: its name in messages, and the shape that it must have on this rank. An operand that
/// the call does not have is undefined, and so is its shape.
struct Operand {
  const char* name;
  const Variable& x;
  Shape shape;
};

template <class... Expected>
void require_shape(const Graph& graph, const char* name, const Variable& x, bool fits,
                   const Expected&... expected) {
  require<ShapeError>(fits, name, " has shape ", x.shape(), "; on rank ", graph.comm().rank(), " it must be ",
                      expected...);
}

/// Checks that x has rows [heads, features] for the nodes.
void check_heads(const Graph& graph, const char* name, const Variable& x, Index nodes) {
  require_shape(graph, name, x, x.shape().dims() == 3 && x.num_rows() == nodes && x.shape().row_size() > 0,
                "[", nodes, ", heads, features]");
}

/// Checks what this rank has, and returns what must be equal on all ranks. `width`: columns of the result,
/// all heads together. The rows of the first operand travel.
OperationCall attention_call(const char* operation, const Graph& graph, const AttentionOptions& options,
                             Index width, std::initializer_list<Operand> operands) {
  for (const auto& [name, x, shape] : operands) require_shape(graph, name, x, x.shape() == shape, shape);
  require(options.dropout >= 0 && options.dropout < 1,
          "the probability of dropout must be at least 0 and below 1, not ", options.dropout);
  const Shape& weights = options.edge_weight.shape();
  require<ShapeError>(
      !options.edge_weight.defined() || (weights[0] == graph.num_edges() && weights.row_size() == 1),
      "the edge weights have shape ", weights, ", the graph has ", graph.num_edges(), " edges on rank ",
      graph.comm().rank(), " and wants one number for each");
  require<ShapeError>(!options.bias.defined() || options.bias.shape().size() == width, "the bias has shape ",
                      options.bias.shape(), " for a result of width ", width);

  const RandomKey key = options.dropout > 0 ? options.dropout_key : RandomKey{};
  OperationCall call(operation, graph);
  call.operand("the edge weights", options.edge_weight)
      .operand("the bias", options.bias)
      .equal("dropout", options.dropout)
      .equal("seed of dropout", key.seed)
      .equal("stream of dropout", key.stream)
      .equal("step of dropout", key.step);
  call.sources(operands.begin()->name, operands.begin()->x);
  for (const Operand* each = operands.begin() + 1; each != operands.end(); ++each)
    call.operand(each->name, each->x);
  return call;
}

real* data_or_null(Tensor& tensor) {
  return tensor.defined() ? tensor.data() : nullptr;
}
const real* data_or_null(const Variable& x) {
  return x.defined() ? x.value().data() : nullptr;
}

/// One call, from the rows that travel to the gradients. Copied into its record.
struct Attention {
  decltype(&make_gat_kernel) make_kernel;  ///< for the score
  AttentionOperands operands;              ///< sizes and numbers
  Variable attn, dst;                      ///< attn only where the score has one
  AttentionOptions options;
  Variable type_term = {};  ///< additive: with `types`, or none
  EdgeTypes types = {};

  Variable rows = {};  ///< of the sources
  bool recorded = false;
  std::shared_ptr<const DropoutMask> mask = {};
  AttentionResult result = {};
  std::vector<bool> cancels = {};  ///< additive: whether dst[v, h] cancels in the softmax; empty: unknown

  /// With what does not change between forward and backward, beside source rows of this type.
  [[nodiscard]] AttentionOperands common(const GraphTopology& graph, NumberType type) {
    AttentionOperands o = operands;
    o.attn = data_or_null(attn);
    o.dst = make_kernel == make_gat_kernel ? TypedRows(dst.value()) : dst.rows().as(type);
    o.edge_weight = data_or_null(options.edge_weight);
    o.bias = data_or_null(options.bias);
    o.result = &result;
    o.mask = mask.get();
    if (mask != nullptr) o.edge_ids = graph.edge_ids().data();
    if (type_term.defined()) {
      o.type_term = type_term.value().data();
      o.num_types = type_term.num_rows();
      o.types = types.numbers().data();
    }
    return o;
  }

  /// Whether the softmax cancels a term that all scores of a destination share before leaky_relu, which it
  /// does where that is linear.
  [[nodiscard]] bool dst_may_cancel() const {
    return make_kernel == make_gat_kernel && dst.requires_grad() && operands.slope >= 0;
  }

  TypedRows forward(const Driver& driver) {
    const Shape shape{driver.graph().local.num_dst, operands.heads, operands.dim};
    const Shape scores{shape[0], shape[1]};
    const bool rounds = mixed_precision(), rounds_rows = rounds && driver.has_one_stage();
    result = {
        .out = rounds_rows ? Tensor() : Tensor(shape), .max = Tensor(scores), .log_sum = Tensor(scores)};
    if (rounds_rows) result.rounded = TypedRows(shape, NumberType::bfloat16);
    if (recorded && dst_may_cancel()) result.min = Tensor(scores);
    if (options.dropout > 0) mask = std::make_shared<const DropoutMask>(options.dropout_key, options.dropout);
    {
      const TypedRows stored = rows.rows();
      driver.forward(stored, *make_kernel(common(driver.graph(), stored.type())));
    }
    if (rounds && !rounds_rows)
      result.rounded = TypedRows(std::exchange(result.out, {})).as(NumberType::bfloat16);
    const Tensor min = std::exchange(result.min, {});
    cancels.resize(static_cast<std::size_t>(min.size()));
    for (std::size_t i = 0; i < cancels.size(); ++i)
      cancels[i] = std::as_const(result.max).data()[i] <= 0 || min.data()[i] > 0;
    if (recorded)
      for (const Variable* x : {&std::as_const(rows), &std::as_const(dst)})  // until the backward pass
        if (x->deferred() != nullptr) x->deferred()->release();
    return result.rows();
  }

  /// Once: the kernel gives the result up as soon as it is not needed any more.
  void backward(const Driver& driver, TypedRows grad) {
    const TypedRows stored = rows.rows();
    grad = grad.as(stored.type());
    AttentionOperands o = common(driver.graph(), stored.type());
    if (options.bias.requires_grad())
      options.bias.gradient()->add([&](Tensor& sum, bool accumulate) {
        Tensor row = sum.reshape({sum.size()});
        const TypedRows flat_grad = grad.reshape({grad.num_rows(), sum.size()});
        flat_grad.is_real() ? sum_to(flat_grad.reals(), row, accumulate)
                            : sum_columns(flat_grad, row, accumulate);
      });
    Tensor grad_edge_weight, grad_dst;
    std::vector<double> grad_attn, grad_type_term;
    if (options.edge_weight.requires_grad()) grad_edge_weight = Tensor(options.edge_weight.shape());
    if (dst.requires_grad()) grad_dst = Tensor::zeros(dst.shape());
    if (attn.requires_grad()) grad_attn.resize(attn.value().size());
    if (type_term.requires_grad()) grad_type_term.resize(type_term.value().size());
    o.grad_out = std::move(grad);
    o.grad_edge_weight = data_or_null(grad_edge_weight);
    o.grad_dst = data_or_null(grad_dst);
    o.grad_attn = attn.requires_grad() ? grad_attn.data() : nullptr;
    o.grad_type_term = type_term.requires_grad() ? grad_type_term.data() : nullptr;
    driver.backward(stored, stored.shape(), *make_kernel(o), rows.gradient());
    for (std::size_t i = 0; i < cancels.size(); ++i)
      if (cancels[i]) grad_dst.data()[i] = 0;
    if (grad_edge_weight.defined()) options.edge_weight.gradient()->add(std::move(grad_edge_weight));
    if (grad_dst.defined()) dst.gradient()->add(std::move(grad_dst));
    if (attn.requires_grad()) attn.gradient()->add(Tensor::from(attn.shape(), grad_attn));
    if (type_term.requires_grad()) type_term.gradient()->add(Tensor::from(type_term.shape(), grad_type_term));
  }
};

/// `rows` travel; the result has the shape [destinations, heads, dim].
Variable attend(const Graph& graph, const Variable& rows, Attention attention) {
  attention.rows = rows;
  attention.recorded = recording({&rows, &attention.attn, &attention.dst, &attention.options.edge_weight,
                                  &attention.options.bias, &attention.type_term});
  return run_pass(graph, {"attention", "attention backward"}, attention.recorded, std::move(attention));
}

/// [n, heads, dim] as [n, heads dim].
Variable flat(const Variable& x) {
  return reshape(x, Shape{x.num_rows(), x.shape().row_size()});
}

/// On a reproducible graph: out[v, h] = sum over in-edges of alpha[e, h] value[u, h], alpha = softmax over
/// the in-edges of scores [edges, H]. Collective.
Variable exact_attention(const Graph& graph, const Variable& scores, const Variable& value,
                         const AttentionOptions& options) {
  const Index edges = graph.num_edges(), heads = scores.shape()[1];
  Variable alpha = edge_softmax(graph, scores);
  if (options.dropout > 0)
    alpha = dropout(std::exchange(alpha, {}), options.dropout, options.dropout_key,
                    RowIds(std::span<const Index>(graph.edge_ids())));
  if (options.edge_weight.defined())
    alpha = std::exchange(alpha, {}) * reshape(options.edge_weight, {edges, 1});
  Variable y = graph.update_all(fn::u_mul_e(value, reshape(std::move(alpha), {edges, heads, 1})), fn::sum);
  if (!options.bias.defined()) return y;
  return std::move(y) + reshape(options.bias, {heads, value.shape()[2]});
}

/// On a reproducible graph: scale <key[u, h], query[v, h]> [edges, H]. Collective.
Variable exact_dots(const Graph& graph, const Variable& key, const Variable& query, real scale) {
  const Variable dots = graph.apply_edges(fn::u_dot_v(key, query));
  return scale_shift(reshape(dots, {graph.num_edges(), key.shape()[1]}), scale, 0);
}

/// With a term for each type of edge where it is `typed`.
Variable attend_additive(const char* operation, const Graph& graph, const Variable& x,
                         const Variable& attn_src, const Variable& score_dst, const Variable& score_type,
                         const EdgeTypes& types, bool typed, real negative_slope,
                         const AttentionOptions& options) {
  EdgeTypes numbers;
  return collective(
      graph.comm(),
      [&] {
        check_heads(graph, "x", x, graph.num_src_nodes());
        const Index heads = x.shape()[1], num_types = score_type.defined() ? score_type.num_rows() : 0;
        const Shape scores{graph.num_dst_nodes(), heads}, scores3{graph.num_dst_nodes(), heads, 1};
        OperationCall call =
            attention_call(operation, graph, options, x.shape().row_size(),
                           {{"x", x, x.shape()},
                            {"attn_src", attn_src, x.shape().with_rows(1)},
                            {"score_dst", score_dst, score_dst.shape() == scores3 ? scores3 : scores},
                            {"score_type", score_type, typed ? Shape{num_types, heads} : Shape{}}});
        if (typed) numbers = types.checked(graph.num_edges(), num_types, operation);
        return call.equal("negative slope", negative_slope).equal("number of types", num_types);
      },
      [&] {
        const Index dim = x.shape()[2];
        if (graph.options().reproducible) {
          const Variable of_dst = reshape(score_dst, {graph.num_dst_nodes(), x.shape()[1]});
          Variable score = graph.apply_edges(fn::u_add_v(head_dots(x, attn_src), of_dst));
          if (typed) {
            const Array<std::uint16_t>& of_edges = numbers.numbers();
            score =
                score + gather_shared_rows(score_type, std::vector<Index>(of_edges.begin(), of_edges.end()));
          }
          return exact_attention(graph, leaky_relu(score, negative_slope), x, options);
        }
        return attend(graph, x,
                      {make_gat_kernel,
                       {.heads = x.shape()[1], .dim = dim, .key_dim = dim, .slope = negative_slope},
                       attn_src,
                       score_dst,
                       options,
                       score_type,
                       std::move(numbers)});
      },
      operation);
}

}  // namespace

Variable gat_attention(const Graph& graph, const Variable& x, const Variable& attn_src,
                       const Variable& score_dst, real negative_slope, const AttentionOptions& options) {
  return attend_additive("gat_attention", graph, x, attn_src, score_dst, {}, {}, false, negative_slope,
                         options);
}

Variable typed_gat_attention(const Graph& graph, const Variable& x, const Variable& attn_src,
                             const Variable& score_dst, const Variable& score_type, const EdgeTypes& types,
                             real negative_slope, const AttentionOptions& options) {
  return attend_additive("typed_gat_attention", graph, x, attn_src, score_dst, score_type, types, true,
                         negative_slope, options);
}

Variable gatv2_attention(const Graph& graph, const Variable& x_src, const Variable& x_dst,
                         const Variable& attn, real negative_slope, const AttentionOptions& options) {
  return collective(
      graph.comm(),
      [&] {
        check_heads(graph, "x_src", x_src, graph.num_src_nodes());
        const Shape& shape = x_src.shape();
        return attention_call("gatv2_attention", graph, options, shape.row_size(),
                              {{"x_src", x_src, shape},
                               {"x_dst", x_dst, shape.with_rows(graph.num_dst_nodes())},
                               {"attn", attn, shape.with_rows(1)}})
            .equal("negative slope", negative_slope);
      },
      [&] {
        const Index dim = x_src.shape()[2];
        if (graph.options().reproducible) {
          const Variable scores = graph.apply_edges([=](const EdgeBatch& edges) {
            return head_dots(leaky_relu(edges.src(x_src) + edges.dst(x_dst), negative_slope), attn);
          });
          return exact_attention(graph, scores, x_src, options);
        }
        return attend(graph, x_src,
                      {make_gatv2_kernel,
                       {.heads = x_src.shape()[1], .dim = dim, .key_dim = dim, .slope = negative_slope},
                       attn,
                       x_dst,
                       options});
      });
}

Variable dot_attention(const Graph& graph, const Variable& key, const Variable& query, const Variable& value,
                       real scale, const AttentionOptions& options) {
  const bool separate = value.defined();
  return collective(
      graph.comm(),
      [&] {
        check_heads(graph, "key", key, graph.num_src_nodes());
        if (separate) {
          check_heads(graph, "value", value, graph.num_src_nodes());
          require<ShapeError>(value.shape()[1] == key.shape()[1], "value has shape ", value.shape(),
                              ", key has shape ", key.shape(), ": the heads differ");
        }
        return attention_call("dot_attention", graph, options, (separate ? value : key).shape().row_size(),
                              {{"key", key, key.shape()},
                               {"query", query, key.shape().with_rows(graph.num_dst_nodes())},
                               {"value", value, value.shape()}})
            .equal("scale", scale);
      },
      [&] {
        const Index dim = key.shape()[2];
        if (graph.options().reproducible)
          return exact_attention(graph, exact_dots(graph, key, query, scale), separate ? value : key,
                                 options);
        // A statement of its own: GCC 12 destroys a list inside of ?: once more when something throws.
        Variable source = key;
        if (separate) source = concat_columns({flat(key), flat(value)});
        return attend(graph, source,
                      {make_dot_kernel,
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

Variable cosine_attention(const Graph& graph, const Variable& x_src, const Variable& x_dst,
                          const Variable& beta, const AttentionOptions& options) {
  return collective(
      graph.comm(),
      [&] {
        const Index rows = graph.num_src_nodes();
        const Shape& shape = x_src.shape();
        require_shape(graph, "x_src", x_src,
                      shape.dims() == 2 && x_src.num_rows() == rows && shape.row_size() > 0, "[", rows,
                      ", features]");
        return attention_call("cosine_attention", graph, options, shape.row_size(),
                              {{"x_src", x_src, shape},
                               {"x_dst", x_dst, shape.with_rows(graph.num_dst_nodes())},
                               {"beta", beta, Shape{1}}});
      },
      [&] {
        const Index dim = x_src.shape()[1];
        if (graph.options().reproducible) {
          const Shape rows{x_src.num_rows(), 1, dim}, to_rows{x_dst.num_rows(), 1, dim};
          const Variable units = scaled_unit_rows(x_src, Tensor::full({1}, 1));
          const Variable scores =
              exact_dots(graph, reshape(units, rows), reshape(scaled_unit_rows(x_dst, beta), to_rows), 1);
          return flat(exact_attention(graph, scores, reshape(x_src, rows), options));
        }
        return flat(attend(graph, x_src,
                           {make_dot_kernel,
                            {.heads = 1, .dim = dim, .key_dim = dim, .unit_sources = true},
                            {},
                            scaled_unit_rows(x_dst, beta),
                            options}));
      });
}
}}  // namespace sar
