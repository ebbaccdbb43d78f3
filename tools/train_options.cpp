#include "train_options.hpp"

#include "options.hpp"

#include <sar/core/error.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace sar::tools {
namespace {

/// Options that go with some datasets only.
struct DataOptions {
  std::vector<CLI::Option*> source;
  CLI::Option* fields;
  CLI::Option* partition;
};

DataOptions add_data_options(CLI::App& app, TrainOptions& o) {
  auto* dataset = app.add_option("--dataset", o.dataset,
                                 "dataset directory, partition directory, DGL partition, OGB folder, edge "
                                 "list or Matrix Market file")
                      ->check(not_empty())
                      ->option_text("PATH");
  app.add_option("--partition-data", o.dataset, "the same, of a graph that is partitioned")
      ->check(not_empty())
      ->option_text("JSON")
      ->excludes(dataset);
  const std::vector<CLI::Option*> source = add_source_options(app, o.source);
  auto* fields = add_pairs(
      app, "--fields", o.data.fields, "NAME=FIELD",
      "which data of the nodes are the features, labels, train_mask, val_mask, test_mask, which of the "
      "edges the weight, edge_labels, edge_split, edge_train_mask, edge_val_mask, edge_test_mask, "
      "edge_type, where they have other names: features=x labels=y");
  app.add_option("--num-classes", o.num_classes, "at least that of the labels; 0: that")
      ->transform(number_from<Index>(0));
  add_choice(app, "--graph", o.graph, {{"karate", BuiltInGraph::karate}, {"sbm", BuiltInGraph::sbm}},
             "built-in graph: karate or sbm")
      ->excludes(dataset);
  add_sbm_options(app, o.sbm, "sbm: ");
  app.add_option(
         "--category", o.category,
         "of a graph with types of nodes and edges: the type of the nodes that have the labels and the "
         "masks. Features of several widths go through a linear layer of their type first, and types "
         "without features get learnable rows, both to width --hidden")
      ->check(not_empty())
      ->option_text("TYPE");
  add_edge_options(app, o.data);
  app.add_flag("--normalize-features", o.data.normalize_features, "divide feature rows by their sum");
  auto* partition = add_choice(app, "--partition", o.data.partition, partition_methods(),
                               "contiguous, random, metis, scotch or ldg");
  return {source, fields, partition};
}

void add_model_options(CLI::App& app, ModelOptions& m) {
  constexpr Index most = std::numeric_limits<int>::max();  // of factors of a width
  Choices<std::string> types;
  for (const ModelType& type : model_types()) types.emplace_back(type.stack.name, type.stack.name);
  add_choice(app, "--model", m.type, types,
             "sage, gcn, gat, gatv2, gin or rgcn; with --category rgcn, hgt, hetero-sage or "
             "hetero-gat");
  add_layers_option(app, m.layers, "number of convolutions");
  auto* hidden =
      app.add_option("--hidden", m.hidden,
                     "width between them; gat, gatv2: of all heads together, where papers, DGL and "
                     "PyG count one head (--hidden-per-head)")
          ->transform(number_from<Index>(1));
  app.add_option("--hidden-per-head", m.hidden_per_head,
                 "gat, gatv2: width of one head; --hidden is --heads times that")
      ->transform(number_from<Index>(1, most))
      ->excludes(hidden)
      ->default_str("");
  app.add_option("--heads", m.heads, "gat, gatv2: attention heads, but for the last layer")
      ->transform(number_from<Index>(1, most));
  app.add_option("--out-heads", m.out_heads, "gat, gatv2: heads of the last layer; logits are their mean")
      ->transform(number_from<Index>(1));
  app.add_option(
         "--residual", m.first_residual,
         "gat, gatv2: residual connections from this layer on (1: in all, 2: as DGL's example); 0: none")
      ->transform(number_from(0));
  app.add_option("--dropout", m.dropout, "probability, sage: between layers, others: in front of each")
      ->transform(number_from(0.0, 0.999));
  app.add_option("--attn-dropout", m.attention_dropout, "gat, gatv2: probability for a coefficient")
      ->transform(number_from(0.0, 0.999));
  app.add_option(
         "--num-rels", m.num_rels,
         "rgcn: number of edge types. Files have none, so they are generated: on built-in graphs from "
         "the classes of both ends and noise, on others from noise alone, since labels must not leak")
      ->transform(number_from<Index>(1));
  app.add_option("--num-bases", m.num_bases, "rgcn: matrices that the types share; 0: one for each")
      ->transform(number_from<Index>(0));
  app.add_flag("--batch-norm", m.batch_norm,
               "batch norm over all nodes of all workers between layers (gin has it inside of them anyway)");
}

void add_optimizer_options(CLI::App& app, TrainOptions& o) {
  app.add_option("--epochs", o.epochs,
                 "times that all training nodes or edges are used, full batch in one step; 0: only --predict")
      ->transform(number_from(0));
  add_choice(app, "--optimizer", o.optimizer,
             {{"adam", OptimizerType::adam}, {"adamw", OptimizerType::adamw}, {"sgd", OptimizerType::sgd}},
             "adam, adamw or sgd");
  app.add_option("--lr", o.lr, "learning rate; a resumed run may have another")
      ->transform(number_from(0.0, 1e6));
  app.add_option("--momentum", o.momentum, "of sgd")->transform(number_from(0.0, 1.0));
  app.add_option("--weight-decay", o.weight_decay, "on all parameters")->transform(number_from(0.0, 1e6));
  app.add_option("--clip-norm", o.clip_norm, "largest norm of all gradients together; 0: do not clip")
      ->transform(number_from(0.0, 1e30));
  app.add_option("--clip-value", o.clip_value, "largest element of a gradient; 0: do not clip")
      ->transform(number_from(0.0, 1e30));
  add_seed_option(app, o.seed,
                  "of initial parameters, dropout, the generated graph and the random partition");
}

void add_schedule_options(CLI::App& app, ScheduleOptions& o) {
  add_choice(app, "--schedule", o.type,
             {{"none", ScheduleType::none},
              {"step", ScheduleType::step},
              {"cosine", ScheduleType::cosine},
              {"plateau", ScheduleType::plateau}},
             "of the learning rate: none, step, cosine (until --epochs) or plateau (of the loss)");
  app.add_option("--warm-up", o.warm_up, "epochs from a tenth of the learning rate to all of it; 0: none")
      ->transform(number_from(0));
  app.add_option("--step-size", o.step_size, "step: epochs between reductions")->transform(number_from(1));
  app.add_option("--patience", o.patience, "plateau: epochs without progress before a reduction")
      ->transform(number_from(0));
  app.add_option("--lr-factor", o.factor, "step, plateau: what a reduction multiplies by")
      ->transform(number_from(0.0, 1.0));
  app.add_option("--min-lr", o.min_lr, "cosine, plateau: smallest learning rate")
      ->transform(number_from(0.0, 1e30));
}

/// "15,10,5"
std::vector<Index> read_fan_outs(const std::string& option, const std::string& text) {
  std::vector<Index> fan_outs;
  for (std::string_view rest = text; fan_outs.empty() || !rest.empty();) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const auto fan_out = to_number<Index>(rest.substr(0, comma));
    if (!fan_out || *fan_out < -1 || comma + 1 == rest.size())
      throw CLI::ValidationError(
          option, "'" + text + "', expected a fan-out for each layer, such as 15,10,5; -1 is all in-edges");
    fan_outs.push_back(*fan_out);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return fan_outs;
}

void add_sample_options(CLI::App& app, SampleOptions& o) {
  const auto read = [&o](const std::string& text) { o.fan_outs = read_fan_outs("--sample", text); };
  auto* sample =
      app.add_option_function<std::string>("--sample", read,
                                           "mini-batches of training nodes or edges, on so many in-edges "
                                           "of a node in each layer, the first layer first; "
                                           "-1: all. With --category, so many of each type of edge. "
                                           "Evaluation is on the whole graph")
          ->option_text("LIST");
  add_pairs(app, "--sample-relation", o.relation_lists, "TYPE=LIST",
            "other fan-outs for some types of edges, each by its relation or as author:writes:paper")
      ->needs(sample);
  app.add_option("--batch-size", o.batch_size, "training nodes or edges of a step, of all ranks together")
      ->transform(number_from<Index>(1))
      ->needs(sample);
  app.add_flag("--batch-per-rank", o.batch_per_rank,
               "--batch-size is that of each rank, as in DGL; the curve then depends on their number")
      ->needs(sample);
  app.add_flag("--drop-last", o.drop_last,
               "leave out the batches of an epoch that are not full (--batch-per-rank: on every rank)")
      ->needs(sample);
  app.add_flag("--sample-replace", o.replace, "an in-edge may be drawn several times")->needs(sample);
  app.add_flag("--sample-by-weight", o.by_weight, "draw in-edges in proportion to their weights")
      ->needs(sample);
  app.add_flag("--sample-eval", o.evaluate, "evaluate on sampled in-edges, too")->needs(sample);
}

void add_execution_options(CLI::App& app, TrainOptions& o) {
  app.add_flag("--mfg", o.mfg,
               "training steps compute only what the training nodes or edges depend on (batch norm then sees "
               "those nodes only)")
      ->excludes("--sample");
  add_choice(app, "--mode", o.graph_options.mode,
             {{"rematerialize", HaloMode::rematerialize},
              {"sequential", HaloMode::sequential},
              {"one-shot", HaloMode::one_shot}},
             "rematerialize, sequential or one-shot");
  app.add_option("--pipeline-depth", o.graph_options.pipeline_depth, "stages in flight while one is used")
      ->transform(number_from<int>(1));
  app.add_option("--max-halo-bytes", o.graph_options.max_halo_bytes,
                 "a stage holds halo rows of at most so many bytes; 0: a quarter of the rows of the worker that "
                 "owns most")
      ->transform(number_from<Index>(0));
  app.add_option("--edge-block", o.graph_options.edge_block,
                 "edges at a time where a message is a function of its own (rgcn without bases)")
      ->transform(number_from<Index>(1));
  add_choice(app, "--matmul-precision", o.matmul_precision,
             {{"highest", MatmulPrecision::highest},
              {"high", MatmulPrecision::high},
              {"medium", MatmulPrecision::medium}},
             "of products of matrices: highest, high (two bfloat16 numbers for a factor) or medium "
             "(one)");
  app.add_flag("--aggregate-in-double", o.graph_options.aggregate_in_double,
               "add the sums and means of message passing in double precision, over all ranks; gradients "
               "that travel take twice the bytes");
  Choices<HaloFormat> formats{
      {"exact", HaloFormat::exact}, {"bf16", HaloFormat::bf16}, {"int8", HaloFormat::int8}};
  if (sizeof(real) == sizeof(float)) formats.insert(formats.begin(), {"fp32", HaloFormat::exact});
  add_choice(app, "--halo-format", o.graph_options.halo_format, formats,
             "what rows and gradients are rounded to while they travel: exact, bf16 (2 bytes a number) or "
             "int8 (1 byte, a scale for each row, rounded at random)");
  app.add_flag("--halo-error-feedback", o.graph_options.halo_error_feedback,
               "what rounding took from a gradient is added to that of the next epoch; keeps a halo of "
               "gradients for each layer");
  add_threads_option(app, o.threads);
}

void add_result_options(CLI::App& app, TrainOptions& o) {
  app.add_option("--eval-every", o.eval_every, "evaluate after so many epochs and after the last; 0: never")
      ->transform(number_from(0));
  auto* predict = app.add_option("--predict", o.predict,
                                 "after the last epoch, write logits.npy and labels.npy there, rows by "
                                 "original node id; *.partition_order.npy where a DGL partition does not "
                                 "say those. link: embeddings.npy; edge: edge_logits.npy and "
                                 "edge_labels.npy, or edge_values.npy, rows by edge")
                      ->check(not_empty())
                      ->option_text("DIR");
  app.add_option("--predict-layer", o.predict_layer,
                 "and the output of this layer, embeddings.npy (link: of this one, not of the last)")
      ->transform(number_from<int>(1))
      ->needs(predict);
  app.add_option("--log", o.log_file, "one JSON object a line: epochs, then a summary")
      ->check(not_empty())
      ->option_text("FILE");
  auto* init =
      app.add_option(
             "--init-weights", o.init_weights,
             "initial weights: .safetensors. Names of DGL's and PyG's examples are recognised, and it "
             "is said what was taken for what")
          ->check(not_empty())
          ->option_text("FILE");
  add_pairs(app, "--rename", o.weight_names.rename, "FROM=TO",
            "--init-weights: names that are FROM or begin with FROM and a dot begin with TO in the model")
      ->needs(init);
  app.add_option("--strip-prefix", o.weight_names.strip_prefix,
                 "--init-weights: taken off the names that begin with it, before --rename")
      ->option_text("TEXT")
      ->needs(init);
  app.add_option("--save-weights", o.save_weights,
                 "write the weights after the last epoch, with the names of the --init-weights")
      ->check(not_empty())
      ->option_text("FILE");
}

void add_checkpoint_options(CLI::App& app, TrainOptions& o) {
  auto* checkpoint = app.add_option("--checkpoint", o.checkpoint,
                                    "write checkpoints there, which no other run does meanwhile")
                         ->check(not_empty())
                         ->option_text("DIR");
  app.add_option("--checkpoint-every", o.checkpoint_every, "epochs; and one after the last epoch")
      ->transform(number_from(1))
      ->needs(checkpoint);
  app.add_option("--checkpoint-batches", o.checkpoint_batches,
                 "and after so many batches within an epoch, in the place of the checkpoint after the epoch "
                 "before; 0: never")
      ->transform(number_from<Index>(0))
      ->needs(checkpoint)
      ->needs("--sample");
  app.add_option("--keep", o.checkpoint_keep, "delete all but the last so many checkpoints")
      ->transform(number_from<int>(1))
      ->needs(checkpoint);
  app.add_flag("--resume", o.resume,
               "go on from the last checkpoint, if any, on any number of ranks and partition; the log, too")
      ->needs(checkpoint);
}

/// Options that only some choices of another option read.
void refuse_unread(const CLI::App& app, const TrainOptions& o) {
  const ModelType& model = model_type(o.model.type);
  const ScheduleType schedule = o.schedule.type;
  const bool step = schedule == ScheduleType::step, plateau = schedule == ScheduleType::plateau;
  const TaskType task = o.task.type;
  const bool link = task == TaskType::link, edge = task == TaskType::edge;
  const bool samples = !o.sample.fan_outs.empty();
  struct Use {
    const char* option;
    bool is_read;
    const char* with;
  };
  for (const Use& use : std::initializer_list<Use>{
           {"--step-size", step, "--schedule step"},
           {"--patience", plateau, "--schedule plateau"},
           {"--lr-factor", step || plateau, "--schedule step or plateau"},
           {"--min-lr", schedule == ScheduleType::cosine || plateau, "--schedule cosine or plateau"},
           {"--momentum", o.optimizer == OptimizerType::sgd, "--optimizer sgd"},
           {"--heads", model.stack.attends, "--model gat, gatv2, hetero-gat or hgt"},
           {"--out-heads", model.stack.attends && o.model.type != "hgt", "--model gat, gatv2 or hetero-gat"},
           {"--residual", model.stack.attends && !model.needs_types, "--model gat or gatv2"},
           {"--attn-dropout", model.stack.attends && o.model.type != "hgt",
            "--model gat, gatv2 or hetero-gat"},
           {"--num-rels", model.has_relations && o.category.empty(), "--model rgcn, without --category"},
           {"--num-bases", o.model.type == "rgcn", "--model rgcn"},
           {"--split-edges", link || edge, "--task link or edge"},
           {"--exclude", (link || edge) && samples, "--sample and --task link or edge"},
           {"--predictor", link, "--task link"},
           {"--link-loss", link, "--task link"},
           {"--negatives", link, "--task link"},
           {"--negatives-from", link, "--task link"},
           {"--eval-negatives", link, "--task link"},
           {"--halo-error-feedback", o.graph_options.halo_format != HaloFormat::exact && !samples,
            "--halo-format bf16 or int8, without --sample"},
           {"--hits-k", link, "--task link"},
           {"--filtered-ranks", link && has_relations(o.task.predictor),
            "--task link and --predictor distmult, complex, transe or rotate"},
           {"--metric", link, "--task link"},
           {"--edge-labels", edge, "--task edge"},
           {"--sample-relation", !o.category.empty(), "--category"},
           {"--sample-eval", !link && !edge, "--task node"},
           {"--num-classes", !link && !(edge && o.task.labels == EdgeLabels::values),
            "--task node, or edge with classes"}})
    if (app.get_option(use.option)->count() > 0 && !use.is_read)
      throw CLI::ValidationError(std::string(use.option) + ": goes with " + use.with);
}

/// What CLI11 cannot know. Throws CLI::ValidationError.
void check(const TrainOptions& o, const DataOptions& given) {
  if (o.model.hidden_per_head > 0 && !model_type(o.model.type).stack.attends)
    throw CLI::ValidationError("--hidden-per-head: " + o.model.type + " has no heads, expected --hidden");
  const ModelType& model = model_type(o.model.type);
  if (model.needs_types && o.category.empty())
    throw CLI::ValidationError(concat("--model: ", model.stack.name, " goes with --category"));
  if (!o.category.empty() && o.dataset.empty())
    throw CLI::ValidationError("--category: is for a --dataset, not for a built-in graph");
  if (!o.category.empty() && o.data.fields.contains("weight"))
    throw CLI::ValidationError(
        "--fields: weight goes without --category, whose models read no weights of edges");
  if (o.category.empty() && o.found.kind == DatasetKind::hetero_directory)
    throw CLI::ValidationError(concat("--dataset: ", o.dataset,
                                      " has types of nodes and edges, expected "
                                      "--category, the type of the nodes that have labels"));
  if (!o.category.empty() && !model.has_relations)
    throw CLI::ValidationError(
        concat("--category: is for graphs with types of nodes and edges, expected --model "
               "rgcn, hgt, hetero-sage or hetero-gat, not ",
               model.stack.name));
  if (!o.category.empty() && o.task.type != TaskType::node)
    throw CLI::ValidationError(concat("--category: goes with --task node, not ", name_of(o.task.type)));
  if (!o.sample.fan_outs.empty() && std::ssize(o.sample.fan_outs) != o.model.layers)
    throw CLI::ValidationError(concat("--sample: there are ", o.sample.fan_outs.size(),
                                      " fan-outs, expected one for each of --layers ", o.model.layers));
  for (const auto& [name, fan_outs] : o.sample.of_relations)
    if (std::ssize(fan_outs) != o.model.layers)
      throw CLI::ValidationError(concat("--sample-relation: there are ", fan_outs.size(), " fan-outs of ",
                                        name, ", expected one for each of --layers ", o.model.layers));
  if (o.predict_layer > o.model.layers)
    throw CLI::ValidationError(concat("--predict-layer: there is no layer ", o.predict_layer,
                                      ", expected at most --layers ", o.model.layers));
  if (o.embedding > 0 && o.data.normalize_features)
    throw CLI::ValidationError("--normalize-features: goes without --embedding");
  if (o.embedding > 0 && (o.clip_norm > 0 || o.clip_value > 0))
    throw CLI::ValidationError("--embedding: goes without --clip-norm and --clip-value");
  if (o.embedding > 0 && !(o.init_weights.empty() && o.save_weights.empty()))
    throw CLI::ValidationError(
        "--embedding: goes without --init-weights and --save-weights, which have no rows of nodes, expected "
        "--checkpoint, and --resume");
  if (o.graph_options.halo_format == HaloFormat::int8 && sizeof(real) == sizeof(double))
    throw CLI::ValidationError("--halo-format: is int8 in double precision, expected exact or bf16");
  if (o.graph_options.halo_format != HaloFormat::exact && o.graph_options.aggregate_in_double)
    throw CLI::ValidationError(concat("--halo-format: is ", to_string(o.graph_options.halo_format),
                                      ", expected exact with --aggregate-in-double"));
  if (o.schedule.type == ScheduleType::plateau && o.schedule.warm_up > 0)
    throw CLI::ValidationError("--warm-up: goes with --schedule none, step or cosine, not plateau");
  if (o.schedule.type == ScheduleType::plateau && o.schedule.factor == 1)
    throw CLI::ValidationError("--lr-factor: is 1, expected less than that with --schedule plateau");
  if (o.schedule.type == ScheduleType::cosine && o.epochs > 0 && o.schedule.warm_up >= o.epochs)
    throw CLI::ValidationError(concat("--warm-up: is ", o.schedule.warm_up, ", expected less than --epochs ",
                                      o.epochs, " with --schedule cosine"));
  if (given.fields->count() > 0 && o.dataset.empty())
    throw CLI::ValidationError("--fields: is for a --dataset, not for a built-in graph");
  for (const CLI::Option* option : given.source)
    if (option->count() > 0 && (o.dataset.empty() || o.found.kind != DatasetKind::unknown))
      throw CLI::ValidationError(
          option->get_name() +
          ": is for a --dataset that is an edge list, a Matrix Market file or an OGB folder, not for " +
          (o.dataset.empty() ? "a built-in graph" : o.dataset));
  if (o.found.is_partitioned() && given.partition->count() > 0)
    throw CLI::ValidationError("--partition: " + o.dataset + " is partitioned already");
}

}  // namespace

void add_options(CLI::App& app, TrainOptions& o) {
  app.get_formatter()->column_width(40);
  app.option_defaults()->always_capture_default();
  const DataOptions data = add_data_options(app, o);
  add_task_options(app, o.task);
  add_model_options(app, o.model);
  app.add_option("--embedding", o.embedding,
                 "learnable rows of so many numbers in the place of the nodes' features, which are not read "
                 "(of a dataset directory, for the number of nodes); moved by SparseAdam, or SparseSGD with "
                 "--optimizer sgd; 0: none")
      ->transform(number_from<Index>(0, std::numeric_limits<int>::max()))
      ->option_text("WIDTH");
  add_optimizer_options(app, o);
  add_schedule_options(app, o.schedule);
  add_sample_options(app, o.sample);
  add_execution_options(app, o);
  add_result_options(app, o);
  add_checkpoint_options(app, o);
  app.callback([&o, &app, data] {
    refuse_unread(app, o);
    for (const auto& [name, list] : o.sample.relation_lists)
      o.sample.of_relations[name] = read_fan_outs("--sample-relation", list);
    if (app.get_option("--layers")->count() == 0 && !o.sample.fan_outs.empty())
      o.model.layers = static_cast<int>(o.sample.fan_outs.size());
    o.found = find_dataset(o.dataset);
    check(o, data);
    if (o.model.hidden_per_head > 0) o.model.hidden = o.model.hidden_per_head * o.model.heads;
    o.sbm.seed = o.seed;
    o.data.partition_seed = o.seed;
    o.data.features = o.embedding == 0;
  });
}

}  // namespace sar::tools
