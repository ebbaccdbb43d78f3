// SPDX-License-Identifier: MIT

// The rows of the group Sampling: mini-batches.
#include "option_table.hpp"

#include <limits>
#include <string>

namespace sar::tools {
namespace {

/// With --batch-per-rank, batches also depend on the number of ranks and on the partition.
std::string describe_batch_per_rank(const TrainOptions& o) {
  if (!o.sample.batch_per_rank) return "0";
  const std::string partition = o.found.is_partitioned() ? "given" : to_string(o.data.partition);
  return concat("on ", o.num_ranks, " ranks", has_samples(o.task.type) ? "" : ", partition " + partition);
}

void add_saint_options(OptionTable& t, SampleOptions& s) {
  t.choice("--sampler", s.sampler, samplers, "how batches are drawn");
  t.number("--walk-length", s.walk_length, "saint-walk: steps of each walk", 1)
      .read_with("--sampler saint-walk", [&s] { return s.sampler == Sampler::saint_walk; });
  t.number("--saint-batches", s.saint_batches,
           "saint: subgraphs of an epoch; 0: nodes of the graph / nodes that a subgraph draws")
      .read_with("--sampler saint-node, saint-edge or saint-walk", [&s] { return s.is_saint(); });
  t.number("--saint-coverage", s.saint_coverage,
           "saint-edge, -walk: nodes drawn to count probabilities, for each node", 1)
      .read_with("--sampler saint-edge or saint-walk",
                 [&s] { return s.is_saint() && s.sampler != Sampler::saint_node; });
}

/// "8", or "parts".
void read_clusters(const std::string& text, SampleOptions& s) {
  const auto number = to_signed_number<Index>(text);
  if (text != "parts" && (!number || *number < 1 || *number > std::numeric_limits<int>::max()))
    refuse_value("--clusters", text, "the number of clusters, from 1 on, or parts");
  s.clusters = number.value_or(SampleOptions::parts);
}

void add_cluster_options(OptionTable& t, SampleOptions& s) {
  using enum PartitionMethod;
  t.parsed("--clusters", read_clusters, s, "N|parts",
           "mini-batches of clusters: N clusters, or `parts`, those of the partition directory")
      .for_tasks({TaskType::node})
      .excludes({"--sample", "--mfg"})
      .as_text([&s] {
        return s.clusters == SampleOptions::parts ? "parts" : s.clusters > 0 ? concat(s.clusters) : "";
      });
  t.number("--clusters-per-batch", s.clusters_per_batch, "clusters of a batch", 1).needs("--clusters");
  t.choice("--cluster-method", s.cluster_method, named({automatic, metis, ldg, random, contiguous}),
           "how clusters are made")
      .needs("--clusters")
      .read_with("a number of --clusters", [&s] { return s.clusters > 0; });
}

}  // namespace

std::vector<Index> read_fan_outs(const std::string& option, const std::string& text) {
  return read_numbers<Index>(
      option, text, [](Index fan_out) { return fan_out >= -1; },
      "a fan-out for each layer, such as 15,10,5; -1 is all in-edges");
}

void add_sample_options(OptionTable& t, TrainOptions& o) {
  SampleOptions& s = o.sample;
  const auto draws_or_samples = [&o] { return !o.sample.fan_outs.empty() || has_samples(o.task.type); };
  t.group("Sampling", network_tasks, true);
  t.parsed(
       "--sample", [&s](const std::string& text) { s.fan_outs = read_fan_outs("--sample", text); }, "LIST",
       "mini-batches: in-edges per node in each layer, as 15,10,5; -1: all")
      .for_tasks(one_graph_tasks)
      .common()
      .as_text([&s] { return list_text(s.fan_outs); });
  t.number("--batch-size", s.batch_size,
           "training nodes, edges, graphs (32) or structures (4) of a batch, over all ranks", 1)
      .default_for(TaskType::graph, [&s] { s.batch_size = 32; })
      .default_for(TaskType::potential, [&s] { s.batch_size = 4; })
      .for_tasks(all_tasks)
      .read_with("--sample, --sampler saint-node, saint-edge or saint-walk, or --task graph or potential",
                 [draws_or_samples, &s] { return draws_or_samples() || s.is_saint(); });
  t.flag("--batch-per-rank", s.batch_per_rank, "--batch-size counts those of each rank")
      .for_tasks(all_tasks)
      .read_with("--sample or --task graph or potential", draws_or_samples)
      .as_text([&o] { return describe_batch_per_rank(o); });
  t.flag("--drop-last", s.drop_last, "skips the last batch of an epoch if it is not full")
      .for_tasks(all_tasks)
      .read_with("--sample or --task graph or potential", draws_or_samples);
  t.pairs("--sample-relation", s.relation_lists, "TYPE=LIST",
          "--sample for some edge types: author:writes:paper=5,5")
      .needs("--sample")
      .read_with("--category or --relation", [&o] { return o.is_typed(); });
  t.flag("--sample-replace", s.replace, "draws in-edges with replacement").needs("--sample");
  t.flag("--sample-by-weight", s.by_weight, "draws in-edges in proportion to their weights")
      .needs("--sample");
  add_saint_options(t, s);
  t.flag("--sample-redraw", s.redraw, "draws a node's in-edges anew in each batch of an epoch, as DGL")
      .needs("--sample");
  t.flag("--sample-eval", s.evaluate, "also evaluates on sampled in-edges")
      .for_tasks({TaskType::node})
      .needs("--sample")
      .unrecorded();
  t.flag("--mfg", o.mfg,
         "full batch: only what the training rows depend on; with batch norm another training")
      .for_tasks(one_graph_tasks)
      .excludes({"--sample"});
  add_cluster_options(t, s);
}

}  // namespace sar::tools
