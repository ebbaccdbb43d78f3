// SPDX-License-Identifier: MIT

// Candidates are sorted once by destination, type and edge id, so that a drawn position names the same edge
// on any number of ranks (candidate_edges.cpp). Then each layer draws (neighbor_draws.cpp).
#include <sar/core/error.hpp>
#include <sar/core/random/random.hpp>
#include <sar/core/trace/trace.hpp>
#include <sar/graph/hetero/homogeneous_form.hpp>
#include <sar/graph/message/agreement.hpp>
#include <sar/graph/sampling/neighbor_draws.hpp>
#include <sar/graph/sampling/neighbor_sampler.hpp>

#include <limits>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

CollectiveCall check(const Graph& graph, const std::vector<Index>& fan_outs,
                     const NeighborSamplerOptions& options) {
  require<InputError>(
      graph.topology().is_homogeneous(),
      "neighbors are sampled from a graph of one node type, not from a bipartite graph or a block");
  require<InputError>(!fan_outs.empty(), "there are no fan-outs, expected one for each layer");
  constexpr Index most = std::numeric_limits<local_index>::max();
  CollectiveCall call("NeighborSampler");
  call.equal("method", options.method)
      .equal("replace", options.replace)
      .equal("redraw", options.redraw)
      .equal("seed", options.seed);
  require<InputError>(options.method == NeighborMethod::uniform || !options.replace,
                      "layer-neighbor sampling draws without replacement, expected replace = false");
  for (const Index fan_out : fan_outs) {
    require<InputError>(-1 <= fan_out && fan_out <= most, "a fan-out is ", fan_out,
                        ", expected 0 or more and less than 2^31, or -1 for all in-edges");
    call.equal("fan-out", fan_out);
  }
  return call;
}

}  // namespace

NeighborSampler::Sampled NeighborSampler::sampled(const Graph& graph) {
  return graph.comm().agree([&]() -> Sampled {
    if (graph.is_homogeneous()) return {graph, std::nullopt};
    return {graph.to_homogeneous().graph, graph};
  });
}

NeighborSampler::NeighborSampler(Sampled of, std::size_t num_layers, const NeighborSamplerOptions& options)
    : graph_(std::move(of.graph)),
      typed_(std::move(of.typed)),
      num_layers_(num_layers),
      method_(options.method),
      replace_(options.replace),
      redraw_(options.redraw),
      seed_(options.seed) {}

NeighborSampler::NeighborSampler(const Graph& graph, std::vector<Index> fan_outs,
                                 const NeighborSamplerOptions& options)
    : NeighborSampler(sampled(graph), fan_outs.size(), options) {
  graph_.comm().agree([&] {
    const std::size_t types = typed_ ? typed_->edge_types().size() : 1;
    for (const Index fan_out : fan_outs) fan_outs_.insert(fan_outs_.end(), types, fan_out);
    prepare(typed_ ? &typed_->to_homogeneous().etypes : nullptr, options);
  });
}

NeighborSampler::NeighborSampler(const Graph& graph, std::span<const std::map<std::string, Index>> fan_outs,
                                 const NeighborSamplerOptions& options)
    : NeighborSampler(sampled(graph), fan_outs.size(), options) {
  graph_.comm().agree([&] {
    const std::vector<EdgeType>& types = graph.edge_types();
    for (const auto& of_layer : fan_outs) {
      std::vector<std::optional<Index>> of_types(types.size());
      for (const auto& [name, fan_out] : of_layer) {
        std::optional<Index>& of_type = of_types[find_edge_type(types, name)];
        require<InputError>(!of_type, "a layer has two fan-outs for the edge type '", name, "'");
        of_type = fan_out;
      }
      for (std::size_t k = 0; k < types.size(); ++k) {
        require<InputError>(of_types[k].has_value(), "a layer has no fan-out for the edge type '",
                            types[k].canonical_name(), "', expected one for each of ",
                            joined(types, &EdgeType::canonical_name));
        fan_outs_.push_back(*of_types[k]);
      }
    }
    prepare(typed_ ? &typed_->to_homogeneous().etypes : nullptr, options);
  });
}

NeighborSampler::NeighborSampler(const Graph& graph, std::vector<std::vector<Index>> fan_outs,
                                 const EdgeTypes& etypes, const NeighborSamplerOptions& options)
    : NeighborSampler(Sampled{graph, std::nullopt}, fan_outs.size(), options) {
  graph_.comm().agree([&] {
    for (const std::vector<Index>& of_layer : fan_outs) {
      const std::size_t types = fan_outs.front().size();
      require<InputError>(!of_layer.empty() && of_layer.size() == types, "a layer has ", of_layer.size(),
                          " fan-outs, expected one for each type of edge",
                          types == 0 ? "" : concat(", ", types, " as the first layer"));
      fan_outs_.insert(fan_outs_.end(), of_layer.begin(), of_layer.end());
    }
    prepare(&etypes, options);
  });
}

void NeighborSampler::prepare(const EdgeTypes* etypes, const NeighborSamplerOptions& options) {
  const CollectiveCall call = check(graph_, fan_outs_, options);
  EdgeTypes types;
  if (etypes != nullptr)
    types = etypes->checked(graph_.num_edges(), static_cast<Index>(fan_outs_.size() / num_layers_),
                            "NeighborSampler");
  graph_.comm().require_equal(CollectiveCall("NeighborSampler")
                                  .equal("number of fan-outs", fan_outs_.size())
                                  .equal("number of layers", num_layers_)
                                  .equal("types of edges", etypes != nullptr));
  graph_.comm().require_equal(call);
  const bool weighted = check_probabilities(graph_, options.prob);
  require<InputError>(method_ == NeighborMethod::uniform || !weighted,
                      "layer-neighbor sampling draws all edges with the same probability, expected no prob");
  auto candidates = std::make_shared<CandidateEdges>(
      find_candidates(graph_, options.prob, weighted, etypes != nullptr ? &types.numbers() : nullptr));
  if (method_ == NeighborMethod::labor) find_sources(graph_, *candidates);
  candidates_ = std::move(candidates);
}

std::vector<MessageFlowGraph> NeighborSampler::sample_blocks(std::span<const Index> seeds,
                                                             std::uint64_t epoch,
                                                             std::span<const Index> excluded,
                                                             Index batch) const {
  const TraceScope scope("sample_blocks", TraceKind::compute);
  const GraphTopology& whole = graph_.topology();
  return whole.comm.agree([&] {
    require<InputError>(batch >= 0, "the batch has the number ", batch, ", expected 0 or more");
    const ExcludedEdges excluded_edges(whole, excluded);
    whole.comm.require_equal(CollectiveCall("sample_blocks").equal("epoch", epoch).equal("batch", batch));
    const bool labor = method_ == NeighborMethod::labor;
    const RandomStream streams = labor ? RandomStream::layer_neighbors : RandomStream::neighbors;
    const std::uint64_t step = epoch + (redraw_ ? static_cast<std::uint64_t>(batch) << 32 : 0);
    std::vector<MessageFlowGraph> blocks = make_layers(
        graph_, seeds, static_cast<Index>(num_layers_), [&](Index layer, const Array<Index>& dst_rows) {
          const auto l = static_cast<std::size_t>(layer);
          const std::size_t types = fan_outs_.size() / num_layers_;
          const LayerDraws draws{.fan_outs = std::span(fan_outs_).subspan(l * types, types),
                                 .replace = replace_,
                                 .key = {.seed = seed_, .stream = streams + l, .step = step}};
          return labor ? draw_layer_neighbors(*candidates_, whole, draws, excluded_edges, dst_rows)
                       : draw_neighbors(*candidates_, whole.dst_ids(), draws, excluded_edges, dst_rows);
        });
    if (typed_) return with_types(*typed_, blocks);
    return blocks;
  });
}

std::vector<MessageFlowGraph> NeighborSampler::sample_blocks(const NodesByType& seeds, std::uint64_t epoch,
                                                             std::span<const Index> excluded,
                                                             Index batch) const {
  return sample_blocks(nodes_of(seeds), epoch, excluded, batch);
}

std::vector<Index> NeighborSampler::nodes_of(const NodesByType& nodes) const {
  return graph_.comm().agree([&] { return (typed_ ? *typed_ : graph_).to_homogeneous().nodes_of(nodes); });
}
}}  // namespace sar
