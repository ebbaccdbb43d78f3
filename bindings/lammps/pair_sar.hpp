// SPDX-License-Identifier: MIT

/// pair_style sar: a Potential in LAMMPS.
///
/// Room bindings/lammps: The pair style for LAMMPS, a program that has it, and the plugin.
#pragma once

#include <lammps/pair.h>

#include <sar/models.hpp>

#include <array>
#include <memory>
#include <optional>
#include <vector>

/// Evaluates one potential over all ranks of LAMMPS:
///
///     pair_style sar [cutoff] [deviation N]
///     pair_coeff * * FILE NAME ...        a species of the potential for each atom type, or NULL
///
/// Each rank gives its own atoms, with their tags as ids, and the edges that end at them. An edge from a
/// ghost comes from the atom with the ghost's tag, in the image where the ghost is. The graph has a margin of
/// its own, much below LAMMPS's usual skin, because each edge in it costs as much as one within the cutoff.
/// It is made when LAMMPS makes its neighbor lists, and when an atom has moved by half of the margin;
/// otherwise edges get new vectors. A graph that is made between two lists has a smaller margin: LAMMPS's
/// ghosts are complete within cutoff and skin of where atoms were when it found them. Rows of atoms of other
/// ranks, and their gradients, travel by the graph's halo plan, once for each atom and rank: LAMMPS's own
/// communication would send each image of each ghost, in six steps one after another. Ghosts get no forces,
/// so that the newton setting does not matter.
///
/// Deviations of a committee's forces are computed in steps that are multiples of N and in those of fix pair.
/// They are in extract_peratom(), and in the property d_sar_deviation of fix property/atom, if there is one.
/// compute pair has the deviation of the energy, and the largest and the mean deviation of forces.
class PairSar : public LAMMPS_NS::Pair {
 public:
  explicit PairSar(LAMMPS_NS::LAMMPS* lammps);
  ~PairSar() override;
  PairSar(const PairSar&) = delete;
  PairSar& operator=(const PairSar&) = delete;

  void settings(int narg, char** arg) override;
  void coeff(int narg, char** arg) override;
  void init_style() override;
  double init_one(int i, int j) override;
  void compute(int eflag, int vflag) override;
  double memory_usage() override;
  /// Returns the flag "deviation_flag", by which fix pair asks for deviations.
  void* extract(const char* name, int& dim) override;
  /// Returns "deviation", one number for each local atom. Virtual in LAMMPS since 2022.
  void* extract_peratom(const char* name, int& columns);

  // for fix sar/learn:
  [[nodiscard]] sar::Potential* potential() noexcept { return potential_.get(); }  ///< null before pair_coeff
  /// Returns the potential's number of the species of a type; -1: NULL.
  [[nodiscard]] sar::Index species_of_type(int type) const {
    return species_of_type_[static_cast<std::size_t>(type)];
  }
  /// Collective. Returns that of the last step with deviations.
  [[nodiscard]] double largest_deviation() const;
  void compute_deviations(bool now) noexcept { deviation_flag_ = now ? 1 : 0; }  ///< in any step

 private:
  /// Collective. Returns how far an atom or ghost of any rank is from its position.
  [[nodiscard]] double moved_since(const std::vector<double>& positions) const;
  /// Collective.
  [[nodiscard]] bool graph_is_valid() const;
  void build_graph();
  void evaluate();
  /// Throws if LAMMPS's input leaves out pairs, which the graph has all the same.
  void require_all_pairs() const;
  /// Collective. Stores deviations where LAMMPS looks for them. `of_forces`: of each node.
  void store_deviations(double of_energy, const std::vector<double>& of_forces);

  sar::Communicator comm_;
  sar::ThreadLimit threads_;
  double expected_cutoff_ = 0;  // 0: any
  std::unique_ptr<sar::Potential> potential_;
  std::vector<sar::Index> species_of_type_;  // -1: NULL

  int deviation_every_ = 0;          // 0: only in steps of fix pair
  int deviation_flag_ = 0;           // of fix pair
  std::vector<double> deviations_;   // of LAMMPS's atoms
  std::array<double, 3> summary_{};  // LAMMPS's pvector, which it adds over the ranks

  bool has_ghosts_ = false;
  std::vector<double> ghost_positions_;  // of LAMMPS's atoms and ghosts, when it found the ghosts
  double moved_ = 0;                     // how far one of them then was when the graph was made

  // since the graph was made
  bool has_graph_ = false;
  double margin_ = 0;
  std::vector<double> positions_;                // of LAMMPS's atoms and ghosts
  std::optional<sar::Graph> graph_;              // none: there are no atoms
  std::vector<int> atoms_;                       // LAMMPS's number of each node
  std::vector<sar::Index> species_;              // of each node
  std::vector<int> edge_src_, edge_dst_;         // LAMMPS's numbers of the ends of each edge
  std::vector<double> edge_vectors_;             // 3 numbers for each edge
};
