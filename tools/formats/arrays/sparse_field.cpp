// SPDX-License-Identifier: MIT

// A row is asked for at its owner, which sends the number of its entries, then their columns and values: 8
// bytes a row, and 8 bytes and a value for each entry. Time is that of writing the dense rows.

#include "sparse_field.hpp"

#include <sar/core/error.hpp>
#include <sar/core/files/npy.hpp>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace sar::formats {
namespace {

/// Entries of rows, as they are sent.
struct SentRows {
  Communicator::Received<Index> counts;  ///< of entries, for each row
  std::vector<Index> columns;
  std::vector<std::byte> values;
};

/// Sends each rank the rows that it asks for. Collective.
SentRows send_rows_of(const Communicator& comm, const CsrMatrix& matrix,
                      const Communicator::Received<Index>& asked) {
  const Index begin = matrix.rows.begin(comm.rank()), width = matrix.values.row_bytes();
  std::vector<Index> counts, columns, entries(asked.counts.size(), 0), bytes(asked.counts.size(), 0);
  std::vector<std::byte> values;
  comm.agree([&] {
    auto row = asked.values.begin();
    for (std::size_t rank = 0; rank < asked.counts.size(); ++rank) {
      for (Index i = 0; i < asked.counts[rank]; ++i, ++row) {
        const Index first = matrix.offsets[*row - begin], last = matrix.offsets[*row - begin + 1];
        counts.push_back(last - first);
        columns.insert(columns.end(), matrix.columns.begin() + first, matrix.columns.begin() + last);
        values.insert(values.end(), matrix.values.row(first), matrix.values.row(last));
        entries[rank] += last - first;
      }
      bytes[rank] = entries[rank] * width;
    }
  });
  return {comm.all_to_all_v(std::span<const Index>(counts), asked.counts),
          comm.all_to_all_v(std::span<const Index>(columns), entries).values,
          comm.all_to_all_v(std::span<const std::byte>(values), bytes).values};
}

/// Adds elements of the type in the file.
void add_element(NpyType type, const std::byte* value, std::byte* to, bool is_first) {
  const Index bytes = element_bytes(type);
  if (is_first) {
    std::copy_n(value, bytes, to);
    return;
  }
  with_npy_type(type, [&](auto element) {
    using Element = decltype(element);
    if constexpr (requires { element + element; }) {
      Element a{}, b{};
      std::copy_n(to, bytes, reinterpret_cast<std::byte*>(&a));
      std::copy_n(value, bytes, reinterpret_cast<std::byte*>(&b));
      a = static_cast<Element>(a + b);
      std::copy_n(reinterpret_cast<const std::byte*>(&a), bytes, to);
    }
  });
}

}  // namespace

DataArray SparseFieldData::read(const Communicator& comm, std::span<const Index> rows) const {
  std::vector<Index> order(rows.size()), sorted, counts(static_cast<std::size_t>(comm.size()), 0);
  comm.agree([&] {
    for (const Index row : rows) {
      require<InputError>(0 <= row && row < matrix_.num_rows, "there is no row ", row, ", expected ",
                          index_range(matrix_.num_rows));
      ++counts[matrix_.rows.owner(row)];
    }
    std::iota(order.begin(), order.end(), Index{0});
    std::ranges::stable_sort(order, {}, [&](Index i) { return rows[i]; });
    for (const Index i : order) sorted.push_back(rows[i]);
  });
  const auto asked = comm.all_to_all_v(std::span<const Index>(sorted), counts);
  const SentRows got = send_rows_of(comm, matrix_, asked);
  return comm.agree([&] {
    DataArray dense(matrix_.values.type, {matrix_.num_columns}, std::ssize(rows));
    std::ranges::fill(dense.bytes, std::byte{0});
    std::vector<Index> last_row(static_cast<std::size_t>(matrix_.num_columns), -1);  // that has the column
    const Index width = matrix_.values.row_bytes();
    Index k = 0;
    for (std::size_t i = 0; i < order.size(); ++i)
      for (Index n = 0; n < got.counts.values[i]; ++n, ++k) {
        const Index column = got.columns[k];
        add_element(dense.type, got.values.data() + k * width, dense.row(order[i]) + column * width,
                    std::exchange(last_row[column], static_cast<Index>(i)) != static_cast<Index>(i));
      }
    return dense;
  });
}

}  // namespace sar::formats
