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
  explicit Object(const Communicator& c) : comm(c) {}
  virtual ~Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  [[nodiscard]] virtual const char* kind() const noexcept = 0;

  Communicator comm;
};

struct CommObject final : Object {
  static constexpr const char* name = "sar_comm";
  using Object::Object;
  [[nodiscard]] const char* kind() const noexcept override { return name; }
};

struct GraphObject final : Object {
  static constexpr const char* name = "sar_graph";
  GraphObject(const Communicator& c, HostGraph made, const HostGraphOptions& its)
      : Object(c), graph(std::move(made)), options(its) {}
  [[nodiscard]] const char* kind() const noexcept override { return name; }

  HostGraph graph;
  HostGraphOptions options;
  std::uint64_t num_rebuilds = 0;  ///< predictors compare it with the number they saw last
};

struct ModelObject final : Object {
  static constexpr const char* name = "sar_model";
  ModelObject(const Communicator& c, std::unique_ptr<GraphModel> made);
  [[nodiscard]] const char* kind() const noexcept override { return name; }

  std::unique_ptr<GraphModel> model;
  std::uint64_t rounded_operations = 0;  ///< see HaloStep
  std::string description;
  std::vector<NamedParameter> parameters;
};

struct OptimizerObject final : Object {
  static constexpr const char* name = "sar_optimizer";
  OptimizerObject(std::shared_ptr<ModelObject> of, std::unique_ptr<Optimizer> made)
      : Object(of->comm), model(std::move(of)), optimizer(std::move(made)) {}
  [[nodiscard]] const char* kind() const noexcept override { return name; }

  std::shared_ptr<ModelObject> model;
  std::unique_ptr<Optimizer> optimizer;
};

struct CheckpointsObject final : Object {
  static constexpr const char* name = "sar_checkpoints";
  CheckpointsObject(const Communicator& c, const std::string& directory, const CheckpointerOptions& options)
      : Object(c), checkpointer(c, directory, options) {}
  [[nodiscard]] const char* kind() const noexcept override { return name; }

  Checkpointer checkpointer;
};

struct TraceObject final : Object {
  static constexpr const char* name = "sar_trace";
  TraceObject(const Communicator& c, const std::string& path) : Object(c), trace(c, path) {}
  [[nodiscard]] const char* kind() const noexcept override { return name; }

  Trace trace;
};

/// Creates a handle with a value that no handle had before. The value is not an address, so that a freed
/// handle stays invalid.
void* new_handle(std::shared_ptr<Object> object);
/// Returns the object behind `handle`, or null if the handle is null, freed or unknown.
std::shared_ptr<Object> find_object(const void* handle);
void forget_handle(const void* handle);

/// A handle argument of a function, and its name.
struct Given {
  const void* handle;
  const char* argument;
};

/// Returns the object behind a handle. Throws HandleError if the handle is not valid.
std::shared_ptr<Object> live_object(const Given& given);
/// Throws HandleError for a handle of another type than `expected`.
[[noreturn]] void refuse_kind(const Given& given, const Object& found, const char* expected);

/// Returns the object behind a handle as a T. Throws HandleError unless it is a valid handle of a T.
template <class T>
std::shared_ptr<T> object(const void* handle, const char* argument) {
  const std::shared_ptr<Object> found = live_object({handle, argument});
  auto wanted = std::dynamic_pointer_cast<T>(found);
  if (wanted == nullptr) refuse_kind({handle, argument}, *found, T::name);
  return wanted;
}

}}}  // namespace sar
