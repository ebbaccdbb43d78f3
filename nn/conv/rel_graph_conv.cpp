// SPDX-License-Identifier: MIT

// One typed_sum(), which adds the source rows per destination and type before it multiplies; without layer
// norm, the self term is computed while its rows are in flight. by_basis() sums rows per basis instead, as
// a user-defined message of [edges of a chunk, bases, in], and multiplies the sums once. With bases, it is
// chosen where relations x out is larger than bases x (mean destinations of a rank) and than 2^16.
#include <sar/autograd/op_support.hpp>
#include <sar/graph/message/typed_sum.hpp>
#include <sar/nn/conv/aggregate.hpp>
#include <sar/nn/conv/rel_graph_conv.hpp>

#include <algorithm>

namespace sar { inline namespace SAR_PRECISION {

RelGraphConv::RelGraphConv(Index in_feats, Index out_feats, Index num_relations, Generator& gen,
                           const RelGraphConvOptions& options)
    : in_feats_(in_feats),
      out_feats_(out_feats),
      num_relations_(num_relations),
      options_(options),
      dropout_(options.dropout, gen) {
  require<InputError>(in_feats > 0 && out_feats > 0 && num_relations > 0 && options.num_bases >= 0,
                      "RelGraphConv from ", in_feats, " to ", out_feats, " features with ", num_relations,
                      " relations and ", options.num_bases, " bases");
  if (options_.num_bases == 0) options_.num_bases = num_relations;
  const Index bases = options_.num_bases;

  const bool bdd = options.regularizer == Regularizer::bdd;
  require<InputError>(!bdd || (in_feats % bases == 0 && out_feats % bases == 0), "RelGraphConv from ",
                      in_feats, " to ", out_feats, " features in ", bases, " blocks");
  make_module("linear_r", linear_r_, in_feats, out_feats, num_relations, gen,
              TypedLinearOptions{.regularizer = options.regularizer, .num_bases = bases});
  if (options.bias) register_parameter("h_bias", h_bias_, Tensor::zeros({out_feats}));
  if (options.self_loop)
    register_parameter("loop_weight", loop_weight_,
                       init::xavier_uniform({in_feats, out_feats}, init::relu_gain, gen.next_stream()));
  if (options.layer_norm) make_module("layer_norm_weight", layer_norm_, out_feats);
  register_module("dropout", dropout_);
}

Variable RelGraphConv::operator()(const Graph& graph, const Variable& feat, const EdgeTypes& etypes,
                                  const Variable& norm) {
  return graph.comm().agree([&] {
    require_block(graph, "RelGraphConv");
    require_rows(feat, graph.num_src_nodes(), in_feats_, "RelGraphConv, features");
    if (norm.defined()) require_rows(norm, graph.num_edges(), 1, "RelGraphConv, edge norms");
    const EdgeTypes types = etypes.checked(graph.num_edges(), num_relations_, "RelGraphConv");
    const auto self_term = [&](NumberType type) -> Variable {
      if (!loop_weight_.defined()) return {};
      return affine(dst_rows(graph, feat), loop_weight_, h_bias_, type);
    };
    const bool by_bases = sums_by_basis(graph), early = !layer_norm_ && !by_bases;
    Variable y;
    if (by_bases) {
      y = by_basis(graph, feat, types, norm);
    } else {
      StartedSum sum = start_typed_sum(graph, feat, linear_r_->matrices(), types, norm);
      y = sum.finish(early ? self_term(sum.base_type()) : Variable());
    }
    if (layer_norm_) y = (*layer_norm_)(std::exchange(y, {}));
    if (!early && loop_weight_.defined()) y = add(std::exchange(y, {}), self_term(type_of_results()));
    if (!loop_weight_.defined() && h_bias_.defined()) y = add(std::exchange(y, {}), h_bias_);
    if (options_.activation) y = options_.activation(std::exchange(y, {}));
    return dropout_(std::move(y), graph.dst_ids());
  });
}

bool RelGraphConv::sums_by_basis(const Graph& graph) const {
  constexpr Index few = 1 << 16;
  if (graph.options().reproducible) return false;  // the choice would depend on the number of ranks
  const Index sums = graph.num_global_dst_nodes() / graph.comm().size() * options_.num_bases;
  return options_.regularizer == Regularizer::basis && num_relations_ * out_feats_ > std::max(sums, few);
}

// sum_e c_e x_u sum_b a_rb V_b = sum_b (sum_e (c_e a_rb) x_u) V_b
Variable RelGraphConv::by_basis(const Graph& graph, const Variable& feat, const EdgeTypes& etypes,
                                const Variable& norm) const {
  const Index bases = options_.num_bases;
  const Variable sums = graph.update_all(
      [=, in = in_feats_, coeff = linear_r_->coeff()](const EdgeBatch& edges) {
        Variable coefficients = gather_rows(coeff, etypes.of(edges.rows()));
        if (norm.defined()) coefficients = mul(std::exchange(coefficients, {}), edges.edata(norm));
        return mul(reshape(edges.src(feat), {edges.num_edges(), 1, in}),
                   reshape(std::move(coefficients), {edges.num_edges(), bases, 1}));
      },
      fn::sum);
  return matmul(reshape(sums, {graph.num_dst_nodes(), bases * in_feats_}),
                reshape(linear_r_->weight(), {bases * in_feats_, out_feats_}));
}
}}  // namespace sar
