// SPDX-License-Identifier: MIT

/// sar_cxx11.hpp: classes based on sar.h for programs in C++11 or later. Programs in C++20 use <sar/sar.hpp>
/// instead.
///
///     const sar_cxx11::Comm comm(MPI_COMM_WORLD);
///     const sar_cxx11::Graph graph(comm, node_ids, src, dst);              // std::vector<std::int64_t>
///     sar_cxx11::Model model(comm, R"({"sar_model": 1, "type": "sage", "in_feats": 3, "out_feats": 3})", 1);
///     sar_cxx11::Optimizer optimizer(model, R"({"optimizer": "adam", "lr": 0.01})");
///     const double loss = model.train_step(optimizer, graph, sar_cxx11::array(x, 3), sar_cxx11::array(y, 3));
///
/// All functions throw sar_cxx11::Error with the text of sar_last_error(). Objects are movable handles that
/// free their object in the destructor. sar.h documents the functions and says which are collective.
#pragma once

#include <sar.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace sar_cxx11 {

/// A status of a function of sar.h other than SAR_OK.
class Error : public std::runtime_error {
 public:
  Error(int status, const std::string& text) : std::runtime_error(text), status_(status) {}
  int status() const noexcept { return status_; }  ///< SAR_ERROR_...

 private:
  int status_;
};

inline void check(int status) {
  if (status != SAR_OK) throw Error(status, sar_last_error());
}

/// Makes the next collective call of this thread fail on all ranks, with this text: see sar_refuse_next().
inline void refuse_next(const std::string& text) {
  check(sar_refuse_next(text.c_str()));
}

namespace detail {

template <class T>
std::int64_t length(const std::vector<T>& values) {
  return static_cast<std::int64_t>(values.size());
}

/// Returns a list as sar.h takes it: null only where there is no list, also if it has no values.
template <class T>
const T* list(const std::vector<T>* values) {
  static const T none = T();
  return values == nullptr ? nullptr : values->empty() ? &none : values->data();
}

/// Returns the name of a type as sar.h takes it: null for an empty one.
inline const char* name(const std::string& type) {
  return type.empty() ? nullptr : type.c_str();
}

/// Returns the rows of an array. If the values do not make rows, the call that gets the array fails.
inline std::int64_t rows_of(std::size_t size, std::int64_t fields) {
  const std::int64_t values = static_cast<std::int64_t>(size);
  if (fields > 0 && values % fields == 0) return values / fields;
  refuse_next("an array of " + std::to_string(size) + " values does not have rows of " +
              std::to_string(fields) + " fields");
  return 0;
}

/// Returns memory for [rows, fields]. If there is none, the call that gets it fails.
template <class T>
std::vector<T> room(std::int64_t rows, std::int64_t fields) {
  try {
    if (fields > 0) return std::vector<T>(static_cast<std::size_t>(rows) * static_cast<std::size_t>(fields));
  } catch (const std::exception& error) {
    refuse_next("no memory for " + std::to_string(rows) + " rows of " + std::to_string(fields) +
                " fields: " + error.what());
  }
  return std::vector<T>();
}

/// Refuses the call that gets the edges if there are not as many sources, destinations and ids.
inline void require_one_length(std::size_t src, std::size_t dst, const std::vector<std::int64_t>* edge_ids) {
  const std::size_t ids = edge_ids == nullptr ? src : edge_ids->size();
  if (src == dst && src == ids) return;
  refuse_next("there are " + std::to_string(src) + " sources of edges, " + std::to_string(dst) +
              " destinations and " + std::to_string(ids) + " ids, expected as many");
}

}  // namespace detail

/// Returns an array [values.size() / fields, fields], which refers to `values`. If the values do not make
/// rows of `fields`, the collective call that gets the array fails on all ranks.
inline sar_array array(const std::vector<double>& values, std::int64_t fields) {
  return sar_array_double(values.data(), detail::rows_of(values.size(), fields), fields);
}
inline sar_array array(const std::vector<float>& values, std::int64_t fields) {
  return sar_array_float(values.data(), detail::rows_of(values.size(), fields), fields);
}

/// The library: version, precision (SAR_FLOAT32 or SAR_FLOAT64), threads of its loops (0: all processors of
/// the process), and bytes that it has allocated.
inline std::string version() {
  return sar_version();
}
inline std::int32_t precision() {
  return sar_precision();
}
inline void set_num_threads(std::int32_t threads) {
  check(sar_set_num_threads(threads));
}
inline std::int64_t memory_current() {
  std::int64_t bytes = 0;
  check(sar_memory_current(&bytes));
  return bytes;
}
inline std::int64_t memory_peak() {
  std::int64_t bytes = 0;
  check(sar_memory_peak(&bytes));
  return bytes;
}
inline void memory_reset_peak() {
  check(sar_memory_reset_peak());
}
inline void memory_release() {
  check(sar_memory_release());
}

/// Initializes MPI unless the program has done so, and finalizes it if it did: see sar_init().
class Environment {
 public:
  Environment() { check(sar_init()); }
  ~Environment() { sar_finalize(); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
};

/// A handle of sar.h that is freed in the destructor.
template <class Raw, int (*release)(Raw)>
class Handle {
 public:
  explicit Handle(Raw raw = nullptr) noexcept : raw_(raw) {}
  ~Handle() {
    if (raw_ != nullptr) release(raw_);
  }
  Handle(Handle&& other) noexcept : raw_(other.raw_) { other.raw_ = nullptr; }
  Handle& operator=(Handle&& other) noexcept {
    std::swap(raw_, other.raw_);
    return *this;
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  Raw get() const noexcept { return raw_; }

 protected:
  /// Returns the value that a function of sar.h writes for this handle.
  template <class T>
  T value_of(int (*function)(Raw, T*)) const {
    T value{};
    check(function(raw_, &value));
    return value;
  }

  Raw raw_;
};

class Comm : public Handle<sar_comm, sar_comm_free> {
 public:
  explicit Comm(MPI_Comm comm) { check(sar_comm_create(comm, &raw_)); }
  /// Returns that of MPI_COMM_WORLD, and that of a Fortran communicator.
  static Comm world() {
    Comm comm;
    check(sar_comm_world(&comm.raw_));
    return comm;
  }
  static Comm from_fortran(std::int32_t fortran_comm) {
    Comm comm;
    check(sar_comm_create_f(fortran_comm, &comm.raw_));
    return comm;
  }
  int rank() const { return value_of(sar_comm_rank); }
  int size() const { return value_of(sar_comm_size); }
  int default_num_threads() const { return value_of(sar_comm_default_num_threads); }

 private:
  Comm() = default;
};

/// A rank's own numbering of nodes: its nodes, then its ghosts.
struct LocalToGlobal {
  std::int64_t num_owned;
  std::vector<std::int64_t> global_ids;
};

/// The type of edges from nodes of one type to nodes of another.
struct EdgeType {
  std::string source, relation, destination;

  std::string name() const { return source + ":" + relation + ":" + destination; }
};

/// Numbers of nodes and edges of a graph, as in sar_graph_num_nodes() and sar_graph_num_edges().
struct GraphSizes {
  std::int64_t nodes, edges, given_edges, global_nodes, global_edges;
};

/// Lists and arrays that may be null must be null on all ranks or on none.
class Graph : public Handle<sar_graph, sar_graph_free> {
 public:
  Graph(const Comm& comm, const std::vector<std::int64_t>& node_ids, const std::vector<std::int64_t>& src,
        const std::vector<std::int64_t>& dst, const std::string& options = "{}",
        const std::vector<std::int64_t>* edge_ids = nullptr, const sar_array* edge_weight = nullptr) {
    detail::require_one_length(src.size(), dst.size(), edge_ids);
    check(sar_graph_from_global(comm.get(), detail::length(node_ids), node_ids.data(), detail::length(src),
                                src.data(), dst.data(), detail::list(edge_ids), edge_weight, options.c_str(),
                                &raw_));
  }
  Graph(const Comm& comm, const LocalToGlobal& nodes, const std::vector<std::int32_t>& src,
        const std::vector<std::int32_t>& dst, const std::string& options = "{}",
        const std::vector<std::int64_t>* edge_ids = nullptr, const sar_array* edge_weight = nullptr) {
    detail::require_one_length(src.size(), dst.size(), edge_ids);
    check(sar_graph_from_local(comm.get(), nodes.num_owned, detail::length(nodes.global_ids),
                               nodes.global_ids.data(), detail::length(src), src.data(), dst.data(),
                               detail::list(edge_ids), edge_weight, options.c_str(), &raw_));
  }
  /// Replaces the nodes and edges of the graph. Options stay, and predictors follow the graph.
  void rebuild(const std::vector<std::int64_t>& node_ids, const std::vector<std::int64_t>& src,
               const std::vector<std::int64_t>& dst, const std::vector<std::int64_t>* edge_ids = nullptr,
               const sar_array* edge_weight = nullptr) {
    detail::require_one_length(src.size(), dst.size(), edge_ids);
    check(sar_graph_rebuild_from_global(raw_, detail::length(node_ids), node_ids.data(), detail::length(src),
                                        src.data(), dst.data(), detail::list(edge_ids), edge_weight));
  }
  void rebuild(const LocalToGlobal& nodes, const std::vector<std::int32_t>& src,
               const std::vector<std::int32_t>& dst, const std::vector<std::int64_t>* edge_ids = nullptr,
               const sar_array* edge_weight = nullptr) {
    detail::require_one_length(src.size(), dst.size(), edge_ids);
    check(sar_graph_rebuild_from_local(raw_, nodes.num_owned, detail::length(nodes.global_ids),
                                       nodes.global_ids.data(), detail::length(src), src.data(), dst.data(),
                                       detail::list(edge_ids), edge_weight));
  }
  /// Makes a graph with types, without nodes at first: add the nodes and the edges of each type, then call
  /// build().
  explicit Graph(const Comm& comm, const std::string& options = "{}") {
    check(sar_graph_create(comm.get(), options.c_str(), &raw_));
  }
  void add_nodes(const std::string& type, const std::vector<std::int64_t>& node_ids) {
    check(sar_graph_add_nodes(raw_, type.c_str(), detail::length(node_ids), node_ids.data()));
  }
  void add_edges(const EdgeType& type, const std::vector<std::int64_t>& src,
                 const std::vector<std::int64_t>& dst, const std::vector<std::int64_t>* edge_ids = nullptr,
                 const sar_array* edge_weight = nullptr, bool add_reverse_edges = false) {
    detail::require_one_length(src.size(), dst.size(), edge_ids);
    check(sar_graph_add_edges(raw_, type.source.c_str(), type.relation.c_str(), type.destination.c_str(),
                              detail::length(src), src.data(), dst.data(), detail::list(edge_ids),
                              edge_weight, add_reverse_edges ? 1 : 0));
  }
  void build() { check(sar_graph_build(raw_)); }
  /// Sets the rows of a node type that models read.
  void set_rows(const std::string& type, const sar_array& x) {
    check(sar_graph_set_rows(raw_, detail::name(type), &x));
  }

  // An empty type is the only one, or for sizes all types together. Edge types are named by their relation or
  // by EdgeType::name().
  GraphSizes sizes(const std::string& node_type = {}, const std::string& edge_type = {}) const {
    GraphSizes sizes;
    check(sar_graph_num_nodes(raw_, detail::name(node_type), &sizes.nodes, &sizes.global_nodes));
    check(sar_graph_num_edges(raw_, detail::name(edge_type), &sizes.edges, &sizes.global_edges,
                              &sizes.given_edges));
    return sizes;
  }
  /// Returns the ids of the edges in the graph's order.
  std::vector<std::int64_t> edge_ids(const std::string& edge_type = {}) const {
    std::vector<std::int64_t> ids(static_cast<std::size_t>(sizes({}, edge_type).edges));
    check(sar_graph_edge_ids(raw_, detail::name(edge_type), detail::length(ids), ids.data()));
    return ids;
  }
  /// Returns a row for each edge in the graph's order, from a row for each edge that this rank gave; reverse
  /// edges have the row of their edge, or that of `reverse_rows`, whose type gives no T: it may be nullptr.
  template <class T>
  std::vector<T> to_graph_order(const std::vector<T>& rows, std::int64_t fields,
                                const typename std::common_type<std::vector<T>>::type* reverse_rows = nullptr,
                                const std::string& edge_type = {}) const {
    std::int64_t edges = 0;  // without a graph, the last call fails on all ranks
    sar_graph_num_edges(raw_, detail::name(edge_type), &edges, nullptr, nullptr);
    std::vector<T> result = detail::room<T>(edges, fields);
    const sar_array given = array(rows, fields);
    const sar_array reverse = array(reverse_rows == nullptr ? rows : *reverse_rows, fields);
    sar_array out = array(result, fields);
    check(sar_graph_edges_to_graph_order(raw_, detail::name(edge_type), &given,
                                         reverse_rows == nullptr ? nullptr : &reverse, &out));
    return result;
  }
  /// The inverse; with `reverse`, returns the rows of the reverse edges.
  template <class T>
  std::vector<T> to_given_order(const std::vector<T>& rows, std::int64_t fields, bool reverse = false,
                                const std::string& edge_type = {}) const {
    std::int64_t edges = 0;  // without a graph, the last call fails on all ranks
    sar_graph_num_edges(raw_, detail::name(edge_type), nullptr, nullptr, &edges);
    std::vector<T> result = detail::room<T>(edges, fields);
    const sar_array in_graph_order = array(rows, fields);
    sar_array out = array(result, fields);
    check(sar_graph_edges_to_given_order(raw_, detail::name(edge_type), &in_graph_order, reverse ? 1 : 0,
                                         &out));
    return result;
  }
};

/// Name and shape of a parameter, as in sar_model_parameter().
struct Parameter {
  std::string name;
  std::int64_t rows, fields;
};

/// Numbers of columns of node features, results, and edge features (0: none).
struct Feats {
  std::int64_t in, out, edges;
};

using OptimizerHandle = Handle<sar_optimizer, sar_optimizer_free>;

class Model : public Handle<sar_model, sar_model_free> {
 public:
  Model(const Comm& comm, const std::string& description, std::uint64_t seed) {
    check(sar_model_create(comm.get(), description.c_str(), seed, &raw_));
  }
  static Model load(const Comm& comm, const std::string& path) {
    Model model;
    check(sar_model_load(comm.get(), path.c_str(), &model.raw_));
    return model;
  }
  void save(const std::string& path) const { check(sar_model_save(raw_, path.c_str())); }
  std::string description() const { return value_of(sar_model_description); }
  Feats feats() const {
    Feats feats;
    check(sar_model_feats(raw_, &feats.in, &feats.out, &feats.edges));
    return feats;
  }

  std::int64_t num_parameters() const { return value_of(sar_model_num_parameters); }
  Parameter parameter(std::int64_t index) const {
    Parameter found;
    const char* name = nullptr;
    check(sar_model_parameter(raw_, index, &name, &found.rows, &found.fields));
    found.name = name;
    return found;
  }
  /// Returns the values of a parameter, [rows, fields]; T is double or float.
  template <class T = double>
  std::vector<T> get_parameter(std::int64_t index) const {
    const Parameter shape = parameter(index);
    std::vector<T> values(static_cast<std::size_t>(shape.rows * shape.fields));
    sar_array out = array(values, shape.fields);
    check(sar_model_get_parameter(raw_, index, &out));
    return values;
  }
  /// Sets the values of a parameter. Local: set the same values on all ranks.
  template <class T>
  void set_parameter(std::int64_t index, const std::vector<T>& values) {
    const Parameter shape = parameter(index);
    if (detail::length(values) != shape.rows * shape.fields)
      throw Error(SAR_ERROR_SHAPE, "there are " + std::to_string(values.size()) +
                                       " values for the parameter " + shape.name + ", expected " +
                                       std::to_string(shape.rows * shape.fields));
    const sar_array in = array(values, shape.fields);
    check(sar_model_set_parameter(raw_, index, &in));
  }

  /// Adds rows to the statistics of a model with "normalize": true: see sar_model_update_statistics().
  void update_statistics(const sar_array& x, const sar_array& edges, const sar_array& target) {
    check(sar_model_update_statistics(raw_, &x, &edges, &target));
  }

  /// Return the loss before the step. `edges` and `mask` may be null. `type`: the node type of x and of the
  /// results, of a graph with several.
  double train_step(const OptimizerHandle& optimizer, const Graph& graph, const sar_array& x,
                    const sar_array& target, std::int32_t loss_kind = SAR_LOSS_MSE,
                    const sar_array* edges = nullptr, const std::vector<std::uint8_t>* mask = nullptr,
                    const std::string& type = {}) {
    double loss = 0;
    check(sar_train_step(raw_, optimizer.get(), graph.get(), detail::name(type), &x, edges, loss_kind,
                         &target, length_of(mask), detail::list(mask), &loss));
    return loss;
  }
  double train_step(const OptimizerHandle& optimizer, const Graph& graph, const sar_array& x,
                    const std::vector<std::int64_t>& labels, const sar_array* edges = nullptr,
                    const std::vector<std::uint8_t>* mask = nullptr, const std::string& type = {}) {
    double loss = 0;
    check(sar_train_step_labels(raw_, optimizer.get(), graph.get(), detail::name(type), &x, edges,
                                detail::length(labels), labels.data(), length_of(mask), detail::list(mask),
                                &loss));
    return loss;
  }
  /// Return the loss without a step.
  double evaluate(const Graph& graph, const sar_array& x, const sar_array& target,
                  std::int32_t loss_kind = SAR_LOSS_MSE, const sar_array* edges = nullptr,
                  const std::vector<std::uint8_t>* mask = nullptr, const std::string& type = {}) const {
    double loss = 0;
    check(sar_evaluate(raw_, graph.get(), detail::name(type), &x, edges, loss_kind, &target, length_of(mask),
                       detail::list(mask), &loss));
    return loss;
  }
  double evaluate(const Graph& graph, const sar_array& x, const std::vector<std::int64_t>& labels,
                  const sar_array* edges = nullptr, const std::vector<std::uint8_t>* mask = nullptr,
                  const std::string& type = {}) const {
    double loss = 0;
    check(sar_evaluate_labels(raw_, graph.get(), detail::name(type), &x, edges, detail::length(labels),
                              labels.data(), length_of(mask), detail::list(mask), &loss));
    return loss;
  }
  /// Computes out [nodes, out_feats].
  void predict(const Graph& graph, const sar_array& x, sar_array& out, const sar_array* edges = nullptr,
               const std::string& type = {}) const {
    check(sar_predict(raw_, graph.get(), detail::name(type), &x, edges, &out));
  }

 private:
  static std::int64_t length_of(const std::vector<std::uint8_t>* mask) {
    return mask == nullptr ? 0 : detail::length(*mask);
  }
  Model() = default;
};

class Optimizer : public OptimizerHandle {
 public:
  Optimizer(const Model& model, const std::string& description) {
    check(sar_optimizer_create(model.get(), description.c_str(), &raw_));
  }
  double lr() const { return value_of(sar_optimizer_get_lr); }
  void set_lr(double lr) { check(sar_optimizer_set_lr(raw_, lr)); }
};

class Predictor : public Handle<sar_predictor, sar_predictor_free> {
 public:
  Predictor(const Model& model, const Graph& graph) {
    check(sar_predictor_create(model.get(), graph.get(), &raw_));
  }
  void run(const sar_array& x, sar_array& out, const sar_array* edges = nullptr) const {
    check(sar_predictor_run(raw_, &x, edges, &out));
  }
};

/// What Potential::evaluate() returns for the atoms of this rank and for all ranks.
struct PotentialValues {
  double energy = 0;             ///< of all ranks
  double virial[9] = {};         ///< of all ranks
  std::vector<double> energies;  ///< of each atom
  double energy_deviation = 0;   ///< of a committee, of all ranks
  std::vector<double> force_deviations;  ///< of each atom, if they are asked for
};

class Potential : public Handle<sar_potential, sar_potential_free> {
 public:
  Potential(const Comm& comm, const std::string& path) {
    check(sar_potential_load(comm.get(), path.c_str(), &raw_));
  }
  std::int32_t species(const std::string& name) const {
    std::int32_t number = 0;
    check(sar_potential_species(raw_, name.c_str(), &number));
    return number;
  }
  double cutoff() const { return value_of(sar_potential_cutoff); }
  /// Without positions, `edges` are edge vectors.
  PotentialValues evaluate(const Graph& graph, const std::vector<std::int32_t>& species,
                           const sar_array* positions, const sar_array* edges, sar_array* forces = nullptr,
                           sar_array* virials = nullptr, sar_array* centroid_virials = nullptr,
                           bool force_deviations = false) const {
    PotentialValues values;
    values.energies.resize(species.size());
    values.force_deviations.resize(force_deviations ? species.size() : 0);
    double none = 0;
    double* const deviations = values.force_deviations.empty() ? &none : values.force_deviations.data();
    check(sar_potential_evaluate(raw_, graph.get(), static_cast<std::int64_t>(species.size()), species.data(),
                                 positions, edges, &values.energy, values.virial, values.energies.data(),
                                 forces, virials, centroid_virials, &values.energy_deviation,
                                 force_deviations ? deviations : nullptr));
    return values;
  }
};

/// What Learner::train() returns: means over the steps.
struct LearnerErrors {
  double loss = 0;
  double energy = 0;  ///< of an atom, mean absolute error
  double force = 0;   ///< of components, mean absolute error
};

class Learner : public Handle<sar_learner, sar_learner_free> {
 public:
  /// An empty directory: no checkpoints.
  explicit Learner(const Potential& potential, const std::string& directory = "", std::int64_t batch_size = 4,
                   double lr = 1e-3) {
    check(sar_learner_create(potential.get(), directory.empty() ? nullptr : directory.c_str(), batch_size, lr,
                             &raw_));
  }
  void add(const std::vector<std::int32_t>& species, const sar_array* positions, double energy,
           const sar_array* forces = nullptr, const sar_array* cell = nullptr,
           const sar_array* stress = nullptr) const {
    check(sar_learner_add(raw_, static_cast<std::int64_t>(species.size()), species.data(), positions, energy,
                          forces, cell, stress));
  }
  LearnerErrors train(std::int64_t steps) const {
    LearnerErrors errors;
    check(sar_learner_train(raw_, steps, &errors.loss, &errors.energy, &errors.force));
    return errors;
  }
  std::int64_t num_structures() const { return value_of(sar_learner_num_structures); }
};

class Checkpoints : public Handle<sar_checkpoints, sar_checkpoints_free> {
 public:
  Checkpoints(const Comm& comm, const std::string& directory, std::int32_t keep_last = 3,
              std::uint64_t seed = 0) {
    check(sar_checkpoints_create(comm.get(), directory.c_str(), keep_last, seed, &raw_));
  }
  void save(std::int32_t epoch, const Model& model, const Optimizer& optimizer) const {
    check(sar_checkpoints_save(raw_, epoch, model.get(), optimizer.get()));
  }
  /// Returns the epoch of the latest checkpoint, or -1 if there is none.
  std::int32_t load_latest(const Model& model, const Optimizer& optimizer) const {
    std::int32_t epoch = -1;
    check(sar_checkpoints_load_latest(raw_, model.get(), optimizer.get(), &epoch));
    return epoch;
  }
  /// Returns the epoch of the checkpoint in the file `path`.
  std::int32_t load(const std::string& path, const Model& model, const Optimizer& optimizer) const {
    std::int32_t epoch = -1;
    check(sar_checkpoints_load(raw_, path.c_str(), model.get(), optimizer.get(), &epoch));
    return epoch;
  }
};

/// A recording of what each rank computes, sends and waits for. The destructor writes it, without an error.
class Trace : public Handle<sar_trace, sar_trace_write> {
 public:
  Trace(const Comm& comm, const std::string& path) {
    check(sar_trace_start(comm.get(), path.c_str(), &raw_));
  }
  void write() {
    const sar_trace trace = raw_;
    raw_ = nullptr;
    check(sar_trace_write(trace));
  }
};

}  // namespace sar_cxx11
