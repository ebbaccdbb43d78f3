// SPDX-License-Identifier: MIT

/// Potential: a trained PaiNN or MACE with its species, as a program for molecular dynamics calls it in each
/// step.
///
/// Room nn/atoms/potentials: Trained potentials of atoms: their use, their labels, learning while in use.
#pragma once

#include <sar/autograd/gathered_rows.hpp>
#include <sar/comm/communicator.hpp>
#include <sar/graph/message/graph.hpp>
#include <sar/nn/atoms/potential_network.hpp>
#include <sar/nn/atoms/zbl.hpp>
#include <sar/nn/models/model_description.hpp>
#include <sar/nn/modules/module.hpp>

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// The atoms of a rank: nodes of a graph with an edge u -> v for each pair within the cutoff, in both
/// directions, and one for each periodic image of u that is near v. Edges farther apart may be among them.
struct PotentialAtoms {
  RowIds species;      ///< [local nodes], numbers of ModelDescription::species
  Tensor positions{};  ///< [local nodes, 3]
  Tensor shifts{};     ///< [local edges, 3], as of PotentialNetwork; undefined: 0
  /// In place of positions and shifts: x_u + t_uv - x_v of each local edge, 3 numbers each, in the graph's
  /// edge order. On all ranks or on none.
  std::span<const double> edge_vectors{};
  /// Distance within which all pairs are edges, if it is known: it is compared with the potential's cutoff.
  double list_cutoff = 0;
};

/// Virials are those of forces: minus the derivative of the energy in a strain of positions and cell. Their
/// sum over the volume, with the opposite sign, is the stress.
struct PotentialValues {
  double energy = 0;               ///< sum over the atoms of all ranks; the same on every rank
  Tensor forces{};                 ///< [local nodes, 3]
  std::array<double, 9> virial{};  ///< W [3, 3] by rows, of all ranks; the same on every rank
  std::vector<double> energies{};  ///< of each local node
  Tensor virials{};                ///< W_i with per-atom virials: [local nodes, 9]
  Tensor centroid_virials{};       ///< C_i with per-atom virials: [local nodes, 9]
  // Of a committee of H heads; 0, undefined and empty otherwise:
  double energy_deviation = 0;  ///< standard deviation of the heads' energies; the same on every rank
  Tensor head_energies{};       ///< E_ik without the description's shifts, [local nodes, H]
  /// With force deviations: sqrt(mean_k |F_ik - F_i|^2) of each local node.
  std::vector<double> force_deviations{};
};

/// The energy of a PaiNN or a MACE with outputs epsilon_i and shifts b and scales a of the description, and
/// its derivatives, with d_uv = x_u + t_uv - x_v:
///
///     E_i = b[species_i] + a[species_i] epsilon_i + sum_{u -> i} V(|d_ui|) / 2        E = sum_i E_i
///
///     F_i = -dE/dx_i        V: Zbl, if the description has its distances, otherwise 0
///
///     W = -sum over edges of d_uv (dE/dd_uv)^T
///
///     W_i: half of the terms of the edges that end or begin at atom i;  sum_i W_i = W
///
///     C_i: the terms of the edges that begin at atom i;  sum_i C_i = W
///
/// C_i times the velocity of atom i is its part of the heat flux (Fan et al., Phys. Rev. B 92, 094301
/// (2015)): exactly for a network with one layer, in which an edge changes the energy of its destination
/// only. With more layers, an edge changes energies of atoms farther away, too, whose distances the flux
/// leaves out.
///
/// With a committee of H heads, E_i is the mean of the members' E_ik. The deviations of energies cost
/// nothing; those of forces cost H further passes. A committee of H potentials has the means of their
/// energies and forces; it costs H times as much as one of them, deviations included. Deviations are
/// multiplied by the description's deviation_scales.
///
/// Units are those of the data that it was trained on; by convention eV and Angstrom: energies and virials in
/// eV, forces in eV/Angstrom. Energies and virials are added in double precision.
///
/// Memory of a call is kept for the next one on the same graph, as that of a Predictor, and synchronized as
/// there. A Potential is used by one thread at a time.
///
/// @code
/// Generator gen(1);
/// Potential silicon({.type = "painn", .hidden = 16, .layers = 2, .species = {"Si"}, .cutoff = 4}, gen);
/// save_potential(comm, "si.safetensors", silicon);
/// const std::unique_ptr<Potential> potential = load_potential(comm, "si.safetensors");
/// const std::vector<Index> species(static_cast<std::size_t>(graph.num_nodes()), potential->species("Si"));
/// const std::vector<double> vectors(static_cast<std::size_t>(3 * graph.num_edges()), 1);  // of each edge
/// const PotentialValues at = (*potential)(graph, {.species = species, .edge_vectors = vectors});
/// @endcode
class Potential {
 public:
  /// Local. Throws InputError as ModelDescription::checked(), and for a type that is no potential.
  Potential(const ModelDescription& description, Generator& gen);
  /// Local. A committee of potentials, whose `deviation_scales` are those of energies and forces. Its cutoff
  /// is the largest, and species have the numbers of the first member. Throws InputError for fewer than two
  /// members or more than 64, and unless all of them know the same species.
  explicit Potential(std::vector<Potential> members, const std::vector<double>& deviation_scales = {1, 1});
  ~Potential();
  Potential(Potential&&) noexcept;
  Potential& operator=(Potential&&) noexcept;

  /// Collective. Returns energy, forces and virial; with `per_atom_virials`, at the cost of one more
  /// update_all with rows of 9 values, also those, and with `force_deviations` those of a committee.
  /// Gradients of parameters stay unchanged. Throws the same exception on every rank: ShapeError if shapes do
  /// not match, InputError for an edge vector that is not finite, for two atoms at the same place (to a
  /// millionth of the cutoff), for a list_cutoff below the cutoff, and as
  /// PotentialNetwork::atomic_energies().
  [[nodiscard]] PotentialValues operator()(const Graph& graph, const PotentialAtoms& atoms,
                                           bool per_atom_virials = false, bool force_deviations = false);

  /// Local. Returns the number of a species. Throws InputError for a name that the potential does not know.
  [[nodiscard]] Index species(const std::string& name) const;
  [[nodiscard]] double cutoff() const noexcept { return description_.cutoff; }
  /// Returns the description with defaults in place of empty lists; of a committee of potentials that of the
  /// first one, with the cutoff, the number of members and the deviation_scales of the committee.
  [[nodiscard]] const ModelDescription& description() const noexcept { return description_; }
  /// Returns whether this is a committee of potentials, each with a network of its own. It cannot be trained
  /// or saved: its members can.
  [[nodiscard]] bool has_members() const noexcept { return !members_.empty(); }
  /// Local. Returns the repulsion at short distances, if there is one.
  [[nodiscard]] const std::optional<Zbl>& zbl() const noexcept { return zbl_; }
  /// Returns the network, to be trained on energies without the shifts and without zbl(). With frozen
  /// parameters, as load_potential() makes them, calls compute no gradients of parameters. Of a committee of
  /// potentials, the network of the first one.
  [[nodiscard]] PotentialNetwork& network() noexcept {
    return has_members() ? members_[0].network() : *network_;
  }
  [[nodiscard]] const PotentialNetwork& network() const noexcept {
    return has_members() ? members_[0].network() : *network_;
  }
  /// Local. Returns the number of members of the committee; 1: there is none.
  [[nodiscard]] Index committee() const noexcept { return description_.committee; }
  /// Local. Sets the factors of the deviations of energies and forces, by which they are of the size of
  /// errors. Throws InputError unless they are positive and finite.
  void set_deviation_scales(double energy, double forces);
  /// Local. Returns the standard deviation of energies of the heads, times its scale.
  [[nodiscard]] double energy_deviation(std::span<const double> of_heads) const;

 private:
  struct Pass;
  [[nodiscard]] PotentialValues evaluate(const Graph& graph, const PotentialAtoms& atoms,
                                         bool per_atom_virials, bool force_deviations) const;
  /// The same of a committee of potentials.
  [[nodiscard]] PotentialValues evaluate_members(const Graph& graph, const PotentialAtoms& atoms,
                                                 bool per_atom_virials, bool force_deviations) const;
  /// Collective. `mean`: the forces of all heads.
  [[nodiscard]] std::vector<double> deviations_of_forces(const Graph& graph, const PotentialAtoms& atoms,
                                                         const Tensor& vectors, const Tensor& mean) const;

  ModelDescription description_;
  std::unique_ptr<PotentialNetwork> network_;
  std::optional<Zbl> zbl_;
  std::vector<Potential> members_;                // of a committee of potentials, in place of a network
  std::vector<std::vector<Index>> member_kinds_;  // the number that each member has for each species
  std::unique_ptr<Pass> pass_;
};

/// Local. Returns the repulsion at short distances of a description, if it has one. Errors as of Zbl.
[[nodiscard]] std::optional<Zbl> make_zbl(const ModelDescription& description);

/// A species that a potential is to learn.
struct NewSpecies {
  std::string name;
  std::string like = {};  ///< the species whose rows of the network it begins with; empty: drawn ones
};

/// Local. Returns a potential that knows more species: those of `potential` with their numbers, and then the
/// new ones, whose energy shifts are 0 and whose energy scale is the mean of the others. What it computes for
/// the old species has not changed. All parameters can be trained. Throws InputError for a species that the
/// potential knows, one that it does not know as `like`, with covalent radii an element that has none
/// (covalent_radius()), a committee of potentials, and as Potential does.
[[nodiscard]] std::unique_ptr<Potential> with_species(const Potential& potential,
                                                      std::span<const NewSpecies> added, Generator& gen);

/// Collective. Loads a potential: a .safetensors file with a description in its metadata, or a .json
/// description whose key "weights" names the weight file. Its parameters are constants unless `trainable`.
/// A .json file may also name the files of a committee, relative to its own folder:
///
///     {"sar_model": 1, "type": "committee", "members": ["a.safetensors", "b.safetensors"]}
///
/// with "deviation_scales" or without. Rank 0 reads the files. Throws InputError on every rank for an
/// unreadable or damaged file, for a file without a description or with one that is no potential, for a
/// committee if `trainable`, and as Potential, ModelDescription::from_json() and load_weights() do.
[[nodiscard]] std::unique_ptr<Potential> load_potential(const Communicator& comm, const std::string& path,
                                                        bool trainable = false);
/// Collective. Loads the potentials of several files as a committee; of one file, that potential.
[[nodiscard]] std::unique_ptr<Potential> load_potential(const Communicator& comm,
                                                        const std::vector<std::string>& paths);

/// Collective. Writes the weights and the description of a potential to a .safetensors file. Throws
/// InputError for a committee of potentials, and as save_weights().
void save_potential(const Communicator& comm, const std::string& path, const Potential& potential);
}}  // namespace sar
