// SPDX-License-Identifier: MIT

/// The file of a described network: the description, and where the weights are. For implementation files.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/nn/models/model_description.hpp>

#include <optional>
#include <string>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// The content of a model file: the description and the path of the weights.
struct ModelFile {
  ModelDescription description;
  std::string weights;
};

/// On all ranks, inside agree(): reads a .json description, or that in the metadata of a .safetensors file.
/// Rank 0 reads. Throws InputError for a file without a description.
ModelFile read_model_file(const Communicator& comm, const std::string& path);

/// The files of a committee of potentials.
struct CommitteeFile {
  std::vector<std::string> members;
  std::vector<double> deviation_scales{1, 1};
};

/// On all ranks, inside agree(): reads a .json file of the type "committee"; of another file, nothing. Rank 0
/// reads. Throws InputError for keys that are missing, unknown or of another type.
std::optional<CommitteeFile> read_committee_file(const Communicator& comm, const std::string& path);

/// On all ranks, inside agree(): throws InputError if the network of the description is large, and the file
/// of the weights has fewer numbers than it has weights. Called before the network is made.
void require_enough_weights(const Communicator& comm, const ModelFile& file);
}}  // namespace sar
