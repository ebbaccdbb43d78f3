// SPDX-License-Identifier: MIT
#include "train_options.hpp"

#include <sar/core/error.hpp>

namespace sar::tools {

std::string name_of_run(const TrainOptions& o) {
  return concat("seed-", o.seed, o.run.of_splits ? concat("-split-", o.run.split) : "");
}

std::string default_activation(const ModelDescription& m) {
  return model_type(m.type).attends() && (m.norm.empty() || m.norm == "none") ? "elu" : "relu";
}

}  // namespace sar::tools
