#include <sar/core/error.hpp>
#include <sar/core/files/file.hpp>
#include <sar/nn/models/model_file.hpp>
#include <sar/nn/train/state_dict.hpp>

#include <filesystem>

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

ModelFile read_model_file(const Communicator& comm, const std::string& path) {
  return path.ends_with(".json") ? read_json(comm, path) : read_metadata(comm, path);
}

}}  // namespace sar
