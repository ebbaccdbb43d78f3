#include <sar/autograd/ops.hpp>
#include <sar/core/error.hpp>
#include <sar/nn/conv/gat_conv.hpp>
#include <sar/nn/conv/gin_conv.hpp>
#include <sar/nn/conv/sage_conv.hpp>
#include <sar/nn/models/gcn_norm.hpp>
#include <sar/nn/models/stack_convolution.hpp>
#include <sar/nn/modules/batch_norm.hpp>
#include <sar/nn/modules/linear.hpp>

#include <map>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// Wraps a convolution that `call(conv, graph, x)` applies.
template <class Conv, class Call>
StackConvolution convolution(std::unique_ptr<Conv> conv, Call call) {
  const auto apply = [&c = *conv, call](const GraphShardManager& graph, const Variable& x) {
    return call(c, graph, x);
  };
  return {std::move(conv), apply};
}

/// Calls a convolution whose third argument is the edge weight.
constexpr auto weighted = [](auto& conv, const GraphShardManager& graph, const Variable& x) {
  return conv(graph, x, graph.edge_weight());
};

StackConvolution make_sage(const ModelDescription& d, const LayerSize& size, Generator& gen) {
  static const std::map<std::string, SAGEAggregator> aggregators{{"mean", SAGEAggregator::mean},
                                                                 {"gcn", SAGEAggregator::gcn},
                                                                 {"pool", SAGEAggregator::pool},
                                                                 {"lstm", SAGEAggregator::lstm}};
  const SAGEConvOptions options{.aggregator = aggregators.at(d.aggregator), .cached = size.cached};
  return convolution(std::make_unique<SAGEConv>(size.in, size.out(), gen, options), weighted);
}

StackConvolution make_gcn(const ModelDescription& d, const LayerSize& size, Generator& gen) {
  const GraphConvOptions options{.norm = graph_conv_norm(d.gcn_norm), .cached = size.cached};
  return convolution(std::make_unique<GraphConv>(size.in, size.out(), gen, options), weighted);
}

StackConvolution make_gat(const ModelDescription& d, const LayerSize& size, Generator& gen) {
  const GATConvOptions options{.attn_drop = d.attention_dropout, .residual = size.residual};
  return convolution(std::make_unique<GATConv>(size.in, size.head, size.heads, gen, options),
                     [mean = size.mean](GATConv& conv, const GraphShardManager& graph, const Variable& x) {
                       return join_heads(weighted(conv, graph, x), mean);
                     });
}

StackConvolution make_gatv2(const ModelDescription& d, const LayerSize& size, Generator& gen) {
  const GATv2ConvOptions options{.attn_drop = d.attention_dropout, .residual = size.residual};
  return convolution(std::make_unique<GATv2Conv>(size.in, size.head, size.heads, gen, options),
                     [mean = size.mean](GATv2Conv& conv, const GraphShardManager& graph, const Variable& x) {
                       return join_heads(conv(graph, x), mean);
                     });
}

StackConvolution make_gin(const ModelDescription& d, const LayerSize& size, const Communicator& comm,
                          Generator& gen) {
  static const std::map<std::string, Reduce> aggregators{
      {"sum", Reduce::sum}, {"mean", Reduce::mean}, {"max", Reduce::max}, {"min", Reduce::min}};
  auto network = std::make_shared<Sequential>();
  network->emplace_back<Linear>(size.in, d.hidden, gen);
  network->emplace_back<DistributedBN1D>(d.hidden, comm);
  network->push_back(relu);
  network->emplace_back<Linear>(d.hidden, size.out(), gen);
  const GINConvOptions options{
      .aggregator = aggregators.at(d.aggregator), .learn_eps = true, .cached = size.cached};
  return convolution(std::make_unique<GINConv>(std::move(network), options), weighted);
}

}  // namespace

const std::vector<StackType>& stack_types() {
  static const std::vector<StackType> types{
      {.name = "sage", .list = "convs", .caches = true, .bias = "fc_self.bias"},
      {.name = "gcn", .list = "layers", .drops_inputs = true, .caches = true, .bias = "bias"},
      {.name = "gat", .list = "layers", .attends = true, .drops_inputs = true, .bias = "bias"},
      {.name = "gatv2", .list = "layers", .attends = true, .drops_inputs = true},
      {.name = "gin",
       .list = "layers",
       .caches = true,
       .bias = "apply_func.3.bias",
       .inner_bias = "apply_func.0.bias"},
  };
  return types;
}

std::vector<LayerSize> layer_sizes(const ModelDescription& d, bool attends) {
  std::vector<LayerSize> sizes;
  for (Index i = 1; i <= d.layers; ++i) {
    const bool last = i == d.layers;
    LayerSize& size = sizes.emplace_back();
    size.in = i == 1 ? d.in_feats : d.hidden;
    if (attends) size.heads = last ? d.out_heads : d.heads;
    size.head = last ? d.out_feats : d.hidden / size.heads;
    size.mean = last && size.heads > 1;
    size.residual = attends && d.residual > 0 && i >= d.residual;
  }
  return sizes;
}

StackConvolution make_convolution(const ModelDescription& d, const LayerSize& size, const Communicator& comm,
                                  Generator& gen) {
  if (d.type == "sage") return make_sage(d, size, gen);
  if (d.type == "gcn") return make_gcn(d, size, gen);
  if (d.type == "gat") return make_gat(d, size, gen);
  if (d.type == "gatv2") return make_gatv2(d, size, gen);
  require(d.type == "gin", "a stack has no convolution of type ", d.type);
  return make_gin(d, size, comm, gen);
}

Variable join_heads(Variable y, bool mean) {
  if (mean) return head_mean(std::move(y));
  const Shape shape{y.num_rows(), y.shape().row_size()};
  return reshape(std::move(y), shape);
}

}}  // namespace sar
