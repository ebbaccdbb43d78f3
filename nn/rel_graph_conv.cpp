#include <sar/nn/aggregate.hpp>
#include <sar/nn/rel_graph_conv.hpp>

#include <vector>

namespace sar::inline SAR_PRECISION {

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

  const bool basis = options.regularizer == Regularizer::basis, bdd = options.regularizer == Regularizer::bdd;
  require<InputError>(!bdd || (in_feats % bases == 0 && out_feats % bases == 0), "RelGraphConv from ",
                      in_feats, " to ", out_feats, " features in ", bases, " blocks");
  linear_r_.weight =
      Variable(init::linear_uniform(bdd ? Shape{num_relations, in_feats * out_feats / bases}
                                        : Shape{basis ? bases : num_relations, in_feats, out_feats},
                                    bdd ? in_feats / bases : in_feats, gen.next_stream()),
               true);
  const auto xavier = [&](const Shape& shape) {
    return Variable(init::xavier_uniform(shape, init::relu_gain, gen.next_stream()), true);
  };
  if (basis) linear_r_.coeff = xavier({num_relations, bases});
  if (options.bias) {
    h_bias_ = Variable(Tensor::zeros({out_feats}), true);
    register_parameter("h_bias", h_bias_);
  }
  if (options.self_loop) {
    loop_weight_ = xavier({in_feats, out_feats});
    register_parameter("loop_weight", loop_weight_);
  }
  linear_r_.register_parameter("W", linear_r_.weight);
  if (linear_r_.coeff.defined()) linear_r_.register_parameter("coeff", linear_r_.coeff);
  register_module("linear_r", linear_r_);
  if (options.layer_norm) {
    layer_norm_.emplace(out_feats);
    register_module("layer_norm_weight", *layer_norm_);
  }
  register_module("dropout", dropout_);
}

void RelGraphConv::check(const GraphShardManager& graph, const Variable& feat, const RowIds& etypes,
                         const Variable& norm) const {
  require_block(graph, "RelGraphConv");
  require_rows(feat, graph.num_src_nodes(), in_feats_, "RelGraphConv, features");
  require<ShapeError>(etypes.size() == graph.num_edges(), "RelGraphConv got ", etypes.size(),
                      " edge types for ", graph.num_edges(), " edges");
  for (const Index type : etypes.span())
    require<InputError>(0 <= type && type < num_relations_, "RelGraphConv got the edge type ", type,
                        ", there are ", num_relations_);
  if (norm.defined()) require_rows(norm, graph.num_edges(), 1, "RelGraphConv, edge norms");
}

Variable RelGraphConv::operator()(const GraphShardManager& graph, const Variable& feat, const RowIds& etypes,
                                  const Variable& norm) {
  return graph.comm().agree([&] {
    check(graph, feat, etypes, norm);
    Variable y = options_.regularizer == Regularizer::basis ? by_basis(graph, feat, etypes, norm)
                                                            : by_type(graph, feat, etypes, norm);
    if (layer_norm_) y = (*layer_norm_)(std::exchange(y, {}));
    if (h_bias_.defined()) y = add(std::exchange(y, {}), h_bias_);
    if (loop_weight_.defined())
      y = add(std::exchange(y, {}), matmul(first_rows(feat, graph.num_dst_nodes()), loop_weight_));
    if (options_.activation) y = options_.activation(std::exchange(y, {}));
    return dropout_(std::move(y), graph.dst_ids());
  });
}

// sum_e c_e x_u sum_b a_rb V_b = sum_b (sum_e (c_e a_rb) x_u) V_b
Variable RelGraphConv::by_basis(const GraphShardManager& graph, const Variable& feat, const RowIds& etypes,
                                const Variable& norm) const {
  const Index bases = options_.num_bases;
  Variable coefficients = gather_rows(linear_r_.coeff, etypes);
  if (norm.defined()) coefficients = mul(std::exchange(coefficients, {}), norm);
  const Variable sums =
      graph.update_all(fn::u_mul_e(reshape(feat, {feat.num_rows(), 1, in_feats_}),
                                   reshape(std::move(coefficients), {graph.num_edges(), bases, 1})),
                       fn::sum);
  return matmul(reshape(sums, {graph.num_dst_nodes(), bases * in_feats_}),
                reshape(linear_r_.weight, {bases * in_feats_, out_feats_}));
}

Variable RelGraphConv::by_type(const GraphShardManager& graph, const Variable& feat, const RowIds& etypes,
                               const Variable& norm) const {
  const bool bdd = options_.regularizer == Regularizer::bdd;
  const Index blocks = options_.num_bases;
  const Variable weight =
      bdd ? reshape(linear_r_.weight, {num_relations_, blocks, in_feats_ / blocks, out_feats_ / blocks})
          : linear_r_.weight;
  return graph.update_all(
      [=](const EdgeBatch& edges) {
        std::vector<Index> types;
        const RowIds rows = edges.rows();
        types.reserve(edges.num_edges());
        for (const Index row : rows.span()) types.push_back(etypes.span()[row]);
        Variable y = gather_mm(edges.src(feat), weight, types);
        return norm.defined() ? mul(std::move(y), edges.edata(norm)) : y;
      },
      fn::sum);
}

}  // namespace sar
