/// Where `train` has its first weights from, and where the last ones go.
#pragma once

#include "weight_names.hpp"

#include <sar/nn/state_dict.hpp>

#include <string>
#include <vector>

namespace sar::tools {

/// The weights of a model in files whose names and layouts may be those of DGL's and PyG's examples.
class WeightFile {
 public:
  /// The names of the file are those of the model until one is loaded or recognised.
  explicit WeightFile(const Module& model);

  /// Loads a file, as load_weights() does after match_weights(). Returns a line for each tensor that is not
  /// called as in the model: what it was taken for. On an error the model is as it was. Collective.
  std::vector<std::string> load(const Communicator& comm, const std::string& path, const WeightNames& names);

  /// Reads the names of a file, for save(), and not its values. Collective.
  void recognise(const Communicator& comm, const std::string& path, const WeightNames& names);

  /// Writes a file in the names and layouts of the one that was loaded or recognised. Collective.
  void save(const Communicator& comm, const std::string& path) const;

 private:
  /// The tensors of the file: those of the model where nothing but the name differs, otherwise copies.
  [[nodiscard]] StateDict in_file() const;
  [[nodiscard]] Tensor tensor(const std::string& model_name) const;
  void take(const WeightLink& link, const Tensor& value) const;

  StateDict model_;
  std::vector<WeightLink> links_;
};

}  // namespace sar::tools
