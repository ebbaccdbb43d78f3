// SPDX-License-Identifier: MIT
#include "train/runs/initial_network.hpp"

#include "program.hpp"
#include "train/options/option_table.hpp"
#include "train/train_checkpoint.hpp"

#include <sar/models.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <functional>
#include <span>
#include <vector>

namespace sar::tools {
namespace {

constexpr std::array network_options{"--activation", "--norm",      "--jk",         "--residual",
                                     "--heads",      "--out-heads", "--pre-linear", "--predictor"};
constexpr std::array data_options{"--normalize-features", "--edge-means", "--add-self-loops",
                                  "--add-reverse-edges"};

/// The values of options, by their names.
std::map<std::string, std::string> texts_of(TrainOptions o, std::span<const char* const> names) {
  CLI::App app;
  OptionTable table(app, o);
  std::map<std::string, std::string> texts;
  for (const char* name : names)
    if (name != std::string("--predictor") || o.task.type == TaskType::link)
      texts[name] = table.at(name).text();
  return texts;
}

using Metadata = std::map<std::string, std::string>;

/// "--activation elu, here relu", for each option of which the file has another value.
std::vector<std::string> differences(const Metadata& file, const std::string& prefix,
                                     const std::map<std::string, std::string>& mine) {
  std::vector<std::string> found;
  for (const auto& [name, text] : mine) {
    const auto recorded = file.find(prefix + name);
    if (recorded != file.end() && recorded->second != text)
      found.push_back(concat(name, " ", recorded->second, ", here ", text));
  }
  return found;
}

}  // namespace

std::map<std::string, std::string> record_of_network(const TrainOptions& o) {
  std::map<std::string, std::string> record;
  for (const std::span<const char* const> names :
       {std::span<const char* const>(network_options), std::span<const char* const>(data_options)})
    for (const auto& [name, text] : texts_of(o, names)) record["train." + name] = text;
  return record;
}

void compare_network(const Communicator& comm, const std::string& path, bool is_checkpoint,
                     const Module& model, const TrainOptions& o) {
  const Metadata file = load_metadata(comm, path);
  const std::string prefix = is_checkpoint ? "extra." : "train.";
  const auto* const network = dynamic_cast<const LayerStack*>(&model);
  const auto described = file.find(is_checkpoint ? prefix + network_key : model_key);
  const std::vector<std::string> other =
      network != nullptr && described != file.end()
          ? network->description().differences(ModelDescription::from_json(described->second, path))
          : differences(file, prefix, texts_of(o, network_options));
  require<InputError>(other.empty() || o.epochs > 0, path, ": the network of these weights has ",
                      joined(other, std::identity(), "; "), ", expected the options that it was made with");
  const auto warn = [&](const char* what, const std::vector<std::string>& texts) {
    if (!texts.empty()) say(comm, "WARNING: ", path, ": ", what, joined(texts, std::identity(), "; "));
  };
  warn("the network of these weights has ", other);
  warn("these weights were trained with ", differences(file, prefix, texts_of(o, data_options)));
}

}  // namespace sar::tools
