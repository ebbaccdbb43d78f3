/// Files that ParaView opens: a piece of the mesh per rank (.vtu), a file that names the pieces (.pvtu), and
/// one that names the time steps (.pvd).
#pragma once

#include "mesh.hpp"

#include <sar/comm/communicator.hpp>

#include <span>
#include <string>
#include <vector>

/// A number a node, ghosts included.
struct NodeField {
  std::string name;
  std::span<const double> values;
};

class VtkSeries {
 public:
  /// Writes to `directory`, which is made when it is not there, under names that begin with `name`.
  /// Collective. Throws sar::InputError, the same on every rank, when it cannot be made or written to.
  VtkSeries(const sar::Communicator& comm, const Mesh& mesh, std::string directory, std::string name);

  /// Writes one time step. Collective. Throws as the constructor.
  void write(double time, std::span<const NodeField> fields);

  /// The file to open.
  [[nodiscard]] std::string path() const { return directory_ + "/" + name_ + ".pvd"; }

 private:
  sar::Communicator comm_;
  const Mesh& mesh_;
  std::string directory_, name_;
  std::vector<double> times_;
};
