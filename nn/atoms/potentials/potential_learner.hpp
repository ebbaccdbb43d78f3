// SPDX-License-Identifier: MIT

/// PotentialLearner: a potential that is trained on, while a program for molecular dynamics uses it.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/graph/message/graph.hpp>
#include <sar/nn/atoms/cell.hpp>
#include <sar/nn/atoms/potential_loss.hpp>
#include <sar/nn/atoms/potentials/potential.hpp>

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sar {
inline namespace SAR_PRECISION {

/// A whole structure with its labels, in the units of the potential.
struct LabelledStructure {
  std::vector<double> positions{};  ///< 3 for each atom
  std::vector<Index> species{};     ///< of each atom, numbers of ModelDescription::species
  Cell cell{};
  double energy = std::numeric_limits<double>::quiet_NaN();  ///< NaN: there is none
  std::vector<double> forces{};                              ///< 3 for each atom; empty: there are none
  std::optional<Matrix3> stress{};                           ///< dE/d strain / volume

  [[nodiscard]] Index num_atoms() const noexcept { return std::ssize(species); }
};

struct LearnerOptions {
  Index batch_size = 4;  ///< structures of a step
  double lr = 1e-3;      ///< of Adam
  PotentialWeights weights{.energy = 10, .forces = 10, .stress = 10};
  double clip_norm = 10;    ///< of the gradients of a step; 0: no limit
  double average = 0.99;    ///< decay of the averages of the weights, which are what the potential gets
  std::uint64_t seed = 0;   ///< of the order of structures, and of the heads that they train
  std::string directory{};  ///< of checkpoints; empty: there are none
  GraphOptions graph{};     ///< of the graphs of the batches
};

/// Structures with labels, and a copy of a potential that is trained on them. A program evaluates the
/// potential, finds out where it is unsure (Potential: force deviations of a committee), computes labels
/// there by other means, and goes on with a potential that has learned them:
///
///     while (runs) {
///       const PotentialValues now = potential(graph, atoms, false, /*force_deviations=*/true);
///       if (largest(now.force_deviations) > 0.3) {
///         learner.add(labels_of(x));
///         learner.train(200);  // the potential has new weights
///       }
///       x = move(x, now.forces);
///     }
///
/// The potential keeps its species, energy shifts and scales, and gets the averages of the trained weights at
/// the end of train(). A step trains the heads of a committee as `train --committee` does: each structure is
/// left out by one head. The structures are held by all ranks; a batch is spread over them. Results are the
/// same for any number of ranks to rounding, and in the bits with GraphOptions::reproducible in a
/// ReproducibleScope.
///
/// With a directory, the constructor goes on from its latest checkpoint, with all structures of it, and
/// train() writes one: a program that was killed goes on as if it had stopped after the last train().
///
/// @code
/// Generator gen(1);
/// Potential potential({.type = "painn", .hidden = 8, .layers = 1, .species = {"H"}, .cutoff = 3}, gen);
/// PotentialLearner learner(comm, potential);
/// learner.add({.positions = {0, 0, 0, 0.8, 0, 0}, .species = {0, 0}, .energy = -4.5});
/// const double error = learner.train(/*steps=*/5).energy_per_atom;
/// @endcode
class PotentialLearner : NonCopyable {
 public:
  /// Collective. `potential`, which must outlive this, may have constant parameters. Throws the same
  /// exception on every rank: InputError for options out of range, and for a checkpoint of another potential
  /// or seed, or that is damaged.
  PotentialLearner(const Communicator& comm, Potential& potential, LearnerOptions options = {});
  ~PotentialLearner();

  /// Collective. Adds the structure that rank `root` gives. Throws the same exception on every rank:
  /// ShapeError for other numbers of positions or forces than three for each atom, InputError for a structure
  /// without atoms or labels, for numbers that are not finite, a stress without a volume, a species that the
  /// potential does not know, more than 90 MB of structures as text with a directory, and as
  /// neighbor_samples().
  void add(const LabelledStructure& structure, int root = 0);

  /// Collective. Makes so many steps of Adam, gives the potential the averages of the weights and writes a
  /// checkpoint, if there is a directory. Returns the loss and the errors before each step, as means over the
  /// steps. Throws the same exception on every rank, and changes nothing: InputError if there are no
  /// structures, if `steps` is negative, and if the loss becomes infinite or NaN, and as Checkpointer.
  PotentialErrors train(Index steps);

  /// Collective. Returns the mean absolute errors of the potential for the structures from number `first` on;
  /// their loss is 0. Throws InputError unless `first` is a number from 0 to num_structures().
  [[nodiscard]] PotentialErrors errors(Index first = 0);

  /// Local. Structures are numbered from 0 in the order of add().
  [[nodiscard]] Index num_structures() const noexcept;
  [[nodiscard]] const LabelledStructure& structure(Index i) const;
  [[nodiscard]] Index num_steps() const noexcept;  ///< of all calls of train(), with those before a restart

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Local. Returns the head of a committee of two or more that a structure trains in an epoch. Each structure
/// is left out by one head, which the seed draws, and trains each of the others in turn, as drawn.
[[nodiscard]] Index head_to_train(std::uint64_t seed, Index structure, Index epoch, Index heads);

}  // namespace SAR_PRECISION
}  // namespace sar
