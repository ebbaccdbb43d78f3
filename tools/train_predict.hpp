/// What `train --predict` writes.
#pragma once

#include "train_models.hpp"
#include "train_options.hpp"

#include <sar/core/file.hpp>
#include <sar/sar.hpp>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <span>
#include <system_error>

namespace sar::examples {

/// Makes the directory: better told before the training than after it. Collective.
inline void prepare_predictions(const Communicator& comm, const Options& o) {
  comm.agree([&] {
    if (o.predict.empty() || comm.rank() != 0) return;
    std::error_code error;
    std::filesystem::create_directories(o.predict, error);
    require<InputError>(!error, o.predict, ": cannot make the directory (", error.message(), ")");
    check_writable(o.predict + "/logits.npy");
  });
}

/// Writes logits.npy float32 [nodes, classes], labels.npy int64 [nodes] (the class with the largest logit),
/// and embeddings.npy float32 [nodes, width of the layer]; row v is that of original node v. Collective.
inline void predict(const Communicator& comm, const Options& o, NodeClassifier& model,
                    const GraphShardManager& graph, const NodeData& data,
                    std::span<const Relations> relations) {
  if (o.predict.empty()) return;
  const bool was_training = model.is_training();
  model.eval();
  const auto& ids = graph.dst_ids();
  if (o.predict_layer > 0)
    write_npy_rows(comm, o.predict + "/embeddings.npy",
                   model.after_layer(o.predict_layer, graph, data.features, relations).value(), ids);
  const Tensor logits = model(graph, data.features, relations).value();
  Array<std::int64_t> labels(ids.size());
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const real* row = logits.row(static_cast<Index>(i));
    labels[i] = std::max_element(row, row + logits.row_size()) - row;
  }
  write_npy_rows(comm, o.predict + "/logits.npy", logits, ids);
  write_npy_rows(comm, o.predict + "/labels.npy", labels, ids);
  if (was_training) model.train();
}

}  // namespace sar::examples
