// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/core/files/file.hpp>
#include <sar/core/files/json.hpp>
#include <sar/core/files/safetensors.hpp>
#include <sar/core/text.hpp>
#include <sar/nn/models/model_file.hpp>
#include <sar/nn/train/state_dict.hpp>

#include <algorithm>
#include <filesystem>
#include <span>

namespace sar { inline namespace SAR_PRECISION {
namespace {

constexpr const char* what_json_is = "the description of a network";

/// Reads the text of a file on rank 0.
std::string broadcast_text(const Communicator& comm, const std::string& path) {
  std::string text;
  if (comm.rank() == 0) text = read_text(path, what_json_is);
  return comm.broadcast(text, 0);
}

/// Returns the path of a file that another one names.
std::string beside(const std::string& path, const std::string& name) {
  return (std::filesystem::path(path).parent_path() / name).string();
}

/// Reads a .json description.
ModelFile read_json(const Communicator& comm, const std::string& path) {
  ModelFile file{ModelDescription::from_json(broadcast_text(comm, path), path), {}};
  require<InputError>(!file.description.weights.empty(), path,
                      " has no key 'weights', expected one that names the file of the weights");
  file.weights = beside(path, file.description.weights);
  return file;
}

/// Reads the description in the metadata of a .safetensors file.
ModelFile read_metadata(const Communicator& comm, const std::string& path) {
  const auto metadata = load_metadata(comm, path);
  const auto found = metadata.find(model_key);
  require<InputError>(
      found != metadata.end(), path, ": the metadata have no key '", model_key,
      "', expected the description of a network, as save_model writes it, or a .json file beside it");
  return {ModelDescription::from_json(found->second, concat(path, ": ", model_key)), path};
}

}  // namespace

void require_enough_weights(const Communicator& comm, const ModelFile& file) {
  double there = 0;
  comm.agree([&] {
    if (comm.rank() != 0) return;
    const SafetensorsFile weights(file.weights);
    for (const SafetensorsEntry& entry : weights.entries()) there += static_cast<double>(entry.size);
  });
  comm.broadcast(std::span(&there, 1), 0);  // all ranks throw before one of them makes the network
  constexpr double few = 1 << 20;           // the messages of a network that is made name its tensors
  const double least = least_weights(file.description);
  require<InputError>(least <= std::max(there, few), file.weights, ": the tensors have ", exact_text(there),
                      " numbers, expected at least ", exact_text(least), ", for a network of type ",
                      file.description.type, " with ", file.description.layers, " layers of ",
                      file.description.hidden);
}

ModelFile read_model_file(const Communicator& comm, const std::string& path) {
  return path.ends_with(".json") ? read_json(comm, path) : read_metadata(comm, path);
}

std::optional<CommitteeFile> read_committee_file(const Communicator& comm, const std::string& path) {
  if (!path.ends_with(".json")) return std::nullopt;
  const JsonValue file = JsonValue::parse(broadcast_text(comm, path), path, what_json_is, path);
  if (!file.has("type") || file.at("type").text() != "committee") return std::nullopt;
  require_version(file);
  for (const std::string& key : file.keys())
    require<InputError>(key == version_key || key == "type" || key == "members" || key == "deviation_scales",
                        path, " has the key '", key, "', which a committee has not, expected ", version_key,
                        ", type, members or deviation_scales");
  CommitteeFile result;
  for (const JsonValue& each : file.at("members").list()) result.members.push_back(beside(path, each.text()));
  for (const std::string& each : result.members)
    require<InputError>(each != path, path, ".members names the file itself");
  if (!file.has("deviation_scales")) return result;
  result.deviation_scales = file.at("deviation_scales").all<&JsonValue::number>();
  return result;
}
}}  // namespace sar
