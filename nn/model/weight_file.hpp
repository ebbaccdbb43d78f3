/// Weights in the names and layouts of other programs.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/nn/model/weight_names.hpp>
#include <sar/nn/module.hpp>
#include <sar/nn/state_dict.hpp>

#include <map>
#include <string>
#include <vector>

namespace sar::inline SAR_PRECISION {

/// The weights of a model in files whose names and layouts may be those of DGL's and PyG's examples.
class WeightFile {
 public:
  /// The names of the file are those of the model until one is loaded or recognised. Local.
  explicit WeightFile(const Module& model);

  /// Loads a file, as load_weights() does after match_weights(). Returns a line for each tensor that is not
  /// called as in the model: what it was taken for. Throws InputError, the same on every rank, as these two;
  /// then the model is as it was. Collective.
  std::vector<std::string> load(const Communicator& comm, const std::string& path, const WeightNames& names);

  /// Reads the names of a file, for save(), and not its values. Errors are those of load(). Collective.
  void recognise(const Communicator& comm, const std::string& path, const WeightNames& names);

  /// Writes a file in the names and layouts of the one that was loaded or recognised, with `metadata` as
  /// save_weights(), whose errors it has. Collective.
  void save(const Communicator& comm, const std::string& path,
            std::map<std::string, std::string> metadata = {}) const;

 private:
  /// The tensors of the file: those of the model where nothing but the name differs, otherwise copies.
  [[nodiscard]] StateDict in_file() const;
  [[nodiscard]] Tensor tensor(const std::string& model_name) const;
  void take(const WeightLink& link, const Tensor& value) const;

  StateDict model_;
  std::vector<WeightLink> links_;
};

/// The weights of a network from a file whose names are its own, or those of PyTorch Geometric, of DGL or of
/// older releases of DGL, or become these by `names`. Returns as WeightFile::load(). Throws InputError, the
/// same on every rank, as match_weights() and load_weights(), and the network is as it was. Collective.
std::vector<std::string> load_model_weights(const Communicator& comm, const std::string& path, Module& module,
                                            const WeightNames& names = {});

}  // namespace sar
