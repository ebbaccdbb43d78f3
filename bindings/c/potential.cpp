// SPDX-License-Identifier: MIT
#include <sar/bindings/c/array.hpp>
#include <sar/bindings/c/graph.hpp>
#include <sar/bindings/c/status.hpp>
#include <sar/nn/atoms/potentials/potential.hpp>
#include <sar/nn/atoms/potentials/potential_learner.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>

using namespace sar;
using namespace sar::c_interface;

namespace {

struct PotentialObject final : Object {
  static constexpr const char* name = "sar_potential";
  PotentialObject(const Communicator& c, std::unique_ptr<Potential> loaded)
      : Object(c, name), potential(std::move(loaded)), description(potential->description().to_json()) {}

  std::unique_ptr<Potential> potential;
  std::string description;
};

struct LearnerObject final : Object {
  static constexpr const char* name = "sar_learner";
  LearnerObject(const Communicator& c, std::shared_ptr<PotentialObject> of, const LearnerOptions& options)
      : Object(c, name), potential(std::move(of)), learner(c, *potential->potential, options) {}

  std::shared_ptr<PotentialObject> potential;
  PotentialLearner learner;
};

/// Returns three vectors that are given.
std::optional<Matrix3> matrix_of(const sar_array* array, const char* name) {
  if (array == nullptr) return std::nullopt;
  const std::vector<double> numbers = read_doubles(array, {name, 3, 3});
  Matrix3 matrix;
  for (std::size_t k = 0; k < 9; ++k) matrix[k / 3][k % 3] = numbers[k];
  return matrix;
}

/// Returns the rows of an array that is given, as doubles.
std::vector<double> numbers_of(const Tensor& rows) {
  const auto values = rows.values();
  return {values.begin(), values.end()};
}

void check_optional(const sar_array* array, const Expected& expected) {
  if (array != nullptr) check_array(array, expected);
}

}  // namespace

int sar_potential_load(sar_comm comm, const char* path, sar_potential* potential) {
  return make_from_path("sar_potential_load", comm, path, potential,
                        [](const Communicator& c, const std::string& from) {
                          return std::make_shared<PotentialObject>(c, load_potential(c, from));
                        });
}

int sar_potential_species(sar_potential potential, const char* name, int32_t* number) {
  return call([&] {
    const auto found = object<PotentialObject>(potential, "potential");
    require_pointer(number, "number");
    *number = static_cast<std::int32_t>(found->potential->species(text_of(name, "name")));
  });
}

int sar_potential_cutoff(sar_potential potential, double* cutoff) {
  return call([&] {
    const auto found = object<PotentialObject>(potential, "potential");
    require_pointer(cutoff, "cutoff");
    *cutoff = found->potential->cutoff();
  });
}

int sar_potential_evaluate(sar_potential potential, sar_graph graph, int64_t num_atoms,
                           const int32_t* species, const sar_array* positions, const sar_array* edges,
                           double* energy, double* virial, double* energies, sar_array* forces,
                           sar_array* virials, sar_array* centroid_virials, double* energy_deviation,
                           double* force_deviations) {
  std::optional<PotentialValues> values;
  const bool of_atoms = virials != nullptr || centroid_virials != nullptr;
  const auto evaluate = [&](const Communicator& comm, CollectiveCall& call) {
    const auto found = object<PotentialObject>(potential, "potential");
    const auto on = object<GraphObject>(graph, "graph");
    call.equal("potential", found->description).equal(*on);
    call.equal("set of inputs", positions == nullptr ? "edge vectors" : "positions")
        .equal("set of results", of_atoms ? "with virials of atoms" : "without virials of atoms");
    const HostGraph& g = on->built();
    require<InputError>(g.is_homogeneous(),
                        "a potential on a graph of the node types ", joined(g.node_types()),
                        " and the edge types ", joined(g.edge_types(), &EdgeType::canonical_name),
                        ", expected one of each");
    const Index n = g.num_nodes(), num_edges = g.num_edges();
    const auto given = list_of(species, num_atoms, "species");
    const Tensor x = read_optional_array(positions, {"positions", n, 3});
    const Tensor vectors = positions != nullptr ? read_optional_array(edges, {"edges", num_edges, 3})
                                                : read_array(edges, {"edges", num_edges, 3});
    check_optional(forces, {"forces", n, 3});
    check_optional(virials, {"virials", n, 9});
    check_optional(centroid_virials, {"centroid_virials", n, 9});
    PotentialAtoms atoms{.species = std::vector<Index>(given.begin(), given.end())};
    std::vector<double> numbers;
    if (x.defined()) {
      atoms.positions = x;
      atoms.shifts = vectors;
    } else {
      numbers = numbers_of(vectors);
      atoms.edge_vectors = numbers;
    }
    // of an empty list, a rank without atoms gives NULL
    const bool deviations = comm.all_reduce(force_deviations != nullptr ? 1 : 0, ReduceOp::max) == 1;
    values = (*found->potential)(g, atoms, of_atoms, deviations);
  };
  const int status =
      collective_call("sar_potential_evaluate", {{potential, "potential"}, {graph, "graph"}}, evaluate);
  if (status != SAR_OK) return status;
  return call([&] {
    if (energy != nullptr) *energy = values->energy;
    if (virial != nullptr) std::ranges::copy(values->virial, virial);
    if (forces != nullptr) write_array(values->forces, *forces);
    if (energies != nullptr) std::ranges::copy(values->energies, energies);
    if (virials != nullptr) write_array(values->virials, *virials);
    if (centroid_virials != nullptr) write_array(values->centroid_virials, *centroid_virials);
    if (energy_deviation != nullptr) *energy_deviation = values->energy_deviation;
    if (force_deviations == nullptr) return;
    std::fill_n(force_deviations, num_atoms, 0.0);
    std::ranges::copy(values->force_deviations, force_deviations);
  });
}

int sar_potential_free(sar_potential potential) {
  return free_object<PotentialObject>(potential, "potential");
}

int sar_learner_create(sar_potential potential, const char* directory, int64_t batch_size, double lr,
                       sar_learner* learner) {
  return make_object("sar_learner_create", {{potential, "potential"}}, learner,
                     [&](const Communicator& comm, CollectiveCall& call) {
                       const auto of = object<PotentialObject>(potential, "potential");
                       const LearnerOptions options{.batch_size = batch_size,
                                                    .lr = lr,
                                                    .directory = directory == nullptr ? "" : directory};
                       call.equal("potential", of->description);
                       return std::make_shared<LearnerObject>(comm, of, options);
                     });
}

int sar_learner_add(sar_learner learner, int64_t num_atoms, const int32_t* species,
                    const sar_array* positions, double energy, const sar_array* forces, const sar_array* cell,
                    const sar_array* stress) {
  return collective_call("sar_learner_add", {{learner, "learner"}}, [&](const Communicator&) {
    const auto found = object<LearnerObject>(learner, "learner");
    const auto kinds = list_of(species, num_atoms, "species");
    LabelledStructure s{.positions = read_doubles(positions, {"positions", num_atoms, 3}),
                        .species = {kinds.begin(), kinds.end()},
                        .energy = energy};
    if (forces != nullptr) s.forces = read_doubles(forces, {"forces", num_atoms, 3});
    if (const auto vectors = matrix_of(cell, "cell")) s.cell = {*vectors, {true, true, true}};
    s.stress = matrix_of(stress, "stress");
    found->learner.add(s);
  });
}

int sar_learner_train(sar_learner learner, int64_t steps, double* loss, double* energy_error,
                      double* force_error) {
  PotentialErrors errors;
  const int status = collective_call("sar_learner_train", {{learner, "learner"}}, [&](const Communicator&) {
    errors = object<LearnerObject>(learner, "learner")->learner.train(steps);
  });
  if (status != SAR_OK) return status;
  if (loss != nullptr) *loss = errors.loss;
  if (energy_error != nullptr) *energy_error = errors.energy_per_atom;
  if (force_error != nullptr) *force_error = errors.force;
  return SAR_OK;
}

int sar_learner_num_structures(sar_learner learner, int64_t* num_structures) {
  return call([&] {
    const auto found = object<LearnerObject>(learner, "learner");
    require_pointer(num_structures, "num_structures");
    *num_structures = found->learner.num_structures();
  });
}

int sar_learner_free(sar_learner learner) {
  return free_object<LearnerObject>(learner, "learner");
}
