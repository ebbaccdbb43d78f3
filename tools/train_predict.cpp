#include "train_predict.hpp"

#include <sar/core/file.hpp>
#include <sar/sar.hpp>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>

namespace sar::tools {

void prepare_predictions(const Communicator& comm, const TrainOptions& o) {
  comm.agree([&] {
    if (o.predict.empty() || comm.rank() != 0) return;
    std::error_code error;
    std::filesystem::create_directories(o.predict, error);
    require<InputError>(!error, o.predict, ": cannot make the directory (", error.message(), ")");
    check_writable(o.predict + "/logits.npy");
  });
}

void predict(const Communicator& comm, const TrainOptions& o, NodeClassifier& model,
             const GraphShardManager& graph, const NodeData& data, std::span<const Relations> relations) {
  if (o.predict.empty()) return;
  const bool was_training = model.is_training();
  model.eval();
  const auto& ids = graph.dst_ids();
  const std::string end = data.ids_are_original ? ".npy" : ".partition_order.npy";
  if (o.predict_layer > 0)
    write_npy_rows(comm, o.predict + "/embeddings" + end,
                   model.after_layer(o.predict_layer, graph, data.features, relations).value(), ids);
  const Tensor logits = model(graph, data.features, relations).value();
  Array<std::int64_t> labels(static_cast<std::size_t>(logits.num_rows()));
  for (Index i = 0; i < logits.num_rows(); ++i) {
    const real* row = logits.row(i);
    labels[i] = std::max_element(row, row + logits.row_size()) - row;
  }
  write_npy_rows(comm, o.predict + "/logits" + end, logits, ids);
  write_npy_rows(comm, o.predict + "/labels" + end, labels, ids);
  // rows of an earlier run in the other order would be taken for those of this one
  const std::string other_end = data.ids_are_original ? ".partition_order.npy" : ".npy";
  std::error_code ignored;
  if (comm.rank() == 0 && std::filesystem::exists(o.predict + "/logits" + other_end, ignored) &&
      !std::filesystem::exists(o.predict + "/features.npy", ignored))
    for (const char* name : {"/embeddings", "/logits", "/labels"})
      std::filesystem::remove(o.predict + name + other_end, ignored);
  if (was_training) model.train();
}

}  // namespace sar::tools
