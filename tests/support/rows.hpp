// SPDX-License-Identifier: MIT

/// How tests distribute rows over the ranks, and compare results.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/random.hpp>
#include <sar/core/tensor/tensor.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

namespace sar::test {

/// Distributions of n rows over the ranks: even; even over all ranks but rank 0; all on the last rank.
inline std::vector<PartitionBook> row_splits(Index n, int ranks) {
  std::vector<PartitionBook> books{PartitionBook::even(n, ranks)};
  if (ranks == 1) return books;
  std::vector<Index> offsets = {0};
  const PartitionBook others = PartitionBook::even(n, ranks - 1);
  for (int p = 0; p < ranks; ++p) offsets.push_back(p == 0 ? 0 : others.end(p - 1));
  books.emplace_back(offsets);
  offsets.assign(ranks, 0);
  offsets.push_back(n);
  books.emplace_back(offsets);
  return books;
}

/// Ranges of different lengths; with several ranks, rank 1 has none.
inline PartitionBook uneven_book(int ranks) {
  std::vector<Index> offsets{0};
  for (int p = 0; p < ranks; ++p) offsets.push_back(offsets.back() + (p == 1 ? 0 : 10 + 7 * p));
  return PartitionBook(offsets);
}

/// This rank's rows, in memory of their own.
inline Tensor my_rows(const Tensor& whole, const PartitionBook& book, int rank) {
  return whole.slice_rows(book.begin(rank), book.end(rank)).clone();
}

/// max |mine - expected| / max |whole|, when `expected` are some rows of `whole`.
inline double error_of_part(const Tensor& mine, const Tensor& expected, const Tensor& whole) {
  if (!(mine.shape() == expected.shape())) return std::numeric_limits<double>::infinity();
  double error = 0;
  double scale = std::numeric_limits<double>::min();
  for (const real value : whole.values()) scale = std::max(scale, std::abs(static_cast<double>(value)));
  for (Index i = 0; i < mine.size(); ++i) {
    if (!std::isfinite(mine.data()[i])) return std::numeric_limits<double>::infinity();
    error = std::max(error, std::abs(static_cast<double>(mine.data()[i]) - expected.data()[i]));
  }
  return error / scale;
}

/// The same for the rows of `whole` from `first` on.
inline double error_of_rows(const Tensor& mine, const Tensor& whole, Index first) {
  if (first + mine.num_rows() > whole.num_rows()) return std::numeric_limits<double>::infinity();
  return error_of_part(mine, whole.slice_rows(first, first + mine.num_rows()), whole);
}

inline Tensor sum_over_ranks(const Communicator& comm, const Tensor& mine) {
  Tensor sum = mine.clone();
  comm.all_reduce(sum.values());
  return sum;
}

/// True when every rank holds the same bits.
inline bool same_on_all_ranks(const Communicator& comm, const Tensor& mine) {
  Tensor first = mine.clone();
  comm.broadcast(first.values(), 0);
  const bool equal = std::equal(first.values().begin(), first.values().end(), mine.values().begin());
  return comm.all_reduce(equal ? 1 : 0, ReduceOp::min) == 1;
}

/// Standard normal values; another `key` gives others.
inline Tensor random_values(const Shape& shape, std::uint64_t key = 0) {
  Tensor x(shape);
  const Random random({key, 99, 0});
  for (Index i = 0; i < x.num_rows(); ++i)
    for (Index j = 0; j < x.row_size(); ++j)
      x.row(i)[j] =
          static_cast<real>(random.normal(static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(j)));
  return x;
}

inline bool same_bits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && (a.size() == 0 || std::memcmp(a.data(), b.data(), a.bytes()) == 0);
}

}  // namespace sar::test
