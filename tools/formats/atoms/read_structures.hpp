// SPDX-License-Identifier: MIT

/// Reads structures of atoms, whatever the format of their file.
#pragma once

#include "atom_dataset.hpp"

#include <sar/comm/communicator.hpp>

#include <string>

namespace sar::formats {

/// Collective. Reads a database of ASE, by its first bytes or the end of its name, in the order of the ids of
/// its rows; any other file as read_extended_xyz(). Labels are as there. Sets the format of the data. Throws
/// InputError, the same on every rank, with the path and the line or the id of the row.
AtomDataset read_structures(const Communicator& comm, const std::string& path, const AtomLabelKeys& keys);

}  // namespace sar::formats
