#include "train_models.hpp"

#include <sar/sar.hpp>

#include <algorithm>
#include <utility>

namespace sar::tools {
namespace {

/// `call(conv, graph, h, relations)` applies it.
template <class Conv, class Call>
Convolution convolution(std::unique_ptr<Conv> conv, Call call) {
  const auto apply = [&c = *conv, call](const GraphShardManager& graph, const Variable& h,
                                        const Relations& relations) { return call(c, graph, h, relations); };
  return {std::move(conv), apply};
}

/// For convolutions whose third argument is the weight of the edges.
constexpr auto weighted = [](auto& conv, const GraphShardManager& graph, const Variable& h,
                             const Relations&) { return conv(graph, h, graph.edge_weight()); };

/// [n, heads, features] -> [n, heads * features], or the mean of the heads [n, features]
Variable join(Variable y, bool mean) {
  if (mean) return head_mean(std::move(y));
  const Shape shape{y.num_rows(), y.shape().row_size()};
  return reshape(std::move(y), shape);
}

Convolution make_sage(const LayerSize& size, const ModelOptions&, const Communicator&, Generator& gen) {
  return convolution(
      std::make_unique<SAGEConv>(size.in, size.out(), gen, SAGEConvOptions{.cached = size.cached}), weighted);
}

Convolution make_gcn(const LayerSize& size, const ModelOptions&, const Communicator&, Generator& gen) {
  return convolution(
      std::make_unique<GraphConv>(size.in, size.out(), gen, GraphConvOptions{.cached = size.cached}),
      weighted);
}

Convolution make_gat(const LayerSize& size, const ModelOptions& o, const Communicator&, Generator& gen) {
  return convolution(
      std::make_unique<GATConv>(size.in, size.head, size.heads, gen,
                                GATConvOptions{.attn_drop = o.attention_dropout, .residual = size.residual}),
      [mean = size.mean](GATConv& conv, const GraphShardManager& graph, const Variable& h, const Relations&) {
        return join(conv(graph, h, graph.edge_weight()), mean);
      });
}

Convolution make_gatv2(const LayerSize& size, const ModelOptions& o, const Communicator&, Generator& gen) {
  return convolution(std::make_unique<GATv2Conv>(
                         size.in, size.head, size.heads, gen,
                         GATv2ConvOptions{.attn_drop = o.attention_dropout, .residual = size.residual}),
                     [mean = size.mean](GATv2Conv& conv, const GraphShardManager& graph, const Variable& h,
                                        const Relations&) { return join(conv(graph, h), mean); });
}

Convolution make_gin(const LayerSize& size, const ModelOptions& o, const Communicator& comm, Generator& gen) {
  auto mlp = std::make_shared<Sequential>();
  mlp->emplace_back<Linear>(size.in, o.hidden, gen);
  mlp->emplace_back<DistributedBN1D>(o.hidden, comm);
  mlp->push_back(relu);
  mlp->emplace_back<Linear>(o.hidden, size.out(), gen);
  return convolution(
      std::make_unique<GINConv>(std::move(mlp), GINConvOptions{.learn_eps = true, .cached = size.cached}),
      weighted);
}

Convolution make_rgcn(const LayerSize& size, const ModelOptions& o, const Communicator&, Generator& gen) {
  const Regularizer regularizer = o.num_bases > 0 ? Regularizer::basis : Regularizer::none;
  return convolution(std::make_unique<RelGraphConv>(
                         size.in, size.out(), o.num_rels, gen,
                         RelGraphConvOptions{.regularizer = regularizer, .num_bases = o.num_bases}),
                     [](RelGraphConv& conv, const GraphShardManager& graph, const Variable& h,
                        const Relations& edges) { return conv(graph, h, edges.types, edges.norm); });
}

Convolution make_hgt(const LayerSize& size, const ModelOptions& o, const Communicator&, Generator& gen) {
  return convolution(std::make_unique<HGTConv>(size.in, size.head, size.heads, std::ssize(o.node_types),
                                               std::ssize(o.edge_types), gen, HGTConvOptions{.dropout = 0}),
                     [](HGTConv& conv, const GraphShardManager& graph, const Variable& h,
                        const Relations& edges) { return conv(graph, h, edges.node_types, edges.types); });
}

/// Rows of the homogeneous form to rows of each type, through the layer, and back. A type that no relation
/// reaches has zeros afterwards.
Variable relation_by_relation(const HeteroGraphConv& conv, const Variable& h, const Relations& relations) {
  if (const auto& block = relations.block) return block->join(conv(*block, block->split(h)));
  const HeteroGraph& graph = *relations.graph;
  const HomogeneousForm& form = graph.to_homogeneous();
  HeteroGraphConv::Rows rows;
  for (const std::string& type : graph.node_types()) rows.emplace(type, form.rows_of(h, type));
  rows = conv(graph, rows);
  const Shape shape = rows.begin()->second.shape();
  for (const std::string& type : graph.node_types())
    if (!rows.contains(type))
      rows.emplace(type, Variable(Tensor::zeros(shape.with_rows(graph.num_local_nodes(type)))));
  return form.concat(rows);
}

/// A layer of type Conv for each relation, made from `args`. Its name is that of the relation, or where
/// several have it their canonical names.
template <class Conv, class... Args>
std::unique_ptr<HeteroGraphConv> conv_of_each(const ModelOptions& o, const Args&... args) {
  auto conv = std::make_unique<HeteroGraphConv>(RelationAggregate::sum);
  for (const EdgeType& type : o.edge_types) {
    const bool unique = std::ranges::count(o.edge_types, type.relation, &EdgeType::relation) == 1;
    conv->emplace_back<Conv>({type.source, unique ? type.relation : type.canonical_name(), type.destination},
                             args...);
  }
  return conv;
}

Convolution make_hetero_sage(const LayerSize& size, const ModelOptions& o, const Communicator&,
                             Generator& gen) {
  return convolution(conv_of_each<SAGEConv>(o, size.in, size.out(), std::ref(gen)),
                     [](HeteroGraphConv& conv, const GraphShardManager&, const Variable& h,
                        const Relations& edges) { return relation_by_relation(conv, h, edges); });
}

Convolution make_hetero_gat(const LayerSize& size, const ModelOptions& o, const Communicator&,
                            Generator& gen) {
  const GATConvOptions options{.attn_drop = o.attention_dropout};
  return convolution(conv_of_each<GATConv>(o, size.in, size.head, size.heads, std::ref(gen), options),
                     [mean = size.mean](HeteroGraphConv& conv, const GraphShardManager&, const Variable& h,
                                        const Relations& edges) {
                       return join(relation_by_relation(conv, h, edges), mean);
                     });
}

/// The parameter of that name, or none for "".
void add_parameter(const Module& module, const std::string& name, std::vector<Variable>& parameters) {
  if (name.empty()) return;
  const std::vector<NamedParameter> all = module.named_parameters();
  const auto found = std::ranges::find(all, name, &NamedParameter::name);
  require(found != all.end(), "the convolution has no parameter ", name);
  parameters.push_back(found->parameter);
}

}  // namespace

const std::vector<ModelType>& model_types() {
  static const std::vector<ModelType> types{
      {.name = "sage", .list = "convs", .caches = true, .bias = "fc_self.bias", .make = make_sage},
      {.name = "gcn",
       .list = "layers",
       .drops_inputs = true,
       .caches = true,
       .bias = "bias",
       .make = make_gcn},
      {.name = "gat",
       .list = "layers",
       .attends = true,
       .drops_inputs = true,
       .bias = "bias",
       .make = make_gat},
      {.name = "gatv2",
       .list = "layers",
       .attends = true,
       .drops_inputs = true,
       .bias = "",
       .make = make_gatv2},
      {.name = "gin",
       .list = "layers",
       .caches = true,
       .bias = "apply_func.3.bias",
       .inner_bias = "apply_func.0.bias",
       .make = make_gin},
      {.name = "rgcn", .list = "layers", .has_relations = true, .bias = "h_bias", .make = make_rgcn},
      {.name = "hgt",
       .list = "layers",
       .attends = true,
       .has_relations = true,
       .needs_types = true,
       .bias = "",
       .make = make_hgt},
      {.name = "hetero-sage",
       .list = "layers",
       .has_relations = true,
       .needs_types = true,
       .by_relation = true,
       .bias = "",
       .make = make_hetero_sage},
      {.name = "hetero-gat",
       .list = "layers",
       .attends = true,
       .has_relations = true,
       .needs_types = true,
       .by_relation = true,
       .bias = "",
       .make = make_hetero_gat},
  };
  return types;
}

const ModelType& model_type(const std::string& name) {
  const auto& types = model_types();
  const auto found = std::ranges::find(types, name, &ModelType::name);
  require<InputError>(found != types.end(), "there is no model ", name);
  return *found;
}

bool caches_features(const ModelOptions& o, Index in_feats, Index out_feats) {
  const ModelType& type = model_type(o.type);
  return type.caches && !(type.drops_inputs && o.dropout > 0) && in_feats <= out_feats;
}

std::vector<LayerSize> layer_sizes(const ModelOptions& o, Index in_feats, Index num_classes) {
  const bool attends = model_type(o.type).attends;
  require<InputError>(!attends || o.hidden % o.heads == 0, "--hidden ", o.hidden,
                      " is no multiple of --heads ", o.heads);
  std::vector<LayerSize> sizes;
  for (int i = 1; i <= o.layers; ++i) {
    const bool last = i == o.layers;
    LayerSize& size = sizes.emplace_back();
    size.in = i == 1 ? in_feats : o.hidden;
    if (attends) size.heads = last ? o.out_heads : o.heads;
    size.head = last ? num_classes : o.hidden / size.heads;
    size.mean = last && size.heads > 1;
    size.cached = i == 1 && o.cached && caches_features(o, size.in, size.out());
    size.residual = attends && o.first_residual > 0 && i >= o.first_residual;
  }
  return sizes;
}

std::string describe(const ModelOptions& o, Index in_feats, Index num_classes) {
  std::string text = concat(o.type, ": ", in_feats);
  for (const LayerSize& size : layer_sizes(o, in_feats, num_classes)) {
    text += concat(" -> ", size.out());
    if (size.heads > 1)
      text += size.mean ? concat(" (the mean of ", size.heads, " heads)")
                        : concat(" (", size.heads, " heads of ", size.head, ")");
    if (size.residual) text += " + residual";
  }
  return text;
}

void NodeClassifier::forget_noise() {
  for (Variable& bias : normalized_biases_) bias.zero_grad();
}

void NodeClassifier::ConvolutionList::push_back(Convolution convolution) {
  register_module(std::to_string(convolutions_.size()), *convolution.module);
  convolutions_.push_back(std::move(convolution));
}

NodeClassifier::NodeClassifier(const ModelOptions& options, Index in_feats, Index num_classes,
                               const Communicator& comm, Generator& gen)
    : options_(options),
      type_(model_type(options.type)),
      input_dropout_(type_.drops_inputs ? options.dropout : 0, gen) {
  register_module("input_dropout", input_dropout_);
  register_module(type_.list, convolutions_);
  register_module("bns", norms_);
  register_module("dropouts", dropouts_);
  for (const LayerSize& size : layer_sizes(options, in_feats, num_classes)) {
    convolutions_.push_back(type_.make(size, options, comm, gen));
    const Module& convolution = *convolutions_[convolutions_.size() - 1].module;
    add_parameter(convolution, type_.inner_bias, normalized_biases_);
    if (convolutions_.size() == static_cast<std::size_t>(options.layers)) break;
    // where the residual connection is a product, it has the bias (gatv2: one more)
    const bool projects = size.residual && size.in != size.out();
    if (options.batch_norm)
      add_parameter(convolution, projects ? "res_fc.bias" : type_.bias, normalized_biases_);
    if (options.batch_norm) norms_.emplace_back(options.hidden, comm);
    dropouts_.emplace_back(options.dropout, gen);
  }
}

Variable NodeClassifier::operator()(const LayerGraphs& graphs, const Variable& x,
                                    std::span<const Relations> relations) {
  return after_layer(options_.layers, graphs, x, relations);
}

Variable NodeClassifier::after_layer(int layer, const LayerGraphs& graphs, const Variable& x,
                                     std::span<const Relations> relations) {
  static const Relations no_relations;
  Variable h = input_dropout_.is_active() ? input_dropout_(x, graphs[0].src_ids()) : x;
  for (int i = 0;; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const GraphShardManager& graph = graphs[at];
    h = convolutions_[at].apply(
        graph, h, relations.empty() ? no_relations : relations[std::min(at, relations.size() - 1)]);
    if (i + 1 == options_.layers) return h;
    if (options_.batch_norm)
      h = batch_norm_relu_dropout(std::move(h), norms_[at], dropouts_[at], graph.dst_ids());
    else if (type_.attends)
      h = dropouts_[at](elu(std::move(h)), graph.dst_ids());
    else
      h = relu_dropout(std::move(h), dropouts_[at], graph.dst_ids());
    if (i + 1 == layer) return h;
  }
}

}  // namespace sar::tools
