// SPDX-License-Identifier: MIT
#include <sar/autograd/ops.hpp>
#include <sar/autograd/row_sums.hpp>
#include <sar/core/error.hpp>
#include <sar/nn/conv/aggregate.hpp>
#include <sar/nn/models/link_predictor.hpp>
#include <sar/nn/modules/reductions.hpp>
#include <sar/nn/train/loss.hpp>

#include <algorithm>
#include <cstdint>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

namespace {

void require_ends(const Variable& h_src, const Variable& h_dst, Index feats, const char* predictor) {
  require<ShapeError>(h_src.shape().dims() == 2 && h_src.shape() == h_dst.shape() &&
                          (feats == 0 || h_src.shape()[1] == feats),
                      predictor, ": the ends have shapes ", h_src.shape(), " and ", h_dst.shape(),
                      ", expected [pairs, ", feats == 0 ? "width" : std::to_string(feats), "] for both");
}

/// Rows of both ends on a graph.
struct Ends {
  Variable src, dst;
};

Ends ends_of(const Graph& graph, const NodeFeatures& h, Index feats, const char* predictor) {
  if (!h.pair()) require_block(graph, predictor);
  const std::string what = std::string(predictor) + ", representations";
  require_num_rows(h.src, graph.num_src_nodes(), what);
  Ends ends{h.src, dst_feats(graph, h)};
  require_rows(ends.src, graph.num_src_nodes(), feats == 0 ? ends.src.shape().row_size() : feats, what);
  require_rows(ends.dst, graph.num_dst_nodes(), ends.src.shape()[1], what);
  return ends;
}

void require_even(Index feats, const char* predictor) {
  require<InputError>(feats % 2 == 0, predictor, " with ", feats,
                      " features, expected an even number: real and imaginary parts");
}

/// Returns h w, or h conj(w), for each pair of rows of complex numbers (real parts, then imaginary parts).
Variable complex_product(const Variable& h, const Variable& w, bool conjugate) {
  const Index half = h.shape()[1] / 2;
  const Variable h_re = slice_columns(h, 0, half), h_im = slice_columns(h, half, 2 * half);
  const Variable w_re = slice_columns(w, 0, half), w_im = slice_columns(w, half, 2 * half);
  if (conjugate) return concat_columns({h_re * w_re + h_im * w_im, h_im * w_re - h_re * w_im});
  return concat_columns({h_re * w_re - h_im * w_im, h_re * w_im + h_im * w_re});
}

Variable compare(const Variable& query, const Variable& h, RowComparison comparison, real gamma) {
  if (comparison == RowComparison::dot) return sum(query * h, ReduceDim::columns);
  return gamma - row_distance(query, h, comparison);
}

Variable product_query(EdgeEnd, const Variable& h, const Variable& w) {
  return h * w;
}
Variable complex_query(EdgeEnd wanted, const Variable& h, const Variable& w) {
  return complex_product(h, w, wanted == EdgeEnd::source);
}
Variable translated_query(EdgeEnd wanted, const Variable& h, const Variable& w) {
  return wanted == EdgeEnd::destination ? h + w : h - w;
}

}  // namespace

Variable DotPredictor::operator()(const Variable& h_src, const Variable& h_dst) const {
  require_ends(h_src, h_dst, 0, "DotPredictor");
  return sum(mul(h_src, h_dst), ReduceDim::columns);
}

Variable DotPredictor::operator()(const Graph& graph, const NodeFeatures& h) const {
  return graph.comm().agree([&] {
    const Ends ends = ends_of(graph, h, 0, "DotPredictor");
    return graph.apply_edges(fn::u_dot_v(ends.src, ends.dst));
  });
}

MLPPredictor::MLPPredictor(Index feats, Generator& gen, const MLPPredictorOptions& options)
    : feats_(feats),
      w1_(2 * feats, options.hidden == 0 ? feats : options.hidden, gen),
      w2_(options.hidden == 0 ? feats : options.hidden, options.out, gen) {
  register_module("W1", w1_);
  register_module("W2", w2_);
}

Variable MLPPredictor::hidden_of_src(const Variable& h) const {
  return linear(h, slice_columns(w1_.weight(), 0, feats_));
}

Variable MLPPredictor::hidden_of_dst(const Variable& h) const {
  return linear(h, slice_columns(w1_.weight(), feats_, 2 * feats_), w1_.bias());
}

Variable MLPPredictor::operator()(const Variable& h_src, const Variable& h_dst) const {
  require_ends(h_src, h_dst, feats_, "MLPPredictor");
  return w2_(relu(hidden_of_src(h_src) + hidden_of_dst(h_dst)));
}

Variable MLPPredictor::operator()(const Graph& graph, const NodeFeatures& h) const {
  return graph.comm().agree([&] {
    const Ends ends = ends_of(graph, h, feats_, "MLPPredictor");
    const Variable u = hidden_of_src(ends.src), v = hidden_of_dst(ends.dst);
    return graph.apply_edges([u, v, weight = w2_.weight(), bias = w2_.bias()](const EdgeBatch& edges) {
      return linear(relu(edges.src(u) + edges.dst(v)), weight, bias);
    });
  });
}

RelationPredictor::RelationPredictor(const char* name, Index num_rels, Index width, Query make_query,
                                     RowComparison comparison, real gamma)
    : name_(name),
      num_rels_(num_rels),
      width_(width),
      query_(make_query),
      comparison_(comparison),
      gamma_(gamma) {
  require<InputError>(num_rels > 0 && width > 0, name, " with ", num_rels, " relations and ", width,
                      " features, expected positive numbers");
}

void RelationPredictor::start_relations(const char* name, const Tensor& values) {
  parameter_ = Variable(values, true);
  register_parameter(name, parameter_);
}

void RelationPredictor::require_relations(Index pairs, const RowIds& rels) const {
  require<ShapeError>(rels.size() == pairs, name_, ": ", rels.size(), " relations for ", pairs, " pairs");
  for (const Index rel : rels.span())
    require<InputError>(rel >= 0 && rel < num_rels_, name_, ": relation ", rel, ", expected 0 to ",
                        num_rels_ - 1);
}

Variable RelationPredictor::query(EdgeEnd wanted, const Variable& h, RowIds rels) const {
  require<ShapeError>(h.shape().dims() == 2 && h.shape()[1] == width_, name_, ": the ends have shape ",
                      h.shape(), ", expected [pairs, ", width_, "]");
  require_relations(h.num_rows(), rels);
  return query_(wanted, h, gather_shared_rows(relations(), std::move(rels)));
}

Variable RelationPredictor::operator()(const Variable& h_src, const Variable& h_dst, RowIds rels) const {
  require_ends(h_src, h_dst, width_, name_);
  return compare(query(EdgeEnd::destination, h_src, std::move(rels)), h_dst, comparison_, gamma_);
}

Variable RelationPredictor::operator()(const Graph& graph, const NodeFeatures& h, RowIds rels) const {
  return graph.comm().agree([&] {
    const Ends ends = ends_of(graph, h, width_, name_);
    require_relations(graph.num_edges(), rels);
    return graph.apply_edges([ends, w = relations(), rels, make_query = query_, comparison = comparison_,
                              gamma = gamma_](const EdgeBatch& edges) {
      const RowIds rows = edges.rows();
      std::vector<Index> of_block;
      for (const Index row : rows.span()) of_block.push_back(rels.span()[static_cast<std::size_t>(row)]);
      const Variable of_edges = gather_shared_rows(w, std::move(of_block));
      return compare(make_query(EdgeEnd::destination, edges.src(ends.src), of_edges), edges.dst(ends.dst),
                     comparison, gamma);
    });
  });
}

DistMultPredictor::DistMultPredictor(Index num_rels, Index feats, Generator& gen)
    : RelationPredictor("DistMultPredictor", num_rels, feats, product_query, RowComparison::dot) {
  start_relations("w_relation", init::xavier_uniform({num_rels, feats}, init::relu_gain, gen.next_stream()));
}

ComplExPredictor::ComplExPredictor(Index num_rels, Index feats, Generator& gen)
    : RelationPredictor("ComplExPredictor", num_rels, feats, complex_query, RowComparison::dot) {
  require_even(feats, "ComplExPredictor");
  start_relations("w_relation", init::xavier_uniform({num_rels, feats}, init::relu_gain, gen.next_stream()));
}

TransEPredictor::TransEPredictor(Index num_rels, Index feats, Generator& gen, const TransEOptions& options)
    : RelationPredictor("TransEPredictor", num_rels, feats, translated_query,
                        options.norm == 1 ? RowComparison::l1 : RowComparison::l2, options.gamma) {
  require<InputError>(options.norm == 1 || options.norm == 2, "TransEPredictor: norm is ", options.norm,
                      ", expected 1 or 2");
  const double bound = std::abs((static_cast<double>(options.gamma) + 2) / static_cast<double>(feats));
  start_relations("w_relation", init::uniform({num_rels, feats}, bound, gen.next_stream()));
}

RotatEPredictor::RotatEPredictor(Index num_rels, Index feats, Generator& gen, real gamma)
    : RelationPredictor("RotatEPredictor", num_rels, feats, complex_query, RowComparison::modulus, gamma) {
  require_even(feats, "RotatEPredictor");
  start_relations("phase", init::uniform({num_rels, feats / 2}, std::numbers::pi, gen.next_stream()));
}

// link_bce_with_logits and info_nce are losses of nn/train/loss.hpp on rearranged scores: one column with
// targets 1 and 0, and rows [positive, its negatives] of class 0. link_margin is a mean over all ranks of
// differences.

namespace {

Variable column(const Variable& scores) {
  return reshape(scores, {scores.shape().size(), 1});
}

/// Returns the negatives as one row per positive: [n, k]. On a rank without positives the result has no rows.
Variable rows_of(const Variable& positive, const Variable& negative, const char* loss) {
  const Index n = positive.shape().size(), m = negative.shape().size();
  require<ShapeError>(n == 0 ? m == 0 : m % n == 0 && m > 0, loss, ": ", m, " negatives for ", n,
                      " positives, expected the same number, 1 or more, for each");
  return reshape(negative, {n, n == 0 ? Index{1} : m / n});
}

}  // namespace

Variable link_bce_with_logits(const Variable& positive, const Variable& negative, const Communicator& comm) {
  return comm.agree([&] {
    const CallScope compared(comm, CollectiveCall("link_bce_with_logits"));
    const Variable scores = concat_rows({column(positive), column(negative)});
    Tensor target = Tensor::zeros(scores.shape());
    std::fill_n(target.data(), positive.shape().size(), real{1});
    return bce_with_logits(scores, target, comm);
  });
}

Variable link_margin(const Variable& positive, const Variable& negative, const Communicator& comm,
                     double margin) {
  return comm.agree([&] {
    const CallScope compared(comm, CollectiveCall("link_margin").equal("margin", margin));
    const Variable rows = rows_of(positive, negative, "link_margin");
    return mean(relu(rows - column(positive) + static_cast<real>(margin)), comm);
  });
}

Variable info_nce(const Variable& positive, const Variable& negative, const Communicator& comm,
                  double temperature) {
  return comm.agree([&] {
    require<InputError>(temperature > 0, "info_nce: the temperature is ", temperature,
                        ", expected a positive number");
    const Variable rows = concat_columns({column(positive), rows_of(positive, negative, "info_nce")});
    const auto n = static_cast<std::size_t>(rows.num_rows());
    const std::vector<std::int64_t> first(n, 0);
    const std::vector<std::uint8_t> all(n, 1);
    return cross_entropy(rows * static_cast<real>(1 / temperature), first, all, comm,
                         CollectiveCall("info_nce").equal("temperature", temperature));
  });
}
}}  // namespace sar
