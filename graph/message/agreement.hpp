/// How the ranks make sure that they make the same call, before rows travel. For authors of operations:
///
///     return collective(
///         graph.comm(),
///         [&] {                                     // what this rank checks by itself, and what must be equal
///           check(...);
///           return CollectiveCall("update_all").equal(graph.options()).equal("reduction", reduce);
///         },
///         [&] { ... });                             // what the call does
#pragma once

#include <sar/autograd/tape.hpp>
#include <sar/comm/communicator.hpp>
#include <sar/core/memory/workspace.hpp>
#include <sar/core/tensor/tensor.hpp>
#include <sar/graph/message/graph_shard_manager.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// A collective operation and everything that must be the same on every rank.
class CollectiveCall {
 public:
  explicit CollectiveCall(const char* operation) : operation_(operation) {}

  /// `what` as in "called with a different <what> on different ranks". `name`: of a number that has one, such
  /// as an enumerator's.
  template <class T>
  requires std::is_integral_v<T> || std::is_enum_v<T> CollectiveCall& equal(
      const char* what, T number, std::string (*name)(std::int64_t) = nullptr) {
    arguments_.push_back({.what = what, .value = {static_cast<std::int64_t>(number)}, .name = name});
    return *this;
  }
  /// All but the number of rows; an undefined shape is one, too.
  CollectiveCall& equal(const char* what, const Shape& rows);
  /// Everything in the options of a graph.
  CollectiveCall& equal(const GraphOptions& options);

  /// Throws on all ranks: CommunicationError when operations differ, InputError when arguments do:
  /// "<operation> is called with a different <what> on different ranks: ...". In the body of
  /// Communicator::agree, after what each rank checks by itself: one small all_reduce tells of both when
  /// everything is right. Collective.
  void require_equal(const Communicator& comm) const;

 private:
  struct Argument {
    const char* what;
    std::array<std::int64_t, 4> value{};
    bool is_shape = false;
    std::string (*name)(std::int64_t) = nullptr;
  };
  [[nodiscard]] std::int64_t digest() const;
  [[noreturn]] void report_difference(const Communicator& comm) const;
  static std::string text_of(const Argument& argument, const std::int64_t* value);

  const char* operation_;
  PassVector<Argument> arguments_;
};

/// body() in Communicator::agree, after the ranks have made sure that `describe`, which returns a
/// CollectiveCall, returns the same one on all of them. What either throws on a rank is thrown on all.
/// Collective.
template <class Describe, class Body>
auto collective(const Communicator& comm, const Describe& describe, const Body& body,
                const char* caller = __builtin_FUNCTION()) {
  return comm.agree(
      [&] {
        const CollectiveCall call = describe();
        call.require_equal(comm);
        return body();
      },
      caller);
}

/// record() of an operation whose backward pass is collective: it runs in Communicator::agree.
Variable record_collective(const Communicator& comm, const Variable& value, Tape::Backward backward);

}}  // namespace sar
