#include "support/golden_graph.hpp"

#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/nn/distributed.hpp>
#include <sar/nn/graph_conv.hpp>
#include <sar/nn/sage_conv.hpp>

#include <doctest/doctest.h>

#include <functional>
#include <string>

using namespace sar;
using namespace sar::test;

namespace {

constexpr Mode modes[] = {Mode::rematerialize, Mode::sequential, Mode::one_shot};

void load_parameters(Module& module, const Case& golden) {
  for (const auto& named : module.named_parameters())
    module.set_parameter(named.name, golden.tensor("param." + named.name));
}

struct Inputs {
  Variable feat, feat_src, feat_dst, edge_weight;
};

/// Runs `layer` on the inputs of the case and compares everything that the case holds.
void check_layer(const Communicator& world, const Case& golden, Module& module, const GraphOptions& options,
                 bool wants_feat,
                 const std::function<Variable(const GraphShardManager&, const Inputs&)>& layer) {
  const GoldenGraph golden_part = golden_graph(world, golden, options);
  const auto src_input = [&](const std::string& name) {
    return golden.has("in." + name) ? Variable(golden_part.src_rows(golden.tensor("in." + name)), wants_feat)
                                    : Variable();
  };
  Inputs in{src_input("feat"), src_input("feat_src"), {}, {}};
  if (golden.has("in.feat_dst"))
    in.feat_dst = Variable(golden_part.dst_rows(golden.tensor("in.feat_dst")), wants_feat);
  if (golden.has("in.edge_weight"))
    in.edge_weight = Variable(golden_part.edge_rows(golden.tensor("in.edge_weight")), true);

  CHECK(module.named_parameters().size() == golden.files("param.").size());
  load_parameters(module, golden);
  Tape tape;
  const Variable y = layer(golden_part.graph, in);
  const auto check_part = [&](const Tensor& mine, const std::string& file,
                              const std::function<Tensor(const Tensor&)>& part) {
    CAPTURE(file);
    const Tensor whole = golden.tensor(file);
    CHECK(error_of_part(mine, part(whole), whole) < tolerance());
  };
  const auto src_part = [&](const Tensor& whole) { return golden_part.src_rows(whole); };
  const auto dst_part = [&](const Tensor& whole) { return golden_part.dst_rows(whole); };
  const auto edge_part = [&](const Tensor& whole) { return golden_part.edge_rows(whole); };
  check_part(y.value(), "out", dst_part);
  if (!y.requires_grad()) return;
  tape.backward(y, dst_part(golden.tensor("grad_out")));

  if (wants_feat) {
    if (in.feat.defined()) check_part(in.feat.grad(), "grad_in.feat", src_part);
    if (in.feat_src.defined()) check_part(in.feat_src.grad(), "grad_in.feat_src", src_part);
    if (in.feat_dst.defined()) check_part(in.feat_dst.grad(), "grad_in.feat_dst", dst_part);
  }
  if (in.edge_weight.defined()) check_part(in.edge_weight.grad(), "grad_in.edge_weight", edge_part);
  gather_grads(world, module);
  for (const auto& named : module.named_parameters()) {
    CAPTURE(named.name);
    CHECK(relative_error(named.parameter.grad(), golden.values("grad_param." + named.name)) < tolerance());
  }
}

}  // namespace

TEST_CASE("SAGEConv: golden vectors in the three modes") {
  const Communicator world = Communicator::world();
  for (const char* name :
       {"SAGEConv__mean", "SAGEConv__mean_bipartite", "SAGEConv__mean_block", "SAGEConv__mean_edge_weight",
        "SAGEConv__mean_no_bias", "SAGEConv__gcn", "SAGEConv__gcn_bipartite", "SAGEConv__gcn_block"}) {
    const Case golden(std::string("conv/") + name);
    for (const Mode mode : modes)
      for (const bool wants_feat : {true, false}) {
        CAPTURE(name);
        CAPTURE(static_cast<int>(mode));
        Generator gen(1);
        const auto width = [&](const char* file) {
          return golden.has(file) ? golden.tensor(file).row_size() : 0;
        };
        const bool bipartite = golden.has("in.feat_src");
        const std::pair<Index, Index> widths = bipartite
                                                   ? std::pair(width("in.feat_src"), width("in.feat_dst"))
                                                   : std::pair(width("in.feat"), width("in.feat"));
        SAGEConv conv(widths, width("out"), gen,
                      {.aggregator = golden.arg("aggregator_type") == "gcn" ? SAGEAggregator::gcn
                                                                            : SAGEAggregator::mean,
                       .bias = golden.number("bias") == 1});
        check_layer(world, golden, conv, {.mode = mode}, wants_feat,
                    [&](const GraphShardManager& graph, const Inputs& in) {
                      return bipartite ? conv(graph, {in.feat_src, in.feat_dst}, in.edge_weight)
                                       : conv(graph, in.feat, in.edge_weight);
                    });
      }
  }
}

TEST_CASE("GraphConv: golden vectors in the three modes") {
  const Communicator world = Communicator::world();
  for (const char* name :
       {"GraphConv__norm_none", "GraphConv__norm_left", "GraphConv__norm_right", "GraphConv__norm_both",
        "GraphConv__norm_both_wide", "GraphConv__norm_both_bipartite", "GraphConv__norm_both_no_bias",
        "GraphConv__norm_both_no_weight_no_bias", "GraphConv__norm_both_edge_weight",
        "GraphConv__norm_right_edge_weight"}) {
    const Case golden(std::string("conv/") + name);
    const std::string norm = golden.arg("norm");
    for (const Mode mode : modes)
      for (const bool wants_feat : {true, false}) {
        CAPTURE(name);
        CAPTURE(static_cast<int>(mode));
        Generator gen(1);
        GraphConv conv(static_cast<Index>(golden.number("in_feats")),
                       static_cast<Index>(golden.number("out_feats")), gen,
                       {.norm = norm == "none"    ? GraphConvNorm::none
                                : norm == "left"  ? GraphConvNorm::left
                                : norm == "right" ? GraphConvNorm::right
                                                  : GraphConvNorm::both,
                        .weight = golden.number("weight") == 1,
                        .bias = golden.number("bias") == 1});
        check_layer(world, golden, conv, {.mode = mode}, wants_feat,
                    [&](const GraphShardManager& graph, const Inputs& in) {
                      return conv(graph, in.feat.defined() ? in.feat : in.feat_src, in.edge_weight);
                    });
      }
  }
}

namespace {

/// A layer that goes from wide to narrow, and one with equal weights and inputs from narrow to wide, both by
/// the formula over the whole graph: y_v = W_self x_v + W_neigh mean x_u (mean), or W (x_v + sum x_u) / (d +
/// 1) (gcn).
std::vector<double> sage_formula(const Case& golden, const Tensor& x, const Tensor& w_neigh,
                                 const Tensor& w_self) {
  const auto src = golden.indices("src"), dst = golden.indices("dst");
  const Index in = x.row_size(), out = w_neigh.shape()[0], nodes = x.num_rows();
  std::vector<double> sum(static_cast<std::size_t>(nodes * in)), degree(static_cast<std::size_t>(nodes));
  for (std::size_t k = 0; k < src.size(); ++k) {
    ++degree[static_cast<std::size_t>(dst[k])];
    for (Index j = 0; j < in; ++j) sum[static_cast<std::size_t>(dst[k] * in + j)] += x.row(src[k])[j];
  }
  std::vector<double> y(static_cast<std::size_t>(nodes * out));
  for (Index v = 0; v < nodes; ++v)
    for (Index o = 0; o < out; ++o)
      for (Index j = 0; j < in; ++j) {
        const double s = sum[static_cast<std::size_t>(v * in + j)], d = degree[static_cast<std::size_t>(v)];
        y[static_cast<std::size_t>(v * out + o)] +=
            w_self.defined() ? w_self.row(o)[j] * x.row(v)[j] + w_neigh.row(o)[j] * (d > 0 ? s / d : 0)
                             : w_neigh.row(o)[j] * (s + x.row(v)[j]) / (d + 1);
      }
  return y;
}

}  // namespace

TEST_CASE("SAGEConv aggregates before or after the product: the same result") {
  const Communicator world = Communicator::world();
  const Case golden("conv/SAGEConv__mean");
  const GoldenGraph part = golden_graph(world, golden, {});
  const Tensor x = random_values({static_cast<Index>(golden.number("num_nodes")), 6});
  for (const SAGEAggregator aggregator : {SAGEAggregator::mean, SAGEAggregator::gcn})
    for (const Index out_feats : {4, 6, 9})
      for (const bool wants_feat : {true, false}) {
        CAPTURE(out_feats);
        Generator gen(2);
        SAGEConv conv(6, out_feats, gen, {.aggregator = aggregator, .bias = false});
        const auto parameters = conv.named_parameters();
        const Tensor w_self = parameters.size() > 1 ? parameters[1].parameter.value() : Tensor();
        const std::vector<double> values = sage_formula(golden, x, parameters[0].parameter.value(), w_self);
        const Tensor whole =
            Tensor::from({x.num_rows(), out_feats}, std::vector<real>(values.begin(), values.end()));
        Tape tape;
        const Variable y = conv(part.graph, Variable(part.src_rows(x), wants_feat));
        CHECK(error_of_part(y.value(), part.dst_rows(whole), whole) < tolerance());
      }
}

TEST_CASE("feature dropout hits the same elements on every number of ranks, and others at the next call") {
  const Communicator world = Communicator::world();
  const Case golden("conv/SAGEConv__mean");
  const auto run = [&](const Communicator& comm, int calls) {
    const GoldenGraph part = golden_graph(comm, golden, {});
    Generator gen(4);
    SAGEConv conv(6, 5, gen, {.feat_drop = 0.5});
    Tensor y;
    for (int k = 0; k < calls; ++k) y = conv(part.graph, part.src_rows(golden.tensor("in.feat"))).value();
    return std::pair(y, part.my_dst);
  };
  const auto [mine, ids] = run(world, 1);
  const Tensor whole = run(Communicator::self(), 1).first;
  CHECK(error_of_part(mine, GoldenGraph::rows(whole, ids), whole) < tolerance());
  CHECK_FALSE(same_bits(whole, run(Communicator::self(), 2).first));
}

TEST_CASE("convolutions refuse features that do not fit the graph") {
  const Communicator world = Communicator::world();
  Generator gen(1);
  const GoldenGraph square = golden_graph(world, Case("conv/SAGEConv__mean"), {});
  const GoldenGraph bipartite = golden_graph(world, Case("conv/SAGEConv__mean_bipartite"), {});
  SAGEConv sage(6, 4, gen);
  GraphConv conv(6, 4, gen);
  CHECK_THROWS_AS((void)sage(square.graph, Tensor::zeros({square.graph.num_src_nodes(), 5})), ShapeError);
  CHECK_THROWS_AS((void)sage(square.graph, Tensor::zeros({square.graph.num_src_nodes() + 1, 6})), ShapeError);
  CHECK_THROWS_AS((void)sage(bipartite.graph, Tensor::zeros({bipartite.graph.num_src_nodes(), 6})),
                  ShapeError);
  CHECK_THROWS_AS((void)conv(square.graph, Tensor::zeros({square.graph.num_src_nodes(), 5})), ShapeError);
}
