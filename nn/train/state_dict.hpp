// SPDX-License-Identifier: MIT

/// A model's state by name, and weight files that can be exchanged with torch and DGL.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/files/safetensors.hpp>
#include <sar/nn/modules/module.hpp>

#include <map>
#include <string>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// Tensors and integers by name. They share memory with their owners, so that writing to them restores the
/// state.
struct StateDict {
  std::vector<NamedBuffer> tensors;
  std::vector<NamedCounter> counters;
};

/// Returns the content of torch's module.state_dict(): parameters, buffers and the counters that torch has,
/// too (batch norm's num_batches_tracked, but not the number of calls of a dropout).
[[nodiscard]] StateDict state_dict(const Module& module);

struct LoadOptions {
  bool strict = true;  ///< names that only the file or only the model has are an error
  /// A prefix to remove from the names in the file, for example "module.". Names without the prefix are
  /// skipped.
  std::string strip_prefix = {};
};

/// Unmatched names; both lists are empty after a strict load.
struct LoadReport {
  std::vector<std::string> missing;     ///< names of the model that are not in the file; their values stay
                                        ///< unchanged
  std::vector<std::string> unexpected;  ///< names of the file that are not in the model
};

/// Collective. Fills `state` from a .safetensors file of any floating-point type. Rank 0 reads the file and
/// sends the values to the other ranks, which need no access to it. Everything is checked before the first
/// write: if it fails, it fails on all ranks and `state` is unchanged. Throws InputError for unmatched
/// names (if strict), shapes that differ ([] and [1] are the same), values that are not finite, and a
/// damaged file.
LoadReport load_state_dict(const Communicator& comm, const std::string& path, const StateDict& state,
                           const LoadOptions& options = {});

/// Local. Returns the values of counters for write_safetensors(`path`). Throws InputError for 2^63 or more.
[[nodiscard]] std::vector<NamedInteger> integers_of(const std::string& path,
                                                    const std::vector<NamedCounter>& counters);

/// Local. Writes `state` (see write_safetensors). Also throws InputError for a counter of 2^63 or more.
void write_state_dict(const std::string& path, const StateDict& state, SafetensorsType type,
                      const std::map<std::string, std::string>& metadata = {});

/// Collective. Writes the `state` of rank 0 as write_state_dict() does. Errors are thrown on all ranks.
void save_state_dict(const Communicator& comm, const std::string& path, const StateDict& state,
                     SafetensorsType type, const std::map<std::string, std::string>& metadata = {});

/// Collective. Load and save the weights of a model, its state_dict(), without loss unless `type` is
/// narrower. `metadata` is text that the program stores beside the weights; the keys "format", "crc32" and
/// "header_crc32" are reserved and throw InputError. Errors as above.
LoadReport load_weights(const Communicator& comm, const std::string& path, Module& module,
                        const LoadOptions& options = {});
void save_weights(const Communicator& comm, const std::string& path, const Module& module,
                  SafetensorsType type = real_type, const std::map<std::string, std::string>& metadata = {});

/// Collective. Returns the metadata of save_weights(), or of any other .safetensors file, on every rank;
/// rank 0 reads the file. Throws InputError for a damaged or missing file.
[[nodiscard]] std::map<std::string, std::string> load_metadata(const Communicator& comm,
                                                               const std::string& path);

}}  // namespace sar
