// SPDX-License-Identifier: MIT
#include "read_structures.hpp"

#include "ase_database.hpp"
#include "extended_xyz.hpp"

#include <utility>

namespace sar::formats {

AtomDataset read_structures(const Communicator& comm, const std::string& path, const AtomLabelKeys& keys) {
  const bool is_database = comm.agree([&] { return is_ase_database(path); });
  AtomDataset data = is_database ? read_ase_database(comm, path, keys) : read_extended_xyz(comm, path, keys);
  data.format = is_database ? "ASE database" : "extended XYZ";
  return data;
}

}  // namespace sar::formats
