#include "train_models.hpp"

#include <sar/data.hpp>
#include <sar/models.hpp>

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

Convolution make_rgcn(const LayerSize& size, const ModelOptions& o, Generator& gen) {
  const Regularizer regularizer = o.num_bases > 0 ? Regularizer::basis : Regularizer::none;
  return convolution(std::make_unique<RelGraphConv>(
                         size.in, size.out(), o.num_rels, gen,
                         RelGraphConvOptions{.regularizer = regularizer, .num_bases = o.num_bases}),
                     [](RelGraphConv& conv, const GraphShardManager& graph, const Variable& h,
                        const Relations& edges) { return conv(graph, h, edges.types, edges.norm); });
}

Convolution make_hgt(const LayerSize& size, const ModelOptions& o, Generator& gen) {
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

Convolution make_hetero_sage(const LayerSize& size, const ModelOptions& o, Generator& gen) {
  return convolution(conv_of_each<SAGEConv>(o, size.in, size.out(), std::ref(gen)),
                     [](HeteroGraphConv& conv, const GraphShardManager&, const Variable& h,
                        const Relations& edges) { return relation_by_relation(conv, h, edges); });
}

Convolution make_hetero_gat(const LayerSize& size, const ModelOptions& o, Generator& gen) {
  const GATConvOptions options{.attn_drop = o.attention_dropout};
  return convolution(conv_of_each<GATConv>(o, size.in, size.head, size.heads, std::ref(gen), options),
                     [mean = size.mean](HeteroGraphConv& conv, const GraphShardManager&, const Variable& h,
                                        const Relations& edges) {
                       return join_heads(relation_by_relation(conv, h, edges), mean);
                     });
}

/// Those that a description names, and those of graphs of many types.
std::vector<ModelType> make_model_types() {
  std::vector<ModelType> types;
  for (const StackType& stack : stack_types()) types.push_back({.stack = stack});
  types.push_back({.stack = {.name = "rgcn", .list = "layers", .bias = "h_bias"},
                   .has_relations = true,
                   .make = make_rgcn});
  types.push_back({.stack = {.name = "hgt", .list = "layers", .attends = true},
                   .has_relations = true,
                   .needs_types = true,
                   .make = make_hgt});
  types.push_back({.stack = {.name = "hetero-sage", .list = "layers"},
                   .has_relations = true,
                   .needs_types = true,
                   .by_relation = true,
                   .make = make_hetero_sage});
  types.push_back({.stack = {.name = "hetero-gat", .list = "layers", .attends = true},
                   .has_relations = true,
                   .needs_types = true,
                   .by_relation = true,
                   .make = make_hetero_gat});
  return types;
}

}  // namespace

const std::vector<ModelType>& model_types() {
  static const std::vector<ModelType> types = make_model_types();
  return types;
}

const ModelType& model_type(const std::string& name) {
  const auto& types = model_types();
  const auto found =
      std::ranges::find_if(types, [&](const ModelType& type) { return type.stack.name == name; });
  require<InputError>(found != types.end(), "there is no model ", name);
  return *found;
}

bool caches_features(const ModelOptions& o, Index in_feats, Index out_feats) {
  const StackType& type = model_type(o.type).stack;
  return type.caches && !(type.drops_inputs && o.dropout > 0) && in_feats <= out_feats;
}

ModelDescription description_of(const ModelOptions& o, Index in_feats, Index num_classes) {
  const bool attends = model_type(o.type).stack.attends;
  return {.type = o.type,
          .in_feats = in_feats,
          .hidden = o.hidden,
          .out_feats = num_classes,
          .layers = o.layers,
          .norm = o.batch_norm ? "batch" : "none",
          .activation = attends && !o.batch_norm ? "elu" : "relu",
          .dropout = o.dropout,
          .aggregator = o.type == "gin" ? "sum" : "mean",
          .gcn_norm = o.gcn_norm,
          .heads = o.heads,
          .out_heads = o.out_heads,
          .attention_dropout = o.attention_dropout,
          .residual = o.first_residual <= o.layers ? o.first_residual : 0};
}

std::vector<LayerSize> layers_of(const ModelOptions& o, Index in_feats, Index num_classes) {
  const bool attends = model_type(o.type).stack.attends;
  require<InputError>(!attends || o.hidden % o.heads == 0, "--hidden ", o.hidden,
                      " is no multiple of --heads ", o.heads);
  std::vector<LayerSize> sizes = layer_sizes(description_of(o, in_feats, num_classes), attends);
  LayerSize& first = sizes.front();
  first.cached = o.cached && caches_features(o, first.in, first.out());
  return sizes;
}

std::string describe(const ModelOptions& o, Index in_feats, Index num_classes) {
  std::string text = concat(o.type, ": ", in_feats);
  for (const LayerSize& size : layers_of(o, in_feats, num_classes)) {
    text += concat(" -> ", size.out());
    if (size.heads > 1)
      text += size.mean ? concat(" (the mean of ", size.heads, " heads)")
                        : concat(" (", size.heads, " heads of ", size.head, ")");
    if (size.residual) text += " + residual";
  }
  if (o.gcn_norm == "weights") text += ", normalized by the sums of out- and in-edge weights";
  if (o.gcn_norm == "in_weights") text += ", normalized by the sums of in-edge weights";
  return text;
}

NodeClassifier::NodeClassifier(const ModelOptions& options, Index in_feats, Index num_classes,
                               const Communicator& comm, Generator& gen)
    : NodeClassifier(options, model_type(options.type), description_of(options, in_feats, num_classes), comm,
                     gen) {}

NodeClassifier::NodeClassifier(const ModelOptions& options, const ModelType& type,
                               const ModelDescription& description, const Communicator& comm, Generator& gen)
    : description_(description),
      is_described_(!type.has_relations),
      stack_(type.stack, description, layers_of(options, description.in_feats, description.out_feats), comm,
             gen, [&](const LayerSize& size) { return make(size, options, type, comm, gen); }) {
  for (const auto& [name, part] : stack_.parts()) register_module(name, *part);
}

std::unique_ptr<Module> NodeClassifier::make(const LayerSize& size, const ModelOptions& options,
                                             const ModelType& type, const Communicator& comm,
                                             Generator& gen) {
  Convolution made;
  if (type.has_relations) {
    made = type.make(size, options, gen);
  } else {
    StackConvolution described = make_convolution(description_, size, comm, gen);
    made.module = std::move(described.module);
    made.apply = [apply = std::move(described.apply)](const GraphShardManager& graph, const Variable& h,
                                                      const Relations&) { return apply(graph, h); };
  }
  std::unique_ptr<Module> module = std::move(made.module);
  convolutions_.push_back(std::move(made));
  return module;
}

void NodeClassifier::add_input(Module& input) {
  is_described_ = false;
  register_module("input", input);
}

std::map<std::string, std::string> NodeClassifier::metadata() const {
  if (!is_described_) return {};
  return {{model_key, description_.to_json()}};
}

Variable NodeClassifier::operator()(const LayerGraphs& graphs, const Variable& x,
                                    std::span<const Relations> relations) {
  return after_layer(static_cast<int>(convolutions_.size()), graphs, x, relations);
}

Variable NodeClassifier::after_layer(int layer, const LayerGraphs& graphs, const Variable& x,
                                     std::span<const Relations> relations) {
  static const Relations no_relations;
  const auto apply = [&](std::size_t at, const GraphShardManager& graph, const Variable& h) {
    return convolutions_[at].apply(
        graph, h, relations.empty() ? no_relations : relations[std::min(at, relations.size() - 1)]);
  };
  return stack_(static_cast<std::size_t>(layer), graphs, x, apply);
}

}  // namespace sar::tools
