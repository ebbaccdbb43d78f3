// SPDX-License-Identifier: MIT

// The sizes of a stack's layers, and what a description may ask for.
#include <sar/core/error.hpp>
#include <sar/nn/models/model_description.hpp>

#include <algorithm>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// Returns the heads of convolution i of L, counted from 1.
Index heads_of(const ModelDescription& d, Index i) {
  if (!d.heads_of_layers.empty()) return d.heads_of_layers[static_cast<std::size_t>(i - 1)];
  return i == d.layers && !has_head(d) ? d.out_heads : d.heads;
}

LayerResidual residual_of(const ModelDescription& d, Index i, const LayerSize& size) {
  if (d.residual == "identity") return LayerResidual::identity;
  if (d.residual == "linear") return LayerResidual::linear;
  const Index first = d.first_residual();
  if (first == 0 || i < first) return LayerResidual::none;
  if (model_type(d.type).own_residual) return LayerResidual::own;
  return size.in == size.out() ? LayerResidual::identity : LayerResidual::linear;
}

const char* text_of(LayerResidual residual) {
  switch (residual) {
    case LayerResidual::identity:
      return " + identity";
    case LayerResidual::linear:
      return " + linear";
    case LayerResidual::own:
      return " + residual";
    case LayerResidual::none:
      break;
  }
  return "";
}

}  // namespace

bool has_head(const ModelDescription& d) {
  return !d.jk.empty() && d.jk != "none";
}

bool has_readout(const ModelDescription& d) {
  return !d.readout.empty() && d.readout != "none";
}

std::vector<LayerSize> layer_sizes(const ModelDescription& d) {
  const bool attends = model_type(d.type).attends();
  std::vector<LayerSize> sizes;
  for (Index i = 1; i <= d.layers; ++i) {
    const bool makes_result = i == d.layers && !has_head(d);
    LayerSize& size = sizes.emplace_back();
    size.in = i == 1 && !d.pre_linear ? d.in_feats : d.hidden;
    if (attends) size.heads = heads_of(d, i);
    size.head = makes_result ? d.out_feats : d.hidden / size.heads;
    size.mean = makes_result && size.heads > 1;
    size.residual = residual_of(d, i, size);
  }
  return sizes;
}

double least_weights(const ModelDescription& d) {
  const auto number = [](Index value) { return static_cast<double>(value); };
  const double h = number(d.hidden), layers = number(d.layers);
  if (d.type == "mesh_graph_net") {
    const double inner = number(d.mlp_layers) - 1;  // products of width h in each MLP, besides first and last
    return (number(d.in_feats) + number(d.edge_feats) + 2 * h + number(d.out_feats) + 3 * inner * h) * h +
           layers * (7 + 2 * inner) * h * h;
  }
  if (model_type(d.type).is_potential) {
    const double wide = d.type == "mace" ? number(d.radial_hidden) : 0;
    return (number(std::ssize(d.species)) + layers * h) * h +
           layers * number(d.radial_layers - 1) * wide * wide;
  }
  double matrices = 1;  // of each layer
  if (d.type == "rgcn") matrices = number(d.num_bases > 0 ? d.num_bases : std::max<Index>(d.num_rels, 1));
  if (model_type(d.type).by_relation) matrices = number(std::ssize(d.edge_types));
  if (d.type == "hgt") matrices = number(std::ssize(d.node_types));
  double sum = d.pre_linear ? number(d.in_feats) * h : 0;
  for (const LayerSize& size : layer_sizes(d)) {
    const double in = number(size.in), out = number(size.heads) * number(size.head);
    sum += d.type == "gin" ? (in + out) * h + number(d.edge_feats) * in : matrices * in * out;
  }
  if (has_head(d)) sum += (d.head_layers - 1) * h * h + h * number(d.out_feats);
  return sum;
}

void check_layer_sizes(const ModelDescription& d, const std::string& where) {
  if (model_type(d.type).attends()) {
    const auto& list = d.heads_of_layers;
    require<InputError>(list.empty() || std::ssize(list) == d.layers, where, ".heads has ", list.size(),
                        " numbers, expected one for each of the ", d.layers, " layers");
    require<InputError>(list.empty() || d.out_heads == 1, where, ".out_heads is ", d.out_heads,
                        ", expected none beside a list of heads, whose last number says it");
    require<InputError>(!has_head(d) || d.out_heads == 1, where, ".out_heads is ", d.out_heads,
                        ", expected 1, because with .jk '", d.jk,
                        "' the last convolution has .heads as the others, side by side");
    for (Index i = 1; i <= d.layers; ++i) {
      const bool averages = i == d.layers && !has_head(d);
      require<InputError>(averages || d.hidden % heads_of(d, i) == 0, where, ".hidden is ", d.hidden,
                          ", expected a multiple of .heads, ", heads_of(d, i));
    }
  }
  Index layer = 0;
  for (const LayerSize& size : layer_sizes(d)) {
    ++layer;
    require<InputError>(size.residual != LayerResidual::identity || size.in == size.out(), where,
                        ".residual is 'identity', but layer ", layer, " makes rows of ", size.out(),
                        " values from rows of ", size.in,
                        ", expected 'linear', or equal widths, which pre_linear and jk give");
  }
}

std::string describe_layers(const ModelDescription& d) {
  std::string text = concat(d.type, ": ", d.in_feats);
  if (d.pre_linear) text += concat(" -> ", d.hidden, " (linear)");
  for (const LayerSize& size : layer_sizes(d)) {
    text += concat(" -> ", size.out());
    if (size.heads > 1)
      text += size.mean ? concat(" (the mean of ", size.heads, " heads)")
                        : concat(" (", size.heads, " heads of ", size.head, ")");
    text += text_of(size.residual);
  }
  if (has_readout(d)) text += concat(" -> ", d.readout, " over the nodes of each graph");
  if (has_head(d))
    text += concat(" -> ", d.head_layers > 1 ? d.hidden : d.out_feats, " (linear",
                   d.jk == "last" ? "" : concat(" of the ", d.jk, " of all layers"), ")");
  for (Index i = 2; i <= d.head_layers; ++i)
    text += concat(" -> ", i == d.head_layers ? d.out_feats : d.hidden, " (linear)");
  if (d.norm == "batch" || d.norm == "layer") text += concat(", ", d.norm, " norm");
  if (d.gcn_norm == "weights") text += ", normalized by the sums of out- and in-edge weights";
  if (d.gcn_norm == "in_weights") text += ", normalized by the sums of in-edge weights";
  return text;
}

}}  // namespace sar
