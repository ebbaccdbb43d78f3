// SPDX-License-Identifier: MIT
#include <sar/autograd/arithmetic.hpp>
#include <sar/autograd/layout.hpp>
#include <sar/autograd/op_support.hpp>
#include <sar/autograd/ops.hpp>
#include <sar/autograd/products.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/core/threads/mixed_precision.hpp>
#include <sar/core/trace/trace.hpp>
#include <sar/graph/kernels/typed_attention_kernel.hpp>
#include <sar/graph/kernels/typed_sum_kernel.hpp>
#include <sar/graph/message/attention.hpp>
#include <sar/graph/message/edge_messages.hpp>
#include <sar/graph/message/operation.hpp>
#include <sar/graph/message/typed_sum.hpp>

#include <memory>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

namespace {

TypedMatrices::Sizes sizes_of(const Shape& w) {
  return {
      .types = w[0], .blocks = w.dims() == 4 ? w[1] : 1, .rows = w[w.dims() - 2], .cols = w[w.dims() - 1]};
}

/// What a rank checks by itself.
void check(const Graph& graph, const Variable& x, const Variable& weight, const Variable& edge_weight) {
  const Shape& w = weight.shape();
  require<ShapeError>(weight.defined() && (w.dims() == 3 || w.dims() == 4) && w.size() > 0,
                      "typed_sum got matrices of shape ", w,
                      "; it must be [types, in, out] or [types, blocks, in / blocks, out / blocks]");
  const TypedMatrices::Sizes sizes = sizes_of(w);
  require<ShapeError>(x.defined() && x.shape() == Shape{graph.num_src_nodes(), sizes.blocks * sizes.rows},
                      "typed_sum got source rows of shape ", x.shape(), "; on rank ", graph.comm().rank(),
                      " it must be ", Shape{graph.num_src_nodes(), sizes.blocks * sizes.rows},
                      " for matrices ", w);
  const Shape& c = edge_weight.shape();
  require<ShapeError>(
      !edge_weight.defined() || (c.dims() > 0 && c[0] == graph.num_edges() && c.row_size() == 1),
      "typed_sum got edge weights of shape ", c, ", the graph has ", graph.num_edges(), " edges on rank ",
      graph.comm().rank(), " and wants one number for each");
}

/// One call, from the rows that travel to the gradients.
struct TypedPass {
  std::shared_ptr<const ShardedGraph> graph;
  GraphOptions options;
  TypedRows x;  ///< after the forward pass only if reads_x()
  Shape x_shape;
  GradientPtr gradient;
  bool records;
  Variable weight;
  EdgeTypes types;
  Variable edge_weight;

  /// Whether gradients depend on the values of x.
  [[nodiscard]] bool reads_x() const { return weight.requires_grad() || edge_weight.requires_grad(); }
  [[nodiscard]] TypedSum operands() const {
    return {.sizes = sizes_of(weight.shape()),
            .types = types.numbers().data(),
            .weight = weight.value().data(),
            .edge_weight = edge_weight.defined() ? edge_weight.value().data() : nullptr};
  }

  [[nodiscard]] Driver driver() const { return {graph, options, records && reads_x()}; }
  [[nodiscard]] const TypedRows& source_rows() const { return x; }
  [[nodiscard]] bool recorded() const { return records; }
  [[nodiscard]] const GradientPtr& source_gradient() const { return gradient; }
  [[nodiscard]] Shape shape() const { return {graph->topology->local.num_dst, operands().width()}; }
  [[nodiscard]] NumberType base_type() const { return NumberType::reals; }
  [[nodiscard]] bool adds_to_base() const { return true; }

  TypedRows forward(ForwardPass& rows, Variable base) const {
    const TraceScope scope("typed_sum", TraceKind::compute);
    TypedSumKernel kernel(operands());
    const bool has_base = base.defined();
    Tensor out = has_base ? take_value(base) : Tensor(shape());
    base = Variable();
    if (!out.unique()) out = out.clone();
    kernel.set_output(out.data(), has_base);
    rows.finish(kernel);
    return TypedRows(std::move(out)).as(type_of_results());
  }

  void release(bool recorded) {
    if (!recorded || !reads_x()) x = {};
  }
  void backward(const Driver& driver, BackwardPass& rows, const Tensor& grad) const {
    const TraceScope scope("typed_sum backward", TraceKind::compute);
    Tensor grad_weight, grad_edge_weight;
    if (weight.requires_grad()) grad_weight = Tensor::zeros(weight.shape());
    if (edge_weight.requires_grad()) grad_edge_weight = Tensor(edge_weight.shape());
    TypedSum o = operands();
    o.grad_out = grad.data();
    o.wants_source = gradient != nullptr;
    o.grad_weight = grad_weight.defined() ? grad_weight.data() : nullptr;
    o.grad_edge_weight = grad_edge_weight.defined() ? grad_edge_weight.data() : nullptr;
    TypedSumKernel kernel(o);
    rows.start(driver, x, x_shape, kernel, gradient);
    if (grad_weight.defined()) weight.gradient()->add(std::move(grad_weight));
    if (grad_edge_weight.defined()) edge_weight.gradient()->add(std::move(grad_edge_weight));
  }
};

}  // namespace

StartedSum start_typed_sum(const Graph& graph, const Variable& x, const Variable& weight,
                           const EdgeTypes& types, const Variable& edge_weight) {
  EdgeTypes numbers;
  return StartedSum(
      graph.comm(),
      [&] {
        check(graph, x, weight, edge_weight);
        numbers = types.checked(graph.num_edges(), weight.num_rows(), "typed_sum");
        return OperationCall("typed_sum", graph)
            .sources("the source rows", x)
            .operand("the matrices", weight)
            .operand("the edge weights", edge_weight)
            .equal("number of edge types", weight.num_rows());
      },
      [&]() -> std::unique_ptr<StartedSum::Operation> {
        if (graph.options().reproducible)  // a product for each edge
          return reduction_of(
              graph, {graph.num_dst_nodes(), TypedSum{.sizes = sizes_of(weight.shape())}.width()},
              [=](const EdgeBatch& edges) {
                const Variable y = gather_mm(edges.src(x), weight, numbers.of(edges.rows()));
                if (!edge_weight.defined()) return y;
                return y * reshape(edges.edata(edge_weight), {edges.num_edges(), 1});
              },
              Reduce::sum);
        return std::make_unique<StartedPass<TypedPass>>(
            graph.comm(), TypedPass{graph.shards(), graph.options(), x.rows(), x.shape(), x.gradient(),
                                    recording({&x, &weight, &edge_weight}), weight, numbers, edge_weight});
      },
      "typed_sum");
}

Variable typed_sum(const Graph& graph, const Variable& x, const Variable& weight, const EdgeTypes& types,
                   const Variable& edge_weight, Variable base) {
  return start_typed_sum(graph, x, weight, types, edge_weight).finish(std::move(base));
}

namespace {

EdgeTypes check(const Graph& graph, const Variable& key_value, const Variable& query, const Variable& att,
                const Variable& msg, const EdgeTypes& types) {
  const Shape& shape = query.shape();
  require<ShapeError>(shape.dims() == 3 && shape[0] == graph.num_dst_nodes() && shape.row_size() > 0,
                      "query has shape ", shape, "; on rank ", graph.comm().rank(), " it must be [",
                      graph.num_dst_nodes(), ", heads, features]");
  const Index heads = shape[1], dim = shape[2];
  const Shape expected{graph.num_src_nodes(), 2, heads, dim};
  require<ShapeError>(key_value.shape() == expected, "key_value has shape ", key_value.shape(), "; on rank ",
                      graph.comm().rank(), " it must be ", expected, ", as query has shape ", shape);
  const Index num_types = att.shape()[0];
  const Shape matrices{num_types, heads, dim, dim};
  require<ShapeError>(att.shape() == matrices && msg.shape() == matrices, "att and msg have shapes ",
                      att.shape(), " and ", msg.shape(), "; they must be [types, ", heads, ", ", dim, ", ",
                      dim, "]");
  return types.checked(graph.num_edges(), num_types, "typed_attention");
}

/// One call. Copied into its record.
struct TypedAttentionCall {
  Variable key_value, query, att, msg;
  EdgeTypes types;
  AttentionResult result = {};

  /// `query_rows`: the query as `real`, which must outlive the operands.
  [[nodiscard]] TypedAttentionOperands operands(const Tensor& query_rows) {
    return {.heads = query.shape()[1],
            .dim = query.shape()[2],
            .num_types = att.num_rows(),
            .query = query_rows.data(),
            .att = att.value().data(),
            .msg = msg.value().data(),
            .types = types.numbers().data(),
            .result = &result};
  }

  TypedRows forward(const Driver& driver) {
    const Index heads = query.shape()[1];
    const Tensor query_rows = query.rows().to_tensor();
    result = {.out = Tensor(query.shape()),
              .max = Tensor(Shape{query.num_rows(), heads}),
              .log_sum = Tensor(Shape{query.num_rows(), heads})};
    driver.forward(key_value.rows(), *make_typed_attention_kernel(operands(query_rows)));
    if (mixed_precision()) result.rounded = TypedRows(std::exchange(result.out, {})).as(NumberType::bfloat16);
    return result.rows();
  }

  /// Once: the kernel gives the result up as soon as it is not needed any more.
  void backward(const Driver& driver, const Tensor& grad) {
    const Tensor query_rows = query.rows().to_tensor();
    TypedAttentionOperands o = operands(query_rows);
    Tensor grad_query;
    std::vector<double> grad_att, grad_msg;
    if (query.requires_grad()) grad_query = Tensor::zeros(query.shape());
    if (att.requires_grad()) grad_att.resize(att.value().size());
    if (msg.requires_grad()) grad_msg.resize(msg.value().size());
    o.grad_out = grad.data();
    o.grad_query = grad_query.defined() ? grad_query.data() : nullptr;
    o.grad_att = att.requires_grad() ? grad_att.data() : nullptr;
    o.grad_msg = msg.requires_grad() ? grad_msg.data() : nullptr;
    driver.backward(key_value.rows(), key_value.shape(), *make_typed_attention_kernel(o),
                    key_value.gradient());
    if (grad_query.defined()) query.gradient()->add(std::move(grad_query));
    if (att.requires_grad()) att.gradient()->add(Tensor::from(att.shape(), grad_att));
    if (msg.requires_grad()) msg.gradient()->add(Tensor::from(msg.shape(), grad_msg));
  }
};

/// On a reproducible graph: keys and values of each edge are multiplied with the block-diagonal matrices of
/// the edge's type.
Variable exact(const Graph& graph, const Variable& key_value, const Variable& query, const Variable& att,
               const Variable& msg, const EdgeTypes& types) {
  const Index heads = query.shape()[1], dim = query.shape()[2], width = heads * dim;
  const auto product = [=](const EdgeBatch& edges, Index first, const Variable& matrices) {
    const Variable both = reshape(edges.src(key_value), {edges.num_edges(), 2 * width});
    return reshape(gather_mm(slice_columns(both, first, first + width), matrices, types.of(edges.rows())),
                   {edges.num_edges(), heads, dim});
  };
  const Variable scores = graph.apply_edges([=](const EdgeBatch& edges) {
    return reshape(sum(product(edges, 0, att) * edges.dst(query), ReduceDim::columns),
                   {edges.num_edges(), heads});
  });
  const Variable alpha = reshape(edge_softmax(graph, scores), {graph.num_edges(), heads, 1});
  return graph.update_all(
      [=](const EdgeBatch& edges) { return product(edges, width, msg) * edges.edata(alpha); }, fn::sum);
}

}  // namespace

Variable typed_attention(const Graph& graph, const Variable& key_value, const Variable& query,
                         const Variable& att, const Variable& msg, const EdgeTypes& types) {
  EdgeTypes numbers;
  return collective(
      graph.comm(),
      [&] {
        numbers = check(graph, key_value, query, att, msg, types);
        return OperationCall("typed_attention", graph)
            .sources("key_value", key_value)
            .operand("query", query)
            .operand("att", att)
            .operand("msg", msg)
            .equal("number of types", att.num_rows());
      },
      [&]() -> Variable {
        if (graph.options().reproducible) return exact(graph, key_value, query, att, msg, numbers);
        return run_pass(graph, {"typed attention", "typed attention backward"},
                        recording({&key_value, &query, &att, &msg}),
                        TypedAttentionCall{key_value, query, att, msg, numbers});
      });
}
}}  // namespace sar
