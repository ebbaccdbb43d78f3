// SPDX-License-Identifier: MIT
#include <sar/bindings/python/module.hpp>
#include <sar/bindings/python/module_tree.hpp>
#include <sar/bindings/python/samples.hpp>
#include <sar/nn/conv/edge_conv.hpp>
#include <sar/nn/conv/gin_conv.hpp>
#include <sar/nn/conv/global_pooling.hpp>
#include <sar/nn/conv/graph_conv.hpp>
#include <sar/nn/conv/multi_hop_conv.hpp>
#include <sar/nn/conv/rel_graph_conv.hpp>
#include <sar/nn/conv/sage_conv.hpp>

namespace sar { inline namespace SAR_PRECISION { namespace python {
namespace {

constexpr EnumName<SAGEAggregator> sage_names[] = {{SAGEAggregator::mean, "mean"},
                                                   {SAGEAggregator::gcn, "gcn"},
                                                   {SAGEAggregator::pool, "pool"},
                                                   {SAGEAggregator::lstm, "lstm"}};
constexpr EnumName<GraphConvNorm> norm_names[] = {
    {GraphConvNorm::none, "none"},       {GraphConvNorm::left, "left"},
    {GraphConvNorm::right, "right"},     {GraphConvNorm::both, "both"},
    {GraphConvNorm::weights, "weights"}, {GraphConvNorm::in_weights, "in_weights"}};
constexpr EnumName<Regularizer> regularizer_names[] = {
    {Regularizer::none, "none"}, {Regularizer::basis, "basis"}, {Regularizer::bdd, "bdd"}};

using MaybeTensor = std::optional<Variable>;

/// A call (graph, feat, edge_weight=None) of a layer.
template <class L, class Nodes>
void weighted_call(nb::class_<L, Module>& c) {
  using namespace nb::literals;
  c.def(
      "__call__",
      [](L& self, const Graph& graph, const Nodes& feat, const MaybeTensor& edge_weight) {
        return compute([&] {
          if constexpr (std::is_same_v<Nodes, Features>)
            return self(graph, features_of(feat), or_undefined(edge_weight));
          else
            return self(graph, feat, or_undefined(edge_weight));
        });
      },
      "graph"_a, "feat"_a, "edge_weight"_a = nb::none(), "Collective.");
}

/// A call (graph, feat, edge_feats) of a layer.
template <class L>
void edge_call(nb::class_<L, Module>& c) {
  using namespace nb::literals;
  c.def(
      "__call__",
      [](L& self, const Graph& graph, const Features& feat, const Variable& edge_feats) {
        return compute([&] { return self(graph, features_of(feat), edge_feats); });
      },
      "graph"_a, "feat"_a, "edge_feats"_a, "Collective.");
}

template <class P>
void pooling(Definitions& module, const char* name) {
  using namespace nb::literals;
  nb::class_<P, Module>(module, name, "A row for the whole graph, or for each graph of a batch.")
      .def(
          "__init__", [](P* self) { new (self) P; }, remembered, restoring)
      .def(
          "__call__",
          [](const P& self, const BatchedGraph& graph, const Variable& feat) {
            return compute([&] { return self(graph.batch, feat); });
          },
          "graph"_a, "feat"_a)
      .def(
          "__call__",
          [](const P& self, const Graph& graph, const Variable& feat) {
            return compute([&] { return self(graph, feat); });
          },
          "graph"_a, "feat"_a,
          "Collective. [1, D] of a graph, on every rank; local of a batch of graphs, [graphs of this rank, "
          "D].");
}

}  // namespace

void bind_convs(Definitions& module) {
  using namespace nb::literals;
  nb::class_<SAGEConv, Module> sage(module, "SAGEConv", "dgl.nn.SAGEConv (arXiv 1706.02216).");
  sage.def(
      "__init__",
      [](SAGEConv* self, const Widths& in_feats, Index out_feats, const std::string& aggregator_type,
         double feat_drop, bool bias, bool cached) {
        const SAGEConvOptions options{.aggregator = choice(sage_names, aggregator_type, "aggregator_type"),
                                      .feat_drop = feat_drop,
                                      .bias = bias,
                                      .cached = cached};
        new (self) SAGEConv(widths_of(in_feats), out_feats, *generator(), options);
      },
      "in_feats"_a, "out_feats"_a, "aggregator_type"_a = "mean", "feat_drop"_a = 0.0, "bias"_a = true,
      "cached"_a = false, remembered, restoring);
  weighted_call<SAGEConv, Features>(sage);

  nb::class_<GraphConv, Module> gcn(
      module, "GraphConv", "dgl.nn.GraphConv (arXiv 1609.02907); norm='in_weights' is PyG's GCNConv.");
  gcn.def(
      "__init__",
      [](GraphConv* self, Index in_feats, Index out_feats, const std::string& norm, bool weight, bool bias,
         bool cached) {
        const GraphConvOptions options{
            .norm = choice(norm_names, norm, "norm"), .weight = weight, .bias = bias, .cached = cached};
        new (self) GraphConv(in_feats, out_feats, *generator(), options);
      },
      "in_feats"_a, "out_feats"_a, "norm"_a = "both", "weight"_a = true, "bias"_a = true, "cached"_a = false,
      remembered, restoring);
  weighted_call<GraphConv, Variable>(gcn);

  nb::class_<GINConv, Module> gin(module, "GINConv", "dgl.nn.GINConv (arXiv 1810.00826).");
  gin.def(
      "__init__",
      [](GINConv* self, nb::handle apply_func, const std::string& aggregator_type, double init_eps,
         bool learn_eps, bool cached) {
        const GINConvOptions options{.aggregator = choice(reduce_names, aggregator_type, "aggregator_type"),
                                     .init_eps = init_eps,
                                     .learn_eps = learn_eps,
                                     .cached = cached};
        new (self) GINConv(row_function_of(apply_func, "apply_func"), options);
      },
      "apply_func"_a = nb::none(), "aggregator_type"_a = "sum", "init_eps"_a = 0.0, "learn_eps"_a = false,
      "cached"_a = false, remembered, restoring);
  weighted_call<GINConv, Features>(gin);

  nb::class_<GINEConv, Module> gine(module, "GINEConv",
                                    "dgl.nn.GINEConv (arXiv 1905.12265); edge_dim as in PyG.");
  gine.def(
      "__init__",
      [](GINEConv* self, nb::handle apply_func, double init_eps, bool learn_eps, Index in_feats,
         Index edge_dim) {
        const GINEConvOptions options{.init_eps = init_eps, .learn_eps = learn_eps};
        RowFunction function = row_function_of(apply_func, "apply_func");
        if (edge_dim > 0)
          new (self) GINEConv(in_feats, edge_dim, std::move(function), *generator(), options);
        else
          new (self) GINEConv(std::move(function), options);
      },
      "apply_func"_a = nb::none(), "init_eps"_a = 0.0, "learn_eps"_a = false, "in_feats"_a = 0,
      "edge_dim"_a = 0, remembered, restoring);
  edge_call(gine);

  nb::class_<EdgeConv, Module>(module, "EdgeConv", "dgl.nn.EdgeConv (arXiv 1801.07829).")
      .def(
          "__init__",
          [](EdgeConv* self, Index in_feat, Index out_feat) {
            new (self) EdgeConv(in_feat, out_feat, *generator());
          },
          "in_feat"_a, "out_feat"_a, remembered, restoring)
      .def(
          "__call__",
          [](const EdgeConv& self, const Graph& graph, const Features& feat) {
            return compute([&] { return self(graph, features_of(feat)); });
          },
          "graph"_a, "feat"_a, "Collective.");

  nb::class_<CFConv, Module> cf(module, "CFConv", "dgl.nn.CFConv (arXiv 1706.08566).");
  cf.def(
        "__init__",
        [](CFConv* self, Index node_in_feats, Index edge_in_feats, Index hidden_feats, Index out_feats) {
          new (self) CFConv(node_in_feats, edge_in_feats, hidden_feats, out_feats, *generator());
        },
        "node_in_feats"_a, "edge_in_feats"_a, "hidden_feats"_a, "out_feats"_a, remembered, restoring)
      .def(
          "__call__",
          [](const CFConv& self, const Graph& graph, const Variable& feat, const Variable& edge_feats) {
            return compute([&] { return self(graph, feat, edge_feats); });
          },
          "graph"_a, "feat"_a, "edge_feats"_a, "Collective.");

  nb::class_<NNConv, Module> nn(module, "NNConv", "dgl.nn.NNConv (arXiv 1704.01212).");
  nn.def(
      "__init__",
      [](NNConv* self, const Widths& in_feats, Index out_feats, nb::handle edge_func,
         const std::string& aggregator_type, bool residual, bool bias) {
        const NNConvOptions options{.aggregator = choice(reduce_names, aggregator_type, "aggregator_type"),
                                    .residual = residual,
                                    .bias = bias};
        new (self) NNConv(widths_of(in_feats), out_feats, row_function_of(edge_func, "edge_func"),
                          *generator(), options);
      },
      "in_feats"_a, "out_feats"_a, "edge_func"_a, "aggregator_type"_a = "mean", "residual"_a = false,
      "bias"_a = true, remembered, restoring);
  nn.def(
      "__call__",
      [](const NNConv& self, const Graph& graph, const Features& feat, const Variable& edge_feats) {
        return compute([&] {
          const MessageScope of_edge_func;
          return self(one_at_a_time(graph), features_of(feat), edge_feats);
        });
      },
      "graph"_a, "feat"_a, "edge_feats"_a,
      "Collective. edge_func is called for some edges at a time, in the backward pass again: it has no "
      "dropout.");

  nb::class_<APPNPConv, Module> appnp(module, "APPNPConv", "dgl.nn.APPNPConv (arXiv 1810.05997).");
  appnp.def(
      "__init__",
      [](APPNPConv* self, int k, double alpha, double edge_drop, bool cached) {
        new (self) APPNPConv(k, alpha, *generator(), edge_drop, cached);
      },
      "k"_a, "alpha"_a, "edge_drop"_a = 0.0, "cached"_a = false, remembered, restoring);
  weighted_call<APPNPConv, Variable>(appnp);

  nb::class_<TAGConv, Module> tag(module, "TAGConv", "dgl.nn.TAGConv (arXiv 1710.10370).");
  tag.def(
      "__init__",
      [](TAGConv* self, Index in_feats, Index out_feats, int k, bool bias, bool cached) {
        new (self) TAGConv(in_feats, out_feats, *generator(), {.k = k, .bias = bias, .cached = cached});
      },
      "in_feats"_a, "out_feats"_a, "k"_a = 2, "bias"_a = true, "cached"_a = false, remembered, restoring);
  weighted_call<TAGConv, Variable>(tag);

  nb::class_<SGConv, Module> sg(module, "SGConv", "dgl.nn.SGConv (arXiv 1902.07153).");
  sg.def(
      "__init__",
      [](SGConv* self, Index in_feats, Index out_feats, int k, bool cached, bool bias) {
        new (self) SGConv(in_feats, out_feats, *generator(), {.k = k, .bias = bias, .cached = cached});
      },
      "in_feats"_a, "out_feats"_a, "k"_a = 1, "cached"_a = false, "bias"_a = true, remembered, restoring);
  weighted_call<SGConv, Variable>(sg);

  nb::class_<RelGraphConv, Module>(module, "RelGraphConv", "dgl.nn.RelGraphConv (arXiv 1703.06103).")
      .def(
          "__init__",
          [](RelGraphConv* self, Index in_feat, Index out_feat, Index num_rels,
             const std::optional<std::string>& regularizer, std::optional<Index> num_bases, bool bias,
             bool self_loop, double dropout, bool layer_norm, std::optional<nb::callable> activation) {
            const RelGraphConvOptions options{
                .regularizer = choice(regularizer_names, regularizer.value_or("none"), "regularizer"),
                .num_bases = num_bases.value_or(0),
                .bias = bias,
                .self_loop = self_loop,
                .layer_norm = layer_norm,
                .dropout = dropout,
                .activation = activation_of(std::move(activation))};
            new (self) RelGraphConv(in_feat, out_feat, num_rels, *generator(), options);
          },
          "in_feat"_a, "out_feat"_a, "num_rels"_a, "regularizer"_a = nb::none(), "num_bases"_a = nb::none(),
          "bias"_a = true, "self_loop"_a = true, "dropout"_a = 0.0, "layer_norm"_a = false,
          "activation"_a = nb::none(), remembered, restoring)
      .def(
          "__call__",
          [](RelGraphConv& self, const Graph& graph, const Variable& feat, nb::handle etypes,
             const MaybeTensor& norm) {
            const Ids types(etypes, "edge types");
            return compute([&] { return self(graph, feat, EdgeTypes(types.rows()), or_undefined(norm)); });
          },
          "graph"_a, "feat"_a, "etypes"_a, "norm"_a = nb::none(), "Collective.");

  pooling<SumPooling>(module, "SumPooling");
  pooling<AvgPooling>(module, "AvgPooling");
  pooling<MaxPooling>(module, "MaxPooling");
}

}}}  // namespace sar
