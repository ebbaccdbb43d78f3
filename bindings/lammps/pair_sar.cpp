// SPDX-License-Identifier: MIT
#include "pair_sar.hpp"

#include "agreed.hpp"

#include <lammps/atom.h>
#include <lammps/force.h>
#include <lammps/memory.h>
#include <lammps/neighbor.h>
#include <lammps/update.h>
#include <lammps/utils.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <utility>

using namespace LAMMPS_NS;

namespace {

/// The margin of the graph, as a share of the cutoff, but at most this share of LAMMPS's skin that is left:
/// atoms that have moved by d since LAMMPS found the ghosts have used 2 d of it. Numbers that are not round:
/// pairs of a crystal that are as far apart as cutoff and margin together, to rounding, could be an edge in
/// one direction only.
constexpr double margin_of_cutoff = 0.0997, margin_of_skin = 0.9983;
constexpr const char* who = "pair style sar";

}  // namespace

PairSar::PairSar(LAMMPS* lammps)
    : Pair(lammps),
      comm_(agreed(error, who, [&] { return sar::Communicator(world); })),
      threads_(agreed(error, who, [&] { return sar::default_num_threads(comm_); })) {
  single_enable = 0;
  restartinfo = 0;
  one_coeff = 1;
  manybody_flag = 1;
  no_virial_fdotr_compute = 1;
  centroidstressflag = CENTROID_AVAIL;
}

PairSar::~PairSar() {
  if (!allocated) return;
  memory->destroy(setflag);
  memory->destroy(cutsq);
}

void PairSar::settings(int narg, char** arg) {
  const bool has_deviation = narg >= 2 && std::strcmp(arg[narg - 2], "deviation") == 0;
  deviation_every_ = has_deviation ? utils::inumeric(FLERR, arg[narg - 1], false, lmp) : 0;
  if (has_deviation) narg -= 2;
  if (narg > 1 || (has_deviation && deviation_every_ < 1))
    error->all(FLERR, std::string("pair style sar takes a cutoff and deviation N, both optional; N is a "
                                  "number of steps of at least 1"));
  expected_cutoff_ = narg == 1 ? utils::numeric(FLERR, arg[0], false, lmp) : 0;
  nextra = has_deviation ? static_cast<int>(summary_.size()) : 0;
  pvector = has_deviation ? summary_.data() : nullptr;
}

void PairSar::coeff(int narg, char** arg) {
  const int types = atom->ntypes;
  if (!allocated) {
    memory->create(setflag, types + 1, types + 1, "pair:setflag");
    memory->create(cutsq, types + 1, types + 1, "pair:cutsq");
    allocated = 1;
    for (int i = 0; i <= types; ++i) std::fill_n(setflag[i], types + 1, 0);
  }
  if (narg != 3 + types || std::strcmp(arg[0], "*") != 0 || std::strcmp(arg[1], "*") != 0)
    error->all(FLERR,
               "pair style sar got " + std::to_string(narg) +
                   " arguments of pair_coeff, expected * *, a file and a species or NULL for each of " +
                   std::to_string(types) + " atom types");
  agreed(error, who, [&] {
    auto potential = sar::load_potential(comm_, arg[2]);
    std::vector<sar::Index> species(static_cast<std::size_t>(types) + 1, -1);
    comm_.agree([&] {
      const double cutoff = potential->cutoff();
      sar::require<sar::InputError>(expected_cutoff_ == 0 || expected_cutoff_ == cutoff, arg[2],
                                    " has the cutoff ", cutoff, ", pair_style sar says ", expected_cutoff_);
      for (int type = 1; type <= types; ++type)
        if (const std::string name = arg[2 + type]; name != "NULL")
          species[static_cast<std::size_t>(type)] = potential->species(name);
    });
    species_of_type_ = std::move(species);
    potential_ = std::move(potential);
  });
  const auto is_known = [&](int type) { return species_of_type_[static_cast<std::size_t>(type)] >= 0; };
  for (int i = 1; i <= types; ++i)
    for (int j = 1; j <= types; ++j) setflag[i][j] = i <= j && is_known(i) && is_known(j) ? 1 : 0;
}

void PairSar::init_style() {
  if (potential_ == nullptr)
    error->all(FLERR, std::string("pair style sar has no potential, expected pair_coeff"));
  if (std::strcmp(update->unit_style, "metal") != 0)
    error->all(FLERR, std::string("pair style sar in units ") + update->unit_style +
                          ", expected units metal: potentials are in eV and Angstrom");
  if (atom->tag_enable == 0) error->all(FLERR, std::string("pair style sar needs atoms with ids"));
  has_graph_ = has_ghosts_ = false;
  summary_ = {};
}

double PairSar::largest_deviation() const {
  double largest = summary_[1];  // of rank 0
  comm_.broadcast(std::span<double>(&largest, 1), 0);
  return largest;
}

void* PairSar::extract(const char* name, int& dim) {
  dim = 0;
  return std::strcmp(name, "deviation_flag") == 0 ? &deviation_flag_ : nullptr;
}

void* PairSar::extract_peratom(const char* name, int& columns) {
  columns = 0;
  if (std::strcmp(name, "deviation") != 0) return nullptr;
  deviations_.resize(static_cast<std::size_t>(std::max(1, atom->nlocal)), 0);
  return deviations_.data();
}

double PairSar::init_one(int, int) {
  return potential_->cutoff();
}

double PairSar::moved_since(const std::vector<double>& positions) const {
  double largest = 0;
  for (std::size_t i = 0; 3 * i < positions.size(); ++i) {
    double squares = 0;
    for (std::size_t c = 0; c < 3; ++c) {
      const double moved = atom->x[i][c] - positions[3 * i + c];
      squares += moved * moved;
    }
    largest = std::max(largest, squares);
  }
  return std::sqrt(comm_.all_reduce(largest, sar::ReduceOp::max));
}

bool PairSar::graph_is_valid() const {
  const bool has_new_ghosts = neighbor->ago == 0;  // the same on every rank
  return has_graph_ && !has_new_ghosts && moved_since(positions_) <= margin_ / 2;
}

void PairSar::require_all_pairs() const {
  const auto is_known = [&](int type) { return species_of_type_[static_cast<std::size_t>(type)] >= 0; };
  bool excludes = neighbor->nex_group > 0 || neighbor->nex_mol > 0;
  for (int k = 0; k < neighbor->nex_type; ++k)
    excludes = excludes || (is_known(neighbor->ex1_type[k]) && is_known(neighbor->ex2_type[k]));
  sar::require<sar::InputError>(!excludes,
                                "neigh_modify exclude leaves out pairs of atoms that the potential sees, "
                                "expected no excluded pairs but of types that are NULL in pair_coeff: all "
                                "pairs within the cutoff interact");
  sar::require<sar::InputError>(neighbor->includegroup == 0,
                                "neigh_modify include leaves out pairs of atoms outside of the group, "
                                "expected no group: all pairs within the cutoff interact");
  const double* special = force->special_lj;
  const bool all_count = special[1] == 1 && special[2] == 1 && special[3] == 1;
  sar::require<sar::InputError>(
      all_count || atom->molecular == 0 || atom->nbonds == 0, "special_bonds lj ", special[1], " ",
      special[2], " ", special[3],
      " leaves out pairs of bonded atoms, expected special_bonds lj 1 1 1, or pair_modify pair sar special "
      "lj 1 1 1 beside other styles: all pairs within the cutoff interact");
}

void PairSar::build_graph() {
  const double cutoff = potential_->cutoff();
  positions_.clear();
  for (int i = 0; i < atom->nlocal + atom->nghost; ++i)
    positions_.insert(positions_.end(), atom->x[i], atom->x[i] + 3);
  if (!has_ghosts_ || neighbor->ago == 0) ghost_positions_ = positions_;
  has_ghosts_ = true;
  moved_ = moved_since(ghost_positions_);
  const double skin = neighbor->skin - 2 * moved_;
  margin_ = std::max(0.0, std::min(margin_of_cutoff * cutoff, margin_of_skin * skin));
  std::vector<std::int64_t> tags;
  sar::GhostEdges edges;
  graph_.reset();
  comm_.agree([&] {
    atoms_.clear();
    species_.clear();
    for (int i = 0; i < atom->nlocal + atom->nghost; ++i) {
      const sar::Index species = species_of_type_[static_cast<std::size_t>(atom->type[i])];
      if (species < 0) continue;
      atoms_.push_back(i);
      if (i < atom->nlocal) species_.push_back(species);
    }
    std::vector<double> places;
    std::vector<sar::Index> ids;
    for (const int i : atoms_) {
      places.insert(places.end(), atom->x[i], atom->x[i] + 3);
      ids.push_back(atom->tag[i]);
    }
    edges = sar::edges_with_ghosts(places, std::ssize(species_), cutoff + margin_, ids);
    // the ghosts that are sources follow the atoms of this rank
    std::vector<int> node(atoms_.size(), -1), nodes(atoms_.begin(), atoms_.begin() + std::ssize(species_));
    std::iota(node.begin(), node.begin() + std::ssize(species_), 0);
    for (std::int32_t& src : edges.src) {
      int& number = node[static_cast<std::size_t>(src)];
      if (number < 0) {
        number = static_cast<int>(nodes.size());
        nodes.push_back(atoms_[static_cast<std::size_t>(src)]);
      }
      src = number;
    }
    atoms_ = std::move(nodes);
    for (const int i : atoms_) tags.push_back(atom->tag[i]);
  });
  const auto num_owned = static_cast<sar::Index>(species_.size());
  edge_src_.clear();
  edge_dst_.clear();
  if (comm_.all_reduce(num_owned) == 0) return;
  graph_ = sar::HostGraph(comm_, {.num_owned = num_owned, .global_ids = tags},
                          {.src = edges.src, .dst = edges.dst});
  // all edges of this rank's atoms are its own, with consecutive ids in the order of `edges`
  const auto& ids = graph_->edge_ids();
  const sar::Index first = ids.size() == 0 ? 0 : *std::min_element(ids.begin(), ids.end());
  for (const sar::Index id : ids) {
    const auto k = static_cast<std::size_t>(id - first);
    edge_src_.push_back(atoms_[static_cast<std::size_t>(edges.src[k])]);
    edge_dst_.push_back(atoms_[static_cast<std::size_t>(edges.dst[k])]);
  }
  edge_vectors_.resize(3 * edge_src_.size());
  graph_->drop_edge_ids();
}

void PairSar::evaluate() {
  for (std::size_t k = 0; k < edge_src_.size(); ++k)
    for (std::size_t c = 0; c < 3; ++c)
      edge_vectors_[3 * k + c] = atom->x[edge_src_[k]][c] - atom->x[edge_dst_[k]][c];
  const bool deviations =
      deviation_flag_ != 0 || (deviation_every_ > 0 && update->ntimestep % deviation_every_ == 0);
  const sar::PotentialValues values =
      (*potential_)(*graph_, {.species = species_, .edge_vectors = edge_vectors_},
                    /*per_atom_virials=*/vflag_atom != 0 || cvflag_atom != 0, deviations);
  if (deviations) store_deviations(values.energy_deviation, values.force_deviations);
  for (std::size_t i = 0; i < species_.size(); ++i) {
    const auto row = static_cast<sar::Index>(i);
    const int at = atoms_[i];
    for (int c = 0; c < 3; ++c) atom->f[at][c] += static_cast<double>(values.forces.row(row)[c]);
    if (eflag_atom != 0) eatom[at] += values.energies[i];
    if (vflag_atom != 0) {
      const sar::real* w = values.virials.row(row);
      const double symmetric[6] = {w[0], w[4], w[8], (w[1] + w[3]) / 2, (w[2] + w[6]) / 2, (w[5] + w[7]) / 2};
      for (int c = 0; c < 6; ++c) vatom[at][c] += symmetric[c];
    }
    if (cvflag_atom != 0) {
      constexpr int order[9] = {0, 4, 8, 1, 2, 5, 3, 6, 7};  // xx yy zz xy xz yz yx zx zy
      const sar::real* w = values.centroid_virials.row(row);
      for (int c = 0; c < 9; ++c) cvatom[at][c] += w[order[c]];
    }
  }
  if (comm_.rank() != 0) return;  // sums of all ranks
  if (eflag_global != 0) eng_vdwl += values.energy;
  const auto& w = values.virial;
  const double symmetric[6] = {w[0], w[4], w[8], (w[1] + w[3]) / 2, (w[2] + w[6]) / 2, (w[5] + w[7]) / 2};
  if (vflag_global != 0)
    for (int c = 0; c < 6; ++c) virial[c] += symmetric[c];
}

void PairSar::store_deviations(double of_energy, const std::vector<double>& of_forces) {
  int is_double = 0, columns = 0;
  const int property = atom->find_custom("sar_deviation", is_double, columns);
  double* const target = property >= 0 && is_double == 1 && columns == 0 ? atom->dvector[property] : nullptr;
  deviations_.assign(static_cast<std::size_t>(std::max(1, atom->nlocal)), 0);
  if (target != nullptr) std::fill_n(target, atom->nlocal, 0);
  double largest = 0, sum = 0;
  for (std::size_t i = 0; i < of_forces.size(); ++i) {
    const auto at = static_cast<std::size_t>(atoms_[i]);
    deviations_[at] = of_forces[i];
    if (target != nullptr) target[at] = of_forces[i];
    // a force that is not a number is beyond every threshold
    largest =
        std::max(largest, std::isnan(of_forces[i]) ? std::numeric_limits<double>::infinity() : of_forces[i]);
    sum += of_forces[i];
  }
  largest = comm_.all_reduce(largest, sar::ReduceOp::max);
  sum = comm_.all_reduce(sum);
  const auto count = static_cast<double>(comm_.all_reduce(static_cast<sar::Index>(of_forces.size())));
  summary_ = {};
  if (comm_.rank() == 0) summary_ = {of_energy, largest, sum / count};
}

void PairSar::compute(int eflag, int vflag) {
  ev_init(eflag, vflag);
  agreed(error, who, [&] {
    sar::require<sar::InputError>(
        potential_->committee() > 1 || (deviation_every_ == 0 && deviation_flag_ == 0),
        "deviations of a potential without a committee, expected one of train --committee H");
    if (!graph_is_valid()) {
      require_all_pairs();
      has_graph_ = false;
      build_graph();
      has_graph_ = true;
    }
    if (!graph_) return;
    try {
      evaluate();
    } catch (const sar::InputError& thrown) {
      if (margin_ > 0) throw;
      throw sar::InputError(
          sar::concat("atoms have moved by up to ", moved_,
                      " since LAMMPS made its neighbor lists, and half of the skin is ", neighbor->skin / 2,
                      ", so that ghosts are missing: expected neigh_modify every 1 delay 0 check yes, ",
                      "a larger skin (neighbor) or a smaller timestep (", thrown.what(), ")"));
    }
  });
}

double PairSar::memory_usage() {
  return Pair::memory_usage() +
         static_cast<double>(
             8 * (edge_src_.size() + edge_vectors_.size() + positions_.size() + ghost_positions_.size())) +
         static_cast<double>(graph_ ? graph_->index_bytes() : 0);
}
