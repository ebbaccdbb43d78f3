// SPDX-License-Identifier: MIT
#include <sar/bindings/python/convert.hpp>
#include <sar/bindings/python/module.hpp>
#include <sar/bindings/python/module_tree.hpp>
#include <sar/nn/atoms/neighbor_list.hpp>
#include <sar/nn/atoms/potentials/potential.hpp>
#include <sar/nn/atoms/potentials/potential_learner.hpp>

#include <nanobind/stl/unique_ptr.h>

namespace sar { inline namespace SAR_PRECISION { namespace python {
namespace {

/// A neighbor list, and what it was asked for.
struct Neighbors {
  NeighborList list;
  Cell cell;
  double cutoff;
};

/// Returns `before` with the vectors and directions that are given. Without directions, all those of a given
/// cell are periodic.
Cell cell_of(nb::handle vectors, nb::handle pbc, Cell before = {}) {
  if (!vectors.is_none()) {
    const Doubles rows(vectors, "cell vectors", 3);
    require<ShapeError>(rows.span().size() == 9, "a cell of ", rows.span().size() / 3,
                        " vectors, expected 3");
    for (std::size_t k = 0; k < 9; ++k) before.vectors[k / 3][k % 3] = rows.span()[k];
  }
  if (!pbc.is_none()) {
    const nb::object directions =
        nb::module_::import_("numpy").attr("array")(pbc, "bool", nb::arg("ndmin") = 1);
    const Mask mask(directions, 3, "pbc");
    const std::size_t given = mask.span().size();
    require<ShapeError>(given == 1 || given == 3, "pbc of ", given, " directions, expected 1 or 3");
    for (std::size_t k = 0; k < 3; ++k) before.periodic[k] = mask.span()[given == 1 ? 0 : k] != 0;
  } else if (!vectors.is_none()) {
    before.periodic.fill(true);
  }
  return before;
}

std::optional<PyTensor> optional_tensor(const Tensor& tensor) {
  if (!tensor.defined()) return std::nullopt;
  return PyTensor{Variable(tensor)};
}

Tensor given_tensor(nb::handle rows) {
  return rows.is_none() ? Tensor() : tensor_of(rows);
}

void bind_neighbor_list(Definitions& module) {
  using namespace nb::literals;
  nb::class_<Neighbors>(module, "NeighborList",
                        "Collective. positions: an array [atoms, 3] of this rank's atoms; cell: its three "
                        "vectors as rows; pbc: the periodic directions, by default all of them if there is a "
                        "cell. positions in float64 are read without a copy.")
      .def(
          "__init__",
          [](Neighbors* self, nb::handle positions, double cutoff, nb::handle cell, nb::handle pbc,
             double margin, std::optional<Communicator> comm) {
            const Communicator& all = or_default(comm);
            const Doubles x(positions, "positions", 3);
            const Cell in = cell_of(cell, pbc);
            compute([&] {
              new (self) Neighbors{NeighborList(all, x.span(), in, cutoff, margin), in, cutoff};
            });
          },
          "positions"_a, "cutoff"_a, "cell"_a = nb::none(), "pbc"_a = nb::none(), "margin"_a = 0.0,
          "comm"_a = nb::none())
      .def(
          "update",
          [](Neighbors& self, nb::handle positions, nb::handle cell, nb::handle pbc) {
            const Doubles x(positions, "positions", 3);
            const Cell in = cell_of(cell, pbc, self.cell);
            const bool rebuilt = compute([&] { return self.list.update(x.span(), in); });
            self.cell = in;
            return rebuilt;
          },
          "positions"_a, "cell"_a = nb::none(), "pbc"_a = nb::none(),
          "Collective. Takes new positions, in the cell of before unless another is given. Makes a new graph "
          "if an atom of any rank has moved by more than half of the margin, if there are other numbers of "
          "atoms, or for another cell. Returns whether it did.")
      .def_prop_ro(
          "graph", [](const Neighbors& self) { return self.list.graph(); },
          "An edge u -> v for each image of u that is closer to v than cutoff + margin.")
      .def_prop_ro(
          "vectors", [](const Neighbors& self) { return PyTensor{Variable(self.list.vectors())}; },
          "x_u + t - x_v of each edge when the graph was made.")
      .def_prop_ro(
          "displacements",
          [](const Neighbors& self) { return PyTensor{Variable(self.list.displacements())}; },
          "How far each atom has moved since then.")
      .def_ro("cutoff", &Neighbors::cutoff)
      .def("__reduce__", [](nb::handle) -> nb::object {
        throw nb::type_error("a NeighborList cannot be pickled: it is distributed over the ranks");
      });
}

void bind_potential(Definitions& module) {
  using namespace nb::literals;
  nb::class_<PotentialValues>(module, "PotentialValues")
      .def_ro("energy", &PotentialValues::energy, "The sum over the atoms of all ranks.")
      .def_prop_ro(
          "forces", [](const PotentialValues& self) { return PyTensor{Variable(self.forces)}; },
          "[atoms of this rank, 3]")
      .def_prop_ro(
          "virial",
          [](const PotentialValues& self) {
            return numpy_of(std::span<const double>(self.virial)).attr("reshape")(3, 3);
          },
          "[3, 3], of all ranks, in float64")
      .def_prop_ro(
          "energies",
          [](const PotentialValues& self) { return numpy_of(std::span<const double>(self.energies)); },
          "[atoms of this rank], in float64")
      .def_ro("energy_deviation", &PotentialValues::energy_deviation,
              "The standard deviation of the energies of a committee's heads, of all ranks.")
      .def_prop_ro(
          "force_deviations",
          [](const PotentialValues& self) {
            return numpy_of(std::span<const double>(self.force_deviations));
          },
          "[atoms of this rank] with force_deviations and a committee, in float64; otherwise empty")
      .def_prop_ro(
          "virials", [](const PotentialValues& self) { return optional_tensor(self.virials); },
          "[atoms of this rank, 9], with per_atom_virials; otherwise None")
      .def_prop_ro(
          "centroid_virials",
          [](const PotentialValues& self) { return optional_tensor(self.centroid_virials); },
          "[atoms of this rank, 9], with per_atom_virials; otherwise None. Each edge counts at its source: "
          "times the velocity, the heat flux of a network with one layer.");

  nb::class_<Potential>(module, "Potential")
      .def(
          "__init__",
          [](Potential* self, const std::string& json) {
            new (self) Potential(ModelDescription::from_json(json), *generator());
          },
          "json"_a)
      .def(
          "__call__",
          [](Potential& self, const Neighbors& neighbors, nb::handle species, bool per_atom_virials,
             bool force_deviations) {
            const Ids kinds(species, "species");
            const PotentialAtoms atoms{.species = kinds.rows(),
                                       .positions = neighbors.list.displacements(),
                                       .shifts = neighbors.list.vectors(),
                                       .list_cutoff = neighbors.cutoff};
            return compute(
                [&] { return self(neighbors.list.graph(), atoms, per_atom_virials, force_deviations); });
          },
          "neighbors"_a, "species"_a, "per_atom_virials"_a = false, "force_deviations"_a = false,
          "Collective. The values for the atoms of a NeighborList and the species number of each atom of "
          "this rank.")
      .def(
          "__call__",
          [](Potential& self, const Graph& graph, nb::handle species, nb::handle positions, nb::handle shifts,
             nb::handle edge_vectors, double list_cutoff, bool per_atom_virials, bool force_deviations) {
            const Ids kinds(species, "species");
            PotentialAtoms atoms{.species = kinds.rows(),
                                 .positions = given_tensor(positions),
                                 .shifts = given_tensor(shifts),
                                 .list_cutoff = list_cutoff};
            std::optional<Doubles> vectors;
            if (!edge_vectors.is_none())
              atoms.edge_vectors = vectors.emplace(edge_vectors, "edge vectors", 3).span();
            return compute([&] { return self(graph, atoms, per_atom_virials, force_deviations); });
          },
          "graph"_a, "species"_a, "positions"_a = nb::none(), "shifts"_a = nb::none(),
          "edge_vectors"_a = nb::none(), "list_cutoff"_a = 0.0, "per_atom_virials"_a = false,
          "force_deviations"_a = false,
          "Collective. The values for a graph of all pairs within the cutoff, in both directions, and either "
          "positions [atoms, 3] with shifts [edges, 3] or edge vectors [edges, 3] in float64, in the order "
          "of "
          "the graph's edges.")
      .def("species", &Potential::species, "name"_a,
           "Local. The number of a species. Raises InputError for a name that the potential does not know.")
      .def_prop_ro("cutoff", &Potential::cutoff)
      .def_prop_ro("committee", &Potential::committee, "The number of members; 1: there is no committee.")
      .def_prop_ro("_json", [](const Potential& self) { return self.description().to_json(); })
      .def("__reduce__", [](nb::handle) -> nb::object {
        throw nb::type_error("a potential cannot be pickled: use sar.save_potential");
      });
  module.def(
      "load_potential",
      [](nb::handle path, std::optional<Communicator> comm) {
        const Communicator& all = or_default(comm);
        std::vector<std::string> files;
        if (nb::isinstance<nb::list>(path) || nb::isinstance<nb::tuple>(path))
          for (const nb::handle each : path) files.push_back(path_of(each));
        else
          files.push_back(path_of(path));
        return compute([&] { return load_potential(all, files); });
      },
      "path"_a, "comm"_a = nb::none(),
      "Collective. The potential of a file of save_potential() or train --task potential, with constant "
      "parameters; of a list of files, a committee of their potentials.");
  module.def(
      "save_potential",
      [](const Potential& potential, nb::handle path, std::optional<Communicator> comm) {
        const Communicator& all = or_default(comm);
        const std::string file = path_of(path);
        compute([&] { save_potential(all, file, potential); });
      },
      "potential"_a, "path"_a, "comm"_a = nb::none(), "Collective.");
}

void bind_potential_learner(Definitions& module) {
  using namespace nb::literals;
  nb::class_<PotentialErrors>(module, "PotentialErrors",
                              "Errors of a potential: means over what has labels, 0 where nothing has.")
      .def_ro("loss", &PotentialErrors::loss, "Of train(), before each step.")
      .def_ro("energy_per_atom", &PotentialErrors::energy_per_atom, "Mean absolute error.")
      .def_ro("force", &PotentialErrors::force, "Mean absolute error of components.")
      .def_ro("stress", &PotentialErrors::stress, "Mean absolute error of components.");
  const LearnerOptions defaults;
  nb::class_<PotentialLearner>(
      module, "PotentialLearner",
      "Collective. Structures with labels, and a copy of a potential that is trained on them, while a "
      "program "
      "uses the potential: train() gives it new weights. potential: of sar.load_potential() or "
      "sar.Potential; "
      "batch_size: structures of a step; lr: of Adam; energy_weight, forces_weight, stress_weight: of the "
      "terms of the loss; clip_norm: limit of the norm of gradients, 0 for none; average: decay of the "
      "averages of the weights, which the potential gets; seed: of the order of structures; directory: of "
      "checkpoints, from the latest of which it goes on, such as that of train --save-learner, None for "
      "none. "
      "Raises InputError for a checkpoint of another potential or seed.")
      .def(
          "__init__",
          [](PotentialLearner* self, Potential& potential, nb::handle directory, Index batch_size, double lr,
             double energy_weight, double forces_weight, double stress_weight, double clip_norm,
             double average, std::uint64_t seed, std::optional<Communicator> comm) {
            const Communicator& all = or_default(comm);
            const LearnerOptions options{
                .batch_size = batch_size,
                .lr = lr,
                .weights = {.energy = energy_weight, .forces = forces_weight, .stress = stress_weight},
                .clip_norm = clip_norm,
                .average = average,
                .seed = seed,
                .directory = directory.is_none() ? std::string() : path_of(directory)};
            compute([&] { new (self) PotentialLearner(all, potential, options); });
          },
          nb::keep_alive<1, 2>(), "potential"_a, "directory"_a = nb::none(),
          "batch_size"_a = defaults.batch_size, "lr"_a = defaults.lr,
          "energy_weight"_a = defaults.weights.energy, "forces_weight"_a = defaults.weights.forces,
          "stress_weight"_a = defaults.weights.stress, "clip_norm"_a = defaults.clip_norm,
          "average"_a = defaults.average, "seed"_a = defaults.seed, "comm"_a = nb::none())
      .def(
          "add",
          [](PotentialLearner& self, nb::handle positions, nb::handle species, std::optional<double> energy,
             nb::handle forces, nb::handle cell, nb::handle pbc, nb::handle stress) {
            LabelledStructure s;
            const auto numbers = [](nb::handle from, const char* what) {
              const Doubles rows(from, what, 3);
              return std::vector<double>(rows.span().begin(), rows.span().end());
            };
            s.positions = numbers(positions, "positions");
            const RowIds kinds = Ids(species, "species").rows();
            s.species.assign(kinds.span().begin(), kinds.span().end());
            s.cell = cell_of(cell, pbc);
            if (energy) s.energy = *energy;
            if (!forces.is_none()) s.forces = numbers(forces, "forces");
            if (!stress.is_none()) {
              const std::vector<double> rows = numbers(stress, "stress");
              require<ShapeError>(rows.size() == 9, "a stress of ", rows.size(), " numbers, expected 9");
              s.stress.emplace();
              for (std::size_t k = 0; k < 9; ++k) (*s.stress)[k / 3][k % 3] = rows[k];
            }
            compute([&] { self.add(s); });
          },
          "positions"_a, "species"_a, "energy"_a = nb::none(), "forces"_a = nb::none(), "cell"_a = nb::none(),
          "pbc"_a = nb::none(), "stress"_a = nb::none(),
          "Collective. Adds a whole structure, that of rank 0, with what labels it has: positions and forces "
          "[atoms, 3], species: the number of each atom's, energy: of the structure, cell and pbc as in "
          "NeighborList, stress: [3, 3], dE/d strain / volume. Raises ShapeError and InputError for other "
          "shapes, numbers that are not finite, unknown species and a structure without labels.")
      .def(
          "train",
          [](PotentialLearner& self, Index steps) { return compute([&] { return self.train(steps); }); },
          "steps"_a,
          "Collective. Makes so many steps, gives the potential its new weights, and writes a checkpoint if "
          "there is a directory. Returns means over the steps. Raises InputError, and changes nothing, "
          "without structures and if the loss is not finite.")
      .def(
          "errors",
          [](PotentialLearner& self, Index first) { return compute([&] { return self.errors(first); }); },
          "first"_a = 0,
          "Collective. Returns the errors of the potential for the structures from number `first` on.")
      .def_prop_ro("num_structures", &PotentialLearner::num_structures, "Those of a checkpoint come first.")
      .def_prop_ro("num_steps", &PotentialLearner::num_steps,
                   "Of all calls of train(), with those of a checkpoint.")
      .def("__reduce__", [](nb::handle) -> nb::object {
        throw nb::type_error("a PotentialLearner cannot be pickled: give it a directory");
      });
}

}  // namespace

void bind_atoms(Definitions& module) {
  bind_neighbor_list(module);
  bind_potential(module);
  bind_potential_learner(module);
}
}}}  // namespace sar
