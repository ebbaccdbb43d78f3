// SPDX-License-Identifier: MIT
#include <sar/autograd/ops.hpp>
#include <sar/core/error.hpp>
#include <sar/core/threads/mixed_precision.hpp>
#include <sar/graph/kernels/typed_attention_kernel.hpp>
#include <sar/graph/message/edge_messages.hpp>
#include <sar/graph/message/edge_softmax.hpp>
#include <sar/graph/message/operation.hpp>
#include <sar/graph/message/typed_attention.hpp>

#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {
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
