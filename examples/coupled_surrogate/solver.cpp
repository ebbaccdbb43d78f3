// SPDX-License-Identifier: MIT
#include "solver.hpp"

#include <algorithm>
#include <cmath>
#include <random>

namespace {

/// Returns bumps at random places of a mesh. Uses the generator's raw numbers, because distributions differ
/// between standard libraries.
std::vector<double> bumps(const Mesh& mesh, std::mt19937_64& random, int count, double width) {
  const auto draw = [&](double low, double high) {
    return low + (high - low) * static_cast<double>(random() >> 11) * 0x1p-53;
  };
  std::vector<double> values(mesh.position.size(), 0);
  for (int k = 0; k < count; ++k) {
    const Point centre{draw(0, 2), draw(mesh.position.front().y, mesh.position.back().y)};
    const double size = draw(0.5, 1.5);
    for (std::size_t v = 0; v < values.size(); ++v) {
      const double dx = mesh.position[v].x - centre.x, dy = mesh.position[v].y - centre.y;
      values[v] += size * std::exp(-(dx * dx + dy * dy) / (width * width));
    }
  }
  return values;
}

}  // namespace

Solver::Solver(MPI_Comm comm, const Meshes& meshes) : comm_(comm), meshes_(meshes) {
  double fastest = 0;  // maximum over the nodes of the sum of rates
  for (const Body to : {fluid, plate}) {
    std::vector<double> sums = meshes.mesh[to].loss;
    for (const Body from : {fluid, plate}) {
      const Links& links = meshes.links[from][to];
      for (std::size_t k = 0; k < links.to.size(); ++k) sums[links.to[k]] += links.rate[k];
    }
    fastest = std::max(fastest, *std::max_element(sums.begin(), sums.end()));
  }
  MPI_Allreduce(MPI_IN_PLACE, &fastest, 1, MPI_DOUBLE, MPI_MAX, comm);
  dt_ = 0.5 / fastest;
}

void Solver::start(std::uint64_t run) {
  std::mt19937_64 random(run);
  temperature_[fluid] = bumps(meshes_.mesh[fluid], random, 3, 0.3);
  temperature_[plate] = bumps(meshes_.mesh[plate], random, 2, 0.4);
  heating_ = bumps(meshes_.mesh[plate], random, 2, 0.2);
}

void Solver::advance(int steps) {
  for (int step = 0; step < steps; ++step) {
    Fields change;
    for (const Body to : {fluid, plate}) {
      const Mesh& mesh = meshes_.mesh[to];
      change[to].assign(mesh.position.size(), 0);
      for (const std::int64_t v : mesh.owned)
        change[to][v] = (to == plate ? heating_[v] : 0) - mesh.loss[v] * temperature_[to][v];
      for (const Body from : {fluid, plate}) {
        const Links& links = meshes_.links[from][to];
        for (std::size_t k = 0; k < links.to.size(); ++k)
          change[to][links.to[k]] +=
              links.rate[k] * (temperature_[from][links.from[k]] - temperature_[to][links.to[k]]);
      }
    }
    for (const Body body : {fluid, plate}) {
      const Mesh& mesh = meshes_.mesh[body];
      for (const std::int64_t v : mesh.owned) temperature_[body][v] += dt_ * change[body][v];
      std::vector<int> counts;
      for (std::size_t p = 0; p + 1 < mesh.first.size(); ++p)
        counts.push_back(mesh.first[p + 1] - mesh.first[p]);
      MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, temperature_[body].data(), counts.data(),
                     mesh.first.data(), MPI_DOUBLE, comm_);
    }
  }
}
