/// How the ranks make sure that they make the same call, before rows travel.
#pragma once

#include <sar/autograd/tape.hpp>
#include <sar/comm/communicator.hpp>
#include <sar/core/tensor.hpp>
#include <sar/graph/message/graph_shard_manager.hpp>

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

/// Throws InputError on all ranks when items differ: "<operation> is called with a different <what> on
/// different ranks: ...". In the body of Communicator::agree, after what each rank checks by itself: one
/// small all_reduce tells of both when everything is right. Collective.
void agree_on_call(const Communicator& comm, const char* operation, std::span<const AgreedItem> items);

/// record() of an operation whose way back is collective: it runs in Communicator::agree.
Variable record_collective(const Communicator& comm, Tensor value, Tape::Backward backward);

}  // namespace sar
