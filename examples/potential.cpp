// SPDX-License-Identifier: MIT

/// Trains PaiNN as a potential of atoms, on as many ranks as mpirun starts:
///
///     mpirun -n 2 potential                    on energies alone
///     mpirun -n 2 potential --train-forces     on energies and forces
///
/// An energy is one number per structure, the forces are three per atom: with few structures, only the forces
/// tell the network where each atom wants to go. Reference energies and forces are those of a Morse pair
/// potential; with your own, fill `LabelledAtoms` from your files. The program prints the errors of
/// structures that were not trained on.
#include "run.hpp"

#include <cmath>
#include <cstring>
#include <iostream>
#include <utility>
#include <vector>

using namespace sar;

constexpr double cutoff = 2.2;

/// Structures of which each is whole on one rank, with their labels.
struct Data {
  SampleBatch batch;
  LabelledAtoms atoms;
};

/// Displaces 3 x 3 x 3 atoms of a lattice at random: structure `s`.
std::vector<double> positions_of(Index s) {
  const Random random({.seed = 11});
  std::vector<double> x;
  for (int i = 0; i < 27; ++i)
    for (const int cell : {i % 3, i / 3 % 3, i / 9})
      x.push_back(1.1 * cell + 0.1 * random.normal(static_cast<std::uint64_t>(s), x.size()));
  return x;
}

/// Collective. Returns the structures first, ..., first + count - 1.
Data make_data(const Communicator& comm, Index first, Index count) {
  GraphSamples samples;
  std::vector<double> energies(static_cast<std::size_t>(count)), x, forces;
  std::vector<Index> structures;
  for (Index s = 0; s < count; ++s) {
    if (s % comm.size() != comm.rank()) continue;
    const std::vector<double> at = positions_of(first + s);
    std::vector<double> pull(at.size(), 0.0);
    std::vector<Index> src, dst;
    for (std::size_t v = 0; v < at.size() / 3; ++v)
      for (std::size_t u = 0; u < at.size() / 3; ++u) {
        const double d[] = {at[3 * u] - at[3 * v], at[3 * u + 1] - at[3 * v + 1],
                            at[3 * u + 2] - at[3 * v + 2]};
        const double r = std::hypot(d[0], d[1], d[2]);
        if (u == v || r >= cutoff) continue;
        src.push_back(static_cast<Index>(u));
        dst.push_back(static_cast<Index>(v));
        // (1 - exp(2 (1 - r)))^2 - 1 times (1 - r / c)^2, half for each direction of the pair
        const double e = std::exp(2 * (1 - r)), share = (1 - r / cutoff) * (1 - r / cutoff);
        const double morse = (1 - e) * (1 - e) - 1;
        const double slope = 4 * e * (1 - e) * share - 2 * morse * (1 - r / cutoff) / cutoff;
        energies[static_cast<std::size_t>(s)] += 0.5 * morse * share;
        for (std::size_t k = 0; k < 3; ++k) pull[3 * v + k] += slope * d[k] / r;
      }
    samples.add(first + s, static_cast<Index>(at.size() / 3), src, dst);
    structures.insert(structures.end(), at.size() / 3, s);
    x.insert(x.end(), at.begin(), at.end());
    forces.insert(forces.end(), pull.begin(), pull.end());
  }
  sort_edges(samples);
  comm.all_reduce(std::span<double>(energies));
  const auto num_atoms = static_cast<Index>(structures.size());
  const auto tensor = [](const Shape& shape, const std::vector<double>& values) {
    Tensor result(shape);
    for (Index i = 0; i < result.size(); ++i)
      result.data()[i] = static_cast<real>(values[static_cast<std::size_t>(i)]);
    return result;
  };
  return {.batch = SampleBatch(comm, std::move(samples)),
          .atoms = {.species = std::vector<Index>(structures.size(), 0),
                    .positions = tensor({num_atoms, 3}, x),
                    .structures = std::move(structures),
                    .energies = tensor({count}, energies),
                    .forces = tensor({num_atoms, 3}, forces)}};
}

int train(const Communicator& comm, bool train_forces) {
  const ThreadLimit threads(default_num_threads(comm));
  constexpr Index batches = 8, batch_size = 4;
  std::vector<Data> data;
  for (Index b = 0; b < batches; ++b) data.push_back(make_data(comm, b * batch_size, batch_size));
  const Data test = make_data(comm, 1000, 8);

  Generator gen(/*seed=*/0);
  PaiNN model({.num_species = 1, .feats = 32, .convs = 2, .cutoff = cutoff, .num_basis = 12}, gen);
  Adam optimizer(model.named_parameters(), {.lr = 0.003});
  for (int epoch = 1; epoch <= 20; ++epoch) {
    double loss = 0;
    for (const Data& each : data) {
      LabelledAtoms atoms = each.atoms;
      if (!train_forces) atoms.forces = {};
      loss += backward_potential_loss(model, each.batch.graph(), atoms, {.energy = 1, .forces = 1}).loss;
      gather_grads(comm, model);
      optimizer.step();
      optimizer.zero_grad();
    }
    const PotentialErrors errors = backward_potential_loss(model, test.batch.graph(), test.atoms);
    optimizer.zero_grad();  // the test structures train nothing
    if (comm.rank() == 0)
      std::cout << "epoch " << epoch << "  loss " << loss / batches << "  test: energy per atom "
                << errors.energy_per_atom << ", force " << errors.force << std::endl;
  }
  return 0;
}

int main(int argc, char** argv) {
  const Environment environment(argc, argv);
  const bool train_forces = argc > 1 && std::strcmp(argv[1], "--train-forces") == 0;
  return examples::run("potential", [&](const Communicator& comm) { return train(comm, train_forces); });
}
