#include <sar/core/error.hpp>
#include <sar/graph/message/agreement.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

namespace sar {
namespace {

/// One number for everything that must be equal.
std::int64_t digest(std::string_view operation, std::span<const AgreedItem> items) {
  std::uint64_t hash = 0xcbf29ce484222325;
  const auto take = [&](std::uint64_t value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 29;
  };
  for (const char c : operation) take(static_cast<unsigned char>(c));
  for (const AgreedItem& item : items)
    for (const std::int64_t value : item.value) take(static_cast<std::uint64_t>(value));
  return static_cast<std::int64_t>(hash);
}

std::string text_of(const AgreedItem& item, const std::int64_t* value) {
  if (!item.is_shape) return std::to_string(value[0]);
  if (value[0] == 0) return "none";
  std::string text = "[*";
  for (std::int64_t d = 1; d < value[0]; ++d) text += ", " + std::to_string(value[d]);
  return text + "]";
}

/// Throws InputError about the first item that differs.
[[noreturn]] void report_difference(const Communicator& comm, const char* operation,
                                    std::span<const AgreedItem> items) {
  std::vector<std::int64_t> mine{digest(operation, {})};
  for (const AgreedItem& item : items) mine.insert(mine.end(), item.value.begin(), item.value.end());
  const auto counts = comm.all_gather(static_cast<Index>(mine.size()));
  const auto all = comm.all_gather(std::span<const std::int64_t>(mine));
  std::vector<const std::int64_t*> of_rank{all.data()};
  for (const Index count : counts) of_rank.push_back(of_rank.back() + count);
  for (std::size_t rank = 0; rank < counts.size(); ++rank)
    require<InputError>(counts[rank] == counts[0] && *of_rank[rank] == *all.data(), "rank 0 and rank ", rank,
                        " are in different operations on the same graph");
  for (std::size_t i = 0; i < items.size(); ++i) {
    for (std::size_t rank = 1; rank < counts.size(); ++rank) {
      const std::int64_t* a = of_rank[0] + 1 + 4 * i;
      const std::int64_t* b = of_rank[rank] + 1 + 4 * i;
      require<InputError>(std::equal(a, a + 4, b), operation, " is called with a different ", items[i].what,
                          " on different ranks: ", text_of(items[i], a), " on rank 0, ", text_of(items[i], b),
                          " on rank ", rank);
    }
  }
  throw InputError(concat(operation, " is called with different operands on different ranks"));
}

}  // namespace

AgreedItem::AgreedItem(const char* name, const Shape& rows) : what(name), value{rows.dims()}, is_shape(true) {
  for (int d = 1; d < rows.dims(); ++d) value[d] = rows[d];
}

std::vector<AgreedItem> agreed_items(const GraphOptions& options) {
  return {{"mode", options.mode},
          {"pipeline_depth", options.pipeline_depth},
          {"max_halo_bytes", options.max_halo_bytes},
          {"edge_block", options.edge_block}};
}

void agree_on_call(const Communicator& comm, const char* operation, std::span<const AgreedItem> items) {
  if (!comm.all_equal(digest(operation, items))) report_difference(comm, operation, items);
}

Variable record_collective(const Communicator& comm, Tensor value, Tape::Backward backward) {
  return record(std::move(value), [comm, backward = std::move(backward)](Tensor grad) {
    comm.agree([&] { backward(std::move(grad)); });
  });
}

}  // namespace sar
