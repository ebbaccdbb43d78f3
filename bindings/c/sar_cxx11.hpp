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
#include <stdexcept>
#include <string>
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

/// Returns an array [values.size() / fields, fields].
inline sar_array array(const std::vector<double>& values, std::int64_t fields) {
  return sar_array_double(values.data(), static_cast<std::int64_t>(values.size()) / fields, fields);
}
inline sar_array array(const std::vector<float>& values, std::int64_t fields) {
  return sar_array_float(values.data(), static_cast<std::int64_t>(values.size()) / fields, fields);
}

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
  int rank() const { return value_of(sar_comm_rank); }
  int size() const { return value_of(sar_comm_size); }
};

/// A rank's own numbering of nodes: its nodes, then its ghosts.
struct LocalToGlobal {
  std::int64_t num_owned;
  std::vector<std::int64_t> global_ids;
};

/// Numbers of nodes and edges of a graph, as in sar_graph_sizes() and sar_graph_global_sizes().
struct GraphSizes {
  std::int64_t nodes, edges, given_edges, global_nodes, global_edges;
};

class Graph : public Handle<sar_graph, sar_graph_free> {
 public:
  Graph(const Comm& comm, const std::vector<std::int64_t>& node_ids, const std::vector<std::int64_t>& src,
        const std::vector<std::int64_t>& dst, const std::string& options = "{}") {
    require_ends(src.size(), dst.size());
    check(sar_graph_from_global(comm.get(), length(node_ids), node_ids.data(), length(src), src.data(),
                                dst.data(), nullptr, nullptr, options.c_str(), &raw_));
  }
  Graph(const Comm& comm, const LocalToGlobal& nodes, const std::vector<std::int32_t>& src,
        const std::vector<std::int32_t>& dst, const std::string& options = "{}") {
    require_ends(src.size(), dst.size());
    check(sar_graph_from_local(comm.get(), nodes.num_owned, length(nodes.global_ids), nodes.global_ids.data(),
                               length(src), src.data(), dst.data(), nullptr, nullptr, options.c_str(),
                               &raw_));
  }
  /// Replaces the nodes and edges of the graph. Options stay, and predictors follow the graph.
  void rebuild(const std::vector<std::int64_t>& node_ids, const std::vector<std::int64_t>& src,
               const std::vector<std::int64_t>& dst) {
    require_ends(src.size(), dst.size());
    check(sar_graph_rebuild_from_global(raw_, length(node_ids), node_ids.data(), length(src), src.data(),
                                        dst.data(), nullptr, nullptr));
  }
  void rebuild(const LocalToGlobal& nodes, const std::vector<std::int32_t>& src,
               const std::vector<std::int32_t>& dst) {
    require_ends(src.size(), dst.size());
    check(sar_graph_rebuild_from_local(raw_, nodes.num_owned, length(nodes.global_ids),
                                       nodes.global_ids.data(), length(src), src.data(), dst.data(), nullptr,
                                       nullptr));
  }
  GraphSizes sizes() const {
    GraphSizes sizes;
    check(sar_graph_sizes(raw_, &sizes.nodes, &sizes.edges, &sizes.given_edges));
    check(sar_graph_global_sizes(raw_, &sizes.global_nodes, &sizes.global_edges));
    return sizes;
  }
  /// Returns a row for each edge in the graph's order, from a row for each edge that this rank gave.
  template <class T>
  std::vector<T> to_graph_order(const std::vector<T>& rows, std::int64_t fields) const {
    std::vector<T> result(static_cast<std::size_t>(sizes().edges * fields));
    const sar_array given = array(rows, fields);
    sar_array out = array(result, fields);
    check(sar_graph_edges_to_graph_order(raw_, &given, nullptr, &out));
    return result;
  }

 private:
  template <class T>
  static std::int64_t length(const std::vector<T>& values) {
    return static_cast<std::int64_t>(values.size());
  }
  static void require_ends(std::size_t src, std::size_t dst) {
    if (src != dst)
      throw Error(SAR_ERROR_SHAPE, "there are " + std::to_string(src) + " sources of edges and " +
                                       std::to_string(dst) + " destinations, expected as many");
  }
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
  /// Returns the loss before the step. `edges` and `mask` may be null.
  double train_step(const OptimizerHandle& optimizer, const Graph& graph, const sar_array& x,
                    const sar_array& target, std::int32_t loss_kind = SAR_LOSS_MSE,
                    const sar_array* edges = nullptr, const std::vector<std::uint8_t>* mask = nullptr) {
    double loss = 0;
    check(sar_train_step(raw_, optimizer.get(), graph.get(), &x, edges, loss_kind, &target,
                         mask == nullptr ? 0 : static_cast<std::int64_t>(mask->size()),
                         mask == nullptr ? nullptr : mask->data(), &loss));
    return loss;
  }
  double train_step(const OptimizerHandle& optimizer, const Graph& graph, const sar_array& x,
                    const std::vector<std::int64_t>& labels, const sar_array* edges = nullptr,
                    const std::vector<std::uint8_t>* mask = nullptr) {
    double loss = 0;
    check(sar_train_step_labels(raw_, optimizer.get(), graph.get(), &x, edges,
                                static_cast<std::int64_t>(labels.size()), labels.data(),
                                mask == nullptr ? 0 : static_cast<std::int64_t>(mask->size()),
                                mask == nullptr ? nullptr : mask->data(), &loss));
    return loss;
  }

 private:
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
};

}  // namespace sar_cxx11
