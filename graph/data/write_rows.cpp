#include <sar/comm/rows/partition_book.hpp>
#include <sar/comm/rows/permutation.hpp>
#include <sar/core/error.hpp>
#include <sar/core/half.hpp>
#include <sar/core/memory.hpp>
#include <sar/core/parallel.hpp>
#include <sar/graph/data/shared_npy.hpp>
#include <sar/graph/data/write_rows.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <numeric>
#include <vector>

namespace sar {
namespace {

constexpr Index window_bytes = Index{1} << 22;  // of a rank's range, that are put together at a time

/// `shape`: of the whole array. `pack(i, out)` writes row i of this rank as it shall lie in the file.
void write_rows(const Communicator& comm, const std::string& path, std::span<const Index> ids, Index num_rows,
                const std::vector<Index>& row_shape, NpyType type,
                FunctionRef<void(Index, std::byte*)> pack) {
  require<ShapeError>(num_rows == static_cast<Index>(ids.size()), path, ": there are ", num_rows,
                      " rows, expected ", ids.size(), ", one for each id");
  const Index total = comm.all_reduce(num_rows);
  require_permutation(comm, ids, total, path);
  const Index row_size = std::accumulate(row_shape.begin(), row_shape.end(), Index{1}, std::multiplies<>());
  const Index row_bytes = row_size * element_bytes(type);
  const Index widest = comm.all_reduce(row_size, ReduceOp::max);
  require<ShapeError>(row_size == widest, path, ": a row of rank ", comm.rank(), " has ", row_size,
                      " elements, expected ", widest, " as on other ranks");
  std::vector<Index> shape{total};
  shape.insert(shape.end(), row_shape.begin(), row_shape.end());
  SharedNpyFile file(comm, path, shape, type);

  Array<Index> order(ids.size());
  std::iota(order.begin(), order.end(), Index{0});
  std::sort(order.begin(), order.end(), [&](Index a, Index b) { return ids[a] < ids[b]; });
  const auto id_at = [&](std::size_t k) { return ids[order[k]]; };

  const int ranks = comm.size();
  const PartitionBook ranges = PartitionBook::even(total, ranks);
  const Index window = std::max<Index>(1, window_bytes / std::max<Index>(1, row_bytes));
  const Index rounds = (ranges.num_nodes(0) + window - 1) / window;  // the first range is a longest one
  std::vector<std::size_t> next;  // for each range, my first row in it that has not been sent
  for (int p = 0; p < ranks; ++p)
    next.push_back(static_cast<std::size_t>(
        std::partition_point(order.begin(), order.end(), [&](Index i) { return ids[i] < ranges.begin(p); }) -
        order.begin()));
  const Index first = ranges.begin(comm.rank());
  std::vector<Index> sent_ids;
  std::vector<std::byte> sent_rows;
  Array<std::byte> together;
  for (Index r = 0; r < rounds; ++r) {
    std::vector<Index> counts(ranks, 0);
    sent_ids.clear();
    sent_rows.clear();
    for (std::size_t p = 0; p < counts.size(); ++p) {
      const auto rank = static_cast<int>(p);
      const Index end = std::min(ranges.end(rank), ranges.begin(rank) + (r + 1) * window);
      for (; next[p] < order.size() && id_at(next[p]) < end; ++next[p], ++counts[p]) {
        sent_ids.push_back(id_at(next[p]));
        sent_rows.resize(sent_rows.size() + static_cast<std::size_t>(row_bytes));
        if (row_bytes > 0) pack(order[next[p]], sent_rows.data() + sent_rows.size() - row_bytes);
      }
    }
    const auto got_ids = comm.all_to_all_v(std::span<const Index>(sent_ids), counts).values;
    for (Index& count : counts) count *= row_bytes;
    const auto got_rows = comm.all_to_all_v(std::span<const std::byte>(sent_rows), counts).values;
    const Index begin = first + r * window;  // what has arrived is a window without gaps
    together.resize(got_rows.size());
    for (std::size_t i = 0; i < got_ids.size(); ++i)
      std::copy_n(got_rows.data() + static_cast<Index>(i) * row_bytes, row_bytes,
                  together.data() + (got_ids[i] - begin) * row_bytes);
    if (!together.empty()) file.write(begin * row_size, together);
  }
  file.commit();
}

}  // namespace

void write_npy_rows(const Communicator& comm, const std::string& path, const Tensor& rows,
                    std::span<const Index> ids, NpyType type) {
  comm.agree([&] {
    require<InputError>(type == NpyType::float16 || type == NpyType::float32 || type == NpyType::float64,
                        path, ": the type of the array is ", to_string(type),
                        ", expected float16, float32 or float64");
    std::vector<Index> row_shape;
    for (int d = 1; d < rows.shape().dims(); ++d) row_shape.push_back(rows.shape()[d]);
    const Index width = rows.shape().row_size();
    write_rows(comm, path, ids, rows.num_rows(), row_shape, type, [&](Index i, std::byte* out) {
      const real* row = rows.row(i);
      for (Index j = 0; j < width; ++j, out += element_bytes(type)) {
        const auto narrow = static_cast<float>(row[j]);
        const auto wide = static_cast<double>(row[j]);
        const std::uint16_t half = float_to_half(wide);
        if (type == NpyType::float32) std::memcpy(out, &narrow, sizeof(narrow));
        if (type == NpyType::float64) std::memcpy(out, &wide, sizeof(wide));
        if (type == NpyType::float16) std::memcpy(out, &half, sizeof(half));
      }
    });
  });
}

void write_npy_rows(const Communicator& comm, const std::string& path, std::span<const std::int64_t> values,
                    std::span<const Index> ids) {
  comm.agree([&] {
    write_rows(comm, path, ids, static_cast<Index>(values.size()), {}, NpyType::int64,
               [&](Index i, std::byte* out) { std::memcpy(out, &values[i], sizeof(std::int64_t)); });
  });
}

}  // namespace sar
