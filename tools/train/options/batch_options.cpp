// SPDX-License-Identifier: MIT
#include "batch_options.hpp"

#include "option_lists.hpp"
#include "options.hpp"
#include "saint_options.hpp"

#include <CLI/CLI.hpp>

#include <limits>
#include <string>

namespace sar::tools {
namespace {

void add_cluster_options(CLI::App& app, SampleOptions& o) {
  const auto read = [&o](const std::string& text) {
    const auto number = to_number<Index>(text);
    if (text != "parts" && (!number || *number < 1 || *number > std::numeric_limits<int>::max()))
      throw CLI::ValidationError("--clusters",
                                 "'" + text + "', expected the number of clusters, from 1 on, or parts");
    o.clusters = number.value_or(SampleOptions::parts);
  };
  auto* clusters =
      app.add_option_function<std::string>(
             "--clusters", read, "mini-batches of clusters: as many, or the parts of the partition directory")
          ->option_text("N|parts");
  add_number(app, "--clusters-per-batch", o.clusters_per_batch, "clusters of a batch", 1)->needs(clusters);
  add_choice(app, "--cluster-method", o.cluster_method,
             {{"auto", PartitionMethod::automatic},
              {"metis", PartitionMethod::metis},
              {"ldg", PartitionMethod::ldg},
              {"random", PartitionMethod::random},
              {"contiguous", PartitionMethod::contiguous}},
             "how clusters are made")
      ->needs(clusters);
}

}  // namespace

std::vector<Index> read_fan_outs(const std::string& option, const std::string& text) {
  return read_list(option, text, -1, "a fan-out for each layer, such as 15,10,5; -1 is all in-edges");
}

void add_sample_options(CLI::App& app, TrainOptions& options) {
  begin_group(app, "Sampling");
  SampleOptions& o = options.sample;
  const auto read = [&o](const std::string& text) { o.fan_outs = read_fan_outs("--sample", text); };
  auto* sample =
      app.add_option_function<std::string>(
             "--sample", read, "mini-batches: in-edges per node in each layer, as 15,10,5; -1: all")
          ->option_text("LIST");
  add_number(app, "--batch-size", o.batch_size,
             "training nodes, edges or graphs (32) of a batch, of all ranks together", 1);
  app.add_flag("--batch-per-rank", o.batch_per_rank, "--batch-size counts those of each rank");
  app.add_flag("--drop-last", o.drop_last, "skips the last batch of an epoch if it is not full");
  add_pairs(app, "--sample-relation", o.relation_lists, "TYPE=LIST",
            "--sample for some edge types: author:writes:paper=5,5")
      ->needs(sample);
  app.add_flag("--sample-replace", o.replace, "draws in-edges with replacement")->needs(sample);
  app.add_flag("--sample-by-weight", o.by_weight, "draws in-edges in proportion to their weights")
      ->needs(sample);
  add_saint_options(app, o);
  app.add_flag("--sample-redraw", o.redraw, "draws a node's in-edges anew in each batch of an epoch, as DGL")
      ->needs(sample);
  app.add_flag("--sample-eval", o.evaluate, "also evaluates on sampled in-edges")->needs(sample);
  app.add_flag("--mfg", options.mfg,
               "full batch: only what the training rows depend on; with batch norm another training")
      ->excludes(sample);
  add_cluster_options(app, o);
  app.get_option("--clusters")->excludes(sample)->excludes("--mfg");
}

void check_clusters(const TrainOptions& o) {
  const SampleOptions& s = o.sample;
  const bool labor = s.method == NeighborMethod::labor;
  if (labor && s.replace)
    throw CLI::ValidationError("--sampler: labor cannot be combined with --sample-replace");
  if (labor && s.by_weight)
    throw CLI::ValidationError("--sampler: labor cannot be combined with --sample-by-weight");
  if (s.clusters != 0 && !o.category.empty())
    throw CLI::ValidationError("--clusters: cannot be combined with --category");
  if (s.clusters == SampleOptions::parts && o.found.kind != DatasetKind::partition_directory)
    throw CLI::ValidationError("--clusters: parts needs a --dataset that is a partition directory");
}

}  // namespace sar::tools
