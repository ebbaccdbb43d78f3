// SPDX-License-Identifier: MIT

// The rows of the groups Parallel and Output: ranks and threads, and the files that are written.
#include "option_table.hpp"

#include <string>

namespace sar::tools {
namespace {

void read_keep(const std::string& word, KeptWeights& keep) {
  if (to_signed_number<Index>(word))
    refuse_value("--keep", word,
                 "last or best (--keep-checkpoints " + word + " keeps that many checkpoints)");
  if (word != "last" && word != "best") refuse_value("--keep", word, "one of last, best");
  keep = word == "best" ? KeptWeights::best : KeptWeights::last;
}

void add_parallel_options(OptionTable& t, TrainOptions& o) {
  t.group("Parallel", one_graph_tasks, false);
  t.row(add_threads_option(t.app(), o.threads)).for_tasks(all_tasks).common();
  t.choice("--partition", o.data.partition, partition_methods(), "assignment of nodes to ranks").common();
  t.choice("--mode", o.graph_options.mode, named_values(halo_mode_names), "which halo rows are in memory");
  t.number("--max-halo-bytes", o.graph_options.max_halo_bytes,
           "bytes of halo rows in a stage; 0: a quarter of the largest rank's rows, or 1 MiB")
      .common();
  t.number("--halo-cache-bytes", o.halo_cache_bytes,
           "--sample: most bytes of input rows of other ranks that a rank keeps; 0: none")
      .for_tasks(network_tasks)
      .read_with("--sample", [&o] { return !o.sample.fan_outs.empty(); })
      .read_with("--task node", [&o] { return o.task.type == TaskType::node; })
      .not_with("--embedding, whose rows change between batches", [&o] { return o.embedding > 0; })
      .not_with("--category, whose rows may change between batches", [&o] { return !o.category.empty(); })
      .not_with("--pre-linear", [&o] { return o.model.pre_linear; })
      .not_with("--bfloat16-features", [&o] { return o.bfloat16_features; })
      .not_with("--sparse-features yes", [&o] { return o.data.sparse_features == SparseFeatures::yes; })
      .read_with("--halo-format exact", [&o] { return o.graph_options.halo_format == HaloFormat::exact; });
  t.flag("--reproducible", o.graph_options.reproducible, "the same bits for any number of ranks")
      .for_tasks(all_tasks)
      .recorded();
  t.choice("--halo-format", o.graph_options.halo_format, halo_formats(), "type of halo rows in messages")
      .recorded();
}

void add_checkpoint_options(OptionTable& t, TrainOptions& o) {
  t.path("--checkpoint", o.checkpoint, "DIR", "checkpoints of this run").excludes({"--describe"}).common();
  t.flag("--resume", o.resume, "continues from the last checkpoint, on any number of ranks")
      .needs("--checkpoint")
      .common();
  t.number("--checkpoint-every", o.checkpoint_every, "epochs between checkpoints", 1).needs("--checkpoint");
  t.number("--checkpoint-batches", o.checkpoint_batches,
           "with batches: number of them between checkpoints within an epoch; 0: none")
      .needs("--checkpoint")
      .read_with("mini-batches", [&o] { return has_samples(o.task.type) || o.sample.has_batches(); });
  t.number("--keep-checkpoints", o.checkpoint_keep, "number of checkpoints to keep", 1).needs("--checkpoint");
}

}  // namespace

void add_output_options(OptionTable& t, TrainOptions& o) {
  add_parallel_options(t, o);
  t.group("Output", all_tasks, false);
  const auto file = [&](const char* name, std::string& path, const char* form,
                        const char* help) -> OptionRow& {
    return t.path(name, path, form, help).excludes({"--describe"});
  };
  file("--log", o.log_file, "FILE", "log: a JSON object per epoch, then a summary").common();
  file("--curves", o.curves, "FILE", "learning curves as a picture, after the training (.svg)");
  file("--tensorboard", o.tensorboard, "DIR", "event files of TensorBoard, a record per epoch");
  file("--save-weights", o.save_weights, "FILE", "weights after the training (.safetensors)").common();
  file("--predict", o.predict, "DIR", "predictions after the training, as .npy files").common();
  t.parsed("--keep", read_keep, o.keep, "NAME",
           "weights to save and predict with, of the last or the best epoch: last, best")
      .default_text("last")
      .as_text([&o] { return o.keep == KeptWeights::best ? "best" : "last"; })
      .recorded();
  t.number("--predict-layer", o.predict_layer, "also writes the output of this layer, embeddings.npy", 1)
      .for_tasks(one_graph_tasks)
      .needs("--predict");
  t.path("--predict-pairs", o.predict_pairs, "FILE",
         "link, edge: scores of these pairs of nodes, two ids in each line or row (.npy)")
      .for_tasks(pair_tasks)
      .needs("--predict");
  add_checkpoint_options(t, o);
}

}  // namespace sar::tools
