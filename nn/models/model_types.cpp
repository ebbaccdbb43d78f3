// SPDX-License-Identifier: MIT

// The types of networks, with a row for each. A convolution that descriptions, `train` and C shall know is a
// function that makes it and a row of model_types().
#include <sar/autograd/ops.hpp>
#include <sar/core/error.hpp>
#include <sar/graph/hetero/homogeneous_form.hpp>
#include <sar/nn/conv/gat_conv.hpp>
#include <sar/nn/conv/gin_conv.hpp>
#include <sar/nn/conv/hetero_graph_conv.hpp>
#include <sar/nn/conv/hgt_conv.hpp>
#include <sar/nn/conv/rel_graph_conv.hpp>
#include <sar/nn/conv/sage_conv.hpp>
#include <sar/nn/models/gcn_norm.hpp>
#include <sar/nn/models/model_description.hpp>
#include <sar/nn/models/relations.hpp>
#include <sar/nn/modules/linear.hpp>
#include <sar/nn/modules/norms.hpp>

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// Wraps a convolution that `call(conv, graph, x, relations)` applies. Heads of the result, [n, heads,
/// features], are put side by side or averaged.
template <class Conv, class Call>
StackConvolution convolution(std::unique_ptr<Conv> conv, const LayerPlan& plan, Call call) {
  const auto apply = [&c = *conv, call, mean = plan.size.mean](const Graph& graph, const Variable& x,
                                                               const GraphRelations& relations,
                                                               const Linear* residual) {
    Variable y = call(c, graph, x, relations);
    if (y.shape().dims() == 3 && mean) y = head_mean(std::move(y));
    if (y.shape().dims() == 3) {
      const Shape side_by_side{y.num_rows(), y.shape().row_size()};
      y = reshape(std::move(y), side_by_side);
    }
    return residual == nullptr ? y : residual->add_to(std::move(y), slice_rows(x, 0, graph.num_dst_nodes()));
  };
  return {std::move(conv), apply};
}

/// Wraps a convolution with the arguments edge weight and residual connection.
template <class Conv>
StackConvolution residual_convolution(std::unique_ptr<Conv> conv) {
  const auto apply = [&c = *conv](const Graph& graph, const Variable& x, const GraphRelations&,
                                  const Linear* residual) {
    return c(graph, x, graph.edge_weight(), residual);
  };
  return {std::move(conv), apply};
}

/// Calls a convolution whose third argument is the edge weight.
constexpr auto weighted = [](auto& conv, const Graph& graph, const Variable& x, const GraphRelations&) {
  return conv(graph, x, graph.edge_weight());
};

constexpr EnumName<SAGEAggregator> sage_aggregators[] = {{SAGEAggregator::mean, "mean"},
                                                         {SAGEAggregator::gcn, "gcn"},
                                                         {SAGEAggregator::pool, "pool"},
                                                         {SAGEAggregator::lstm, "lstm"}};

template <class Enum, std::size_t n>
std::vector<std::string> names_of(const EnumName<Enum> (&names)[n]) {
  std::vector<std::string> all;
  for (const EnumName<Enum>& each : names) all.emplace_back(each.name);
  return all;
}

template <class Enum, std::size_t n>
Enum value_of(const EnumName<Enum> (&names)[n], const std::string& name) {
  return std::ranges::find(names, name, &EnumName<Enum>::name)->value;
}

StackConvolution make_sage(const LayerPlan& plan) {
  const auto& [d, size, comm, gen] = plan;
  const SAGEConvOptions options{.aggregator = value_of(sage_aggregators, d.aggregator),
                                .cached = size.cached};
  return residual_convolution(std::make_unique<SAGEConv>(size.in, size.out(), gen, options));
}

StackConvolution make_gcn(const LayerPlan& plan) {
  const auto& [d, size, comm, gen] = plan;
  const GraphConvOptions options{.norm = graph_conv_norm(d.gcn_norm), .cached = size.cached};
  return residual_convolution(std::make_unique<GraphConv>(size.in, size.out(), gen, options));
}

StackConvolution make_gat(const LayerPlan& plan) {
  const auto& [d, size, comm, gen] = plan;
  const GATConvOptions options{.attn_drop = d.attention_dropout,
                               .residual = size.residual == LayerResidual::own};
  return convolution(std::make_unique<GATConv>(size.in, size.head, size.heads, gen, options), plan, weighted);
}

StackConvolution make_gatv2(const LayerPlan& plan) {
  const auto& [d, size, comm, gen] = plan;
  const GATv2ConvOptions options{.attn_drop = d.attention_dropout,
                                 .residual = size.residual == LayerResidual::own};
  return convolution(std::make_unique<GATv2Conv>(size.in, size.head, size.heads, gen, options), plan,
                     [](GATv2Conv& conv, const Graph& graph, const Variable& x, const GraphRelations&) {
                       return conv(graph, x);
                     });
}

StackConvolution make_gin(const LayerPlan& plan) {
  const auto& [d, size, comm, gen] = plan;
  auto network = std::make_shared<Sequential>();
  network->emplace_back<Linear>(size.in, d.hidden, gen);
  network->emplace_back<DistributedBN1D>(d.hidden, comm);
  network->push_back(relu);
  network->emplace_back<Linear>(d.hidden, size.out(), gen);
  if (d.edge_feats > 0)
    return convolution(std::make_unique<GINEConv>(size.in, d.edge_feats, std::move(network), gen,
                                                  GINEConvOptions{.learn_eps = true}),
                       plan,
                       [](GINEConv& conv, const Graph& graph, const Variable& x,
                          const GraphRelations& relations) { return conv(graph, x, relations.edge_feats); });
  const GINConvOptions options{
      .aggregator = value_of(reduce_names, d.aggregator), .learn_eps = true, .cached = size.cached};
  return convolution(std::make_unique<GINConv>(std::move(network), options), plan, weighted);
}

StackConvolution make_rgcn(const LayerPlan& plan) {
  const auto& [d, size, comm, gen] = plan;
  const RelGraphConvOptions options{.regularizer = d.num_bases > 0 ? Regularizer::basis : Regularizer::none,
                                    .num_bases = d.num_bases};
  return convolution(
      std::make_unique<RelGraphConv>(size.in, size.out(), d.num_rels, gen, options), plan,
      [](RelGraphConv& conv, const Graph& graph, const Variable& x, const GraphRelations& relations) {
        return conv(graph, x, relations.types, relations.norm);
      });
}

StackConvolution make_hgt(const LayerPlan& plan) {
  const auto& [d, size, comm, gen] = plan;
  return convolution(
      std::make_unique<HGTConv>(size.in, size.head, size.heads, std::ssize(d.node_types),
                                std::ssize(d.edge_types), gen, HGTConvOptions{.dropout = 0}),
      plan, [](HGTConv& conv, const Graph& graph, const Variable& x, const GraphRelations& relations) {
        return conv(graph, x, relations.node_types, relations.types);
      });
}

/// The weights of the relations that have some.
HeteroGraphConv::EdgeArguments weights_of(const Graph& graph) {
  HeteroGraphConv::EdgeArguments weights;
  for (const EdgeType& type : graph.edge_types())
    if (const Tensor& weight = graph[type].edge_weight(); weight.defined())
      weights.emplace(type.canonical_name(), weight);
  return weights;
}

/// Rows of the homogeneous form to rows of each type, through the layer, and back. A type that no relation
/// reaches has zeros afterwards.
Variable relation_by_relation(const HeteroGraphConv& conv, const Graph&, const Variable& x,
                              const GraphRelations& relations) {
  if (const auto& block = relations.block)
    return block->join(conv(*block, block->split(x), weights_of(*block)));
  const Graph& graph = *relations.graph;
  const HomogeneousForm& form = graph.to_homogeneous();
  HeteroGraphConv::Rows rows;
  for (const std::string& type : graph.node_types()) rows.emplace(type, form.rows_of(x, type));
  rows = conv(graph, rows, weights_of(graph));
  const Shape shape = rows.begin()->second.shape();
  for (const std::string& type : graph.node_types())
    if (!rows.contains(type))
      rows.emplace(type, Variable(Tensor::zeros(shape.with_rows(graph.num_nodes(type)))));
  return form.concat(rows);
}

/// A layer of type Conv for each relation, made from `args`. Its name is that of the relation, or where
/// several have it their canonical names.
template <class Conv, class... Args>
StackConvolution conv_of_each(const LayerPlan& plan, const Args&... args) {
  const std::vector<EdgeType>& types = plan.description.edge_types;
  auto conv = std::make_unique<HeteroGraphConv>(RelationAggregate::sum);
  std::map<std::string_view, int> counts;
  for (const EdgeType& type : types) ++counts[type.relation];
  for (const EdgeType& type : types) {
    const bool unique = counts[type.relation] == 1;
    conv->emplace_back<Conv>({type.source, unique ? type.relation : type.canonical_name(), type.destination},
                             args...);
  }
  return convolution(std::move(conv), plan, relation_by_relation);
}

StackConvolution make_hetero_sage(const LayerPlan& plan) {
  return conv_of_each<SAGEConv>(plan, plan.size.in, plan.size.out(), std::ref(plan.gen));
}

StackConvolution make_hetero_gat(const LayerPlan& plan) {
  const GATConvOptions options{.attn_drop = plan.description.attention_dropout};
  return conv_of_each<GATConv>(plan, plan.size.in, plan.size.head, plan.size.heads, std::ref(plan.gen),
                               options);
}

std::vector<ModelType> types_without_relations() {
  return {
      {.name = "sage",
       .aggregators = names_of(sage_aggregators),
       .make = make_sage,
       .list = "convs",
       .caches = true,
       .bias = "fc_self.bias",
       .multiplies_sparse = true,
       .dense_aggregators = {"lstm"}},
      {.name = "gcn",
       .keys = {"gcn_norm"},
       .make = make_gcn,
       .drops_inputs = true,
       .caches = true,
       .bias = "bias",
       .multiplies_sparse = true},
      {.name = "gat",
       .keys = {"heads", "out_heads", "attention_dropout"},
       .make = make_gat,
       .drops_inputs = true,
       .own_residual = true,
       .bias = "bias",
       .multiplies_sparse = true},
      {.name = "gatv2",
       .keys = {"heads", "out_heads", "attention_dropout"},
       .make = make_gatv2,
       .drops_inputs = true,
       .own_residual = true,
       .multiplies_sparse = true,
       .weightless = "GATv2Conv"},
      {.name = "gin",
       .keys = {"edge_feats"},
       .aggregators = names_of(reduce_names),
       .make = make_gin,
       .caches = true,
       .bias = "apply_func.3.bias",
       .inner_bias = "apply_func.0.bias",
       .multiplies_sparse = true,
       .dense_aggregators = {"max", "min"}},
      {.name = "mesh_graph_net",
       .keys = {"edge_feats", "mlp_layers", "normalize"},
       .weightless = "MeshGraphNet"},
  };
}

std::vector<ModelType> types_with_relations() {
  return {
      {.name = "rgcn", .keys = {"num_bases"}, .make = make_rgcn, .bias = "h_bias", .has_relations = true},
      {.name = "hgt",
       .keys = {"heads"},
       .make = make_hgt,
       .weightless = "HGTConv",
       .has_relations = true,
       .needs_types = true},
      {.name = "hetero-sage",
       .make = make_hetero_sage,
       .bias = "fc_self.bias",
       .multiplies_sparse = true,
       .has_relations = true,
       .needs_types = true,
       .by_relation = true},
      {.name = "hetero-gat",
       .keys = {"heads", "out_heads", "attention_dropout"},
       .make = make_hetero_gat,
       .bias = "bias",
       .multiplies_sparse = true,
       .has_relations = true,
       .needs_types = true,
       .by_relation = true},
  };
}

std::vector<ModelType> potential_types() {
  return {
      {.name = "painn",
       .keys = {"species", "cutoff", "num_basis", "radial_basis", "cutoff_function", "zbl_inner", "zbl_outer",
                "norm_epsilon", "energy_shifts", "energy_scales", "committee", "deviation_scales"},
       .weightless = "PaiNN",
       .is_potential = true},
      {.name = "mace",
       .keys = {"species",       "cutoff",         "num_basis",       "max_l",        "hidden_l",
                "correlation",   "residual_first", "density",         "cutoff_power", "distance_transform",
                "radial_hidden", "radial_layers",  "readout_hidden",  "neighbors",    "covalent_radii",
                "zbl_power",     "zbl_scale",      "zbl_inner",       "zbl_outer",    "energy_shifts",
                "energy_scales", "committee",      "deviation_scales"},
       .weightless = "MACE",
       .is_potential = true}};
}

}  // namespace

const std::vector<ModelType>& model_types() {
  static const std::vector<ModelType> types = [] {
    std::vector<ModelType> all = types_without_relations();
    std::ranges::move(types_with_relations(), std::back_inserter(all));
    std::ranges::move(potential_types(), std::back_inserter(all));
    return all;
  }();
  return types;
}
}}  // namespace sar
