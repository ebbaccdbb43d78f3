/// How the ranks make sure that they make the same call with operands that are right, before rows travel.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/tensor.hpp>
#include <sar/graph/graph_shard_manager.hpp>

#include <array>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

namespace sar {

/// Something that must be the same on every rank: a number, or the shape of rows.
struct AgreedItem {
  const char* what;  ///< as in "called with a different <what> on different ranks"
  std::array<std::int64_t, 4> value{};
  bool is_shape = false;

  template <class T>
  requires std::is_integral_v<T> || std::is_enum_v<T> AgreedItem(const char* name, T number)
      : what(name), value{static_cast<std::int64_t>(number)} {}
  /// All but the number of rows; an undefined shape is one, too.
  AgreedItem(const char* name, const Shape& rows);
};

/// Everything in the options of a graph.
std::vector<AgreedItem> agreed_items(const GraphOptions& options);

/// Runs `check`, which must not communicate, and compares the items. When a check throws, the exception of
/// the lowest such rank is thrown on all; when items differ, InputError on all: "<operation> is called with a
/// different <what> on different ranks: ...". One all_reduce of 24 bytes when everything is right.
/// Collective.
void agree_on_call(const Communicator& comm, const char* operation, FunctionRef<void()> check,
                   std::span<const AgreedItem> items);

}  // namespace sar
