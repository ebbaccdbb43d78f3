// SPDX-License-Identifier: MIT
#include "output_options.hpp"

#include "options.hpp"
#include "saint_options.hpp"

#include <CLI/CLI.hpp>

#include <string>

namespace sar::tools {
namespace {

void add_keep_option(CLI::App& app, KeptWeights& keep) {
  const auto read = [&keep](const std::string& word) {
    if (to_number<Index>(word))
      throw CLI::ValidationError("--keep", "'" + word + "', expected last or best (--keep-checkpoints " +
                                               word + " keeps that many checkpoints)");
    if (word != "last" && word != "best")
      throw CLI::ValidationError("--keep", "'" + word + "', expected one of last, best");
    keep = word == "best" ? KeptWeights::best : KeptWeights::last;
  };
  app.add_option_function<std::string>(
         "--keep", read, "weights to save and predict with, of the last or the best epoch: last, best")
      ->type_name("NAME")
      ->default_str("last");
}

}  // namespace

void add_parallel_options(CLI::App& app, TrainOptions& o) {
  begin_group(app, "Parallel");
  add_threads_option(app, o.threads);
  add_choice(app, "--partition", o.data.partition, partition_methods(), "assignment of nodes to ranks");
  add_choice(app, "--mode", o.graph_options.mode, named_values(halo_mode_names),
             "which halo rows are in memory");
  add_number(app, "--max-halo-bytes", o.graph_options.max_halo_bytes,
             "most bytes of halo rows in a stage; 0: at most a quarter of a rank's rows");
  add_halo_cache_option(app, o);
  app.add_flag("--reproducible", o.graph_options.reproducible,
               "the same bits for any number of ranks");
  add_choice(app, "--halo-format", o.graph_options.halo_format, halo_formats(),
             "type of halo rows in messages");
}

void add_output_options(CLI::App& app, TrainOptions& o) {
  begin_group(app, "Output");
  add_path(app, "--log", o.log_file, "FILE", "log: a JSON object per epoch, then a summary");
  add_path(app, "--curves", o.curves, "FILE", "learning curves as a picture, after the training (.svg)");
  add_path(app, "--tensorboard", o.tensorboard, "DIR", "event files of TensorBoard, a record per epoch");
  add_path(app, "--save-weights", o.save_weights, "FILE", "weights after the training (.safetensors)");
  auto* predict =
      add_path(app, "--predict", o.predict, "DIR", "predictions after the training, as .npy files");
  add_keep_option(app, o.keep);
  add_number(app, "--predict-layer", o.predict_layer, "also writes the output of this layer, embeddings.npy",
             1)
      ->needs(predict);
  add_path(app, "--predict-pairs", o.predict_pairs, "FILE",
           "link, edge: scores of these pairs of nodes, two ids in each line or row (.npy)")
      ->needs(predict);
  auto* checkpoint = add_path(app, "--checkpoint", o.checkpoint, "DIR", "checkpoints of this run");
  app.add_flag("--resume", o.resume, "continues from the last checkpoint, on any number of ranks")
      ->needs(checkpoint);
  add_number(app, "--checkpoint-every", o.checkpoint_every, "epochs between checkpoints", 1)
      ->needs(checkpoint);
  add_number(app, "--checkpoint-batches", o.checkpoint_batches,
             "with batches: number of them between checkpoints within an epoch; 0: none")
      ->needs(checkpoint);
  add_number(app, "--keep-checkpoints", o.checkpoint_keep, "number of checkpoints to keep", 1)
      ->needs(checkpoint);
  for (const char* output : {"--log", "--curves", "--tensorboard", "--save-weights", "--predict",
                             "--checkpoint", "--runs", "--splits"})
    app.get_option("--describe")->excludes(output);
}

}  // namespace sar::tools
