// SPDX-License-Identifier: MIT
#include "train_checkpoint.hpp"

#include "formats/shared_texts.hpp"
#include "formats/text.hpp"
#include "options/option_table.hpp"
#include "program.hpp"

#include <sar/core/files/file.hpp>
#include <sar/core/files/safetensors.hpp>
#include <sar/data.hpp>
#include <sar/models.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

namespace sar::tools {
namespace {

/// The end of names of hashes.
constexpr std::string_view hash_of = " whose hash is";

/// Whether only a training, not a prediction, compares what a checkpoint records.
bool is_of_training(const std::string& recorded) {
  return recorded.ends_with(hash_of) ||
         formats::is_one_of("--schedule --warm-up --step-size --patience --lr-factor --min-lr", recorded);
}

/// A hash of rows, one term for each: the same for any order of the rows, on any number of ranks.
class RowHash {
 public:
  RowHash& operator<<(double value) {
    row_ = (row_ ^ std::bit_cast<std::uint64_t>(value)) * factor;
    row_ ^= row_ >> 29;
    return *this;
  }
  template <class T>
  RowHash& operator<<(std::span<const T> values) {
    for (const T value : values) *this << static_cast<double>(value);
    return *this;
  }
  void end_row() { sum_ += static_cast<Index>(std::exchange(row_, 1) * factor >> 32); }
  /// Collective.
  [[nodiscard]] std::string text(const Communicator& comm) const { return concat(comm.all_reduce(sum_)); }

 private:
  static constexpr std::uint64_t factor = 0x9e3779b97f4a7c15u;  // 2^64 divided by the golden ratio
  std::uint64_t row_ = 1;
  Index sum_ = 0;
};

/// Rounded to single precision, in which most files have them.
void add_row(RowHash& hash, const Tensor& x, Index row) {
  for (const real value : std::span(x.row(row), static_cast<std::size_t>(x.row_size())))
    hash << static_cast<float>(value);
}

void add_features(RowHash& hash, const Variable& features, std::span<const Index> ids) {
  if (!features.defined() || features.deferred() != nullptr) return;
  for (Index i = 0; i < features.num_rows(); ++i) {
    add_row(hash << static_cast<double>(ids[static_cast<std::size_t>(i)]), features.value(), i);
    hash.end_row();
  }
}

/// Rows [begin, end) of all fields.
void add_rows(RowHash& hash, const SampleFields& fields, Index begin, Index end) {
  for (const auto& [name, rows] : fields.tensors)
    for (Index i = begin; i < end; ++i) add_row(hash, rows, i);
  for (const auto& [name, rows] : fields.integers) hash << std::span(rows.row(begin), rows.row(end));
}

void add_graphs(RowHash& edges, RowHash& features, const GraphSamples& samples) {
  for (Index g = 0; g < samples.num_graphs(); ++g) {
    const auto id = static_cast<double>(samples.ids[g]);
    const Index begin = samples.edge_begin[g], end = samples.edge_begin[g + 1];
    const auto count = static_cast<std::size_t>(end - begin);
    edges << id << std::span(samples.src.data() + begin, count)
          << std::span(samples.dst.data() + begin, count);
    add_rows(edges, samples.edges, begin, end);
    edges.end_row();
    features << id << static_cast<double>(samples.num_nodes(g));
    add_rows(features, samples.nodes, samples.node_begin[g], samples.node_begin[g + 1]);
    features.end_row();
  }
}

void add_structures(RowHash& features, RowHash& labels, const PotentialTask& task, const PotentialOptions& o,
                    std::span<const Index> ids) {
  for (Index g = 0; g < std::ssize(ids); ++g) {
    const formats::AtomStructure& atoms = task.structure(g);
    const auto id = static_cast<double>(ids[static_cast<std::size_t>(g)]);
    features << id << std::span<const double>(atoms.positions) << std::span<const bool>(atoms.cell.periodic);
    labels << id << atoms.energy << std::span<const double>(atoms.forces);
    for (const auto& [key, value] : atoms.keys)
      if (key.ends_with("_weight") || (key == o.kind_key && !o.kind_weights.empty()))
        labels << std::span<const char>(value);
    for (std::size_t k = 0; k < 3; ++k) {
      features << std::span<const double>(atoms.cell.vectors[k]);
      labels << std::span<const double>(atoms.stress[k]);
    }
    for (const std::uint8_t element : atoms.elements)
      features << std::span<const char>(chemical_symbol(element));
    features.end_row();
    labels.end_row();
  }
}

void add_labels(RowHash& hash, const NodeData& data) {
  for (Index i = 0; i < std::ssize(data.train_mask); ++i) {
    hash << static_cast<double>(data.original_ids[i]) << data.train_mask[i] << data.val_mask[i]
         << data.test_mask[i];
    if (!data.labels.empty()) hash << static_cast<double>(data.labels[i]);
    if (data.targets.defined()) add_row(hash, data.targets, i);
    hash.end_row();
  }
}

void add_labels(RowHash& hash, const TaskEdges& edges, double split) {
  for (Index i = 0; i < std::ssize(edges.labels); ++i) {
    hash << split << (edges.types.empty() ? 0.0 : static_cast<double>(edges.types[i])) << edges.labels[i];
    hash.end_row();
  }
}

/// A row for each node: its degrees, and sums over its edges of the weight, or 1, times numbers that the
/// source draws. These are powers of two, so that products are exact, as sums are on a reproducible graph:
/// the hash does not depend on the ranks. Collective.
void add_edges(RowHash& hash, const Graph& graph, std::span<const Index> ids) {
  const MixedPrecisionScope full(false);
  Graph exact = graph;
  GraphOptions options = graph.options();
  options.reproducible = true;
  options.halo_format = HaloFormat::exact;
  exact.set_options(options);
  constexpr Index draws = 4;
  constexpr double powers = 8;  // of two, with a sign
  const Random random(RandomKey{});
  Tensor drawn({std::ssize(ids), draws});
  for (Index i = 0; i < drawn.num_rows(); ++i)
    for (Index j = 0; j < draws; ++j) {
      const double number = 2 * powers *
                            random.uniform(static_cast<std::uint64_t>(ids[static_cast<std::size_t>(i)]),
                                           static_cast<std::uint64_t>(j));
      drawn.row(i)[j] = static_cast<real>(number < powers ? std::exp2(std::floor(number))
                                                          : -std::exp2(std::floor(number - powers)));
    }
  const Variable weight = graph.edge_weight();
  const Variable sums =
      weight.defined()
          ? exact.update_all(fn::u_mul_e(drawn, reshape(weight, {graph.num_edges(), 1})), fn::sum)
          : exact.update_all(fn::copy_u(drawn), fn::sum);
  const Array<Index>&in = graph.in_degrees(), &out = graph.out_degrees();
  for (Index i = 0; i < std::ssize(ids); ++i) {
    hash << static_cast<double>(ids[static_cast<std::size_t>(i)]) << static_cast<double>(in[i])
         << static_cast<double>(out[i]);
    add_row(hash, sums.value(), i);
    hash.end_row();
  }
}

/// Collective. Returns hashes of the edges, features, labels and masks that the dataset has.
std::map<std::string, std::string> hashes_of(const TrainingGraph& loaded, const TrainOptions& o) {
  RowHash edges, features, labels;
  const NodeData& data = loaded.data;
  if (!loaded.samples) add_edges(edges, loaded.graph, data.original_ids);
  const bool computed = !o.edge_means.empty() || o.embedding > 0;
  for (const TypeRows& type : loaded.node_types) add_features(features, type.features, type.original_ids);
  if (data.features.defined() && !computed) add_features(features, data.features, data.original_ids);
  add_labels(labels, data);
  add_labels(labels, loaded.edges.train, 0);
  add_labels(labels, loaded.edges.valid, 1);
  add_labels(labels, loaded.edges.test, 2);
  if (loaded.potential)
    add_structures(features, labels, *loaded.potential, o.task.potential, data.original_ids);
  else if (loaded.samples)
    add_graphs(edges, features, *loaded.samples->samples);
  const Communicator& comm = loaded.graph.comm();
  return {{concat("edges", hash_of), edges.text(comm)},
          {concat("features", hash_of), features.text(comm)},
          {concat("labels and a split", hash_of), labels.text(comm)}};
}

/// Returns what --init-weights or the data say of the network of --task potential.
std::map<std::string, std::string> describe_potential(const ModelDescription& m) {
  const auto in_five_digits = [](double x) { return formatted("%.5g", x); };  // of both precisions
  return {{"a potential with the species", joined(m.species)},
          {"a potential with energy shifts", joined(m.energy_shifts, in_five_digits)},
          {"a potential with energy scales", joined(m.energy_scales, in_five_digits)}};
}

/// Collective. Returns what the training is: the options that the table records, which are all that the
/// results depend on, except the seed, which every checkpoint has, and the learning rate, which may change;
/// the network; hashes of the data.
std::map<std::string, std::string> describe(const TrainOptions& options, const TrainingGraph& loaded) {
  const Graph& graph = loaded.graph;
  TrainOptions o = options;
  o.num_ranks = graph.comm().size();
  CLI::App app;
  std::map<std::string, std::string> run = OptionTable(app, o).record();
  run.merge(hashes_of(loaded, o));
  if (loaded.potential) run.merge(describe_potential(loaded.model));
  run.merge(std::map<std::string, std::string>{
      {"edge weights that are", graph.edge_weight().defined() ? "read" : "not read"},
      {"a number of outputs of", concat(loaded.data.num_outputs())},
      {"a number of nodes of", concat(graph.num_global_nodes())},
      {"a number of edges of", concat(graph.num_global_edges())}});
  return run;
}

/// Formats an epoch as in the names of checkpoints.
std::string epoch_text(int epoch) {
  return formatted("%08.0f", epoch);
}

constexpr std::string_view rows_prefix = "embedding-";

/// Returns the name of the directory of learnable rows, beside the checkpoint.
std::string name_of_rows(int epoch, Index batch) {
  return concat(rows_prefix, epoch_text(epoch), "-", batch);
}
bool is_name_of_rows(const std::string& name) {
  return name.starts_with(rows_prefix) &&
         name.find_first_not_of("-0123456789", rows_prefix.size()) == std::string::npos;
}

}  // namespace

Checkpoints::Checkpoints(const TrainOptions& o, const TrainingGraph& loaded, Progress& progress,
                         WeightAverage* average)
    : comm_(loaded.graph.comm()),
      input_(*loaded.input),
      progress_(progress),
      o_(o),
      speaks_(comm_.rank() == 0) {
  if (o.checkpoint.empty()) return;
  run_ = describe(o, loaded);
  checkpointer_.emplace(comm_, o.checkpoint,
                        CheckpointerOptions{.keep_last = o.checkpoint_keep, .seed = o.seed, .beside = true});
  checkpointer_->add_state("best.", progress.best_weights());
  if (average != nullptr) checkpointer_->add_state("ema.", average->state());
  if (o.epochs > 0) checkpointer_->lock();
  last_ = checkpointer_->latest();
  require<InputError>(last_.empty() || o.resume, last_,
                      " exists, expected --resume to continue from it, or another --checkpoint directory");
  if (o.resume && last_.empty() && speaks_)
    std::printf("no checkpoint in %s: starting from the beginning\n", o.checkpoint.c_str());
}

const std::string& Checkpoints::extra_of(const CheckpointInfo& info, const std::string& key) const {
  const auto found = info.extra.find(key);
  require<InputError>(found != info.extra.end(), last_, ": the metadata have no 'extra.", key,
                      "', expected a checkpoint that train has written");
  return found->second;
}

void Checkpoints::require_same(const std::string& option, const CheckpointInfo& info) const {
  const std::string &value = run_.at(option), &found = extra_of(info, option);
  require<InputError>(found == value, last_, ": made with ", option, " ", found, ", expected ", value,
                      " as in this run");
}

CheckpointInfo Checkpoints::resume(Module& model, Optimizer& optimizer, LRScheduler* schedule) {
  if (last_.empty()) return {};
  const CheckpointInfo made = checkpointer_->info(last_, optimizer);
  require_same("--task", made);
  for (const bool in_both : {true, false})  // an option that another one makes unread is in one of them
    for (const auto& [option, value] : run_)
      if (made.extra.contains(option) == in_both && (o_.epochs > 0 || !is_of_training(option)))
        require_same(option, made);
  CheckpointInfo info = checkpointer_->load(last_, model, optimizer);
  if (input_.has_learnable_rows()) {
    const std::string& rows = extra_of(info, "embedding");
    require<InputError>(is_name_of_rows(rows), last_, ": extra.embedding is '", rows,
                        "', expected a name as ", name_of_rows(info.epoch, 0));
    input_.load(o_.checkpoint + "/" + rows);
  }
  require<InputError>(o_.epochs == 0 || info.epoch <= o_.epochs, last_, ": ", info.epoch,
                      " epochs are done, expected --epochs of at least that, or 0 to predict only, not ",
                      o_.epochs);
  if (schedule != nullptr && o_.epochs > 0) checkpointer_->load(last_, model, optimizer, *schedule);
  const Index batch = EpochProgress::from_checkpoint(info.extra, last_).batch;
  progress_.resume(info.epoch, info.extra, last_);
  if (speaks_)
    std::printf("resuming from %s, after epoch %d%s\n", last_.c_str(), info.epoch,
                batch > 0 ? concat(" and ", batch, " batches of the next").c_str() : "");
  const std::string now = concat(o_.lr), before = extra_of(info, "--lr");
  if (before != now && o_.epochs > 0) {
    if (schedule != nullptr) {
      schedule->set_base_lr(o_.lr);
    } else {
      optimizer.set_lr(o_.lr);
    }
    if (speaks_) std::printf("continuing with --lr %s instead of %s\n", now.c_str(), before.c_str());
  }
  return info;
}

void Checkpoints::epoch_done(int epoch, const Module& model, Optimizer& optimizer,
                             const LRScheduler* schedule) const {
  if (checkpointer_ && (epoch % o_.checkpoint_every == 0 || progress_.is_done()))
    save(epoch, 0, model, optimizer, schedule, {});
}

void Checkpoints::batch_done(int epoch, const EpochProgress& now, const Module& model, Optimizer& optimizer,
                             const LRScheduler* schedule) const {
  if (!checkpointer_ || o_.checkpoint_batches == 0 || now.batch % o_.checkpoint_batches != 0) return;
  save(epoch - 1, now.batch, model, optimizer, schedule, now.to_checkpoint());
}

/// Deletes the learnable rows of deleted checkpoints, after a checkpoint has been written.
void Checkpoints::remove_embeddings(int epoch, const std::string& but) const {
  namespace fs = std::filesystem;
  if (comm_.rank() != 0) return;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(o_.checkpoint, ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(rows_prefix) || name == but) continue;
    const std::string number =
        name.substr(rows_prefix.size(), name.find('-', rows_prefix.size()) - rows_prefix.size());
    const bool is_kept = number != epoch_text(epoch) &&
                         fs::exists(o_.checkpoint + "/checkpoint-" + number + ".safetensors", ignored);
    if (!is_kept) fs::remove_all(entry.path(), ignored);
  }
}

void Checkpoints::save(int epoch, Index batch, const Module& model, Optimizer& optimizer,
                       const LRScheduler* schedule, std::map<std::string, std::string> extra) const {
  extra.merge(progress_.to_checkpoint());
  extra.insert(run_.begin(), run_.end());
  extra["--lr"] = concat(o_.lr);
  if (const auto* const network = dynamic_cast<const LayerStack*>(&model))
    extra[network_key] = network->description().to_json();
  const std::string embedding = name_of_rows(epoch, batch);
  if (input_.has_learnable_rows()) {
    input_.save(o_.checkpoint + "/" + embedding);
    extra["embedding"] = embedding;
  }
  if (schedule != nullptr) {
    checkpointer_->save(epoch, model, optimizer, *schedule, extra);
  } else {
    checkpointer_->save(epoch, model, optimizer, extra);
  }
  if (progress_.is_done() || input_.has_learnable_rows()) checkpointer_->wait();
  if (input_.has_learnable_rows()) remove_embeddings(epoch, embedding);
}

std::string find_checkpoint(const Communicator& comm, const std::string& path) {
  return formats::shared_text(comm, [&] {
    std::error_code error;
    if (!std::filesystem::is_directory(path, error)) {
      const SafetensorsFile file(path);
      return file.metadata().contains("epoch") && file.metadata().contains("optimizer") ? path : "";
    }
    const std::map<int, std::string> checkpoints = checkpoints_in(path);
    require<InputError>(!checkpoints.empty(), path,
                        ": the directory has no checkpoint, expected one, or a file of weights");
    return checkpoints.rbegin()->second;
  });
}

void load_model_of_checkpoint(const Communicator& comm, const std::string& path, Module& model) {
  const LoadReport report = load_weights(comm, path, model, {.strict = false, .strip_prefix = "model."});
  std::vector<std::string> unexpected;
  const auto counters = model.named_counters();
  for (const std::string& name : report.unexpected)
    if (name.starts_with("model.") &&
        std::ranges::find(counters, name.substr(6), &NamedCounter::name) == counters.end())
      unexpected.push_back(name);
  require<InputError>(report.missing.empty() && unexpected.empty(), path,
                      ": the checkpoint is one of another model: it has no ",
                      report.missing.empty() ? "tensor" : joined(report.missing),
                      unexpected.empty() ? "" : ", and has " + joined(unexpected),
                      ", expected the options that it was made with");
}

}  // namespace sar::tools
