/// Golden vectors of the convolutions that need no attention, and what the vectors do not show.
#include "conv_cases.hpp"

#include <sar/autograd/ops.hpp>
#include <sar/core/error.hpp>
#include <sar/nn/edge_conv.hpp>
#include <sar/nn/gin_conv.hpp>
#include <sar/nn/graph_conv.hpp>
#include <sar/nn/hetero_graph_conv.hpp>
#include <sar/nn/linear.hpp>
#include <sar/nn/multi_hop_conv.hpp>
#include <sar/nn/sage_conv.hpp>

#include <doctest/doctest.h>

#include <memory>
#include <string>

using namespace sar;
using namespace sar::test;

namespace {

/// The features as a layer takes them: one variable for both ends, or a pair.
template <class Conv, class... Args>
Variable call(Conv& conv, const Run& run, const GraphShardManager& graph, Inputs& in, const Args&... args) {
  return run.bipartite() ? conv(graph, std::pair(in["feat_src"], in["feat_dst"]), args...)
                         : conv(graph, in["feat"], args...);
}

}  // namespace

TEST_CASE("SAGEConv pool: golden vectors") {
  for_each_run({"SAGEConv__pool", "SAGEConv__pool_bipartite"}, [](const Run& run) {
    Generator gen(1);
    const std::pair widths = run.bipartite() ? std::pair(run.width("in.feat_src"), run.width("in.feat_dst"))
                                             : std::pair(run.width("in.feat"), run.width("in.feat"));
    SAGEConv conv(widths, run.width("out"), gen, {.aggregator = SAGEAggregator::pool});
    run.check(conv, [&](const GraphShardManager& graph, Inputs& in) { return call(conv, run, graph, in); });
  });
}

TEST_CASE("GINConv: golden vectors") {
  for_each_run(
      {"GINConv__max_linear", "GINConv__mean_linear", "GINConv__sum_linear", "GINConv__sum_linear_bipartite",
       "GINConv__sum_linear_edge_weight", "GINConv__sum_mlp", "GINConv__sum_no_func_fixed_eps"},
      [](const Run& run) {
        Generator gen(1);
        const std::string func = run.golden.arg("apply_func"), reduce = run.golden.arg("aggregator_type");
        const Index in_feats = run.width(run.bipartite() ? "in.feat_src" : "in.feat");
        RowFunction apply;
        if (func == "linear") apply = std::make_shared<Linear>(in_feats, run.width("out"), gen);
        if (func == "mlp") {
          const auto mlp = std::make_shared<Sequential>();
          mlp->emplace_back<Linear>(in_feats, run.count("hidden_feats"), gen);
          mlp->push_back(relu);
          mlp->emplace_back<Linear>(run.count("hidden_feats"), run.width("out"), gen);
          apply = mlp;
        }
        GINConv conv(apply, {.aggregator = reduce == "sum"    ? Reduce::sum
                                           : reduce == "mean" ? Reduce::mean
                                                              : Reduce::max,
                             .init_eps = run.golden.number("eps"),
                             .learn_eps = run.flag("learn_eps")});
        run.check(conv, [&](const GraphShardManager& graph, Inputs& in) {
          return call(conv, run, graph, in, in["edge_weight"]);
        });
      });
}

TEST_CASE("EdgeConv: golden vectors") {
  for_each_run({"EdgeConv__plain", "EdgeConv__bipartite"}, [](const Run& run) {
    Generator gen(1);
    EdgeConv conv(run.width(run.bipartite() ? "in.feat_src" : "in.feat"), run.width("out"), gen);
    run.check(conv, [&](const GraphShardManager& graph, Inputs& in) { return call(conv, run, graph, in); });
  });
}

TEST_CASE("APPNPConv: golden vectors") {
  for_each_run({"APPNPConv__plain", "APPNPConv__edge_weight"}, [](const Run& run) {
    Generator gen(1);
    APPNPConv conv(static_cast<int>(run.count("k")), run.golden.number("alpha"), gen);
    run.check(conv, [&](const GraphShardManager& graph, Inputs& in) {
      return conv(graph, in["feat"], in["edge_weight"]);
    });
  });
}

TEST_CASE("TAGConv: golden vectors") {
  for_each_run({"TAGConv__plain", "TAGConv__no_bias", "TAGConv__edge_weight"}, [](const Run& run) {
    Generator gen(1);
    TAGConv conv(run.width("in.feat"), run.width("out"), gen,
                 {.k = static_cast<int>(run.count("k")), .bias = run.flag("bias")});
    run.check(conv, [&](const GraphShardManager& graph, Inputs& in) {
      return conv(graph, in["feat"], in["edge_weight"]);
    });
  });
}

TEST_CASE("SGConv: golden vectors") {
  for_each_run({"SGConv__plain", "SGConv__edge_weight"}, [](const Run& run) {
    Generator gen(1);
    SGConv conv(run.width("in.feat"), run.width("out"), gen,
                {.k = static_cast<int>(run.count("k")), .bias = run.flag("bias")});
    run.check(conv, [&](const GraphShardManager& graph, Inputs& in) {
      return conv(graph, in["feat"], in["edge_weight"]);
    });
  });
}
