// SPDX-License-Identifier: MIT

/// How a run is looked at: --curves draws its epochs at the end, --tensorboard writes them as they come.
#pragma once

#include "curves/event_file.hpp"
#include "options/train_options.hpp"
#include "train_progress.hpp"

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <vector>

namespace sar::tools {

/// The epochs of a run. Local, for the rank that writes.
class Curves {
 public:
  /// Opens the event file, where --tensorboard says so. `first_epoch`: of this start of the run. Throws
  /// InputError if the file cannot be written.
  Curves(const TrainOptions& o, int first_epoch);

  /// Adds an epoch, which is its line in the log: of this start of the run, or of an earlier one.
  void add_earlier(const nlohmann::ordered_json& line);
  /// Throws InputError if the event file cannot be written; the epoch is kept, and the file closed.
  void add(const nlohmann::ordered_json& line);
  /// Writes the picture of --curves, if it is wanted. Throws InputError.
  void draw(const std::string& title, const RunResult& result) const;

 private:
  std::string file_;
  std::vector<std::string> metrics_;
  SplitScores splits_;
  std::vector<nlohmann::ordered_json> epochs_;  // of the picture
  std::optional<EventFile> events_;
};

/// Local. Makes the directory of --tensorboard, and throws InputError unless it and the file of --curves can
/// be written.
void prepare_curves(const TrainOptions& o);

}  // namespace sar::tools
