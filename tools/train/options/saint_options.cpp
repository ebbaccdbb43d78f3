// SPDX-License-Identifier: MIT
#include "saint_options.hpp"

#include "options.hpp"

#include <sar/models.hpp>

#include <CLI/CLI.hpp>

#include <string>

namespace sar::tools {

const char* name_of(SaintMethod method) {
  switch (method) {
    case SaintMethod::edge:
      return "saint-edge";
    case SaintMethod::walk:
      return "saint-walk";
    case SaintMethod::node:
      break;
  }
  return "saint-node";
}

void add_saint_options(CLI::App& app, SampleOptions& o) {
  add_choice(app, "--sampler", o.sampler,
             {{"neighbor", Sampler::neighbor},
              {"labor", Sampler::labor},
              {"saint-node", Sampler::saint_node},
              {"saint-edge", Sampler::saint_edge},
              {"saint-walk", Sampler::saint_walk}},
             "how batches are drawn");
  add_number(app, "--walk-length", o.walk_length, "saint-walk: steps of each walk", 1);
  add_number(app, "--saint-batches", o.saint_batches,
             "saint: subgraphs of an epoch; 0: as many as draw as many nodes as there are");
  add_number(app, "--saint-coverage", o.saint_coverage,
             "saint-edge, saint-walk: draws of each node from which the coefficients are counted", 1);
}

void set_sampler(SampleOptions& o) {
  o.method = o.sampler == Sampler::labor ? NeighborMethod::labor : NeighborMethod::uniform;
  if (o.sampler == Sampler::saint_node) o.saint = SaintMethod::node;
  if (o.sampler == Sampler::saint_edge) o.saint = SaintMethod::edge;
  if (o.sampler == Sampler::saint_walk) o.saint = SaintMethod::walk;
}

void check_saint(const CLI::App& app, const TrainOptions& o) {
  const SampleOptions& s = o.sample;
  const auto refuse = [](bool wrong, const std::string& what) {
    if (wrong) throw CLI::ValidationError(what);
  };
  refuse(app.count("--sampler") > 0 && !s.saint && s.fan_outs.empty(),
         concat("--sampler: ", s.method == NeighborMethod::labor ? "labor" : "neighbor", " needs --sample"));
  refuse(app.count("--walk-length") > 0 && s.saint != SaintMethod::walk,
         "--walk-length: needs --sampler saint-walk");
  refuse(app.count("--saint-batches") > 0 && !s.saint,
         "--saint-batches: needs --sampler saint-node, saint-edge or saint-walk");
  refuse(app.count("--saint-coverage") > 0 && (!s.saint || s.saint == SaintMethod::node),
         "--saint-coverage: needs --sampler saint-edge or saint-walk");
  if (!s.saint) return;
  const std::string sampler = concat("--sampler: ", name_of(*s.saint));
  refuse(o.task.type != TaskType::node, sampler + " needs --task node");
  for (const char* option : {"--sample", "--clusters", "--mfg", "--category"})
    refuse(app.count(option) > 0, sampler + " cannot be combined with " + option);
  refuse(model_type(o.model.type).has_relations,
         concat(sampler, " cannot be combined with --model ", o.model.type));
}

void add_halo_cache_option(CLI::App& app, TrainOptions& o) {
  add_number(app, "--halo-cache-bytes", o.halo_cache_bytes,
             "--sample: most bytes of input rows of other ranks that a rank keeps; 0: none");
}

void check_halo_cache(const CLI::App& app, const TrainOptions& o) {
  const auto refuse = [](bool wrong, const char* what) {
    if (wrong) throw CLI::ValidationError(std::string("--halo-cache-bytes: ") + what);
  };
  if (app.count("--halo-cache-bytes") == 0) return;
  refuse(o.sample.fan_outs.empty(), "needs --sample");
  refuse(o.task.type != TaskType::node, "needs --task node");
  refuse(o.embedding > 0, "cannot be combined with --embedding, whose rows change between batches");
  refuse(!o.category.empty(), "cannot be combined with --category, whose rows may change between batches");
  refuse(o.model.pre_linear, "cannot be combined with --pre-linear");
  refuse(o.bfloat16_features, "cannot be combined with --bfloat16-features");
  refuse(o.data.sparse_features == SparseFeatures::yes, "cannot be combined with --sparse-features yes");
  refuse(o.graph_options.halo_format != HaloFormat::exact, "needs --halo-format exact");
}

}  // namespace sar::tools
