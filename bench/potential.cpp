// SPDX-License-Identifier: MIT

/// PaiNN on atoms at random in a periodic box with about 29 neighbors each: microseconds per atom of
/// energies, of energies and forces with constant parameters, and of the gradients of a training step on
/// energies, and on energies and forces. The reference of both training steps is the one on energies.
/// NAME_peak: megabytes of tensors beyond those before it.
///     bench_potential [atoms] [threads] [feats] [convs]          default 500 1 64 3
#include "bench.hpp"

#include <sar/comm/environment.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/models.hpp>

#include <cmath>
#include <numbers>
#include <vector>

using namespace sar;

namespace {

constexpr double cutoff = 5, neighbors = 29;

/// All pairs within the cutoff, of nearest images, in both directions.
struct Box {
  EdgeList edges;
  Tensor positions, shifts;

  explicit Box(Index atoms) : positions({atoms, 3}) {
    const double volume =
        4 * std::numbers::pi / 3 * std::pow(cutoff, 3) * static_cast<double>(atoms) / neighbors;
    const double side = std::cbrt(volume);
    const Random random({.seed = 7});
    for (Index i = 0; i < positions.size(); ++i)
      positions.data()[i] = static_cast<real>(side * random.uniform(static_cast<std::uint64_t>(i)));
    std::vector<real> all;
    for (Index v = 0; v < atoms; ++v)
      for (Index u = 0; u < atoms; ++u) {
        double squares = 0, shift[3];
        for (Index k = 0; k < 3; ++k) {
          const double d =
              static_cast<double>(positions.row(u)[k]) - static_cast<double>(positions.row(v)[k]);
          shift[k] = -side * std::round(d / side);
          squares += (d + shift[k]) * (d + shift[k]);
        }
        if (u == v || squares >= cutoff * cutoff) continue;
        edges.src.push_back(u);
        edges.dst.push_back(v);
        edges.id.push_back(std::ssize(edges.id));
        for (const double s : shift) all.push_back(static_cast<real>(s));
      }
    shifts = Tensor::from({std::ssize(edges.src), 3}, all);
  }
};

}  // namespace

int main(int argc, char** argv) {
  const Environment environment(argc, argv);
  const auto argument = [&](int k, Index otherwise) { return argc > k ? std::atoll(argv[k]) : otherwise; };
  const Index atoms = argument(1, 500);
  const ThreadLimit threads(static_cast<int>(argument(2, 1)));
  const Communicator comm = Communicator::self();
  const Box box(atoms);
  const PartitionBook book = PartitionBook::even(atoms, 1);
  const Graph graph(comm, book, book, box.edges, true);
  Generator gen(0);
  const PaiNNOptions options{.num_species = 2,
                             .feats = argument(3, 64),
                             .convs = static_cast<int>(argument(4, 3)),
                             .cutoff = cutoff};
  const PaiNN model(options, gen);
  PaiNN constant(options, gen);
  for (const NamedParameter& each : constant.named_parameters()) constant.freeze(each.name);
  std::vector<Index> species(static_cast<std::size_t>(atoms));
  for (std::size_t i = 0; i < species.size(); ++i) species[i] = static_cast<Index>(i % 2);
  LabelledAtoms on_energies{
      .species = species, .positions = box.positions, .shifts = box.shifts, .energies = Tensor::full({1}, 1)};
  LabelledAtoms on_forces = on_energies;
  on_forces.forces = Tensor::full({atoms, 3}, 1);

  const auto energies = [&] { (void)model.atomic_energies(graph, species, box.positions, box.shifts); };
  const auto forces = [&] { (void)constant.energy_and_forces(graph, species, box.positions, box.shifts); };
  const auto train_energies = [&] { (void)backward_potential_loss(model, graph, on_energies); };
  const auto train_forces = [&] { (void)backward_potential_loss(model, graph, on_forces); };
  const auto seconds = bench::best_seconds(9, energies, forces, train_energies, train_forces);
  const auto peak = [](const auto& run) {
    reset_peak_bytes();
    const std::size_t before = peak_bytes();
    run();
    return static_cast<double>(peak_bytes() - before) / 1e6;
  };
  const double peaks[] = {peak(energies), peak(forces), peak(train_energies), peak(train_forces)};
  const char* const names[] = {"energies", "energies_and_forces", "train_energies", "train_forces"};
  for (std::size_t i = 0; i < 4; ++i) {
    const auto per_atom = [&](std::size_t k) { return seconds[k] / static_cast<double>(atoms) * 1e6; };
    bench::print({.name = names[i],
                  .seconds = seconds[i],
                  .rate = per_atom(i),
                  .unit = "us per atom",
                  .reference = i < 2 ? 0 : per_atom(2)});
    bench::print({.name = std::string(names[i]) + "_peak",
                  .seconds = seconds[i],
                  .rate = peaks[i],
                  .unit = "MB",
                  .reference = i < 2 ? 0 : peaks[2]});
  }
  return 0;
}
