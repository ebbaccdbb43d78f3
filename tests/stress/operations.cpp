// SPDX-License-Identifier: MIT
#include "graph/message_formula.hpp"
#include "stress/step.hpp"

#include <sar/autograd/ops.hpp>
#include <sar/graph/message/attention.hpp>

#include <algorithm>
#include <cmath>

namespace sar::test {
namespace {

/// An operand [rows, heads, dim] whose heads or columns may be repeated.
struct Operand {
  MessageTarget target = MessageTarget::u;
  Index heads = 1, dim = 1;
  Both rows;

  [[nodiscard]] Number at(const Edge& e, Index h, Index d) const {
    const Index row = target == MessageTarget::u ? e.src : target == MessageTarget::v ? e.dst : e.id;
    return rows.reference(row, h % heads * dim + d % dim);
  }
};

/// away_from_zero: for what is divided by.
Operand draw_operand(Step& s, MessageTarget target, Index heads, Index dim, bool away_from_zero) {
  Operand operand{target, s.draw.chance(0.25) ? 1 : heads, dim, {}};
  const Index cols = operand.heads * dim;
  if (target == MessageTarget::e) {
    operand.rows = away_from_zero ? s.edge_rows(cols, 0.5, 1.5) : s.edge_rows(cols);
  } else {
    operand.rows = projected(s.problem, target == MessageTarget::u ? s.src : s.dst, cols);
    if (away_from_zero)
      operand.rows = {sigmoid(operand.rows.ours) + real(0.5),
                      map(operand.rows.reference, [](Number x) { return sigmoid(x) + 0.5; })};
  }
  return operand;
}

struct BuiltIn {
  Message ours;
  Message::Op op;
  Operand lhs, rhs;
  Index heads, dim;  ///< of a message

  [[nodiscard]] Number at(const Edge& e, Index j) const {
    const Index h = j / dim, d = j % dim;
    if (op == Message::Op::copy) return lhs.at(e, h, d);
    if (op != Message::Op::dot) return message_element(op, lhs.at(e, h, d), rhs.at(e, h, d));
    return sum(lhs.dim, [&](Index k) { return lhs.at(e, h, k) * rhs.at(e, h, k); });
  }
};

BuiltIn draw_built_in(Step& s) {
  using Op = Message::Op;
  BuiltIn m{};
  m.op =
      message_op_names[static_cast<std::size_t>(s.draw.integer(0, std::ssize(message_op_names) - 1))].value;
  const Index heads = s.draw.integer(1, 3), dim = s.draw.integer(1, 4);
  const MessageTarget left = m.op == Op::copy
                                 ? s.draw.one_of({MessageTarget::u, MessageTarget::e})
                                 : s.draw.one_of({MessageTarget::u, MessageTarget::v, MessageTarget::e});
  m.lhs = draw_operand(s, left, heads, dim, false);
  m.heads = m.lhs.heads;
  m.dim = m.op == Op::dot ? 1 : dim;
  if (m.op != Op::copy) {
    const MessageTarget right = left == MessageTarget::u ? s.draw.one_of({MessageTarget::v, MessageTarget::e})
                                : left == MessageTarget::v
                                    ? s.draw.one_of({MessageTarget::u, MessageTarget::e})
                                    : s.draw.one_of({MessageTarget::u, MessageTarget::v});
    const Index right_dim = m.op != Op::dot && s.draw.chance(0.3) ? 1 : dim;
    m.rhs = draw_operand(s, right, heads, right_dim, m.op == Op::div);
    m.heads = std::max(m.heads, m.rhs.heads);
  }
  m.ours = {.op = m.op, .lhs = m.lhs.target, .rhs = m.rhs.target, .u = {}, .v = {}, .e = {}};
  if (m.op == Op::copy) m.ours.rhs = m.lhs.target;
  const auto set = [&](const Operand& operand) {
    Variable x = operand.rows.ours;
    m.ours.operand(operand.target) = reshape(x, {x.num_rows(), operand.heads, operand.dim});
  };
  set(m.lhs);
  if (m.op != Op::copy) set(m.rhs);
  s.problem.says << "message " << static_cast<int>(m.op) << " of " << static_cast<int>(m.lhs.target) << ", "
                 << static_cast<int>(m.rhs.target) << " [" << m.heads << ", " << m.dim << "]; ";
  return m;
}

Variable flat(Variable x, Index cols) {
  const Shape shape{x.num_rows(), cols};
  return reshape(std::move(x), shape);
}

Both built_in_message(Step& s) {
  const BuiltIn m = draw_built_in(s);
  const Reduce reduce = s.reduce();
  const Index cols = m.heads * m.dim;
  s.problem.says << "update_all, reduce " << static_cast<int>(reduce) << "; ";
  Matrix reference = aggregate(s.dense, reduce, cols, [&](const Edge& e, Index j) { return m.at(e, j); });
  if ((reduce != Reduce::sum && reduce != Reduce::mean) || s.draw.chance(0.5))
    return {flat(s.graph.update_all(m.ours, reduce), cols), std::move(reference)};

  const Both base = projected(s.problem, s.dst, cols);
  const Shape shape{base.ours.num_rows(), m.heads, m.dim};
  reference = reference + base.reference;
  if (s.draw.chance(0.5))
    return {flat(s.graph.update_all(m.ours, reduce, reshape(base.ours, shape)), cols), std::move(reference)};
  StartedSum sum = s.graph.start_update_all(m.ours, reduce);
  return {flat(sum.finish(reshape(base.ours * real(1), shape)), cols), std::move(reference)};
}

Both by_edges(Step& s) {
  const BuiltIn m = draw_built_in(s);
  const Reduce reduce = s.reduce();
  const Index cols = m.heads * m.dim;
  s.problem.says << "apply_edges, reduce " << static_cast<int>(reduce) << "; ";
  Variable rows = flat(s.graph.apply_edges(m.ours), cols);
  Matrix reference = per_edge(s.dense, cols, [&](const Edge& e, Index j) { return m.at(e, j); });
  if (s.draw.chance(0.6)) {
    const NormBy by = s.draw.one_of({NormBy::dst, NormBy::src});
    s.problem.says << "edge_softmax " << static_cast<int>(by) << "; ";
    rows = edge_softmax(s.graph, rows, by);
    reference = softmax(s.dense, reference, by);
  }
  return {s.graph.update_all(fn::copy_e(rows), reduce),
          aggregate(s.dense, reduce, cols, [&](const Edge& e, Index j) { return reference(e.id, j); })};
}

Both user_message(Step& s) {
  const Both x = projected(s.problem, s.src, s.draw.integer(1, 4));
  const Both y = projected(s.problem, s.dst, s.draw.integer(1, 3));
  const Both w = s.edge_rows(s.draw.integer(1, 3));
  const Index cols = s.draw.integer(1, 4), in = x.cols() + y.cols() + w.cols();
  const Both weight = s.problem.parameter(cols, in);
  const double p = s.draw.one_of({0.0, 0.3});
  const RandomKey key{.seed = s.draw.bits(), .stream = 3, .step = 0};
  const MessageFunction message = [=, h = x.ours, g = y.ours, e = w.ours,
                                   matrix = weight.ours](const EdgeBatch& edges) {
    const Variable m = tanh(linear(concat_columns({edges.src(h), edges.dst(g), edges.edata(e)}), matrix));
    return dropout(m, p, key, edges.ids());
  };
  const Matrix rows =
      dropped(per_edge(s.dense, cols,
                       [&](const Edge& e, Index j) {
                         return tanh(sum(in, [&](Index k) {
                           const Index from_y = k - x.cols(), from_w = from_y - y.cols();
                           return weight.reference(j, k) * (from_y < 0   ? x.reference(e.src, k)
                                                            : from_w < 0 ? y.reference(e.dst, from_y)
                                                                         : w.reference(e.id, from_w));
                         }));
                       }),
              p, key);
  const Reduce reduce = s.reduce();
  const bool stored = s.draw.chance(0.3);
  s.problem.says << "user message" << (stored ? " by apply_edges" : "") << ", reduce "
                 << static_cast<int>(reduce) << "; ";
  return {stored ? s.graph.update_all(fn::copy_e(s.graph.apply_edges(message)), reduce)
                 : s.graph.update_all(message, reduce),
          aggregate(s.dense, reduce, cols, [&](const Edge& e, Index j) { return rows(e.id, j); })};
}

/// Rows cut into heads.
Variable cut(const Both& x, Index heads) {
  return reshape(x.ours, {x.ours.num_rows(), heads, x.cols() / heads});
}

Both attention(Step& s) {
  const Index kind = s.draw.integer(0, 3), heads = kind == 3 ? 1 : s.draw.integer(1, 3);
  const Index dim = s.draw.integer(1, 4), width = heads * dim;
  s.problem.says << "attention " << kind << " [" << heads << ", " << dim << "]; ";
  Both x = projected(s.problem, s.src, width), y = projected(s.problem, s.dst, kind == 0 ? heads : width);
  if (kind == 3) {  // no direction is close to none
    x = {tanh(x.ours) + real(1.5), map(x.reference, [](Number z) { return tanh(z) + 1.5; })};
    y = {tanh(y.ours) + real(1.5), map(y.reference, [](Number z) { return tanh(z) + 1.5; })};
  }
  const Both a = s.problem.parameter(1, kind == 3 ? 1 : width);
  const bool has_value = kind == 2 && s.draw.chance(0.5);
  const Both value = has_value ? projected(s.problem, s.src, heads * s.draw.integer(1, 3)) : x;
  AttentionOptions options;
  options.dropout = s.draw.one_of({0.0, 0.4});
  options.dropout_key = {.seed = s.draw.bits(), .stream = 5, .step = 1};
  Both weight, bias;
  if (s.draw.chance(0.4)) options.edge_weight = (weight = s.edge_rows(1)).ours;
  if (s.draw.chance(0.4)) options.bias = (bias = s.problem.parameter(1, value.cols())).ours;
  const real slope = real(0.25);

  const auto dots = [&](const Matrix& p, Index i, const Matrix& q, Index j, Index h) {
    return sum(dim, [&](Index d) { return p(i, h * dim + d) * q(j, h * dim + d); });
  };
  Matrix alpha = per_edge(s.dense, heads, [&](const Edge& e, Index h) -> Number {
    if (kind == 0)
      return leaky_relu(dots(a.reference, 0, x.reference, e.src, h) + y.reference(e.dst, h), slope);
    if (kind == 1)
      return sum(dim, [&](Index d) {
        const Index j = h * dim + d;
        return a.reference(0, j) * leaky_relu(x.reference(e.src, j) + y.reference(e.dst, j), slope);
      });
    const Number dot = dots(x.reference, e.src, y.reference, e.dst, h);
    if (kind == 2) return dot * 0.5;
    return a.reference(0, 0) * dot /
           sqrt(dots(x.reference, e.src, x.reference, e.src, 0) *
                dots(y.reference, e.dst, y.reference, e.dst, 0));
  });
  alpha = dropped(softmax(s.dense, alpha), options.dropout, options.dropout_key);
  const Index value_dim = value.cols() / heads;
  Matrix reference = aggregate(s.dense, Reduce::sum, value.cols(), [&](const Edge& e, Index j) {
    const Number m = alpha(e.id, j / value_dim) * value.reference(e.src, j);
    return weight.defined() ? m * weight.reference(e.id, 0) : m;
  });
  if (bias.defined())
    reference = matrix(reference.rows(), reference.cols(),
                       [&](Index v, Index j) { return reference(v, j) + bias.reference(0, j); });

  const Variable vector = reshape(a.ours, kind == 3 ? Shape{1} : Shape{1, heads, dim});
  Variable ours = kind == 0   ? gat_attention(s.graph, cut(x, heads), vector, y.ours, slope, options)
                  : kind == 1 ? gatv2_attention(s.graph, cut(x, heads), cut(y, heads), vector, slope, options)
                  : kind == 2 ? dot_attention(s.graph, cut(x, heads), cut(y, heads),
                                              has_value ? cut(value, heads) : Variable(), real(0.5), options)
                              : cosine_attention(s.graph, x.ours, y.ours, vector, options);
  return {flat(std::move(ours), value.cols()), std::move(reference)};
}

}  // namespace

Both projected(Problem& problem, const Both& x, Index cols) {
  const Both weight = problem.parameter(cols, x.cols()), bias = problem.parameter(1, cols);
  return {linear(x.ours, weight.ours, reshape(bias.ours, {cols})),
          linear(x.reference, weight.reference, bias.reference)};
}

Both Step::edge_rows(Index cols, double low, double high) {
  Both rows = problem.edge_rows(relation, cols, low, high);
  if (mfg) rows.ours = gather_rows(rows.ours, mfg->edge_rows());
  return rows;
}

Both apply_operation(Step& step) {
  return step.draw.one_of({built_in_message, built_in_message, by_edges, user_message, attention})(step);
}

}  // namespace sar::test
