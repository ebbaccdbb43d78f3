// SPDX-License-Identifier: MIT

// Counts of numbers in double precision, so that no product of sizes overflows.

#include "train_graph.hpp"

#include "program.hpp"

#include <algorithm>
#include <string>

namespace sar::tools {

void require_memory_of_model(const Communicator& comm, const TrainOptions& o, const ModelDescription& m,
                             const NodeData& data, Index in_feats, Index num_classes, Index num_types) {
  const Index matrices = !model_type(m.type).has_relations ? 1 : m.num_bases > 0 ? m.num_bases : m.num_rels;
  const double copies = o.epochs > 0 ? 3 : 1;  // the gradient, and at least one of the optimizer
  const auto nodes = static_cast<double>(data.book.num_nodes(comm.rank()));
  // The backward pass needs the rows of every layer, a forward pass alone those of one.
  const bool keeps_rows = o.epochs > 0 && !o.mfg && !o.sample.has_batches();
  const bool has_all_rows = o.epochs == 0 || (o.eval_every > 0 && !o.sample.evaluate) || !o.predict.empty();
  double numbers = 0, rows = 0;
  for (Index i = 0; i < m.layers; ++i) {
    const auto in = static_cast<double>(i == 0 ? in_feats : m.hidden);
    const auto out =
        static_cast<double>(i + 1 == m.layers && !has_pairs(o.task.type) ? num_classes : m.hidden);
    numbers += copies * in * out * static_cast<double>(matrices);
    if (keeps_rows)
      rows += nodes * out;
    else if (has_all_rows)
      rows = std::max(rows, nodes * out);
  }
  if (has_pairs(o.task.type))
    numbers +=
        copies * static_cast<double>(m.hidden + num_classes + num_types) * static_cast<double>(m.hidden);
  std::string what = concat("the model of --layers ", m.layers, ", --hidden ", m.hidden);
  if (model_type(m.type).has_relations)
    what += o.is_typed() ? concat(", ", m.num_rels, " edge types") : concat(", --num-rels ", m.num_rels);
  if (o.task.type != TaskType::link)
    what += concat(" and ", num_classes, " classes");
  else if (num_types > 1)
    what += concat(" and ", num_types, " edge types");
  require_memory(comm, (numbers + rows) * static_cast<double>(sizeof(real)), what);
}

void require_memory_of_pairs(const Communicator& comm, const TrainOptions& o, const EdgeTask& edges) {
  if (o.task.type != TaskType::link || o.epochs == 0) return;
  const SampleOptions& s = o.sample;
  auto positives = static_cast<double>(edges.train.edges.size());
  if (!s.fan_outs.empty())
    positives = std::min(positives, static_cast<double>(s.batch_size) / (s.batch_per_rank ? 1 : comm.size()));
  // both ends as indices, and as rows in the forward and in the backward pass
  const double pair_bytes = 2 * sizeof(Index) + 4.0 * static_cast<double>(o.model.hidden) * sizeof(real);
  require_memory(comm, positives * static_cast<double>(o.task.negatives) * pair_bytes,
                 concat("a step with --negatives ", o.task.negatives));
  const Index evaluated = std::max(edges.valid.edges.size(), edges.test.edges.size());
  if (o.eval_every > 0)
    require_memory(comm, static_cast<double>(evaluated * o.task.eval_negatives) * sizeof(real),
                   concat("an evaluation with --eval-negatives ", o.task.eval_negatives));
}

}  // namespace sar::tools
