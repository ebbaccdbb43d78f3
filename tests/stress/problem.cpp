// SPDX-License-Identifier: MIT
#include "stress/problem.hpp"

#include "support/reference.hpp"

#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <sstream>

namespace sar::test {
namespace {

std::size_t at(Index i) {
  return static_cast<std::size_t>(i);
}

std::vector<Index> all_rows(Index n) {
  std::vector<Index> rows(at(n));
  std::iota(rows.begin(), rows.end(), Index{0});
  return rows;
}

/// max |ours - expected(i)|; infinity when a value is not finite.
template <class F>
double largest_difference(const Tensor& ours, const F& expected) {
  double error = 0;
  for (Index i = 0; i < ours.size(); ++i) {
    const double value = ours.data()[i];
    error = std::isfinite(value) ? std::max(error, std::abs(value - expected(i))) : HUGE_VAL;
  }
  return error;
}

}  // namespace

Tensor to_tensor(const Matrix& x, const std::vector<Index>& rows) {
  Tensor result({static_cast<Index>(rows.size()), x.cols()});
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (Index j = 0; j < x.cols(); ++j)
      result.row(static_cast<Index>(i))[j] = static_cast<real>(x(rows[i], j).value());
  return result;
}

Problem::Problem(const Communicator& comm, std::uint64_t seed, std::uint64_t attempt)
    : draw({.seed = seed, .stream = 4711, .step = attempt}), comm_(comm) {
  Number::clear();
  const Index num_kinds = draw.integer(1, 2);
  for (Index k = 0; k < num_kinds; ++k) draw_nodes();
  const Index num_relations = draw.integer(1, 3);
  for (Index r = 0; r < num_relations; ++r) draw_relation();
}

void Problem::draw_nodes() {
  const Index n = draw.chance(0.1) ? 1 : draw.integer(2, draw.one_of<Index>({8, 40, 200}));
  const int ranks = comm_.size();
  // any owner; the first half of the ranks; a single one
  const Index first = draw.integer(0, ranks - 1);
  const Index owners = draw.one_of<Index>({ranks, std::max(1, ranks / 2), 1});
  std::vector<std::vector<Index>> owned(at(ranks));
  for (Index v = 0; v < n; ++v) {
    auto& nodes = owned[at((first + draw.integer(0, owners - 1)) % ranks)];
    nodes.insert(nodes.begin() + draw.integer(0, static_cast<Index>(nodes.size())), v);
  }
  NodeKind kind;
  kind.new_id.resize(at(n));
  std::vector<Index> offsets{0};
  for (const auto& nodes : owned) {
    for (std::size_t i = 0; i < nodes.size(); ++i)
      kind.new_id[at(nodes[i])] = offsets.back() + static_cast<Index>(i);
    offsets.push_back(offsets.back() + static_cast<Index>(nodes.size()));
  }
  kind.book = PartitionBook(offsets);
  kind.mine = owned[at(comm_.rank())];
  says << n << " nodes on " << owners << " ranks; ";
  kinds.push_back(std::move(kind));
}

void Problem::draw_relation() {
  const auto src_kind = at(draw.integer(0, static_cast<Index>(kinds.size()) - 1));
  const auto dst_kind = at(draw.integer(0, static_cast<Index>(kinds.size()) - 1));
  const NodeKind& from = kinds[src_kind];
  const NodeKind& to = kinds[dst_kind];
  DenseGraph g{.num_src = from.size(), .num_dst = to.size(), .one_kind = src_kind == dst_kind};
  const Index limit = draw.one_of<Index>({0, 3, g.num_dst, 4 * g.num_dst, 4 * g.num_dst});
  // a part of the nodes stays isolated, and one may be a hub
  const Index sources = draw.integer(1, g.num_src), destinations = draw.integer(1, g.num_dst);
  const double hub_src = draw.one_of({0.0, 0.4}), hub_dst = draw.one_of({0.0, 0.4});
  const double loops = draw.one_of({0.0, 0.2}), parallel = draw.one_of({0.0, 0.3});
  for (Index k = 0; k < limit; ++k) {
    Edge e{draw.chance(hub_src) ? 0 : draw.integer(0, sources - 1),
           draw.chance(hub_dst) ? 0 : draw.integer(0, destinations - 1), k};
    if (g.one_kind && draw.chance(loops)) e.src = e.dst;
    if (k > 0 && draw.chance(parallel)) e = {g.edges.back().src, g.edges.back().dst, k};
    g.edges.push_back(e);
  }
  g.num_ids = limit;
  g.count_degrees();

  EdgeList mine;
  for (const Edge& e : g.edges) {
    if (to.book.owner(to.new_id[at(e.dst)]) != comm_.rank()) continue;
    mine.src.push_back(from.new_id[at(e.src)]);
    mine.dst.push_back(to.new_id[at(e.dst)]);
    mine.id.push_back(e.id);
  }
  for (std::size_t i = mine.id.size(); i > 1; --i) {  // in any order
    const std::size_t j = at(static_cast<Index>(Random({1, 2, 3}).uniform(i) * static_cast<double>(i)));
    std::swap(mine.src[i - 1], mine.src[j]);
    std::swap(mine.dst[i - 1], mine.dst[j]);
    std::swap(mine.id[i - 1], mine.id[j]);
  }
  says << "relation " << src_kind << "->" << dst_kind << " with " << limit << " edges; ";
  const auto ids = [](const NodeKind& kind) { return Array<Index>(kind.mine.begin(), kind.mine.end()); };
  relations.push_back(
      {src_kind, dst_kind, std::move(g),
       Graph(comm_, from.book, to.book, std::move(mine), src_kind == dst_kind, {}, ids(from), ids(to))});
}

Matrix Problem::random_matrix(Index rows, Index cols, double low, double high) {
  return matrix(rows, cols, [&](Index, Index) { return Number(static_cast<real>(draw.uniform(low, high))); });
}

Both Problem::leaf(std::string name, Matrix values, std::vector<Index> mine, bool is_parameter,
                   bool wants_gradient) {
  Both rows;
  rows.ours = Variable(to_tensor(values, mine), wants_gradient);
  if (wants_gradient) values = map(values, [](Number x) { return Number::leaf(x.value()); });
  rows.reference = std::move(values);
  if (wants_gradient) leaves_.push_back({std::move(name), rows, std::move(mine), is_parameter});
  return rows;
}

Both Problem::node_rows(const NodeKind& kind, Index cols) {
  const bool wants = draw.chance(0.7);
  return leaf("node rows", random_matrix(kind.size(), cols), kind.mine, false, wants);
}

Both Problem::edge_rows(const Relation& relation, Index cols, double low, double high) {
  const bool wants = draw.chance(0.7);
  const Array<Index>& ids = relation.graph.edge_ids();
  return leaf("edge rows", random_matrix(relation.dense.num_ids, cols, low, high),
              std::vector<Index>(ids.begin(), ids.end()), false, wants);
}

Both Problem::parameter(Index rows, Index cols) {
  return leaf("parameter", random_matrix(rows, cols), all_rows(rows), true, true);
}

std::map<std::string, Matrix> Problem::adopt(const std::shared_ptr<Module>& module) {
  std::map<std::string, Matrix> parameters;
  for (auto& [name, variable] : module->named_parameters()) {
    const Shape& shape = variable.shape();
    const Index rows = shape.dims() == 1 ? 1 : shape[0];
    Both rows_of = parameter(rows, shape.size() / rows);
    variable.value().copy_from(rows_of.ours.value().reshape(shape));
    leaves_.back().name = name;
    leaves_.back().rows.ours = variable;
    parameters[name] = std::move(rows_of.reference);
  }
  keep(module);
  return parameters;
}

std::string Problem::compare(const std::vector<std::pair<const NodeKind*, Both>>& results) {
  std::ostringstream errors;
  const auto note = [&](const std::string& what, double error, double scale) {
    if (!(error <= tolerance() * std::max(scale, 1.0))) errors << what << " off by " << error << "; ";
  };
  Variable loss = Tensor::zeros({1});
  for (const auto& [kind, rows] : results) {
    const Matrix weight = random_matrix(kind->size(), rows.cols());
    double scale = 0;
    for (std::size_t i = 0; i < rows.reference.numbers().size(); ++i) {
      rows.reference.numbers()[i].seed(weight.numbers()[i].value());
      scale = std::max(scale, std::abs(rows.reference.numbers()[i].value()));
    }
    const bool fits = rows.ours.shape() == Shape{static_cast<Index>(kind->mine.size()), rows.cols()};
    note("result",
         fits ? largest_difference(rows.ours.value(),
                                   [&, k = kind, &r = rows](Index i) {
                                     return r.reference(k->mine[at(i / r.cols())], i % r.cols()).value();
                                   })
              : HUGE_VAL,
         scale);
    if (!fits) return errors.str();
    loss = loss + sum(rows.ours * Variable(to_tensor(weight, kind->mine)));
  }
  Number::backward();
  if (loss.requires_grad()) Tape::current()->backward(loss);

  for (Leaf& leaf : leaves_) {
    double scale = 0;
    for (const Number& x : leaf.rows.reference.numbers()) scale = std::max(scale, std::abs(x.gradient()));
    Tensor grad = leaf.rows.ours.grad();
    if (!grad.defined()) grad = Tensor::zeros(leaf.rows.ours.shape());
    if (leaf.is_parameter) {
      grad = grad.clone();
      comm_.all_reduce(grad.values());
    }
    const Index cols = leaf.rows.cols();
    note(
        "gradient of " + leaf.name,
        largest_difference(
            grad, [&](Index i) { return leaf.rows.reference(leaf.mine[at(i / cols)], i % cols).gradient(); }),
        scale);
  }
  return errors.str();
}

}  // namespace sar::test
