// SPDX-License-Identifier: MIT

/// fix sar/learn: the potential of pair_style sar learns structures where it is unsure.
#pragma once

#include "pair_sar.hpp"

#include <lammps/fix.h>

#include <sar/models.hpp>

#include <array>
#include <memory>
#include <optional>
#include <string>

/// Looks at the deviation of a committee's forces every N steps. Where that of an atom is above the
/// threshold, the whole structure gets labels, the potential is trained on it and on all before, on the ranks
/// of LAMMPS, and the run goes on with the new weights:
///
///     fix ID all sar/learn N THRESHOLD DIRECTORY lammps FILE        labels of LAMMPS's styles in FILE
///     fix ID all sar/learn N THRESHOLD DIRECTORY command "COMMAND"  of COMMAND IN.xyz OUT.txt
///         [steps S] [batch B] [lr R] [most M]
///
/// DIRECTORY has the checkpoints of the learner, from which another run goes on, potential.safetensors and
/// learned.xyz with all structures. f_ID[1] is the number of structures that this fix has had labelled,
/// f_ID[2] the largest deviation when it looked last, f_ID[3] and f_ID[4] the mean absolute errors of the
/// energy of an atom and of forces of the last structure before it was learned.
class FixSarLearn : public LAMMPS_NS::Fix {
 public:
  FixSarLearn(LAMMPS_NS::LAMMPS* lammps, int narg, char** arg);
  FixSarLearn(const FixSarLearn&) = delete;
  FixSarLearn& operator=(const FixSarLearn&) = delete;

  int setmask() override;
  void init() override;
  void pre_force(int) override;
  void end_of_step() override;
  double compute_vector(int i) override;

 private:
  /// An atom as it is sent.
  struct Place {
    LAMMPS_NS::tagint tag;
    std::int64_t type;
    std::array<double, 3> x;
  };

  /// Collective. All atoms in the order of their tags, on every rank.
  [[nodiscard]] std::vector<Place> all_atoms() const;
  [[nodiscard]] sar::LabelledStructure structure_of(const std::vector<Place>& atoms) const;
  /// Collective. Sets the labels of a structure, on rank 0 at least.
  void label(sar::LabelledStructure& structure, const std::vector<Place>& atoms);
  void label_by_lammps(sar::LabelledStructure& structure, const std::vector<Place>& atoms);
  void label_by_command(sar::LabelledStructure& structure);
  /// Collective. Writes the potential and the structures to the directory.
  void write_results();
  void say(const std::string& line);

  sar::Communicator comm_;
  sar::ThreadLimit threads_;
  double threshold_ = 0;
  std::string directory_, file_, command_;  // one of file_ and command_ is empty
  sar::Index steps_ = 200, most_ = 1000000;
  sar::LearnerOptions options_;

  PairSar* pair_ = nullptr;
  const sar::Potential* potential_ = nullptr;  // of the learner
  std::unique_ptr<sar::PotentialLearner> learner_;
  bool said_enough_ = false;
  std::array<double, 4> results_{};
};
