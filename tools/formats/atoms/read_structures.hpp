// SPDX-License-Identifier: MIT

/// Reads structures of atoms, whatever the format of their file.
#pragma once

#include "atom_dataset.hpp"

#include <sar/comm/communicator.hpp>

#include <string>

namespace sar::formats {

/// Collective. Reads a database of ASE as read_ase_database(), any other file as read_extended_xyz(). Sets
/// the format of the data.
AtomDataset read_structures(const Communicator& comm, const std::string& path, const AtomLabelKeys& keys);

}  // namespace sar::formats
