/// Golden vectors of the convolutions (tests/data/conv), run in all modes, plain and cut into small pieces.
///
///     for_each_run({"GINConv__sum_linear", ...}, [](const Run& run) {
///       Generator gen(1);
///       SomeConv conv(run.width("in.feat"), run.width("out"), gen);
///       run.check(conv, [&](const GraphShardManager& graph, Inputs& in) { return conv(graph, in["feat"]);
///       });
///     });
#pragma once

#include "support/golden_graph.hpp"

#include <sar/autograd/tape.hpp>
#include <sar/nn/distributed.hpp>
#include <sar/nn/module.hpp>

#include <doctest/doctest.h>

#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <vector>

namespace sar::test {

/// The three modes, each with whole shards and with pieces as small as can be.
inline std::vector<GraphOptions> graph_ways() {
  std::vector<GraphOptions> ways;
  for (const Mode mode : {Mode::rematerialize, Mode::sequential, Mode::one_shot}) {
    ways.push_back({.mode = mode});
    ways.push_back({.mode = mode, .max_halo_bytes = 1, .edge_block = 3});
  }
  return ways;
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
  bool wants_feat;  ///< whether node features want gradients; edge inputs always do

  /// Row size of an input or output, or 0 when there is none.
  [[nodiscard]] Index width(const std::string& file) const {
    return golden.has(file) ? golden.tensor(file).row_size() : 0;
  }
  [[nodiscard]] bool bipartite() const { return golden.arg("graph") == "bipartite"; }
  [[nodiscard]] bool flag(const std::string& key) const { return golden.number(key) == 1; }
  [[nodiscard]] Index count(const std::string& key) const { return static_cast<Index>(golden.number(key)); }

  /// Runs `layer` on the inputs of the case and compares everything that the case holds.
  void check(Module& module, const std::function<Variable(const GraphShardManager&, Inputs&)>& layer) const {
    const GoldenGraph part = golden_graph(world, golden, options);
    const auto part_of = [&](const std::string& name, const Tensor& whole) {
      if (name == "feat" || name == "feat_src") return part.src_rows(whole);
      return name == "feat_dst" ? part.dst_rows(whole) : part.edge_rows(whole);
    };
    const auto check_part = [&](const Tensor& mine, const std::string& file, const std::string& kind) {
      CAPTURE(file);
      const Tensor whole = golden.tensor(file);
      REQUIRE(mine.defined());
      CHECK(error_of_part(mine, part_of(kind, whole), whole) < tolerance());
    };
    Inputs in;
    for (const std::string& name : golden.files("in."))
      in.variables[name] =
          Variable(part_of(name, golden.tensor("in." + name)), wants_feat || !name.starts_with("feat"));
    if (golden.has("etype")) {
      const std::vector<Index> etype = golden.indices("etype");
      for (const Index id : part.graph.edge_ids()) in.etype.push_back(etype[static_cast<std::size_t>(id)]);
    }

    CHECK(module.named_parameters().size() == golden.files("param.").size());
    load_parameters(module, golden);
    Tape tape;
    const Variable y = layer(part.graph, in);
    check_part(y.value(), "out", "feat_dst");
    for (const auto& [name, tensor] : in.edge_outputs) check_part(tensor, "out." + name, "edge");
    if (!y.requires_grad()) return;
    tape.backward(y, part.dst_rows(golden.tensor("grad_out")));
    for (const auto& [name, variable] : in.variables)
      if (variable.requires_grad()) check_part(variable.grad(), "grad_in." + name, name);
    gather_grads(world, module);
    for (const auto& named : module.named_parameters()) {
      CAPTURE(named.name);
      CHECK(relative_error(named.parameter.grad(), golden.values("grad_param." + named.name)) < tolerance());
    }
  }
};

/// body(run) for the cases conv/<name>, in all ways, with and without gradients of the features.
inline void for_each_run(std::initializer_list<const char*> names,
                         const std::function<void(const Run&)>& body) {
  const Communicator world = Communicator::world();
  for (const char* name : names) {
    const Case golden(std::string("conv/") + name);
    for (const GraphOptions& options : graph_ways())
      for (const bool wants_feat : {true, false}) {
        CAPTURE(name);
        CAPTURE(static_cast<int>(options.mode));
        CAPTURE(options.max_halo_bytes);
        CAPTURE(wants_feat);
        body({world, golden, options, wants_feat});
      }
  }
}

}  // namespace sar::test
