#include <sar/core/error.hpp>
#include <sar/graph/message/agreement.hpp>
#include <sar/graph/message/trace_names.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

CollectiveCall& CollectiveCall::equal(const char* what, const Shape& rows) {
  Argument argument{.what = what, .value = {rows.dims()}, .is_shape = true};
  for (int d = 1; d < rows.dims(); ++d) argument.value[d] = rows[d];
  arguments_.push_back(argument);
  return *this;
}

CollectiveCall& CollectiveCall::equal(const GraphOptions& options) {
  return equal("mode", options.mode, name_of<HaloMode>)
      .equal("pipeline_depth", options.pipeline_depth)
      .equal("aggregate_in_double", options.aggregate_in_double)
      .equal("max_halo_bytes", options.max_halo_bytes)
      .equal("edge_block", options.edge_block)
      .equal("halo_format", options.halo_format, name_of<HaloFormat>);
}

/// One number for the arguments.
std::int64_t CollectiveCall::digest() const {
  std::uint64_t hash = 0xcbf29ce484222325;
  const auto take = [&](std::uint64_t value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 29;
  };
  for (const Argument& argument : arguments_)
    for (const std::int64_t value : argument.value) take(static_cast<std::uint64_t>(value));
  return static_cast<std::int64_t>(hash);
}

std::string CollectiveCall::text_of(const Argument& argument, const std::int64_t* value) {
  if (argument.name != nullptr) return argument.name(value[0]);
  if (!argument.is_shape) return std::to_string(value[0]);
  if (value[0] == 0) return "none";
  std::string text = "[*";
  for (std::int64_t d = 1; d < value[0]; ++d) text += ", " + std::to_string(value[d]);
  return text + "]";
}

/// Throws InputError about the first argument that differs.
void CollectiveCall::report_difference(const Communicator& comm) const {
  std::vector<std::int64_t> mine;
  for (const Argument& argument : arguments_)
    mine.insert(mine.end(), argument.value.begin(), argument.value.end());
  const auto counts = comm.all_gather(static_cast<Index>(mine.size()));
  const auto all = comm.all_gather(std::span<const std::int64_t>(mine));
  std::vector<const std::int64_t*> of_rank{all.data()};
  for (const Index count : counts) of_rank.push_back(of_rank.back() + count);
  for (std::size_t i = 0; i < arguments_.size(); ++i) {
    for (std::size_t rank = 1; rank < counts.size(); ++rank) {
      if (counts[rank] != counts[0]) continue;
      const std::int64_t* a = of_rank[0] + 4 * i;
      const std::int64_t* b = of_rank[rank] + 4 * i;
      require<InputError>(std::equal(a, a + 4, b), operation_, " is called with a different ",
                          arguments_[i].what, " on different ranks: ", text_of(arguments_[i], a),
                          " on rank 0, ", text_of(arguments_[i], b), " on rank ", rank);
    }
  }
  throw InputError(concat(operation_, " is called with different operands on different ranks"));
}

void CollectiveCall::require_equal(const Communicator& comm) const {
  if (!comm.arguments_equal(digest(), operation_)) report_difference(comm);
}

Variable record_collective(const Communicator& comm, const Variable& value, Tape::Backward backward) {
  return record(value, [comm, backward = std::move(backward)](Tensor grad) {
    comm.agree([&] { backward(std::move(grad)); }, "a backward pass");
  });
}

}}  // namespace sar
