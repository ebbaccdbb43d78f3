// SPDX-License-Identifier: MIT

/// AtomDataset: structures of atoms with energies, forces and stresses, read whatever the format of their
/// file.
///
/// Room tools/formats/atoms: Structures of atoms, in extended XYZ and in databases of ASE: read in parts by
/// all ranks, and written in extended XYZ.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/nn/atoms/cell.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

namespace sar::formats {

constexpr double no_label = std::numeric_limits<double>::quiet_NaN();

/// Labels that the file does not have are no_label; forces are empty.
struct AtomStructure {
  std::vector<std::uint8_t> elements;  ///< atomic number of each atom
  std::vector<double> positions;       ///< 3 for each atom
  Cell cell;
  double energy = no_label;
  std::vector<double> forces;  ///< -dE/dx, 3 for each atom
  Matrix3 stress{{{no_label, no_label, no_label},
                  {no_label, no_label, no_label},
                  {no_label, no_label, no_label}}};  ///< dE/d strain / volume

  double energy_deviation = no_label;       ///< of a prediction by a committee
  std::vector<double> force_deviations;     ///< one for each atom
  std::vector<std::int32_t> numbers;        ///< of each atom in the file; empty: as they are
  std::map<std::string, std::string> keys;  ///< of the comment, without cell, columns and labels

  [[nodiscard]] Index num_atoms() const noexcept { return std::ssize(elements); }
  [[nodiscard]] bool has_energy() const noexcept { return !std::isnan(energy); }
  [[nodiscard]] bool has_stress() const noexcept { return !std::isnan(stress[0][0]); }
};

/// The places of the atoms in the order of the file.
std::vector<std::size_t> file_order(const AtomStructure& atoms);

/// Sorts the atoms along the direction in which the structure, or its cell, is longest: equal parts of the
/// list are slabs, which have few edges in between.
void sort_in_space(AtomStructure& atoms);

/// What a rank has of a file: consecutive structures, in rank order.
struct AtomDataset {
  std::string path, format;
  std::vector<AtomStructure> structures;  ///< of this rank
  Index first = 0;                        ///< the number of the first one in the file
  Index count = 0;                        ///< over all ranks
  std::vector<std::string> species;       ///< of all ranks, sorted
  bool has_energies = false, has_forces = false, has_stresses = false;  ///< of some structures, at least
  std::vector<std::string> notes;  ///< which keys are labels and which are not used, a line each
};

/// Names of the keys of labels; empty: recognized by their names; "none": not read.
struct AtomLabelKeys {
  std::string energy, forces, stress;
  std::vector<std::string> others = {};  ///< keys that the program reads, too
};

/// Collective. Reads a database of ASE, by its first bytes or the end of its name, in the order of the ids of
/// its rows; any other file as read_extended_xyz(). Labels are as there. Sets the format of the data. Throws
/// InputError, the same on every rank, with the path and the line or the id of the row.
AtomDataset read_structures(const Communicator& comm, const std::string& path, const AtomLabelKeys& keys);

}  // namespace sar::formats
