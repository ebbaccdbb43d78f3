/// A model's state by name, and weights in files: files that torch or DGL wrote, and files for them.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/graph/io/safetensors.hpp>
#include <sar/nn/module.hpp>

#include <map>
#include <string>
#include <vector>

namespace sar::inline SAR_PRECISION {

/// Tensors and integers by name. They share the memory of what they belong to: writing to them restores it.
struct StateDict {
  std::vector<NamedBuffer> tensors;
  std::vector<NamedCounter> counters;
};

/// What torch's module.state_dict() holds: parameters, buffers and those counters that torch has, too
/// (batch norm's num_batches_tracked, but not the calls of a dropout).
[[nodiscard]] StateDict state_dict(const Module& module);

struct LoadOptions {
  bool strict = true;  ///< a name that only the file or only the model has is an error
  /// For example "module.": taken off the names in the file. Names without it are not used.
  std::string strip_prefix = {};
};

/// Names that had no partner; empty after a strict load.
struct LoadReport {
  std::vector<std::string> missing;     ///< of the model, which keeps its values
  std::vector<std::string> unexpected;  ///< of the file
};

/// Fills `state` from a .safetensors file of any floating-point type. Rank 0 reads the file and sends the
/// values to the others, which need not see it. Everything is checked before anything is written: on an
/// error, the same on all ranks, `state` is as it was. Throws InputError for names without a partner
/// (strict), other shapes
/// ([] and [1] are the same), values that are not finite, and a damaged file. Collective.
LoadReport load_state_dict(const Communicator& comm, const std::string& path, const StateDict& state,
                           const LoadOptions& options = {});

/// Writes `state` (see write_safetensors). Throws InputError for a counter of 2^63 or more, too. Local.
void write_state_dict(const std::string& path, const StateDict& state, SafetensorsType type,
                      const std::map<std::string, std::string>& metadata = {});

/// Writes the `state` of rank 0 as write_state_dict() does. Collective; the same error on all ranks.
void save_state_dict(const Communicator& comm, const std::string& path, const StateDict& state,
                     SafetensorsType type, const std::map<std::string, std::string>& metadata = {});

/// The weights of a model: its state_dict() from and to a file, without loss unless `type` is narrower.
/// `metadata`: texts of the program's own, beside the weights; InputError for the keys "format" and "crc32",
/// which are taken. Collective, errors as above.
LoadReport load_weights(const Communicator& comm, const std::string& path, Module& module,
                        const LoadOptions& options = {});
void save_weights(const Communicator& comm, const std::string& path, const Module& module,
                  SafetensorsType type = real_type, const std::map<std::string, std::string>& metadata = {});

/// The metadata that save_weights() was given (or that any other .safetensors file has), the same on every
/// rank; rank 0 reads the file. Throws InputError for a file that is damaged or none. Collective.
[[nodiscard]] std::map<std::string, std::string> load_metadata(const Communicator& comm,
                                                               const std::string& path);

}  // namespace sar
