// SPDX-License-Identifier: MIT

/// The objects behind the handles of sar.h.
///
/// Room bindings/c: The C interface, sar.h, and the C++11 classes over it, sar_cxx11.hpp.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/trace.hpp>
#include <sar/core/error.hpp>
#include <sar/graph/construct/host_graph.hpp>
#include <sar/nn/models/graph_model.hpp>
#include <sar/nn/train/checkpoint.hpp>
#include <sar/nn/train/optimizer.hpp>

#include <sar.h>

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace sar { inline namespace SAR_PRECISION { namespace c_interface {

/// The ErrorKind of HandleError, in addition to those of core/error.hpp.
inline constexpr ErrorKind handle_kind{5};

/// A handle that is null, freed, unknown or of another type.
class HandleError : public Error {
 public:
  explicit HandleError(const std::string& message) : Error(message, handle_kind) {}
};

/// The object behind a handle. Each belongs to one communicator of sar.h.
struct Object {
  Object(const Communicator& c, const char* type) : comm(c), kind(type) {}
  virtual ~Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  Communicator comm;
  const char* kind;  ///< the name of its type of handle
};

struct CommObject final : Object {
  static constexpr const char* name = "sar_comm";
  explicit CommObject(const Communicator& c) : Object(c, name) {}
};

struct GraphObject final : Object {
  static constexpr const char* name = "sar_graph";
  GraphObject(const Communicator& c, HostGraph made, const HostGraphOptions& its)
      : Object(c, name), graph(std::move(made)), options(its) {}

  HostGraph graph;
  HostGraphOptions options;
  std::uint64_t num_rebuilds = 0;  ///< predictors compare it with the number they saw last
};

struct ModelObject final : Object {
  static constexpr const char* name = "sar_model";
  ModelObject(const Communicator& c, std::unique_ptr<GraphModel> made);

  std::unique_ptr<GraphModel> model;
  Module& network;  ///< the same
  const ModelDescription& plan;
  Recoverable<std::uint64_t> rounded_operations;  ///< see HaloStep
  std::string description;
  std::vector<NamedParameter> parameters;
  /// Fingerprints of the parameters that sar_model_set_parameter() has set since the ranks last compared
  /// them.
  std::map<Index, std::uint64_t> set_parameters;
};
/// Add what must be equal on all ranks: in a call that reads the model, and in one that makes a pass over the
/// graph.
void add_arguments(CollectiveCall& call, const ModelObject& model);
void add_arguments(CollectiveCall& call, const GraphObject& graph);
/// Returns the status of a call that has compared `model`. After a success, the model is the same on all
/// ranks.
int after_comparison(int status, const std::shared_ptr<ModelObject>& model) noexcept;

/// The precision of a training step, and what it does with gradients before the optimizer's step.
struct GradientOptions {
  double clip_grad_norm = std::numeric_limits<double>::infinity();   ///< see clip_grad_norm()
  double clip_grad_value = std::numeric_limits<double>::infinity();  ///< see clip_grad_value()
  bool require_finite = true;  ///< refuse steps whose loss or gradients are not finite
  bool mixed_precision = false;
};

struct OptimizerObject final : Object {
  static constexpr const char* name = "sar_optimizer";
  OptimizerObject(std::shared_ptr<ModelObject> of, std::unique_ptr<Optimizer> made,
                  const GradientOptions& options)
      : Object(of->comm, name), model(std::move(of)), optimizer(std::move(made)), gradients(options) {}

  std::shared_ptr<ModelObject> model;
  std::unique_ptr<Optimizer> optimizer;
  GradientOptions gradients;
};

struct CheckpointsObject final : Object {
  static constexpr const char* name = "sar_checkpoints";
  CheckpointsObject(const Communicator& c, const std::string& directory, const CheckpointerOptions& options)
      : Object(c, name), checkpointer(c, directory, options) {}

  Checkpointer checkpointer;
};

struct TraceObject final : Object {
  static constexpr const char* name = "sar_trace";
  TraceObject(const Communicator& c, const std::string& path) : Object(c, name), trace(c, path) {}

  Trace trace;
};

/// Creates a handle with a value that no handle had before. The value is not an address, so that a freed
/// handle stays invalid.
void* new_handle(std::shared_ptr<Object> object);
/// Returns the object behind `handle`, or null if the handle is null, freed or unknown.
std::shared_ptr<Object> find_object(const void* handle);
/// Returns any object if all of the process belong to one communicator, otherwise null.
std::shared_ptr<Object> object_of_only_communicator();
void forget_handle(const void* handle);

/// A handle argument of a function, and its name.
struct Given {
  const void* handle;
  const char* argument;
};

/// Returns the object behind a handle. Throws HandleError if the handle is not valid.
std::shared_ptr<Object> live_object(const Given& given);
/// Return the network of graphs without types and with types. Throw InputError if the model is of the other
/// kind, with the function that is called.
GraphModel& untyped(const ModelObject& model);
GraphModel& typed(const ModelObject& model);
/// Throws InputError if the model normalizes and has no statistics.
void require_statistics(ModelObject& model);
/// Throws InputError unless the optimizer was created for the model.
void require_optimizer_of(const ModelObject& model, const OptimizerObject& optimizer);

/// Returns the object behind a handle as a T. Throws HandleError unless it is a valid handle of a T.
template <class T>
std::shared_ptr<T> object(const void* handle, const char* argument) {
  const std::shared_ptr<Object> found = live_object({handle, argument});
  auto wanted = std::dynamic_pointer_cast<T>(found);
  require<HandleError>(wanted != nullptr, "the handle '", argument, "' is a ", found->kind, ", expected a ",
                       T::name);
  return wanted;
}

}}}  // namespace sar
