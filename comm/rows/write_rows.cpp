// SPDX-License-Identifier: MIT

// Each rank owns an equal range of the file and writes it in windows of about 4 MiB. A rank sorts its ids
// once: O(n log n) time and 8 bytes for each of n ids. For window w, it sends the rows that belong to
// window w of each range by a RowRoute, with 8 bytes of id per row; the owner puts them in order and
// writes them at once. So each value is sent once and written once.
#include <sar/comm/rows/node_directory.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/comm/rows/row_route.hpp>
#include <sar/comm/rows/shared_npy.hpp>
#include <sar/comm/rows/write_rows.hpp>
#include <sar/core/error.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/numbers.hpp>
#include <sar/core/threads/parallel.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <numeric>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

namespace {

/// Writes the rows to the file, one range per rank, chunk by chunk. `pack(i, out)` writes row i of this rank
/// in the representation of the file. Collective.
void write_windows(const Communicator& comm, SharedNpyFile& file, std::span<const Index> ids, Index total,
                   Index row_size, Index row_bytes, FunctionRef<void(Index, std::byte*)> pack) {
  const Array<Index> order = sorted_order(ids);
  const PartitionBook ranges = PartitionBook::even(total, comm.size());
  const Index window = std::max<Index>(1, route_chunk_bytes / std::max<Index>(1, row_bytes));
  const Index windows = (ranges.num_nodes(0) + window - 1) / window;  // no range is longer than the first
  std::vector<Index> next;  // per range, the first of my rows that was not sent yet
  for (int p = 0; p < comm.size(); ++p)
    next.push_back(
        std::partition_point(order.begin(), order.end(), [&](Index i) { return ids[i] < ranges.begin(p); }) -
        order.begin());
  std::vector<std::int32_t> targets;
  std::vector<Index> sent_ids;
  std::vector<std::byte> sent_rows, got_rows;
  Array<std::byte> together;
  for (Index w = 0; w < windows; ++w) {
    targets.clear();
    sent_ids.clear();
    sent_rows.clear();
    for (int p = 0; p < comm.size(); ++p) {
      const Index end = std::min(ranges.end(p), ranges.begin(p) + (w + 1) * window);
      for (; next[p] < static_cast<Index>(ids.size()) && ids[order[next[p]]] < end; ++next[p]) {
        targets.push_back(p);
        sent_ids.push_back(ids[order[next[p]]]);
        sent_rows.resize(sent_rows.size() + row_bytes);
        if (row_bytes > 0) pack(order[next[p]], sent_rows.data() + sent_rows.size() - row_bytes);
      }
    }
    const RowRoute route(comm, targets);
    const Array<Index> got_ids = route.forward(std::span<const Index>(sent_ids));
    got_rows.resize(route.num_arrived() * row_bytes);
    route.forward(sent_rows.data(), row_bytes, got_rows.data());
    const Index begin = ranges.begin(comm.rank()) + w * window;  // a chunk without gaps has arrived
    together.resize(got_rows.size());
    for (Index i = 0; i < route.num_arrived(); ++i)
      std::copy_n(got_rows.data() + i * row_bytes, row_bytes,
                  together.data() + (got_ids[i] - begin) * row_bytes);
    if (!together.empty()) file.write(begin * row_size, together);
  }
}

/// Checks the arguments on all ranks and writes the file. `pack` as above. Collective.
void write_rows(const Communicator& comm, const std::string& path, std::span<const Index> ids, Index num_rows,
                const std::vector<Index>& row_shape, NpyType type,
                FunctionRef<void(Index, std::byte*)> pack) {
  require<ShapeError>(num_rows == static_cast<Index>(ids.size()), path, ": there are ", num_rows,
                      " rows, expected ", ids.size(), ", one for each id");
  const Index total = comm.all_reduce(num_rows);
  require_permutation(comm, ids, total, path);
  const Index row_size = std::accumulate(row_shape.begin(), row_shape.end(), Index{1}, std::multiplies<>());
  const Index widest = comm.all_reduce(row_size, ReduceOp::max);
  require<ShapeError>(row_size == widest, path, ": a row of rank ", comm.rank(), " has ", row_size,
                      " elements, expected ", widest, " as on other ranks");
  SharedNpyFile file(comm, path, shape_of_rows(total, row_shape), type);
  write_windows(comm, file, ids, total, row_size, row_size * element_bytes(type), pack);
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
}}  // namespace sar
