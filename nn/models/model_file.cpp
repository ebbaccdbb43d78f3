// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/core/files/file.hpp>
#include <sar/core/files/safetensors.hpp>
#include <sar/core/number_text.hpp>
#include <sar/nn/models/model_file.hpp>
#include <sar/nn/train/state_dict.hpp>

#include <algorithm>
#include <filesystem>
#include <span>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// Reads a .json description.
ModelFile read_json(const Communicator& comm, const std::string& path) {
  std::string text;
  if (comm.rank() == 0) text = read_text(path, "the description of a network");
  text = comm.broadcast(text, 0);
  ModelFile file{ModelDescription::from_json(text, path), {}};
  require<InputError>(!file.description.weights.empty(), path,
                      " has no key 'weights', expected one that names the file of the weights");
  file.weights = (std::filesystem::path(path).parent_path() / file.description.weights).string();
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

}}  // namespace sar
