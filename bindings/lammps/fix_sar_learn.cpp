// SPDX-License-Identifier: MIT
#include "fix_sar_learn.hpp"

#include "agreed.hpp"

#include <sar/core/files/file.hpp>

#include <lammps/atom.h>
#include <lammps/domain.h>
#include <lammps/force.h>
#include <lammps/input.h>
#include <lammps/lammps.h>
#include <lammps/library.h>
#include <lammps/update.h>
#include <lammps/utils.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <limits>
#include <span>
#include <sstream>
#include <utility>
#include <vector>

using namespace LAMMPS_NS;

namespace {

constexpr double bar = 6.241509074e-7;  // in eV / A^3
constexpr const char* who = "fix sar/learn";

/// Writes a structure in extended XYZ, with its labels if it has any.
void write_xyz(std::ostream& out, const sar::LabelledStructure& s, const std::vector<std::string>& names) {
  out << std::setprecision(17) << s.num_atoms() << "\nLattice=\"";
  for (std::size_t k = 0; k < 9; ++k) out << (k == 0 ? "" : " ") << s.cell.vectors[k / 3][k % 3];
  out << "\" Properties=species:S:1:pos:R:3" << (s.forces.empty() ? "" : ":forces:R:3");
  if (!std::isnan(s.energy)) out << " energy=" << s.energy;
  if (s.stress) {
    out << " stress=\"";
    for (std::size_t k = 0; k < 9; ++k) out << (k == 0 ? "" : " ") << (*s.stress)[k / 3][k % 3];
    out << '"';
  }
  out << " pbc=\"";
  for (std::size_t k = 0; k < 3; ++k) out << (k == 0 ? "" : " ") << (s.cell.periodic[k] ? 'T' : 'F');
  out << "\"\n";
  for (std::size_t i = 0; i < s.species.size(); ++i) {
    out << names[static_cast<std::size_t>(s.species[i])];
    for (std::size_t c = 0; c < 3; ++c) out << ' ' << s.positions[3 * i + c];
    for (std::size_t c = 0; !s.forces.empty() && c < 3; ++c) out << ' ' << s.forces[3 * i + c];
    out << '\n';
  }
}

}  // namespace

FixSarLearn::FixSarLearn(LAMMPS* lammps, int narg, char** arg)
    : Fix(lammps, narg, arg),
      comm_(agreed(error, who, [&] { return sar::Communicator(world); })),
      threads_(agreed(error, who, [&] { return sar::default_num_threads(comm_); })) {
  const auto usage = [&](const std::string& what) {
    error->all(FLERR, std::string(who) + ": " + what +
                          ", expected fix ID all sar/learn N THRESHOLD DIRECTORY lammps FILE or command "
                          "COMMAND, and then steps, batch, lr or most with a number");
  };
  if (narg < 8) usage("got " + std::to_string(narg - 3) + " arguments");
  if (std::strcmp(arg[1], "all") != 0) usage(std::string("got the group ") + arg[1]);
  nevery = utils::inumeric(FLERR, arg[3], false, lmp);
  threshold_ = utils::numeric(FLERR, arg[4], false, lmp);
  if (nevery < 1 || !(threshold_ > 0)) usage("got every " + std::string(arg[3]) + " and threshold " + arg[4]);
  directory_ = arg[5];
  const std::string kind = arg[6];
  if (kind != "lammps" && kind != "command") usage("got " + kind);
  (kind == "lammps" ? file_ : command_) = arg[7];
  for (int i = 8; i < narg; i += 2) {
    const std::string key = arg[i];
    if (i + 1 == narg) usage("got " + key + " without a number");
    const double number = utils::numeric(FLERR, arg[i + 1], false, lmp);
    const bool is_count = number >= 0 && number == std::floor(number) && number < 1e9;
    if (key != "lr" && !is_count) usage("got " + key + " " + arg[i + 1]);
    if (key == "steps")
      steps_ = static_cast<sar::Index>(number);
    else if (key == "batch")
      options_.batch_size = static_cast<sar::Index>(number);
    else if (key == "lr")
      options_.lr = number;
    else if (key == "most")
      most_ = static_cast<sar::Index>(number);
    else
      usage("got " + key);
  }
  options_.directory = directory_;
  vector_flag = 1;
  size_vector = static_cast<int>(results_.size());
  global_freq = nevery;
  extvector = 0;
}

int FixSarLearn::setmask() {
  return FixConst::PRE_FORCE | FixConst::END_OF_STEP;
}

void FixSarLearn::pre_force(int) {
  if (update->ntimestep % nevery == 0) pair_->compute_deviations(true);
}

void FixSarLearn::init() {
  if (std::strncmp(update->integrate_style, "respa", 5) == 0)
    error->all(FLERR, std::string(who) + ": run_style respa, expected run_style verlet");
  pair_ = dynamic_cast<PairSar*>(force->pair_match("sar", 1));
  agreed(error, who, [&] {
    sar::require<sar::InputError>(pair_ != nullptr && pair_->potential() != nullptr,
                                  "there is no pair_style sar with a potential, or more than one");
    sar::Potential& potential = *pair_->potential();
    sar::require<sar::InputError>(potential.committee() > 1,
                                  "the potential has no committee, expected one of train --committee H");
    for (int type = 1; type <= atom->ntypes; ++type)
      sar::require<sar::InputError>(pair_->species_of_type(type) >= 0, "atoms of type ", type,
                                    " are not seen by the potential, expected a species for each type");
    learner_.reset();  // pair_coeff may have made another potential
    learner_ = std::make_unique<sar::PotentialLearner>(comm_, potential, options_);
    potential_ = &potential;
    say("has " + std::to_string(learner_->num_structures()) + " structures and " +
        std::to_string(learner_->num_steps()) + " steps of " + directory_);
  });
}

void FixSarLearn::say(const std::string& line) {
  if (comm_.rank() == 0) utils::logmesg(lmp, std::string(who) + ": " + line + "\n");
}

std::vector<FixSarLearn::Place> FixSarLearn::all_atoms() const {
  std::vector<Place> mine;
  for (int i = 0; i < atom->nlocal; ++i)
    mine.push_back({atom->tag[i], atom->type[i], {atom->x[i][0], atom->x[i][1], atom->x[i][2]}});
  std::vector<Place> all = comm_.all_gather(std::span<const Place>(mine));
  std::ranges::sort(all, {}, &Place::tag);
  return all;
}

sar::LabelledStructure FixSarLearn::structure_of(const std::vector<Place>& atoms) const {
  sar::LabelledStructure structure;
  for (const Place& each : atoms) {
    structure.positions.insert(structure.positions.end(), each.x.begin(), each.x.end());
    structure.species.push_back(pair_->species_of_type(static_cast<int>(each.type)));
  }
  structure.cell.vectors = {
      {{domain->xprd, 0, 0},
       {domain->triclinic != 0 ? domain->xy : 0, domain->yprd, 0},
       {domain->triclinic != 0 ? domain->xz : 0, domain->triclinic != 0 ? domain->yz : 0, domain->zprd}}};
  for (std::size_t k = 0; k < 3; ++k) structure.cell.periodic[k] = domain->periodicity[k] != 0;
  return structure;
}

// Another LAMMPS on the same ranks, with the same box, types and masses, and the styles of the user's file.
void FixSarLearn::label_by_lammps(sar::LabelledStructure& structure, const std::vector<Place>& atoms) {
  comm_.agree([&] {
    sar::require<sar::InputError>(comm_.rank() != 0 || std::ifstream(file_).good(), file_,
                                  ": cannot be read");
  });
  std::vector<std::string> words{"lammps", "-log", directory_ + "/label.log", "-screen", "none", "-nocite"};
  std::vector<char*> arguments;
  for (std::string& each : words) arguments.push_back(each.data());
  LAMMPS other(static_cast<int>(arguments.size()), arguments.data(), world);
  const auto command = [&](const auto&... parts) {
    std::ostringstream text;
    text << std::setprecision(17);
    (text << ... << parts);
    other.input->one(text.str());
  };
  command("units metal");
  command("atom_style charge");
  command("atom_modify map yes sort 0 0");
  const auto boundary = [&](int k) { return domain->periodicity[k] != 0 ? " p" : " m"; };
  command("boundary", boundary(0), boundary(1), boundary(2));
  command("box tilt large");
  const double *lo = domain->boxlo, *hi = domain->boxhi;
  const bool tilted = domain->triclinic != 0;
  command("region box ", tilted ? "prism " : "block ", lo[0], ' ', hi[0], ' ', lo[1], ' ', hi[1], ' ', lo[2],
          ' ', hi[2], ' ', tilted ? sar::concat(domain->xy, ' ', domain->xz, ' ', domain->yz) : "",
          " units box");
  command("create_box ", atom->ntypes, " box");
  std::vector<tagint> ids;
  std::vector<int> types;
  std::vector<double> places;
  for (const Place& each : atoms) {
    ids.push_back(static_cast<tagint>(ids.size() + 1));
    types.push_back(static_cast<int>(each.type));
    places.insert(places.end(), each.x.begin(), each.x.end());
  }
  const int count = static_cast<int>(ids.size());
  const int made =
      lammps_create_atoms(&other, count, ids.data(), types.data(), places.data(), nullptr, nullptr, 1);
  sar::require<sar::InputError>(made == count, file_, ": ", made, " of ", count, " atoms are in the box");
  for (int type = 1; type <= atom->ntypes; ++type)
    command("mass ", type, ' ', atom->mass_setflag[type] != 0 ? atom->mass[type] : 1.0);
  other.input->file(file_.c_str());
  command("thermo_style custom step pe pxx pyy pzz pxy pxz pyz");
  command("thermo_modify norm no");
  command("run 0 post no");
  structure.energy = lammps_get_thermo(&other, "pe");
  structure.forces.resize(3 * atoms.size());
  char name[] = "f";
  lammps_gather_atoms(&other, name, 1, 3, structure.forces.data());
  if (!std::ranges::all_of(structure.cell.periodic, [](bool p) { return p; })) return;
  const std::array<const char*, 6> keys{"pxx", "pyy", "pzz", "pxy", "pxz", "pyz"};
  std::array<double, 6> p{};
  for (std::size_t k = 0; k < 6; ++k) p[k] = -bar * lammps_get_thermo(&other, keys[k]);
  structure.stress = {{{p[0], p[3], p[4]}, {p[3], p[1], p[5]}, {p[4], p[5], p[2]}}};
}

void FixSarLearn::label_by_command(sar::LabelledStructure& structure) {
  if (comm_.rank() != 0) return;
  const std::string in = directory_ + "/label.xyz", out = directory_ + "/label.txt";
  std::ostringstream text;
  write_xyz(text, structure, potential_->description().species);
  sar::write_text(in, text.str());
  std::filesystem::remove(out);
  const std::string command = command_ + " '" + in + "' '" + out + "'";
  const int status = std::system(command.c_str());
  sar::require<sar::InputError>(status == 0, command, ": ended with status ", status, ", expected 0");
  std::ifstream file(out);
  std::vector<double> numbers;
  for (double number = 0; file >> number;) numbers.push_back(number);
  const std::size_t without_stress = 1 + structure.positions.size();
  sar::require<sar::InputError>(
      file.eof() && (numbers.size() == without_stress || numbers.size() == without_stress + 9), out, ": has ",
      numbers.size(), " numbers", file.eof() ? "" : " and then a word", ", expected the energy, ",
      structure.positions.size(), " of forces, and 9 of the stress or none");
  structure.energy = numbers[0];
  structure.forces.assign(numbers.begin() + 1, numbers.begin() + static_cast<std::ptrdiff_t>(without_stress));
  if (numbers.size() == without_stress) return;
  structure.stress.emplace();
  for (std::size_t c = 0; c < 9; ++c) (*structure.stress)[c / 3][c % 3] = numbers[without_stress + c];
}

void FixSarLearn::label(sar::LabelledStructure& structure, const std::vector<Place>& atoms) {
  if (file_.empty())
    comm_.agree([&] { label_by_command(structure); });
  else
    label_by_lammps(structure, atoms);  // an error of LAMMPS on one rank ends all of them
}

void FixSarLearn::write_results() {
  sar::save_potential(comm_, directory_ + "/potential.safetensors", *pair_->potential());
  comm_.agree([&] {
    if (comm_.rank() != 0) return;
    std::ostringstream text;
    for (sar::Index i = 0; i < learner_->num_structures(); ++i)
      write_xyz(text, learner_->structure(i), potential_->description().species);
    sar::write_text(directory_ + "/learned.xyz", text.str());
  });
}

void FixSarLearn::end_of_step() {
  pair_->compute_deviations(false);
  agreed(error, who, [&] {
    results_[1] = pair_->largest_deviation();
    if (!(results_[1] > threshold_)) return;
    if (results_[0] >= static_cast<double>(most_)) {
      if (!std::exchange(said_enough_, true))
        say("has had " + std::to_string(most_) + " structures labelled, the most that it may");
      return;
    }
    const std::vector<Place> atoms = all_atoms();
    sar::LabelledStructure structure = structure_of(atoms);
    label(structure, atoms);
    learner_->add(structure);
    const sar::Index number = learner_->num_structures();
    const sar::PotentialErrors before = learner_->errors(number - 1);
    const sar::PotentialErrors in_steps = learner_->train(steps_);
    const sar::PotentialErrors after = learner_->errors(number - 1);
    results_[0] += 1;
    results_[2] = before.energy_per_atom;
    results_[3] = before.force;
    write_results();
    std::ostringstream line;
    line << std::setprecision(3) << "step " << update->ntimestep << ": deviation " << results_[1]
         << " eV/A: structure " << number << ": errors " << 1000 * before.energy_per_atom
         << " meV an atom and " << 1000 * before.force << " meV/A; after " << steps_ << " steps "
         << 1000 * after.energy_per_atom << " and " << 1000 * after.force << ", of all "
         << 1000 * in_steps.energy_per_atom << " and " << 1000 * in_steps.force;
    say(line.str());
  });
}

double FixSarLearn::compute_vector(int i) {
  return results_[static_cast<std::size_t>(i)];
}
