// SPDX-License-Identifier: MIT

/// Reads and writes structures in extended XYZ, as ASE does.
#pragma once

#include "atom_dataset.hpp"

#include <sar/comm/communicator.hpp>
#include <sar/core/files/file.hpp>

#include <optional>
#include <string>

namespace sar::formats {

/// Collective. Reads a file, also one that gzip has packed; each rank reads a range of its bytes. The table
/// of keys and how labels are recognized is in docs/atoms.md. Throws InputError, the same on every rank, with
/// file and line: for wrong counts, columns, numbers, species and quotes, for positions that are not finite,
/// and where several keys could be a label.
AtomDataset read_extended_xyz(const Communicator& comm, const std::string& path, const AtomLabelKeys& keys);

/// Writes structures to a file, whose place another file keeps until commit(). All functions are collective,
/// and throw InputError, the same on every rank, if the file cannot be written.
class StructureWriter {
 public:
  StructureWriter(const Communicator& comm, const std::string& path);

  /// Writes the structures of all ranks, in rank order, with the keys and labels that each has and the atoms
  /// by their numbers. Numbers are exact. With `labels`, structures of the same atoms in the same order,
  /// their energies, forces and stresses are written, too, as label_energy, label_forces and label_stress;
  /// deviations are energy_deviation and forces_deviation.
  void write(const AtomDataset& data, const AtomDataset* labels = nullptr);
  void commit();

 private:
  Communicator comm_;
  std::optional<TemporaryFile> file_;  // on rank 0
};

}  // namespace sar::formats
