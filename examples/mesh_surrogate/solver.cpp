// SPDX-License-Identifier: MIT
#include "solver.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>
#include <random>

namespace {

constexpr double diffusivity = 5e-4;
/// Share of first-order upwind fluxes, mixed with central fluxes: enough to damp what the mesh cannot
/// resolve.
constexpr double upwind_share = 0.1;
constexpr double safety = 0.7;

constexpr double kx = std::numbers::pi / width, ky = std::numbers::pi / height;
constexpr double one_vortex = 0.25, two_vortices = 0.15;

/// Streamfunction psi of the flow, v = (d psi/dy, -d psi/dx): one large vortex and two counter-rotating ones.
/// It vanishes on the walls.
double stream(Point p) {
  return std::sin(ky * p.y) * (one_vortex * std::sin(kx * p.x) + two_vortices * std::sin(2 * kx * p.x));
}

Point between(Point a, Point b) {
  return {(a.x + b.x) / 2, (a.y + b.y) / 2};
}

}  // namespace

Point Solver::velocity(Point p) {
  return {ky * std::cos(ky * p.y) * (one_vortex * std::sin(kx * p.x) + two_vortices * std::sin(2 * kx * p.x)),
          -kx * std::sin(ky * p.y) *
              (one_vortex * std::cos(kx * p.x) + 2 * two_vortices * std::cos(2 * kx * p.x))};
}

Solver::Solver(MPI_Comm comm, const Mesh& mesh)
    : comm_(comm),
      mesh_(mesh),
      area_(static_cast<std::size_t>(mesh.num_owned)),
      faces_(mesh.edges.size()),
      field_(static_cast<std::size_t>(mesh.num_nodes())),
      stage_(field_.size()),
      rate_(area_.size()) {
  compute_faces();
  dt_ = stable_step();
}

void Solver::compute_faces() {
  std::map<std::array<int, 2>, std::size_t> edge_at;
  for (std::size_t e = 0; e < mesh_.edges.size(); ++e) edge_at[mesh_.edges[e]] = e;

  for (const auto& triangle : mesh_.triangles) {
    std::array<Point, 3> p;
    for (std::size_t k = 0; k < 3; ++k) p[k] = mesh_.position[triangle[k]];
    const Point centre{(p[0].x + p[1].x + p[2].x) / 3, (p[0].y + p[1].y + p[2].y) / 3};
    const double twice_area = (p[1].x - p[0].x) * (p[2].y - p[0].y) - (p[1].y - p[0].y) * (p[2].x - p[0].x);

    for (std::size_t k = 0; k < 3; ++k) {
      const std::size_t l = (k + 1) % 3, m = (k + 2) % 3;  // the side from corner k to l; m is the opposite
                                                           // corner
      const int a = triangle[k], b = triangle[l];
      if (a < mesh_.num_owned) area_[a] += twice_area / 6;
      const auto found = edge_at.find({std::min(a, b), std::max(a, b)});
      if (found == edge_at.end()) continue;  // between two ghosts

      // The face goes from the middle of the side to the center of the triangle. Its volume flux is the
      // difference of the streamfunction at its ends, so that the flow is discretely divergence-free.
      const double volume = stream(centre) - stream(between(p[k], p[l]));
      // Linear finite elements: half the cotangent of the angle opposite the side.
      const double dot = (p[k].x - p[m].x) * (p[l].x - p[m].x) + (p[k].y - p[m].y) * (p[l].y - p[m].y);
      Face& face = faces_[found->second];
      face.volume += a < b ? volume : -volume;
      face.diffusion += diffusivity * dot / (2 * twice_area);
    }
  }
}

double Solver::stable_step() const {
  std::vector<double> outflow(static_cast<std::size_t>(mesh_.num_nodes()));
  for (std::size_t e = 0; e < faces_.size(); ++e)
    for (const int node : mesh_.edges[e])
      outflow[node] += std::abs(faces_[e].volume) / 2 + std::abs(faces_[e].diffusion);
  double step = std::numeric_limits<double>::max();
  for (std::size_t i = 0; i < area_.size(); ++i) step = std::min(step, area_[i] / outflow[i]);
  MPI_Allreduce(MPI_IN_PLACE, &step, 1, MPI_DOUBLE, MPI_MIN, comm_);
  return safety * step;
}

void Solver::start(std::uint64_t seed) {
  struct Blob {
    Point centre;
    double radius, height;
  };
  std::mt19937_64 generator(seed);
  const auto draw = [&](double low,
                        double high) {  // the standard's distributions differ between implementations
    return low + (high - low) * static_cast<double>(generator() >> 11) * 0x1p-53;
  };
  std::vector<Blob> blobs(4);
  for (Blob& blob : blobs) {
    blob.centre = {draw(0.2, width - 0.2), draw(0.2, height - 0.2)};
    blob.radius = draw(0.08, 0.16);
    blob.height = draw(0.5, 1);
  }
  for (std::size_t i = 0; i < field_.size(); ++i) {
    const Point p = mesh_.position[i];
    field_[i] = 0;
    for (const Blob& blob : blobs) {
      const double x = (p.x - blob.centre.x) / blob.radius, y = (p.y - blob.centre.y) / blob.radius;
      field_[i] += blob.height * std::exp(-(x * x + y * y));
    }
  }
}

void Solver::compute_rates(std::span<const double> values) {
  std::ranges::fill(rate_, 0);
  const auto owned = static_cast<std::size_t>(mesh_.num_owned);
  for (std::size_t e = 0; e < faces_.size(); ++e) {
    const auto a = static_cast<std::size_t>(mesh_.edges[e][0]),
               b = static_cast<std::size_t>(mesh_.edges[e][1]);
    const auto& [volume, diffusion] = faces_[e];
    const double flux = volume * (values[a] + values[b]) / 2 -
                        (upwind_share * std::abs(volume) / 2 + diffusion) * (values[b] - values[a]);
    if (a < owned) rate_[a] -= flux;
    if (b < owned) rate_[b] += flux;
  }
  for (std::size_t i = 0; i < owned; ++i) rate_[i] /= area_[i];
}

void Solver::advance(int steps) {
  const auto owned = static_cast<std::size_t>(mesh_.num_owned);
  for (int step = 0; step < steps; ++step) {
    // Runge-Kutta method of Shu and Osher: stage <- keep field + (1 - keep) (stage + dt rate(stage))
    stage_ = field_;
    for (const double keep : {0., 3. / 4, 1. / 3}) {
      compute_rates(stage_);
      for (std::size_t i = 0; i < owned; ++i)
        stage_[i] = keep * field_[i] + (1 - keep) * (stage_[i] + dt_ * rate_[i]);
      update_ghosts(stage_);
    }
    std::ranges::copy(stage_, field_.begin());
  }
}

void Solver::update_ghosts(std::span<double> values) const {
  std::vector<std::vector<double>> out, in;
  std::vector<MPI_Request> requests;
  for (const Neighbor& neighbor : mesh_.neighbors) {
    std::vector<double>& buffer = out.emplace_back();
    for (const int node : neighbor.send) buffer.push_back(values[node]);
    in.emplace_back(neighbor.receive.size());
    MPI_Isend(buffer.data(), static_cast<int>(buffer.size()), MPI_DOUBLE, neighbor.rank, 0, comm_,
              &requests.emplace_back());
    MPI_Irecv(in.back().data(), static_cast<int>(in.back().size()), MPI_DOUBLE, neighbor.rank, 0, comm_,
              &requests.emplace_back());
  }
  MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  for (std::size_t n = 0; n < in.size(); ++n)
    for (std::size_t k = 0; k < in[n].size(); ++k) values[mesh_.neighbors[n].receive[k]] = in[n][k];
}
