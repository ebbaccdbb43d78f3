/// What the handles of sar.h refer to.
///
/// Room nn/c: The C interface, sar.h, and the C++11 classes over it, sar_cxx11.hpp.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/trace.hpp>
#include <sar/core/error.hpp>
#include <sar/graph/build/host_graph.hpp>
#include <sar/nn/checkpoint.hpp>
#include <sar/nn/model/graph_model.hpp>
#include <sar/nn/optimizer.hpp>

#include <sar.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace sar::inline SAR_PRECISION::c_interface {

/// The kind of HandleError, beside those of core/error.hpp.
inline constexpr ErrorKind handle_kind{5};

/// A handle that is null, freed, unknown or of another kind.
class HandleError : public Error {
 public:
  explicit HandleError(const std::string& message) : Error(message, handle_kind) {}
};

/// What a handle refers to. Each belongs to one communicator of sar.h.
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
  std::uint64_t num_rebuilds = 0;  ///< predictors compare it with the number that they have seen
};

struct ModelObject final : Object {
  static constexpr const char* name = "sar_model";
  ModelObject(const Communicator& c, std::unique_ptr<GraphModel> made);
  [[nodiscard]] const char* kind() const noexcept override { return name; }

  std::unique_ptr<GraphModel> model;
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

/// A new handle, a value that no handle had before. It is no address: a freed handle stays unknown.
void* new_handle(std::shared_ptr<Object> object);
/// What `handle` refers to; null for one that is null, freed or unknown.
std::shared_ptr<Object> find_object(const void* handle);
void forget_handle(const void* handle);

/// A handle that a function was given, and the name of the argument.
struct Given {
  const void* handle;
  const char* argument;
};

/// Throws HandleError for a handle that is not live.
std::shared_ptr<Object> live_object(const Given& given);
/// For a handle of another kind than `expected`.
[[noreturn]] void refuse_kind(const Given& given, const Object& found, const char* expected);

/// What a handle refers to. Throws HandleError unless it is a live handle of a T.
template <class T>
std::shared_ptr<T> object(const void* handle, const char* argument) {
  const std::shared_ptr<Object> found = live_object({handle, argument});
  auto wanted = std::dynamic_pointer_cast<T>(found);
  if (wanted == nullptr) refuse_kind({handle, argument}, *found, T::name);
  return wanted;
}

}  // namespace sar
