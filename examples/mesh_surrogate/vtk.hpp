// SPDX-License-Identifier: MIT

/// Writes files for ParaView: one piece of the mesh per rank (.vtu), a file that lists the pieces (.pvtu),
/// and one that lists the time steps (.pvd).
#pragma once

#include "mesh.hpp"

#include <sar/comm/communicator.hpp>

#include <span>
#include <string>
#include <vector>

/// One value per node, including ghosts.
struct NodeField {
  std::string name;
  std::span<const double> values;
};

class VtkSeries {
 public:
  /// Writes to `directory`, which is created if necessary, in files that begin with `name`. Throws
  /// sar::InputError on every rank if the directory cannot be created or written to. Collective.
  VtkSeries(const sar::Communicator& comm, const Mesh& mesh, std::string directory, std::string name);

  /// Writes one time step. Throws as the constructor. Collective.
  void write(double time, std::span<const NodeField> fields);

  /// Returns the path of the .pvd file to open.
  [[nodiscard]] std::string path() const { return directory_ + "/" + name_ + ".pvd"; }

 private:
  sar::Communicator comm_;
  const Mesh& mesh_;
  std::string directory_, name_;
  std::vector<double> times_;
};
