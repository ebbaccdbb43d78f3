// SPDX-License-Identifier: MIT

/// Golden vectors of the convolutions (tests/data/conv), run in all modes, plain and in small chunks,
/// on the whole graph and on message flow graphs.
///
///     for_each_run({"GINConv__sum_linear", ...}, [](const Run& run) {
///       Generator gen(1);
///       SomeConv conv(run.width("in.feat"), run.width("out"), gen);
///       run.check(conv, [&](const Graph& graph, Inputs& in) { return conv(graph, in["feat"]);
///       });
///     });
#pragma once

#include "support/effort.hpp"
#include "support/golden_graph.hpp"
#include "support/sparse.hpp"

#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/nn/modules/module.hpp>
#include <sar/nn/train/distributed.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <vector>

namespace sar::test {

/// The three modes, or these, each with whole shards and with stages as small as can be.
inline std::vector<GraphOptions> graph_ways(const std::vector<HaloMode>& modes = {HaloMode::rematerialize,
                                                                                  HaloMode::sequential,
                                                                                  HaloMode::one_shot}) {
  std::vector<GraphOptions> ways;
  for (const HaloMode mode : modes) {
    ways.push_back({.mode = mode});
    ways.push_back({.mode = mode, .max_halo_bytes = 1, .edge_chunk = 3});
  }
  return ways;
}

/// For one of several cases, see some_of(): outside of the full run the ways of one mode, for every number of
/// ranks another one.
inline std::vector<GraphOptions> ways_of_case(std::size_t number) {
  const auto ranks = static_cast<std::size_t>(Communicator::world().size());
  return graph_ways(
      some_of<HaloMode>({HaloMode::rematerialize, HaloMode::sequential, HaloMode::one_shot}, number + ranks));
}

inline void load_parameters(Module& module, const Case& golden) {
  for (const auto& named : module.named_parameters())
    module.set_parameter(named.name, golden.tensor("param." + named.name));
}

/// The rows of a case's inputs that belong to this rank, by name: "feat" and "feat_src" by source, "feat_dst"
/// by destination, everything else by edge.
struct Inputs {
  std::map<std::string, Variable> variables;
  std::vector<Index> etype;                    ///< of this rank's edges, where the case has one
  std::vector<Index> ntype;                    ///< of this rank's sources, where the case has one
  std::map<std::string, Tensor> edge_outputs;  ///< filled by the layer; compared with "out.<name>"

  /// Undefined when the case has no such input.
  Variable operator[](const std::string& name) const {
    const auto found = variables.find(name);
    return found == variables.end() ? Variable() : found->second;
  }
};

/// One way to run a case.
struct Run {
  const Communicator& world;
  const Case& golden;
  GraphOptions options;
  bool wants_feat;   ///< whether node features want gradients; edge inputs always do
  bool sparse_feat = false;  ///< whether node features that are matrices are sparse rows
  bool mfg = false;          ///< on message flow graphs that together compute all nodes

  /// Row size of an input or output, or 0 when there is none.
  [[nodiscard]] Index width(const std::string& file) const {
    return golden.has(file) ? golden.tensor(file).row_size() : 0;
  }
  [[nodiscard]] bool bipartite() const { return golden.arg("graph") == "bipartite"; }
  [[nodiscard]] bool flag(const std::string& key) const { return golden.number(key) == 1; }
  [[nodiscard]] Index count(const std::string& key) const { return static_cast<Index>(golden.number(key)); }

  /// Runs `layer` on the inputs of the case and compares everything that the case holds.
  void check(Module& module, const std::function<Variable(const Graph&, Inputs&)>& layer) const {
    const GoldenGraph whole = golden_graph(world, golden, options);
    std::map<std::string, Variable> inputs;
    for (const std::string& name : golden.arrays("in.")) {
      const Tensor rows = part_of(whole, name, golden.tensor("in." + name));
      if (sparse_feat && name.starts_with("feat") && rows.shape().dims() == 2)
        inputs[name] = sparse_of(rows);
      else
        inputs[name] = Variable(rows, wants_feat || !name.starts_with("feat"));
    }
    CHECK(module.named_parameters().size() == golden.arrays("param.").size());
    load_parameters(module, golden);

    bool differentiable = false;
    if (!mfg) {
      const Tape tape;
      differentiable =
          check_pass(whole, {.variables = inputs, .etype = {}, .ntype = {}, .edge_outputs = {}}, layer);
    } else {
      for (const MessageFlowGraph& part : golden_mfgs(whole)) {
        const Tape tape;
        Inputs in;
        for (const auto& [name, variable] : inputs)
          in.variables[name] = gather_rows(variable, name == "feat" ? part.src_rows() : part.edge_rows());
        differentiable = check_pass(golden_part(whole, part), std::move(in), layer);
      }
    }
    if (!differentiable) return;
    for (const auto& [name, variable] : inputs)
      if (variable.requires_grad()) check_part(whole, variable.grad(), "grad_in." + name, name);
    gather_grads(world, module);
    for (const auto& named : module.named_parameters()) {
      CAPTURE(named.name);
      check_gradient(named);
    }
  }

 private:
  [[nodiscard]] double largest_gradient() const {
    double largest = 0;
    for (const std::string& name : golden.arrays("grad_param."))
      for (const double x : golden.values("grad_param." + name)) largest = std::max(largest, std::abs(x));
    return largest;
  }
  /// A parameter that is not used has none. One that is 0 but for rounding is compared with the others; a
  /// layer may know that it is 0, and make it a constant.
  void check_gradient(const NamedParameter& named) const {
    const Tensor found = named.parameter.grad();
    if (!golden.has("grad_param." + named.name)) {
      CHECK_FALSE(found.defined());
      return;
    }
    const std::vector<double> expected = golden.values("grad_param." + named.name);
    const double scale = largest_gradient();
    if (std::ranges::all_of(expected, [&](double x) { return std::abs(x) < 1e-14 * scale; })) {
      if (!found.defined()) return;
      for (const real x : found.values()) CHECK(std::abs(x) < tolerance() * scale);
    } else {
      CHECK(relative_error(found, expected) < tolerance());
    }
  }
  [[nodiscard]] static Tensor part_of(const GoldenGraph& part, const std::string& name, const Tensor& whole) {
    if (name == "feat" || name == "feat_src") return part.src_rows(whole);
    return name == "feat_dst" ? part.dst_rows(whole) : part.edge_rows(whole);
  }
  void check_part(const GoldenGraph& part, const Tensor& mine, const std::string& file,
                  const std::string& kind) const {
    CAPTURE(file);
    const Tensor whole = golden.tensor(file);
    REQUIRE(mine.defined());
    CHECK(error_of_part(mine, part_of(part, kind, whole), whole) < tolerance());
  }
  /// Forward and backward on a part of the case; false when there is nothing to differentiate.
  [[nodiscard]] bool check_pass(const GoldenGraph& part, Inputs in,
                                const std::function<Variable(const Graph&, Inputs&)>& layer) const {
    if (golden.has("etype")) {
      const std::vector<Index> etype = golden.indices("etype");
      for (const Index id : part.graph.edge_ids()) in.etype.push_back(etype[static_cast<std::size_t>(id)]);
    }
    if (golden.has("ntype")) {
      const std::vector<Index> ntype = golden.indices("ntype");
      for (const Index node : part.my_src) in.ntype.push_back(ntype[static_cast<std::size_t>(node)]);
    }
    const Variable y = layer(part.graph, in);
    check_part(part, y.value(), "out", "feat_dst");
    for (const auto& [name, tensor] : in.edge_outputs) check_part(part, tensor, "out." + name, "edge");
    if (y.requires_grad()) Tape::current()->backward(y, part.dst_rows(golden.tensor("grad_out")));
    return y.requires_grad();
  }
};

/// body(run) for the cases conv/<name> (or <group>/<name>), in the ways of each case, with and without
/// gradients of the features, and once with sparse features. Homogeneous cases run on message flow graphs
/// too, unless the layer takes several hops at once.
inline void for_each_run(std::initializer_list<const char*> names,
                         const std::function<void(const Run&)>& body) {
  const Communicator world = Communicator::world();
  std::size_t number = 0;
  for (const std::string name : names) {
    const Case golden(name.find('/') == std::string::npos ? "conv/" + name : name);
    const std::string layer = name.substr(0, name.find("__"));
    const bool one_hop = layer != "APPNPConv" && layer != "TAGConv" && layer != "SGConv";
    const auto run = [&](const GraphOptions& options, bool wants_feat, bool sparse_feat) {
      for (const bool mfg : {false, true}) {
        if (mfg && !(one_hop && golden.arg("graph") == "homogeneous")) continue;
        CAPTURE(name);
        CAPTURE(static_cast<int>(options.mode));
        CAPTURE(options.max_halo_bytes);
        CAPTURE(wants_feat);
        CAPTURE(sparse_feat);
        CAPTURE(mfg);
        body({world, golden, options, wants_feat, sparse_feat, mfg});
      }
    };
    for (const GraphOptions& options : ways_of_case(number)) run(options, true, false);
    for (const GraphOptions& options : ways_of_case(++number)) run(options, false, false);
    run({}, false, true);
  }
}

}  // namespace sar::test
