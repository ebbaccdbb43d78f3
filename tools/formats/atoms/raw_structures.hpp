// SPDX-License-Identifier: MIT

/// Structures before it is known which of their keys are labels.
#pragma once

#include "atom_dataset.hpp"

#include <sar/comm/communicator.hpp>
#include <sar/core/threads/parallel.hpp>

#include <map>
#include <string>
#include <vector>

namespace sar::formats {

struct RawStructure {
  AtomStructure atoms;
  Index place = 0;  ///< in the file, for messages
  std::map<std::string, std::string> keys;
  std::map<std::string, std::vector<double>> columns;  ///< of forces
  std::vector<std::string> names;                      ///< of all columns but species and pos
};

/// Collective. Returns the counts of names, added over all ranks.
std::map<std::string, Index> count_names(const Communicator& comm, const std::map<std::string, Index>& mine);

/// Collective. Returns the structures of a file, in rank order, with the labels that choose_keys() chooses.
/// Throws InputError, the same on every rank; what is wrong with the labels of one structure goes to
/// throw_wrong(structure, message).
AtomDataset labelled_structures(const Communicator& comm, const std::string& path,
                                std::vector<RawStructure> structures, const AtomLabelKeys& keys,
                                FunctionRef<void(const RawStructure&, const std::string&)> throw_wrong);

}  // namespace sar::formats
