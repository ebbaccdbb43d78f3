#include "train_steps.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace sar::tools {
namespace {

NeighborSampler make_sampler(const GraphShardManager& graph, const TrainOptions& o, std::uint64_t seed) {
  const SampleOptions& s = o.sample;
  NeighborSamplerOptions options{.replace = s.replace, .prob = {}, .seed = seed};
  if (s.by_weight) {
    require<InputError>(graph.edge_weight().defined(), "--sample-by-weight: the edges have no weights");
    options.prob = graph.edge_weight();
  }
  return {graph, s.fan_outs, options};
}

}  // namespace

BlockData::BlockData(std::vector<MessageFlowGraph> graphs, const NodeData& data,
                     std::span<const Relations> of_graph)
    : blocks(std::move(graphs)) {
  features = gather_rows(data.features, blocks.front().src_rows()).value();
  for (const Index row : blocks.back().dst_rows()) labels.push_back(data.labels[row]);
  mask.assign(labels.size(), 1);
  for (const Relations& all : of_graph)
    for (const MessageFlowGraph& block : blocks) {
      relations.push_back({.types = {}, .norm = averaging_norm(block)});
      for (const Index e : block.edge_rows()) relations.back().types.push_back(all.types[e]);
    }
}

Array<Index> nodes_in(const NodeData& data, int rank, std::span<const Array<std::uint8_t>* const> masks) {
  Array<Index> nodes;
  for (Index v = 0; v < data.book.num_nodes(rank); ++v)
    if (std::any_of(masks.begin(), masks.end(), [&](const auto* mask) { return (*mask)[v] != 0; }))
      nodes.push_back(data.book.begin(rank) + v);
  return nodes;
}

std::map<std::string, std::string> EpochProgress::to_checkpoint() const {
  if (batch == 0) return {};
  return {{"batch", nlohmann::json{{"number", batch}, {"seeds", seeds}, {"loss_sum", loss_sum}}.dump()}};
}

EpochProgress EpochProgress::from_checkpoint(const std::map<std::string, std::string>& extra,
                                             const std::string& place) {
  const auto found = extra.find("batch");
  if (found == extra.end()) return {};
  const auto text = nlohmann::json::parse(found->second, nullptr, /*allow_exceptions=*/false);
  const auto has = [&](const char* key) {
    return text.is_object() && text.contains(key) && text[key].is_number();
  };
  require<InputError>(
      has("number") && has("loss_sum") && text["number"].is_number_integer() &&
          text["number"].get<std::int64_t>() > 0,
      place,
      ": extra.batch has no numbers 'number', 'seeds' and 'loss_sum', expected a checkpoint that train "
      "has written");
  return {.batch = text["number"].get<Index>(),
          .seeds = text["seeds"].get<Index>(),
          .loss_sum = text["loss_sum"].get<double>()};
}

Steps::Steps(const GraphShardManager& graph, const NodeData& data, std::span<const Relations> relations,
             const TrainOptions& o, NodeClassifier& model, Optimizer& optimizer)
    : graph_(graph),
      comm_(graph.comm()),
      data_(data),
      relations_(relations),
      o_(o),
      model_(model),
      optimizer_(optimizer) {
  if (o.epochs == 0 || (!o.mfg && o.sample.fan_outs.empty())) return;
  const Array<std::uint8_t>* const masks[] = {&data.train_mask};
  const Array<Index> seeds = nodes_in(data, comm_.rank(), masks);
  if (o.mfg) {
    part_.emplace(construct_mfgs(graph, seeds, o.model.layers), data, relations);
  } else {
    loader_.emplace(make_sampler(graph, o, o.seed), seeds,
                    DataLoaderOptions{.batch_size = o.sample.batch_size,
                                      .per_rank = o.sample.batch_per_rank,
                                      .drop_last = o.sample.drop_last,
                                      .seed = o.seed});
    const Index all_seeds = comm_.all_reduce(static_cast<Index>(seeds.size()));
    require<InputError>(loader_->num_batches() > 0, "--drop-last leaves no batch: there are ", all_seeds,
                        " training nodes on ", comm_.size(), " ranks, and the batch size is ",
                        o.sample.batch_size, o.sample.batch_per_rank ? " of each rank" : "");
  }
}

void Steps::epoch(Epoch& result, EpochTimer& timer, EpochProgress from,
                  FunctionRef<void(const EpochProgress&, Index num_batches)> step_done) {
  model_.train();
  const auto check = [&](double loss) {
    require(std::isfinite(loss), "the loss of epoch ", result.epoch, " is ", loss,
            ": try a smaller --lr than ", o_.lr);
  };
  if (!loader_) {
    result.loss = step(timer, part_ ? &*part_ : nullptr);
    check(result.loss);
    return;
  }
  require<InputError>(from.batch <= loader_->num_batches(), "the checkpoint is of batch ", from.batch,
                      " of an epoch, and there are ", loader_->num_batches());
  loader_->start_epoch(static_cast<std::uint64_t>(result.epoch), from.batch);
  const Index before = from.batch;
  while (std::optional<MiniBatch> batch = loader_->next()) {
    const auto seeds = comm_.all_reduce(static_cast<double>(batch->seeds.size()));
    const BlockData data(std::move(batch->blocks), data_, relations_);
    timer.step_begins();
    const double loss = step(timer, &data);
    check(loss);
    from.loss_sum += loss * seeds;
    from.seeds += static_cast<Index>(seeds);
    result.seeds += static_cast<Index>(seeds);
    ++from.batch;
    step_done(from, loader_->num_batches());
  }
  timer.steps_done();
  result.batches = loader_->num_batches() - before;
  result.loss = from.loss_sum / static_cast<double>(std::max<Index>(loader_->num_seeds(), 1));
}

double Steps::step(EpochTimer& timer, const BlockData* batch) {
  Tape tape;
  const Variable loss =
      batch != nullptr
          ? cross_entropy(model_(batch->blocks, batch->features, batch->relations), batch->labels,
                          batch->mask, comm_)
          : cross_entropy(model_(graph_, data_.features, relations_), data_.labels, data_.train_mask, comm_);
  timer.forward_done();
  tape.backward(loss);
  model_.forget_noise();
  gather_grads(comm_, model_);
  if (o_.clip_value > 0) clip_grad_value(model_, o_.clip_value);
  if (o_.clip_norm > 0) clip_grad_norm(model_, o_.clip_norm);
  optimizer_.step();
  optimizer_.zero_grad();
  timer.backward_done();
  return static_cast<double>(loss.value().item());
}

Accuracies Steps::evaluate() {
  model_.eval();
  const Tensor logits =
      o_.sample.evaluate ? logits_of_samples() : model_(graph_, data_.features, relations_).value();
  const auto of = [&](const auto& mask) { return accuracy(logits, data_.labels, mask, comm_); };
  return {.train = of(data_.train_mask), .val = of(data_.val_mask), .test = of(data_.test_mask)};
}

Tensor Steps::logits_of_samples() {
  const Array<std::uint8_t>* const masks[] = {&data_.train_mask, &data_.val_mask, &data_.test_mask};
  DataLoader loader(
      make_sampler(graph_, o_, o_.seed + 1), nodes_in(data_, comm_.rank(), masks),
      {.batch_size = o_.sample.batch_size, .per_rank = o_.sample.batch_per_rank, .shuffle = false});
  Tensor logits = Tensor::zeros({graph_.num_dst_nodes(), data_.num_classes});
  while (std::optional<MiniBatch> batch = loader.next()) {
    const BlockData data(std::move(batch->blocks), data_, relations_);
    const Tensor of_batch = model_(data.blocks, data.features, data.relations).value();
    const Array<Index>& rows = data.blocks.back().dst_rows();
    for (Index i = 0; i < of_batch.num_rows(); ++i)
      std::copy_n(of_batch.row(i), of_batch.row_size(), logits.row(rows[i]));
  }
  return logits;
}

}  // namespace sar::tools
