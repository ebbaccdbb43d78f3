// SPDX-License-Identifier: MIT
#include <sar/bindings/python/module.hpp>
#include <sar/bindings/python/module_tree.hpp>
#include <sar/nn/conv/dot_gat_conv.hpp>
#include <sar/nn/conv/gat_conv.hpp>
#include <sar/nn/conv/hgt_conv.hpp>

namespace sar { inline namespace SAR_PRECISION { namespace python {
namespace {

using MaybeTensor = std::optional<Variable>;

/// The call of a layer, and attention(), which returns the coefficients [edges, heads, 1]; `third` is the
/// argument after (graph, feat).
template <class L>
void attention_calls(nb::class_<L, Module>& c, const auto& third) {
  using namespace nb::literals;
  c.def(
      "__call__",
      [](L& self, const Graph& g, const Features& x, const MaybeTensor& edges) {
        return compute([&] { return self(g, features_of(x), or_undefined(edges)); });
      },
      "graph"_a, "feat"_a, third, "Collective.");
  c.def(
      "attention",
      [](L& self, const Graph& g, const Features& x, const MaybeTensor& edges) {
        return compute([&] { return self.attention(g, features_of(x), or_undefined(edges)); });
      },
      "graph"_a, "feat"_a, third, "Collective. The coefficients, [edges, heads, 1], without dropout.");
}

template <class L>
void plain_attention_calls(nb::class_<L, Module>& c) {
  using namespace nb::literals;
  c.def(
      "__call__",
      [](L& self, const Graph& g, const Features& x) {
        return compute([&] { return self(g, features_of(x)); });
      },
      "graph"_a, "feat"_a, "Collective.");
  c.def(
      "attention",
      [](L& self, const Graph& g, const Features& x) {
        return compute([&] { return self.attention(g, features_of(x)); });
      },
      "graph"_a, "feat"_a, "Collective. The coefficients, [edges, heads, 1], without dropout.");
}

}  // namespace

void bind_attention(Definitions& module) {
  using namespace nb::literals;
  nb::class_<GATConv, Module> gat(module, "GATConv",
                                  "dgl.nn.GATConv (arXiv 1710.10903): [nodes, heads, out_feats].");
  gat.def(
      "__init__",
      [](GATConv* self, const Widths& in_feats, Index out_feats, Index num_heads, double feat_drop,
         double attn_drop, double negative_slope, bool residual, std::optional<nb::callable> activation,
         bool bias) {
        const GATConvOptions options{.feat_drop = feat_drop,
                                     .attn_drop = attn_drop,
                                     .negative_slope = static_cast<real>(negative_slope),
                                     .residual = residual,
                                     .activation = activation_of(std::move(activation)),
                                     .bias = bias};
        new (self) GATConv(widths_of(in_feats), out_feats, num_heads, *generator(), options);
      },
      "in_feats"_a, "out_feats"_a, "num_heads"_a, "feat_drop"_a = 0.0, "attn_drop"_a = 0.0,
      "negative_slope"_a = 0.2, "residual"_a = false, "activation"_a = nb::none(), "bias"_a = true,
      remembered, restoring);
  attention_calls(gat, "edge_weight"_a = nb::none());

  nb::class_<GATv2Conv, Module> gatv2(module, "GATv2Conv",
                                      "dgl.nn.GATv2Conv (arXiv 2105.14491): [nodes, heads, out_feats].");
  gatv2.def(
      "__init__",
      [](GATv2Conv* self, const Widths& in_feats, Index out_feats, Index num_heads, double feat_drop,
         double attn_drop, double negative_slope, bool residual, std::optional<nb::callable> activation,
         bool bias, bool share_weights) {
        const GATv2ConvOptions options{.feat_drop = feat_drop,
                                       .attn_drop = attn_drop,
                                       .negative_slope = static_cast<real>(negative_slope),
                                       .residual = residual,
                                       .activation = activation_of(std::move(activation)),
                                       .bias = bias,
                                       .share_weights = share_weights};
        new (self) GATv2Conv(widths_of(in_feats), out_feats, num_heads, *generator(), options);
      },
      "in_feats"_a, "out_feats"_a, "num_heads"_a, "feat_drop"_a = 0.0, "attn_drop"_a = 0.0,
      "negative_slope"_a = 0.2, "residual"_a = false, "activation"_a = nb::none(), "bias"_a = true,
      "share_weights"_a = false, remembered, restoring);
  plain_attention_calls(gatv2);

  nb::class_<DotGatConv, Module> dot(module, "DotGatConv", "dgl.nn.DotGatConv: [nodes, heads, out_feats].");
  dot.def(
      "__init__",
      [](DotGatConv* self, const Widths& in_feats, Index out_feats, Index num_heads) {
        new (self) DotGatConv(widths_of(in_feats), out_feats, num_heads, *generator());
      },
      "in_feats"_a, "out_feats"_a, "num_heads"_a, remembered, restoring);
  plain_attention_calls(dot);

  nb::class_<AGNNConv, Module>(module, "AGNNConv", "dgl.nn.AGNNConv (arXiv 1803.03735).")
      .def(
          "__init__",
          [](AGNNConv* self, double init_beta, bool learn_beta) {
            new (self) AGNNConv(static_cast<real>(init_beta), learn_beta);
          },
          "init_beta"_a = 1.0, "learn_beta"_a = true, remembered, restoring)
      .def(
          "__call__",
          [](const AGNNConv& self, const Graph& graph, const Features& feat) {
            return compute([&] { return self(graph, features_of(feat)); });
          },
          "graph"_a, "feat"_a, "Collective.");

  nb::class_<EdgeGATConv, Module> edge_gat(module, "EdgeGATConv",
                                           "dgl.nn.EdgeGATConv: [nodes, heads, out_feats].");
  edge_gat.def(
      "__init__",
      [](EdgeGATConv* self, const Widths& in_feats, Index edge_feats, Index out_feats, Index num_heads,
         double feat_drop, double attn_drop, double negative_slope, bool residual,
         std::optional<nb::callable> activation, bool bias) {
        const EdgeGATConvOptions options{.feat_drop = feat_drop,
                                         .attn_drop = attn_drop,
                                         .negative_slope = static_cast<real>(negative_slope),
                                         .residual = residual,
                                         .activation = activation_of(std::move(activation)),
                                         .bias = bias};
        new (self) EdgeGATConv(widths_of(in_feats), edge_feats, out_feats, num_heads, *generator(), options);
      },
      "in_feats"_a, "edge_feats"_a, "out_feats"_a, "num_heads"_a, "feat_drop"_a = 0.0, "attn_drop"_a = 0.0,
      "negative_slope"_a = 0.2, "residual"_a = true, "activation"_a = nb::none(), "bias"_a = true, remembered,
      restoring);
  attention_calls(edge_gat, "edge_feats"_a = nb::none());

  nb::class_<TransformerConv, Module> transformer(module, "TransformerConv",
                                                  "torch_geometric.nn.TransformerConv (arXiv 2009.03509).");
  transformer.def(
      "__init__",
      [](TransformerConv* self, const Widths& in_channels, Index out_channels, Index heads, bool concat,
         bool beta, double dropout, std::optional<Index> edge_dim, bool bias, bool root_weight) {
        const TransformerConvOptions options{.concat = concat,
                                             .beta = beta,
                                             .dropout = dropout,
                                             .edge_dim = edge_dim.value_or(0),
                                             .bias = bias,
                                             .root_weight = root_weight};
        new (self) TransformerConv(widths_of(in_channels), out_channels, heads, *generator(), options);
      },
      "in_channels"_a, "out_channels"_a, "heads"_a = 1, "concat"_a = true, "beta"_a = false,
      "dropout"_a = 0.0, "edge_dim"_a = nb::none(), "bias"_a = true, "root_weight"_a = true, remembered,
      restoring);
  attention_calls(transformer, "edge_feats"_a = nb::none());

  nb::class_<HGTConv, Module>(module, "HGTConv",
                              "dgl.nn.HGTConv (arXiv 2003.01332): [nodes, heads * head_size].")
      .def(
          "__init__",
          [](HGTConv* self, Index in_size, Index head_size, Index num_heads, Index num_ntypes,
             Index num_etypes, double dropout, bool use_norm) {
            new (self) HGTConv(in_size, head_size, num_heads, num_ntypes, num_etypes, *generator(),
                               {.dropout = dropout, .use_norm = use_norm});
          },
          "in_size"_a, "head_size"_a, "num_heads"_a, "num_ntypes"_a, "num_etypes"_a, "dropout"_a = 0.2,
          "use_norm"_a = false, remembered, restoring)
      .def(
          "__call__",
          [](HGTConv& self, const Graph& graph, const Variable& x, nb::handle ntypes, nb::handle etypes) {
            const Ids of_nodes(ntypes, "node types"), of_edges(etypes, "edge types");
            return compute([&] { return self(graph, x, of_nodes.rows(), EdgeTypes(of_edges.rows())); });
          },
          "graph"_a, "x"_a, "ntypes"_a, "etypes"_a, "Collective.");
}

}}}  // namespace sar
