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

constexpr double most_rate = 1e6, most_norm = 1e30, most_dropout = 0.999;

/// Reads whole numbers from `least` on, separated by commas.
std::vector<Index> read_list(const std::string& option, const std::string& text, Index least,
                             const char* expected) {
  std::vector<Index> numbers;
  for (std::string_view rest = text; numbers.empty() || !rest.empty();) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const auto number = to_number<Index>(rest.substr(0, comma));
    if (!number || *number < least || comma + 1 == rest.size())
      throw CLI::ValidationError(option, "'" + text + "', expected " + expected);
    numbers.push_back(*number);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return numbers;
}

/// Sets the heads from "8", or from "8,8,1".
void set_heads(ModelDescription& m, const std::string& text) {
  std::vector<Index> heads =
      read_list("--heads", text, 1, "a whole number from 1 on, or one for each layer, such as 8,8,1");
  if (heads.size() == 1)
    m.heads = heads[0];
  else
    m.heads_of_layers = std::move(heads);
}

/// "0.6,0.2,0.2", "20/class,500,1000"
DrawSplitOptions parse_split(const std::string& text) {
  DrawSplitOptions split;
  std::string_view rest = text;
  SplitPart* const parts[] = {&split.train, &split.valid, &split.test};
  for (std::size_t i = 0; i < 3; ++i) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    *parts[i] = parse_split_part(std::string(rest.substr(0, comma)));
    require<InputError>((comma == rest.size()) == (i == 2), "'", text, "', expected three parts, ",
                        "TRAINING,VALIDATION,TEST, such as 0.6,0.2,0.2 or 20/class,500,1000");
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  require_shares(split);
  require<InputError>(split.train.count > 0 || (split.train.count < 0 && split.train.share > 0), "'", text,
                      "' has no training nodes, expected some");
  return split;
}

DrawSplitOptions read_split(const std::string& option, const std::string& text) {
  try {
    return parse_split(text);
  } catch (const InputError& error) {
    throw CLI::ValidationError(option, error.what());
  }
}

void add_split_options(CLI::App& app, TrainOptions& o) {
  for (const auto& [name, help] :
       {std::pair<std::string, const char*>{
            "--split-nodes", "draws the split, in shares or numbers: 0.6,0.2,0.2 or 20/class,500,rest"},
        {"--split-graphs", "--task graph: draws the split of the graphs, as --split-nodes"}})
    app.add_option_function<std::string>(
           name, [&o, name = name](const std::string& text) { o.draw_split = read_split(name, text); }, help)
        ->option_text("T,V,T");
  app.add_option_function<std::uint64_t>(
         "--split-seed", [&o](std::uint64_t seed) { o.split_seed = seed; },
         "--split-nodes, --split-graphs: seed of all runs; without it, the seed of each run")
      ->option_text("N");
}

/// Returns the options that only files in formats of others need.
std::vector<CLI::Option*> add_data_options(CLI::App& app, TrainOptions& o) {
  begin_group(app, "Data");
  auto* dataset = add_path(app, "--dataset", o.dataset, "PATH",
                           "dataset or partition directory, DGL partition, OGB folder or graph file");
  add_path(app, "--category", o.category, "TYPE", "typed graph: node type that has the labels and masks");
  auto* relation = add_path(app, "--relation", o.relation, "TYPE",
                            "typed graph, link: edge type that is predicted, author:writes:paper");
  app.add_option("--reverse-relation", o.reverse_relations,
                 "--relation: edge types with its reverse edges; found where they are copies")
      ->option_text("TYPE ...")
      ->needs(relation);
  app.add_flag("--describe", o.describe,
               "prints what was read: nodes, edges, ranges of their data; no training");
  add_pairs(app, "--fields", o.data.fields, "NAME=FIELD",
            "other names of features, labels, masks, weights: features=x labels=y");
  add_number(app, "--num-classes", o.num_classes, "number of classes; 0: largest label + 1");
  add_edge_options(app, o.data);
  app.add_flag_callback(
      "--ignore-edge-weights", [&o] { o.data.edge_weights = false; }, "edges have no weights");
  app.add_flag("--normalize-features", o.data.normalize_features,
               "divides each feature row by the sum of its absolute values");
  app.add_option("--edge-means", o.edge_means,
                 "node features: means of this field over the in-edges of each node")
      ->option_text("FIELD");
  o.data.sparse_features = SparseFeatures::automatic;
  add_sparse_features_option(app, o.data.sparse_features);
  const std::vector<CLI::Option*> source = add_source_options(app, o.source);
  add_split_options(app, o);
  add_choice(app, "--graph", o.graph, {{"karate", BuiltInGraph::karate}, {"sbm", BuiltInGraph::sbm}},
             "generated graph, instead of --dataset")
      ->excludes(dataset);
  add_sbm_options(app, o.sbm, "sbm: ");
  return source;
}

/// Returns names as the choices of an option.
Choices<std::string> named(const std::vector<std::string>& names) {
  Choices<std::string> choices;
  for (const std::string& name : names) choices.emplace_back(name, name);
  return choices;
}

/// Options of what is between, before and after the convolutions, and of attention.
void add_layer_options(CLI::App& app, ModelDescription& m) {
  add_number(app, "--dropout", m.dropout, "dropout probability between layers", 0, most_dropout);
  app.add_option_function<std::string>(
         "--input-dropout", [&m](const std::string& text) { m.input_dropout = to_number<double>(text); },
         "dropout of the input; default: --dropout for gcn, gat, gatv2 without linear layers")
      ->transform(number_from<double>(0, most_dropout))
      ->type_name("X");
  m.norm = m.jk = m.residual = "none";
  add_choice(app, "--norm", m.norm, named(ModelDescription::norms()), "normalization between layers");
  app.add_flag_callback(
         "--batch-norm", [&m] { m.norm = "batch"; }, "--norm batch, over the nodes of all ranks")
      ->excludes("--norm");
  add_choice(app, "--activation", m.activation, named(ModelDescription::activations()), "activation");
  const auto read_heads = [&m](const std::string& text) { set_heads(m, text); };
  app.add_option_function<std::string>("--heads", read_heads,
                                       "attention: heads of all layers but the last, or a list: 8,8,1")
      ->option_text("LIST")
      ->default_str(concat(m.heads));
  add_number(app, "--out-heads", m.out_heads, "attention: heads of the last layer, which are averaged", 1);
  add_number(app, "--attn-dropout", m.attention_dropout, "attention: dropout probability of the coefficients",
             0, most_dropout);
  app.add_option("--residual", m.residual,
                 "residual connection: none, identity, linear, or the first layer with one")
      ->option_text("NAME")
      ->default_str("none");
  add_choice(app, "--jk", m.jk, named(ModelDescription::jks()),
             "final linear layer, of the outputs of layers");
  m.readout = "none";
  std::vector<std::string> readouts = ModelDescription::readouts();
  std::erase(readouts, "none");
  add_choice(app, "--readout", m.readout, named(readouts),
             "--task graph: reduction over the nodes of a graph")
      ->default_str("sum");
  add_number(app, "--head-layers", m.head_layers, "--task graph: linear layers behind the readout", 1,
             ModelDescription::max_layers);
  app.add_flag_callback(
         "--post-linear", [&m] { m.jk = "last"; }, "a linear layer after the convolutions: --jk last")
      ->excludes("--jk");
  app.add_flag("--pre-linear", m.pre_linear, "a linear layer before the first convolution");
}

void add_model_options(CLI::App& app, TrainOptions& o) {
  begin_group(app, "Model");
  constexpr Index most = std::numeric_limits<int>::max();  // of factors of a width
  ModelDescription& m = o.model;
  Choices<std::string> types;
  for (const ModelType& type : model_types())
    if (type.is_stack()) types.emplace_back(type.name, type.name);
  add_choice(app, "--model", m.type, types, "layers");
  add_layers_option(app, m.layers);
  add_number(app, "--hidden", m.hidden, "width between layers; gat, gatv2: of all heads together", 1);
  add_layer_options(app, m);
  app.add_flag("--edge-features", o.edge_features, "--task graph, gin: messages have features of the edges");
  add_choice(app, "--gcn-norm", m.gcn_norm, named(ModelDescription::gcn_norms()),
             "gcn: normalization; default: as --init-weights, or degrees");
  add_number(app, "--num-bases", m.num_bases,
             "rgcn: matrices that the edge types share; 0: one for each type");
  add_number(app, "--num-rels", m.num_rels, "rgcn without --category: number of generated edge types", 1,
             1 << 16);
  add_number(app, "--embedding", o.embedding,
             "width of learnable rows that replace the features; 0: features", 0, most);
  auto* init = add_path(app, "--init-weights", o.init_weights, "FILE",
                        "initial weights (.safetensors; names of DGL or PyG, too), or checkpoints");
  add_pairs(app, "--rename", o.weight_names.rename, "FROM=TO",
            "--init-weights: replaces a name or its beginning up to a dot")
      ->needs(init);
  app.add_option("--strip-prefix", o.weight_names.strip_prefix,
                 "--init-weights: removes the prefix from names, before --rename")
      ->option_text("TEXT")
      ->needs(init);
  app.add_option("--drop-weights", o.weight_names.drop,
                 "--init-weights: names in the file to ignore, as 'lin.*'; before --strip-prefix")
      ->option_text("GLOB ...")
      ->needs(init);
  app.add_option("--missing-weights", o.weight_names.missing,
                 "--init-weights: names of the model that keep their initial values")
      ->option_text("GLOB ...")
      ->needs(init);
}

void add_schedule_options(CLI::App& app, ScheduleOptions& o) {
  add_choice(app, "--schedule", o.type,
             {{"none", ScheduleType::none},
              {"step", ScheduleType::step},
              {"cosine", ScheduleType::cosine},
              {"plateau", ScheduleType::plateau}},
             "schedule of the learning rate");
  add_number(app, "--warm-up", o.warm_up, "epochs until the full learning rate, from a tenth of it; 0: none");
  add_number(app, "--step-size", o.step_size, "step: epochs between reductions", 1);
  add_number(app, "--patience", o.patience, "plateau: epochs without progress before a reduction");
  add_number(app, "--lr-factor", o.factor, "step, plateau: factor of a reduction", 0, 1);
  add_number(app, "--min-lr", o.min_lr, "cosine, plateau: smallest learning rate", 0, most_norm);
}

/// "all", or "0,3,4".
void read_splits(const std::string& text, TrainOptions& o) {
  o.all_splits = text == "all";
  o.splits.clear();
  if (o.all_splits) return;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const auto split = to_number<Index>(std::string_view(text).substr(begin, end - begin));
    if (!split || *split < 0 || std::ranges::count(o.splits, *split) > 0)
      throw CLI::ValidationError(
          "--splits", "'" + text + "', expected all, or different numbers from 0 on, such as 0,3,4");
    o.splits.push_back(*split);
    begin = end + 1;
  }
}

void add_training_options(CLI::App& app, TrainOptions& o) {
  begin_group(app, "Training");
  add_task_options(app, o.task);
  add_number(app, "--epochs", o.epochs, "passes over the training nodes or edges; 0: --predict only");
  add_number(app, "--lr", o.lr, "learning rate", 0, most_rate);
  add_choice(app, "--optimizer", o.optimizer,
             {{"adam", OptimizerType::adam}, {"adamw", OptimizerType::adamw}, {"sgd", OptimizerType::sgd}},
             "optimizer");
  add_number(app, "--momentum", o.momentum, "sgd: momentum", 0, 1);
  add_number(app, "--weight-decay", o.weight_decay, "weight decay of all parameters", 0, most_rate);
  add_number(app, "--clip-norm", o.clip_norm, "largest norm of all gradients together; 0: any", 0, most_norm);
  add_schedule_options(app, o.schedule);
  add_number(app, "--eval-every", o.eval_every, "epochs between evaluations; 0: no evaluation");
  add_number(app, "--stop-after", o.stop_after,
             "ends a run after this many epochs without a better validation value; 0: never");
  add_number(app, "--runs", o.runs,
             "runs with the seeds --seed, --seed + 1, ...; mean and standard deviation", 1, 1 << 20);
  app.add_option_function<std::string>(
         "--splits", [&o](const std::string& text) { read_splits(text, o); },
         "runs on several splits of the dataset: all, or their numbers")
      ->option_text("all|LIST")
      ->excludes("--split", "--split-nodes", "--split-graphs");
  add_seed_option(app, o.seed, "seed of parameters, dropout, samples, generated graph and partition");
  add_choice(app, "--matmul-precision", o.matmul_precision,
             {{"highest", MatmulPrecision::highest},
              {"high", MatmulPrecision::high},
              {"medium", MatmulPrecision::medium}},
             "precision of matrix products");
  add_choice(app, "--precision", o.mixed_precision, {{"full", false}, {"mixed", true}},
             "mixed: activations and their gradients in bfloat16, half the memory; products as medium");
}

/// "15,10,5"
std::vector<Index> read_fan_outs(const std::string& option, const std::string& text) {
  return read_list(option, text, -1, "a fan-out for each layer, such as 15,10,5; -1 is all in-edges");
}

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
  add_choice(app, "--sampler", o.method,
             {{"neighbor", NeighborMethod::uniform}, {"labor", NeighborMethod::labor}},
             "draws of each node, or shared by nodes with common sources")
      ->needs(sample);
  app.add_flag("--sample-redraw", o.redraw, "draws a node's in-edges anew in each batch of an epoch, as DGL")
      ->needs(sample);
  app.add_flag("--sample-eval", o.evaluate, "also evaluates on sampled in-edges")->needs(sample);
  app.add_flag("--mfg", options.mfg, "full batch: computes only what the training nodes or edges depend on")
      ->excludes(sample);
  add_cluster_options(app, o);
  app.get_option("--clusters")->excludes(sample)->excludes("--mfg");
}

void add_parallel_options(CLI::App& app, TrainOptions& o) {
  begin_group(app, "Parallel");
  add_threads_option(app, o.threads);
  add_choice(app, "--partition", o.data.partition, partition_methods(), "assignment of nodes to ranks");
  add_choice(app, "--mode", o.graph_options.mode, named_values(halo_mode_names),
             "which halo rows are in memory");
  add_number(app, "--max-halo-bytes", o.graph_options.max_halo_bytes,
             "most bytes of halo rows in a stage; 0: at most a quarter of a worker's rows");
  app.add_flag("--aggregate-in-double", o.graph_options.aggregate_in_double,
               "adds messages in double precision, which doubles the bytes of gradients sent");
  add_choice(app, "--halo-format", o.graph_options.halo_format, halo_formats(),
             "type of halo rows in messages");
}

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
         "--keep", read,
         "weights to save and predict with, of the last or the best epoch: last, best")
      ->type_name("NAME")
      ->default_str("last");
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

/// Refuses options that have no effect with the values of other options. Throws CLI::ValidationError.
void refuse_unread(const CLI::App& app, const TrainOptions& o) {
  const ModelType& model = model_type(o.model.type);
  const ScheduleType schedule = o.schedule.type;
  const bool step = schedule == ScheduleType::step, plateau = schedule == ScheduleType::plateau;
  const TaskType task = o.task.type;
  const bool link = task == TaskType::link, edge = task == TaskType::edge, graph = task == TaskType::graph;
  const bool samples = !o.sample.fan_outs.empty();
  struct Use {
    const char* option;
    bool is_read;
    const char* with;
  };
  for (const auto& [option, key] :
       std::initializer_list<std::pair<const char*, std::string>>{{"--heads", "heads"},
                                                                  {"--out-heads", "out_heads"},
                                                                  {"--attn-dropout", "attention_dropout"},
                                                                  {"--gcn-norm", "gcn_norm"},
                                                                  {"--num-bases", "num_bases"}})
    if (app.get_option(option)->count() > 0 && !model.reads(key))
      throw CLI::ValidationError(
          concat(option, ": needs --model ",
                 model_types_where([&key = key](const ModelType& type) { return type.reads(key); })));
  for (const Use& use : std::initializer_list<Use>{
           {"--step-size", step, "--schedule step"},
           {"--patience", plateau, "--schedule plateau"},
           {"--lr-factor", step || plateau, "--schedule step or plateau"},
           {"--min-lr", schedule == ScheduleType::cosine || plateau, "--schedule cosine or plateau"},
           {"--momentum", o.optimizer == OptimizerType::sgd, "--optimizer sgd"},
           {"--num-rels", model.has_relations && !o.is_typed(), "--model rgcn, without --category"},
           {"--relation", link, "--task link"},
           {"--category", !link && !edge, "--task node; --task link has --relation"},
           {"--split-edges", link || edge, "--task link or edge"},
           {"--exclude", (link || edge) && samples, "--sample and --task link or edge"},
           {"--predictor", link, "--task link"},
           {"--link-loss", link, "--task link"},
           {"--negatives", link, "--task link"},
           {"--negatives-from", link, "--task link"},
           {"--eval-negatives", link, "--task link"},
           {"--hits-k", link, "--task link"},
           {"--filtered-ranks", link && has_relations(o.task.predictor),
            "--task link and --predictor distmult, complex, transe or rotate"},
           {"--edge-labels", edge, "--task edge"},
           {"--sample-relation", o.is_typed(), "--category or --relation"},
           {"--sample-eval", !link && !edge, "--task node"},
           {"--batch-size", samples || graph, "--sample or --task graph"},
           {"--batch-per-rank", samples || graph, "--sample or --task graph"},
           {"--drop-last", samples || graph, "--sample or --task graph"},
           {"--checkpoint-batches", samples || graph, "--sample or --task graph"},
           {"--split-nodes", task == TaskType::node, "--task node"},
           {"--split-graphs", graph, "--task graph"},
           {"--split-seed", o.draw_split.has_value(), "--split-nodes or --split-graphs"},
           {"--readout", graph, "--task graph"},
           {"--head-layers", graph, "--task graph"},
           {"--edge-features", graph && model.name == "gin", "--task graph and --model gin"},
           {"--loss", !link && !edge, "--task node or graph"},
           {"--class-weights", !link && !edge, "--task node or graph"},
           {"--label-smoothing", !link && !edge, "--task node or graph"},
           {"--predict-pairs", link || edge, "--task link or edge"},
           {"--edge-means", task == TaskType::node, "--task node"},
           {"--clusters", task == TaskType::node, "--task node"},
           {"--cluster-method", o.sample.clusters > 0, "a number of --clusters"},
           {"--num-classes", !link && !(edge && o.task.labels == LabelType::values),
            "--task node or graph, or edge with classes"}})
    if (app.get_option(use.option)->count() > 0 && !use.is_read)
      throw CLI::ValidationError(std::string(use.option) + ": needs " + use.with);
}

/// Refuses what graph samples do not go with. Throws CLI::ValidationError.
void check_samples(const CLI::App& app, const TrainOptions& o) {
  if (o.task.type != TaskType::graph) return;
  for (const char* option :
       {"--category", "--sample", "--mfg", "--embedding", "--describe", "--fields", "--normalize-features",
        "--sparse-features", "--drop-duplicates", "--graph", "--partition", "--mode", "--max-halo-bytes",
        "--halo-format", "--aggregate-in-double", "--predict-layer"})
    if (app.get_option(option)->count() > 0)
      throw CLI::ValidationError(std::string(option) + ": cannot be combined with --task graph");
  if (o.dataset.empty())
    throw CLI::ValidationError("--task: graph needs a --dataset, a TU or OGB folder of many graphs");
  if (o.data.remaining_self_loops)
    throw CLI::ValidationError("--add-self-loops: remaining cannot be combined with --task graph");
  if (model_type(o.model.type).has_relations)
    throw CLI::ValidationError(concat(
        "--model: ", o.model.type, " reads types of edges, expected ",
        model_types_where([](const ModelType& type) { return type.is_stack() && !type.has_relations; }),
        " for --task graph"));
}

/// Checks the options of the network's layers. Throws CLI::ValidationError.
void check_network(const CLI::App& app, const ModelDescription& m) {
  const auto refuse = [](bool wrong, const std::string& what) {
    if (wrong) throw CLI::ValidationError(what);
  };
  const bool is_number = m.first_residual() > 0, has_jk = m.jk != "none";
  refuse(m.residual != "none" && m.residual != "identity" && m.residual != "linear" && m.residual != "0" &&
             !(is_number && m.first_residual() <= m.layers),
         concat("--residual: '", m.residual,
                "', expected none, identity, linear or the first layer with a "
                "residual connection, 1 to --layers ",
                m.layers));
  if (!model_type(m.type).attends()) return;
  const auto& list = m.heads_of_layers;
  refuse(
      !list.empty() && std::ssize(list) != m.layers,
      concat("--heads: there are ", list.size(), " numbers, expected one for each of --layers ", m.layers));
  refuse(app.count("--out-heads") > 0 && !list.empty(),
         "--out-heads: cannot be combined with a list of --heads, whose last number says it");
  refuse(app.count("--out-heads") > 0 && has_jk, concat("--out-heads: cannot be combined with --jk ", m.jk,
                                                        ", with which the last layer has --heads"));
  std::vector<Index> side_by_side = list.empty() ? std::vector<Index>{m.heads} : list;
  if (!list.empty() && !has_jk) side_by_side.pop_back();
  for (const Index heads : side_by_side)
    refuse(m.hidden % heads != 0,
           concat("--hidden: is ", m.hidden, ", expected a multiple of --heads ", heads));
}

/// Refuses metrics that are not for the task. The labels of nodes, on which they depend, too, are read later.
void check_metrics(const TaskOptions& o) {
  const bool link = o.type == TaskType::link;
  const LabelType labels = has_labelled_rows(o.type) ? label_type(o.label_loss) : o.labels;
  for (const Metric metric : o.metrics)
    if (link ? !is_for_links(metric) : !is_for(metric, labels))
      throw CLI::ValidationError(concat(
          "--metric: ", name_of(metric), " is not for --task ", name_of(o.type),
          labels != LabelType::automatic && !link ? concat(" with labels that are ", to_string(labels)) : "",
          ", expected ", link ? metrics_for_links() : metrics_for(labels)));
  const bool classes = labels == LabelType::classes || labels == LabelType::automatic;
  if (!classes && (o.balanced_classes || !o.class_weights.empty()))
    throw CLI::ValidationError("--class-weights: needs --loss cross-entropy");
  if (!classes && o.label_smoothing > 0)
    throw CLI::ValidationError("--label-smoothing: needs --loss cross-entropy");
}

/// What compares validation values needs them.
void check_evaluation(const TrainOptions& o) {
  const std::pair<const char*, bool> needing[] = {{"--stop-after", o.stop_after > 0},
                                                  {"--keep best", o.keep == KeptWeights::best},
                                                  {"--runs", o.runs > 1},
                                                  {"--splits", o.may_have_several_runs()}};
  for (const auto& [option, is_given] : needing) {
    if (is_given && o.eval_every == 0)
      throw CLI::ValidationError(
          concat(option, ": needs validation values, expected --eval-every of 1 or more"));
    if (is_given && o.epochs == 0 && !o.resume)
      throw CLI::ValidationError(
          concat(option, ": needs a training, expected --epochs of 1 or more, or --resume"));
  }
  if (o.keep == KeptWeights::best && o.embedding > 0)
    throw CLI::ValidationError(
        "--keep: best cannot be combined with --embedding, whose learnable rows have no copy");
  if (o.seed > std::numeric_limits<std::uint64_t>::max() - static_cast<std::uint64_t>(o.runs))
    throw CLI::ValidationError(concat("--runs: there are no ", o.runs, " seeds from --seed ", o.seed, " on"));
}

/// Checks the draws of mini-batches. Throws CLI::ValidationError.
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

/// Checks which options can be combined. Throws CLI::ValidationError.
void check(const CLI::App& app, const TrainOptions& o, const std::vector<CLI::Option*>& source) {
  const ModelType& model = model_type(o.model.type);
  check_samples(app, o);
  check_metrics(o.task);
  check_evaluation(o);
  const std::string typed = o.relation.empty() ? "--category: " : "--relation: ";
  if (model.needs_types && !o.is_typed())
    throw CLI::ValidationError(concat("--model: ", model.name, " needs --category or --relation"));
  if (o.is_typed() && o.dataset.empty())
    throw CLI::ValidationError(typed + "needs a --dataset, not a generated graph");
  if (!o.data.edge_weights && o.data.fields.contains("weight"))
    throw CLI::ValidationError("--fields: weight cannot be combined with --ignore-edge-weights");
  if (!o.is_typed() && !o.describe && o.found.kind == DatasetKind::hetero_directory)
    throw CLI::ValidationError(concat("--dataset: ", o.dataset,
                                      " has node and edge types, expected --category, the node type that has "
                                      "the labels, or --task link and --relation"));
  if (o.is_typed() && !model.has_relations)
    throw CLI::ValidationError(concat(
        typed, "is for graphs with node and edge types, expected --model ",
        model_types_where([](const ModelType& type) { return type.has_relations; }), ", not ", model.name));
  if (!o.sample.fan_outs.empty() && std::ssize(o.sample.fan_outs) != o.model.layers)
    throw CLI::ValidationError(concat("--sample: there are ", o.sample.fan_outs.size(),
                                      " fan-outs, expected one for each of --layers ", o.model.layers));
  for (const auto& [name, fan_outs] : o.sample.of_relations)
    if (std::ssize(fan_outs) != o.model.layers)
      throw CLI::ValidationError(concat("--sample-relation: there are ", fan_outs.size(), " fan-outs of ",
                                        name, ", expected one for each of --layers ", o.model.layers));
  check_clusters(o);
  check_network(app, o.model);
  if (o.predict_layer > o.model.layers)
    throw CLI::ValidationError(concat("--predict-layer: there is no layer ", o.predict_layer,
                                      ", expected at most --layers ", o.model.layers));
  if (o.embedding > 0 && o.data.sparse_features == SparseFeatures::yes)
    throw CLI::ValidationError("--sparse-features: yes cannot be combined with --embedding");
  if (o.embedding > 0 && o.data.normalize_features)
    throw CLI::ValidationError("--normalize-features: cannot be combined with --embedding");
  for (const auto& [option, is_given] : std::initializer_list<std::pair<const char*, bool>>{
           {"--embedding", o.embedding > 0},
           {"--normalize-features", o.data.normalize_features},
           {"--category", !o.category.empty()}})
    if (is_given && !o.edge_means.empty())
      throw CLI::ValidationError(concat("--edge-means: cannot be combined with ", option));
  if (app.count("--edge-means") > 0 && o.dataset.empty())
    throw CLI::ValidationError("--edge-means: needs a --dataset, not a generated graph");
  if (o.embedding > 0 && o.clip_norm > 0)
    throw CLI::ValidationError("--embedding: cannot be combined with --clip-norm");
  const std::vector<std::string> formats = allowed_halo_formats(o.graph_options);
  const std::string format = to_string(o.graph_options.halo_format);
  if (std::ranges::find(formats, format) == formats.end())
    throw CLI::ValidationError(
        concat("--halo-format: is ", format,
               o.graph_options.aggregate_in_double ? " with --aggregate-in-double" : " in double precision",
               ", expected ", joined(formats)));
  if (o.schedule.type == ScheduleType::plateau && o.schedule.warm_up > 0)
    throw CLI::ValidationError("--warm-up: needs --schedule none, step or cosine, not plateau");
  if ((o.schedule.type == ScheduleType::cosine || o.schedule.type == ScheduleType::plateau) &&
      o.schedule.min_lr > o.lr)
    throw CLI::ValidationError(concat("--min-lr: is ", o.schedule.min_lr, ", expected at most --lr ", o.lr));
  if (o.schedule.type == ScheduleType::plateau && o.schedule.factor == 1)
    throw CLI::ValidationError("--lr-factor: is 1, expected less than 1 with --schedule plateau");
  if (o.schedule.type == ScheduleType::cosine && o.epochs > 0 && o.schedule.warm_up >= o.epochs)
    throw CLI::ValidationError(concat("--warm-up: is ", o.schedule.warm_up, ", expected less than --epochs ",
                                      o.epochs, " with --schedule cosine"));
  if (app.count("--fields") > 0 && o.dataset.empty())
    throw CLI::ValidationError("--fields: needs a --dataset, not a generated graph");
  for (const CLI::Option* option : source)
    if (option->count() > 0 &&
        (o.dataset.empty() || (o.found.kind != DatasetKind::unknown && option->get_name() != "--split")))
      throw CLI::ValidationError(
          option->get_name() +
          ": needs a --dataset that is an edge list, another graph file or an OGB folder, not " +
          (o.dataset.empty() ? "a generated graph" : o.dataset));
  if (o.found.is_partitioned() && app.count("--partition") > 0)
    throw CLI::ValidationError("--partition: " + o.dataset + " is already partitioned");
}

void read_what_the_task_needs(TrainOptions& o) {
  o.data.edge_data = !has_labelled_rows(o.task.type);
  o.data.edge_labels = o.source.edge_labels = o.task.type == TaskType::edge;
  o.data.edge_types = o.task.type == TaskType::link && has_relations(o.task.predictor);
  o.data.labels = !o.data.edge_data || o.dataset.empty();  // a built-in graph types edges by labels
  o.data.edge_type = o.relation;
  o.data.features = o.embedding == 0 && o.edge_means.empty();
  // a network that would make dense rows of them needs less memory with dense rows alone
  if (o.data.sparse_features == SparseFeatures::automatic &&
      !model_type(o.model.type).reads_sparse(o.model.aggregator))
    o.data.sparse_features = SparseFeatures::no;
  if (has_labelled_rows(o.task.type)) o.data.label_type = label_type(o.task.label_loss);
}

}  // namespace

std::string name_of_run(const TrainOptions& o) {
  return concat("seed-", o.seed, o.run.of_splits ? concat("-split-", o.run.split) : "");
}

std::string default_activation(const ModelDescription& m) {
  return model_type(m.type).attends() && (m.norm.empty() || m.norm == "none") ? "elu" : "relu";
}

void add_options(CLI::App& app, TrainOptions& o) {
  const std::vector<CLI::Option*> source = add_data_options(app, o);
  add_model_options(app, o);
  add_training_options(app, o);
  add_sample_options(app, o);
  begin_group(app, "Links");
  add_link_options(app, o.task);
  add_parallel_options(app, o);
  add_output_options(app, o);
  set_common_options(app, {"--dataset", "--split", "--split-nodes", "--category", "--model", "--layers",
                           "--hidden", "--task", "--epochs", "--lr", "--sample", "--max-halo-bytes",
                           "--threads", "--partition", "--log", "--save-weights", "--predict", "--checkpoint",
                           "--resume", "--metric", "--runs"});
  app.callback([&o, &app, source] {
    refuse_unread(app, o);
    for (const auto& [name, list] : o.sample.relation_lists)
      o.sample.of_relations[name] = read_fan_outs("--sample-relation", list);
    if (app.count("--layers") == 0 && !o.sample.fan_outs.empty())
      o.model.layers = std::ssize(o.sample.fan_outs);
    if (o.task.type == TaskType::graph) {
      if (app.count("--batch-size") == 0) o.sample.batch_size = 32;
      if (o.model.readout == "none") o.model.readout = "sum";
      if (o.model.jk == "none") o.model.jk = "last";
    }
    if (o.model.activation.empty()) o.model.activation = default_activation(o.model);
    o.found = find_dataset(o.dataset);
    o.source.fields = o.data.fields;
    o.data.split = split_number(o.dataset, o.source);
    read_what_the_task_needs(o);
    check(app, o, source);
    o.sbm.seed = o.seed;
    o.data.partition_seed = o.seed;
    o.run.split = o.data.split;
    if (o.draw_split) o.draw_split->seed = o.split_seed.value_or(o.seed);
  });
}

}  // namespace sar::tools
