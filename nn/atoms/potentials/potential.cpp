// SPDX-License-Identifier: MIT

// A call differentiates the energies in the edge vectors d_uv and in positions that are zero. The gradients
// of d_uv give virials. The gradients of the positions are the sums of these over the edges of each atom,
// which the backward passes of the layers send to the owners of the sources along with all else.
#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/comm/recorded_pass.hpp>
#include <sar/core/error.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/graph/message/halo_step.hpp>
#include <sar/graph/topology/graph_topology.hpp>
#include <sar/nn/atoms/mace.hpp>
#include <sar/nn/atoms/neighbor_bins.hpp>
#include <sar/nn/atoms/painn.hpp>
#include <sar/nn/atoms/potentials/potential.hpp>
#include <sar/nn/models/model_file.hpp>
#include <sar/nn/modules/row_distance.hpp>
#include <sar/nn/train/loss.hpp>
#include <sar/nn/train/state_dict.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

namespace {

const ModelType& potential_type(const ModelDescription& description) {
  const ModelType& type = model_type(description.type);
  require<InputError>(type.is_potential, "a Potential of type ", type.name, ", expected ",
                      model_types_where([](const ModelType& each) { return each.is_potential; }));
  return type;
}

/// Returns the value of an enumeration whose names are these, in its order.
template <class T>
T value_of(const std::string& name, const std::vector<std::string>& names) {
  return static_cast<T>(std::ranges::find(names, name) - names.begin());
}

std::unique_ptr<PotentialNetwork> make_network(const ModelDescription& d, Generator& gen) {
  if (d.type == "mace")
    return std::make_unique<MACE>(
        MACEOptions{.num_species = std::ssize(d.species),
                    .feats = d.hidden,
                    .layers = static_cast<int>(d.layers),
                    .hidden_l = static_cast<int>(d.hidden_l),
                    .correlation = static_cast<int>(d.correlation),
                    .residual_first = d.residual_first,
                    .density = d.density,
                    .functions = {.cutoff = d.cutoff,
                                  .num_basis = d.num_basis,
                                  .max_l = static_cast<int>(d.max_l),
                                  .power = static_cast<int>(d.cutoff_power),
                                  .transform = value_of<DistanceTransform>(
                                      d.distance_transform, ModelDescription::distance_transforms)},
                    .radii = d.covalent_radii,
                    .radial_feats = d.radial_hidden,
                    .radial_layers = static_cast<int>(d.radial_layers),
                    .readout_feats = d.readout_hidden,
                    .neighbors = d.neighbors,
                    .energy_scales = d.energy_scales,
                    .committee = d.committee},
        gen);
  return std::make_unique<PaiNN>(
      PaiNNOptions{
          .num_species = std::ssize(d.species),
          .feats = d.hidden,
          .convs = static_cast<int>(d.layers),
          .cutoff = d.cutoff,
          .num_basis = d.num_basis,
          .radial_basis = value_of<RadialBasis>(d.radial_basis, ModelDescription::radial_bases),
          .cutoff_function = value_of<CutoffFunction>(d.cutoff_function, ModelDescription::cutoff_functions),
          .norm_epsilon = d.norm_epsilon,
          .energy_scales = d.energy_scales,
          .committee = d.committee},
      gen);
}

/// Returns the vectors of the local edges [local edges, 3]. Collective if there are positions.
Tensor edge_vectors_of(const Graph& graph, const PotentialAtoms& atoms) {
  const Index n = graph.num_nodes(), num_edges = graph.num_edges();
  if (!atoms.positions.defined()) {
    require<ShapeError>(std::ssize(atoms.edge_vectors) == 3 * num_edges, "a potential got ",
                        atoms.edge_vectors.size(), " numbers as edge vectors, expected 3 for each of ",
                        num_edges, " edges");
    return Tensor::from({num_edges, 3}, atoms.edge_vectors);
  }
  require<ShapeError>(atoms.edge_vectors.empty() && atoms.positions.shape() == Shape{n, 3},
                      "a potential got positions of shape ", atoms.positions.shape(), " and ",
                      atoms.edge_vectors.size(), " numbers as edge vectors, expected either [", n,
                      ", 3] or vectors alone");
  const bool shifted = atoms.shifts.defined();
  require<ShapeError>(!shifted || atoms.shifts.shape() == Shape{num_edges, 3},
                      "a potential got shifts of shape ", atoms.shifts.shape(), ", expected [", num_edges,
                      ", 3]");
  const Variable x = atoms.positions, shifts = shifted ? Variable(atoms.shifts) : Variable();
  const ExactHaloRows places;  // whatever the format of features
  return graph
      .apply_edges([=](const EdgeBatch& edges) {
        return edge_vectors(edges.src(x), edges.dst(x), shifted ? edges.edata(shifts) : shifts);
      })
      .value();
}

/// Throws unless vectors of edges are finite and lead from one place to another. An edge from an atom to
/// itself is none of two atoms.
void require_directions(const Graph& graph, const Tensor& vectors, double cutoff) {
  const double least = same_place * cutoff;
  const auto is_short = [&](Index k) {
    const double x = vectors.row(k)[0], y = vectors.row(k)[1], z = vectors.row(k)[2];
    return x * x + y * y + z * z < least * least;
  };
  bool has_short = false;
  for (Index k = 0; k < vectors.num_rows(); ++k) {
    const real* d = vectors.row(k);
    require<InputError>(std::isfinite(d[0]) && std::isfinite(d[1]) && std::isfinite(d[2]),
                        "a potential got the edge vector (", d[0], ", ", d[1], ", ", d[2],
                        "), expected finite numbers");
    has_short = has_short || is_short(k);
  }
  if (!has_short) return;
  const GraphTopology& topology = graph.topology();
  topology.for_each_edge([&](Index u, Index v, Index k) {
    if (u == v || !is_short(k)) return;
    throw InputError(concat("a potential got atom ", topology.dst_ids()[v],
                            u < topology.local.num_src_rows ? concat(" and atom ", topology.src_ids()[u])
                                                            : " and an atom of another rank",
                            " at the same place, expected different places"));
  });
}

/// Returns -d_a g_b.
real virial_of(const real* d, const real* g, Index a, Index b) {
  return -d[a] * g[b];
}

/// Returns rows -d_a g_b for vectors d and g: [n, 9].
Tensor virials_of(const Tensor& d, const Tensor& g) {
  Tensor result({d.num_rows(), 9});
  for (Index k = 0; k < d.num_rows(); ++k)
    for (Index c = 0; c < 9; ++c) result.row(k)[c] = virial_of(d.row(k), g.row(k), c / 3, c % 3);
  return result;
}

/// Returns Zbl::edge_rows() of the local edges. Collective.
Tensor zbl_rows(const Zbl& zbl, const Graph& graph, const RowIds& species, const Tensor& vectors) {
  Tensor numbers({graph.num_nodes(), 1});
  std::ranges::transform(species.span(), numbers.data(), [](Index kind) { return static_cast<real>(kind); });
  const ExactHaloRows numbers_of_species;
  const Tensor ends = graph
                          .apply_edges([x = Variable(numbers)](const EdgeBatch& edges) {
                            return concat_columns({edges.src(x), edges.dst(x)});
                          })
                          .value();
  std::vector<std::array<Index, 2>> of_edges;
  for (Index k = 0; k < ends.num_rows(); ++k)
    of_edges.push_back({static_cast<Index>(ends.row(k)[0]), static_cast<Index>(ends.row(k)[1])});
  return zbl.edge_rows(vectors, of_edges);
}

/// Sets the virials of atoms from those of the edges: the sums over in-edges, and over out-edges, which are
/// the gradient of rows that are 1. Collective.
void set_atom_virials(const Graph& graph, const Tensor& rows, PotentialValues& values) {
  const Shape shape{graph.num_nodes(), rows.row_size()};
  const auto sum_at_destinations = [&](const std::vector<Variable>& ones) {
    return graph.update_all(fn::u_mul_e(ones[0], Variable(rows)), fn::sum);
  };
  const ValueAndSlopes sums = value_and_slopes(sum_at_destinations, {Tensor::full(shape, 1)});
  values.virials = ((Variable(sums.value) + Variable(sums.slopes[0])) * real{0.5}).value();
  values.centroid_virials = sums.slopes[0];
}

}  // namespace

/// What a call leaves for the next one on the same graph.
struct Potential::Pass {
  explicit Pass(const Graph& on) : graph(on.shards()), synchronization(on.comm()) {}

  std::weak_ptr<const ShardedGraph> graph;
  Workspace workspace;
  RecordedPass synchronization;
};

std::optional<Zbl> make_zbl(const ModelDescription& d) {
  if (d.zbl_outer > 0) return Zbl(d.species, d.zbl_inner, d.zbl_outer);
  if (d.zbl_power > 0) return Zbl(d.species, d.covalent_radii, static_cast<int>(d.zbl_power), d.zbl_scale);
  return std::nullopt;
}

Potential::Potential(const ModelDescription& description, Generator& gen)
    : description_((potential_type(description), description.checked())),
      network_(make_network(description_, gen)) {
  zbl_ = make_zbl(description_);
}

Potential::Potential(std::vector<Potential> members, const std::vector<double>& deviation_scales)
    : members_(std::move(members)) {
  constexpr std::size_t most = 64;
  require<InputError>(members_.size() >= 2 && members_.size() <= most, "a committee of ", members_.size(),
                      " potentials, expected 2 to ", most);
  description_ = members_[0].description();
  for (std::size_t m = 0; m < members_.size(); ++m) {
    const ModelDescription& d = members_[m].description();
    require<InputError>(!members_[m].has_members(), "member ", m, " of a committee is one itself, expected ",
                        "potentials with a network");
    require<InputError>(d.species.size() == description_.species.size(), "member ", m,
                        " of a committee knows ", d.species.size(), " species, and member 0 ",
                        description_.species.size(), ", expected the same ones");
    std::vector<Index>& kinds = member_kinds_.emplace_back();
    for (const std::string& name : description_.species) {
      const auto found = std::ranges::find(d.species, name);
      require<InputError>(found != d.species.end(), "member ", m,
                          " of a committee does not know the species '", name,
                          "' of member 0, expected the same species");
      kinds.push_back(found - d.species.begin());
    }
    description_.cutoff = std::max(description_.cutoff, d.cutoff);
  }
  zbl_ = members_[0].zbl();
  description_.committee = std::ssize(members_);
  require<InputError>(deviation_scales.size() == 2, "deviation_scales of a committee has ",
                      deviation_scales.size(), " numbers, expected two, of energies and forces");
  set_deviation_scales(deviation_scales[0], deviation_scales[1]);
}

Potential::~Potential() = default;
Potential::Potential(Potential&&) noexcept = default;
Potential& Potential::operator=(Potential&&) noexcept = default;

Index Potential::species(const std::string& name) const {
  const auto& names = description_.species;
  const auto found = std::ranges::find(names, name);
  std::string known;
  for (const std::string& each : names) known += (known.empty() ? "" : ", ") + each;
  require<InputError>(found != names.end(), "the potential does not know the species '", name,
                      "', expected one of ", known);
  return found - names.begin();
}

PotentialValues Potential::operator()(const Graph& graph, const PotentialAtoms& atoms, bool per_atom_virials,
                                      bool force_deviations) {
  if (pass_ == nullptr || pass_->graph.lock() != graph.shards()) pass_ = std::make_unique<Pass>(graph);
  const NoTape no_tape;
  const Workspace::Use memory(pass_->workspace);
  PotentialValues result;
  pass_->synchronization.run(
      [&](bool) {
        result = has_members() ? evaluate_members(graph, atoms, per_atom_virials, force_deviations)
                               : evaluate(graph, atoms, per_atom_virials, force_deviations);
      },
      "Potential");
  return result;
}

void Potential::set_deviation_scales(double energy, double forces) {
  for (const double scale : {energy, forces})
    require<InputError>(scale > 0 && std::isfinite(scale), "deviations of a committee are scaled by ", scale,
                        ", expected a positive number");
  description_.deviation_scales = {energy, forces};
}

double Potential::energy_deviation(std::span<const double> of_heads) const {
  const auto count = static_cast<double>(of_heads.size());
  double mean = 0, squares = 0;
  for (const double energy : of_heads) mean += energy / count;
  for (const double energy : of_heads) squares += (energy - mean) * (energy - mean);
  return description_.deviation_scales[0] * std::sqrt(squares / count);
}

// Each member is a pass of its own: the forces of a head need the derivatives of all convolutions.
std::vector<double> Potential::deviations_of_forces(const Graph& graph, const PotentialAtoms& atoms,
                                                    const Tensor& vectors, const Tensor& mean) const {
  const auto n = static_cast<std::size_t>(graph.num_nodes());
  std::vector<double> squares(n, 0);
  for (Index head = 0; head < committee(); ++head) {
    const RowIds heads(std::vector<Index>(n, head));
    const auto energies = [&](const std::vector<Variable>& x) {
      return PotentialNetwork::energies_of_heads(network_->head_energies(graph, atoms.species, x[0], x[1]),
                                                 heads);
    };
    const Tensor slopes =
        value_and_slopes(energies, {Tensor::zeros({graph.num_nodes(), 3}), vectors}).slopes[0];
    for (std::size_t i = 0; i < n; ++i)
      for (Index c = 0; c < 3; ++c) {
        const auto row = static_cast<Index>(i);
        const double d = -static_cast<double>(slopes.row(row)[c]) - static_cast<double>(mean.row(row)[c]);
        squares[i] += d * d;
      }
  }
  for (double& x : squares)
    x = description_.deviation_scales[1] * std::sqrt(x / static_cast<double>(committee()));
  return squares;
}

PotentialValues Potential::evaluate(const Graph& graph, const PotentialAtoms& atoms, bool per_atom_virials,
                                    bool force_deviations) const {
  const ModelDescription& d = description_;
  require<InputError>(atoms.list_cutoff == 0 || atoms.list_cutoff >= d.cutoff, "a potential with the cutoff ",
                      d.cutoff, " on a neighbor list with the cutoff ", atoms.list_cutoff, ", expected ",
                      d.cutoff, " or more");
  const Tensor vectors = edge_vectors_of(graph, atoms);
  require_directions(graph, vectors, d.cutoff);
  Tensor of_heads;  // [local nodes, H]
  const auto energies = [&](const std::vector<Variable>& inputs) {
    const Variable all = network_->head_energies(graph, atoms.species, inputs[0], inputs[1]);
    of_heads = all.value();
    return PotentialNetwork::energies_of_heads(all);
  };
  const Tensor no_positions = Tensor::zeros({graph.num_nodes(), 3});
  ValueAndSlopes found = value_and_slopes(energies, {no_positions, vectors});
  PotentialValues result{.forces = (-Variable(found.slopes[0])).value()};
  if (committee() > 1) {
    std::vector<double> of_all(static_cast<std::size_t>(committee()), 0);
    for (Index i = 0; i < of_heads.size(); ++i)
      of_all[static_cast<std::size_t>(i % committee())] += static_cast<double>(of_heads.data()[i]);
    graph.comm().all_reduce(std::span<double>(of_all));
    result.energy_deviation = energy_deviation(of_all);
    result.head_energies = of_heads;
    if (force_deviations)
      result.force_deviations = deviations_of_forces(graph, atoms, vectors, result.forces);
  }
  if (zbl_) {
    const Tensor rows = zbl_rows(*zbl_, graph, atoms.species, vectors);
    const Tensor at_nodes = graph.update_all(fn::copy_e(Variable(rows)), fn::sum).value();
    for (Index i = 0; i < graph.num_nodes(); ++i) {
      found.value.data()[i] += at_nodes.row(i)[0];
      for (Index c = 0; c < 3; ++c) result.forces.row(i)[c] += at_nodes.row(i)[1 + c];
    }
    for (Index k = 0; k < rows.num_rows(); ++k)
      for (Index c = 0; c < 3; ++c) found.slopes[1].row(k)[c] += rows.row(k)[1 + c] / 2;
  }
  std::array<double, 10> sums{};  // the energy and the virial
  for (Index i = 0; i < graph.num_nodes(); ++i) {
    const auto species = static_cast<std::size_t>(atoms.species.span()[static_cast<std::size_t>(i)]);
    result.energies.push_back(d.energy_shifts[species] + static_cast<double>(found.value.data()[i]));
    sums[0] += result.energies.back();
  }
  const Tensor& slopes = found.slopes[1];
  for (Index k = 0; k < slopes.num_rows(); ++k)
    for (Index c = 0; c < 9; ++c)
      sums[static_cast<std::size_t>(1 + c)] +=
          static_cast<double>(virial_of(vectors.row(k), slopes.row(k), c / 3, c % 3));
  graph.comm().all_reduce(std::span<double>(sums));
  result.energy = sums[0];
  std::copy(sums.begin() + 1, sums.end(), result.virial.begin());
  if (per_atom_virials) set_atom_virials(graph, virials_of(vectors, slopes), result);
  return result;
}

PotentialValues Potential::evaluate_members(const Graph& graph, const PotentialAtoms& atoms,
                                            bool per_atom_virials, bool force_deviations) const {
  const auto n = static_cast<std::size_t>(graph.num_nodes()), count = members_.size();
  const double share = 1 / static_cast<double>(count);
  require<InputError>(atoms.list_cutoff == 0 || atoms.list_cutoff >= cutoff(), "a committee with the cutoff ",
                      cutoff(), " on a neighbor list with the cutoff ", atoms.list_cutoff, ", expected ",
                      cutoff(), " or more");
  PotentialValues result{.forces = Tensor::zeros({graph.num_nodes(), 3}),
                         .energies = std::vector<double>(n, 0),
                         .head_energies = Tensor({graph.num_nodes(), committee()})};
  if (per_atom_virials)
    for (Tensor* of_atoms : {&result.virials, &result.centroid_virials})
      *of_atoms = Tensor::zeros({graph.num_nodes(), 9});
  const auto add = [&](Tensor& to, const Tensor& from) {
    for (Index k = 0; k < to.size(); ++k) to.data()[k] += static_cast<real>(share) * from.data()[k];
  };
  std::vector<Tensor> forces;
  std::vector<double> energies;  // of all atoms, of each member
  for (std::size_t m = 0; m < count; ++m) {
    PotentialAtoms of_member = atoms;
    std::vector<Index> kinds;
    for (const Index kind : atoms.species.span()) {
      require<InputError>(kind >= 0 && kind < std::ssize(member_kinds_[m]), "a committee of ",
                          member_kinds_[m].size(), " species got species ", kind);
      kinds.push_back(member_kinds_[m][static_cast<std::size_t>(kind)]);
    }
    of_member.species = std::move(kinds);
    const PotentialValues values = members_[m].evaluate(graph, of_member, per_atom_virials, false);
    add(result.forces, values.forces);
    if (per_atom_virials) add(result.virials, values.virials);
    if (per_atom_virials) add(result.centroid_virials, values.centroid_virials);
    result.energy += share * values.energy;
    for (std::size_t c = 0; c < 9; ++c) result.virial[c] += share * values.virial[c];
    for (std::size_t i = 0; i < n; ++i) {
      const auto kind = static_cast<std::size_t>(atoms.species.span()[i]);
      result.energies[i] += share * values.energies[i];
      result.head_energies.row(static_cast<Index>(i))[m] =
          static_cast<real>(values.energies[i] - description_.energy_shifts[kind]);
    }
    energies.push_back(values.energy);
    if (force_deviations) forces.push_back(values.forces);
  }
  result.energy_deviation = energy_deviation(energies);
  for (std::size_t i = 0; force_deviations && i < n; ++i) {
    double squares = 0;
    for (const Tensor& each : forces)
      for (Index c = 0; c < 3; ++c) {
        const auto row = static_cast<Index>(i);
        const double d =
            static_cast<double>(each.row(row)[c]) - static_cast<double>(result.forces.row(row)[c]);
        squares += d * d;
      }
    result.force_deviations.push_back(description_.deviation_scales[1] * std::sqrt(share * squares));
  }
  return result;
}

std::unique_ptr<Potential> with_species(const Potential& potential, std::span<const NewSpecies> added,
                                        Generator& gen) {
  require<InputError>(!potential.has_members(),
                      "a committee of potentials learns no new species, expected one of its members");
  ModelDescription d = potential.description();
  const std::size_t before = d.species.size();
  const std::vector<double>& scales = potential.description().energy_scales;
  double mean = 0;
  for (const double scale : scales) mean += scale / static_cast<double>(before);
  if (std::ranges::count(scales, scales[0]) == std::ssize(scales)) mean = scales[0];  // without rounding
  for (const NewSpecies& each : added) {
    require<InputError>(std::ranges::find(d.species, each.name) == d.species.end(),
                        "the potential knows the species '", each.name, "' already");
    if (!each.like.empty()) static_cast<void>(potential.species(each.like));
    d.species.push_back(each.name);
    d.energy_shifts.push_back(0);
    d.energy_scales.push_back(mean);
    if (d.reads_radii()) d.covalent_radii.push_back(covalent_radius(each.name));
  }
  auto result = std::make_unique<Potential>(d, gen);
  for (const NamedParameter& of_old : potential.network().named_parameters()) {
    Tensor value = of_old.parameter.value();
    if (potential.network().is_by_species(of_old.name)) {
      Tensor rows;
      for (const NamedParameter& of_new : result->network().named_parameters())
        if (of_new.name == of_old.name) rows = of_new.parameter.value().clone();
      for (std::size_t k = 0; k < d.species.size(); ++k) {
        const std::string& from = k < before ? d.species[k] : added[k - before].like;
        if (from.empty()) continue;
        const real* const row = value.row(potential.species(from));
        std::copy(row, row + value.row_size(), rows.row(static_cast<Index>(k)));
      }
      value = rows;
    }
    result->network().set_parameter(of_old.name, value);
  }
  return result;
}

std::unique_ptr<Potential> load_potential(const Communicator& comm, const std::string& path, bool trainable) {
  return comm.agree([&] {
    if (const std::optional<CommitteeFile> file = read_committee_file(comm, path)) {
      require<InputError>(!trainable, path, ": is a committee of ", file->members.size(),
                          " files, which is not trained as one, expected one of its members");
      std::vector<Potential> members;
      for (const std::string& each : file->members) members.push_back(std::move(*load_potential(comm, each)));
      try {
        return std::make_unique<Potential>(std::move(members), file->deviation_scales);
      } catch (const InputError& error) {
        throw InputError(concat(path, ": ", error.what()));
      }
    }
    const ModelFile file = read_model_file(comm, path);
    require<InputError>(model_type(file.description.type).is_potential, path, ": is a network of type ",
                        file.description.type, ", which is no potential, expected load_model for it");
    require_enough_weights(comm, file);
    Generator gen(0);
    auto potential = std::make_unique<Potential>(file.description, gen);
    PotentialNetwork& network = potential->network();
    load_weights(comm, file.weights, network);
    if (!trainable) {
      for (const NamedParameter& each : network.named_parameters()) network.freeze(each.name);
      network.eval();
    }
    return potential;
  });
}

std::unique_ptr<Potential> load_potential(const Communicator& comm, const std::vector<std::string>& paths) {
  return comm.agree([&] {
    if (paths.size() == 1) return load_potential(comm, paths[0]);
    std::vector<Potential> members;
    for (const std::string& each : paths) members.push_back(std::move(*load_potential(comm, each)));
    return std::make_unique<Potential>(std::move(members));
  });
}

void save_potential(const Communicator& comm, const std::string& path, const Potential& potential) {
  comm.agree([&] {
    require<InputError>(!potential.has_members(), path,
                        ": a committee of potentials is not one file, expected ",
                        "its members, and a .json file that names theirs");
    ModelDescription description = potential.description();
    description.weights.clear();
    save_weights(comm, path, potential.network(), real_type, {{model_key, description.to_json()}});
  });
}
}}  // namespace sar
