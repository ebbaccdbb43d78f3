// SPDX-License-Identifier: MIT

/// Weights in the names and layouts of other programs.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/nn/models/weight_names.hpp>
#include <sar/nn/modules/module.hpp>
#include <sar/nn/train/state_dict.hpp>

#include <map>
#include <string>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// Reads and writes a model's weights in files whose names and layouts may be those of DGL's and PyG's
/// examples.
class WeightFile {
 public:
  /// Local. Until a file is loaded or recognized, names and layouts are those of the model.
  explicit WeightFile(const Module& model);

  /// Collective. Loads a file as load_weights() does, after match_weights(). Returns one line for each
  /// tensor whose name differs from the model's, saying what it was matched with, and for each that keeps
  /// its initial value. Throws InputError on every rank as these two functions do; the model then stays
  /// unchanged.
  std::vector<std::string> load(const Communicator& comm, const std::string& path, const WeightNames& names);

  /// Collective. Reads the names of a file, but not its values, so that save() uses them. Errors are those
  /// of load().
  void recognise(const Communicator& comm, const std::string& path, const WeightNames& names);

  /// Local. Returns whether the file has the names of layers of PyG that add self loops: GCNConv, GATConv,
  /// GATv2Conv.
  [[nodiscard]] bool adds_self_loops() const;

  /// Collective. Writes a file in the names and layouts of the file that was loaded or recognized, or in
  /// those of the model if the file had nothing for some tensors. `metadata` and errors as in
  /// save_weights().
  void save(const Communicator& comm, const std::string& path,
            std::map<std::string, std::string> metadata = {}) const;

 private:
  [[nodiscard]] StateDict to_read() const;
  [[nodiscard]] StateDict to_write() const;
  [[nodiscard]] Tensor tensor(const std::string& model_name) const;
  /// Returns the values for a file without the other bias that is added to the same rows.
  [[nodiscard]] Tensor with_other_bias(const std::string& model_name) const;
  /// Returns a counter of the model, or null.
  [[nodiscard]] const NamedCounter* counter(const std::string& model_name) const;
  void take(const WeightLink& link, const Tensor& value) const;
  [[nodiscard]] std::vector<std::string> lines() const;

  StateDict model_;
  std::vector<WeightLink> links_;
  std::vector<std::string> missing_, absent_biases_;
  std::vector<ZeroBias> zeros_;
};

/// Collective. Loads the weights of a network from a file with the network's own names or those of PyTorch
/// Geometric, DGL or older releases of DGL, after the changes in `names`. Returns the same lines as
/// WeightFile::load(). Throws InputError on every rank as match_weights() and load_weights() do; the
/// network then stays unchanged.
std::vector<std::string> load_model_weights(const Communicator& comm, const std::string& path, Module& module,
                                            const WeightNames& names = {});

}}  // namespace sar
