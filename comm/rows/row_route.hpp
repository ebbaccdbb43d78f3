/// RowRoute: rows that change ranks in a fixed way, any number of times, there and back.
///
/// Room comm/rows: How rows of tensors change ranks. A partition book tells who owns a row; a route takes
/// rows to their owners and answers back; the halo exchange brings the rows that a stage reads.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/memory.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

namespace sar {

/// Row i of this rank goes to rank targets[i]. The rows that arrive at a rank are ordered by the rank they
/// come from, then as they were there. Rows travel in rounds of about 4 MiB a rank. 4 bytes a row are kept,
/// none when the targets ascend.
class RowRoute {
 public:
  /// Collective. Throws InputError, the same on every rank, for 2^31 rows or more. Targets are ranks.
  RowRoute(const Communicator& comm, std::span<const std::int32_t> targets);

  [[nodiscard]] Index num_rows() const noexcept { return out_begin_.back(); }
  [[nodiscard]] Index num_arrived() const noexcept { return in_begin_.back(); }

  /// One trivially copyable value a row, to where it goes. Collective.
  template <class T>
  [[nodiscard]] Array<T> there(std::span<const T> rows) const {
    static_assert(std::is_trivially_copyable_v<T>);
    return comm_.agree([&] {
      Array<T> arrived(num_arrived());
      there(reinterpret_cast<const std::byte*>(rows.data()), sizeof(T),
            reinterpret_cast<std::byte*>(arrived.data()));
      return arrived;
    });
  }
  /// One value for each row that arrived, back to where the row came from. Collective.
  template <class T>
  [[nodiscard]] Array<T> back(std::span<const T> arrived) const {
    static_assert(std::is_trivially_copyable_v<T>);
    return comm_.agree([&] {
      Array<T> rows(num_rows());
      back(reinterpret_cast<const std::byte*>(arrived.data()), sizeof(T),
           reinterpret_cast<std::byte*>(rows.data()));
      return rows;
    });
  }

  // The same for rows of any length, the same on every rank.
  void there(const std::byte* rows, std::size_t row_bytes, std::byte* arrived) const;
  void back(const std::byte* arrived, std::size_t row_bytes, std::byte* rows) const;

 private:
  Communicator comm_;
  Array<std::int32_t> order_;     // the rows by target; empty when they lie so already
  std::vector<Index> out_begin_;  // where those of each target begin
  std::vector<Index> in_begin_;
  Index longest_ = 0;  // rows that any rank has for any other
};

}  // namespace sar
