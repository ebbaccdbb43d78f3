// SPDX-License-Identifier: MIT

/// StoredRows: the implementation of DistributedTensor, on bytes. For the sources of the library only.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/comm/rows/row_pull.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/tensor/tensor.hpp>

#include <cstddef>
#include <exception>
#include <memory>
#include <span>

namespace sar { inline namespace SAR_PRECISION {

class RowWindow;
struct RowRange;

/// This rank's rows in memory.
struct OwnRows {
  std::byte* data = nullptr;
  Shape shape;  ///< [rows of this rank, ...]
  Index element_bytes = 1;
  bool writable = true;
  std::shared_ptr<const void> memory = nullptr;  ///< keeps the rows alive; null: the caller does
  /// sum[j] += row[j] for the elements of a row
  void (*add)(std::byte* sum, const std::byte* row, Index row_size) = nullptr;
};

/// The rows of a distributed tensor.
class StoredRows : NonCopyable {
 public:
  /// Collective. Throws as DistributedTensor.
  StoredRows(const Communicator& comm, const PartitionBook& book, const OwnRows& mine);
  ~StoredRows();

  // These do what the functions of DistributedTensor with the same names do, for rows of bytes.
  void pull(std::span<const Index> ids, FunctionRef<std::byte*()> make_out);
  void push(std::span<const Index> ids, const std::byte* rows, Index num_elements, bool add);
  void barrier();
  /// Collective. `make_out` allocates the memory for the rows.
  std::unique_ptr<RowPull> start_pull(std::span<const Index> ids, FunctionRef<std::byte*()> make_out);

  [[nodiscard]] const Communicator& comm() const noexcept { return comm_; }
  [[nodiscard]] const PartitionBook& book() const noexcept { return book_; }
  [[nodiscard]] const OwnRows& mine() const noexcept { return mine_; }
  void require_writable(const char* call) const;
  /// Local. Throws InputError unless the book has as many ranks as the communicator.
  static void require_ranks(const Communicator& comm, const PartitionBook& book);

 private:
  /// Rows of push() since the last barrier(), in the order of the calls.
  struct Pushed {
    Array<Index> ids;  // ~id: a row to be added
    Array<std::byte> rows;
  };

  void check_own_rows();
  void get_rows(const RowsByOwner& wanted, std::byte* out, CommStats& stats) const;
  void get_range(int owner, RowRange rows, std::byte* out) const;
  void noting_failure(FunctionRef<void()> call);
  void report_failure();
  void save_rows(std::span<const Index> entries);
  void apply(std::span<const Index> entries, const std::byte* rows);
  [[nodiscard]] std::byte* row_of(Index entry) const;

  Communicator comm_;
  PartitionBook book_;
  OwnRows mine_;
  Index row_bytes_;
  std::unique_ptr<RowWindow> window_;
  std::exception_ptr failure_;  // of a local call
  std::shared_ptr<Pushed> pushed_;
};

}}  // namespace sar
