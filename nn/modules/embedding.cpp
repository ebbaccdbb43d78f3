// SPDX-License-Identifier: MIT

// Forward: the rows of the weight are added in the order of the columns. Backward: the columns have rows of
// their own in the gradient of the weight, so that each is summed by one thread, in the order of the rows.
#include <sar/autograd/row_sums.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/comm/rows/row_route.hpp>
#include <sar/core/error.hpp>
#include <sar/core/memory/index_arrays.hpp>
#include <sar/core/rows/rows.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/nn/modules/embedding.hpp>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

namespace {

void add_row(const real* from, Index width, real* to) {
  for (Index j = 0; j < width; ++j) to[j] += from[j];
}

}  // namespace

CategoryEmbedding::CategoryEmbedding(std::vector<Index> sizes, Index width, Generator& gen)
    : sizes_(std::move(sizes)) {
  require<InputError>(!sizes_.empty(), "a CategoryEmbedding of no columns, expected at least one");
  require<InputError>(width >= 1, "a CategoryEmbedding of width ", width, ", expected 1 or more");
  Index rows = 0;
  for (const Index size : sizes_) {
    require<InputError>(size >= 1, "a CategoryEmbedding of ", size, " categories, expected 1 or more");
    constexpr Index most = std::numeric_limits<local_index>::max();
    require<InputError>(size <= most - rows, "a CategoryEmbedding of more than ", most,
                        " categories, the last column has ", size);
    first_.push_back(rows);
    rows += size;
  }
  Tensor weight({rows, width});
  for (std::size_t c = 0; c < sizes_.size(); ++c) {
    const Index begin = first_[static_cast<Index>(c)];
    weight.slice_rows(begin, begin + sizes_[c])
        .copy_from(init::xavier_uniform({sizes_[c], width}, 1, gen.next_stream()));
  }
  register_parameter("weight", weight_, std::move(weight));
}

Variable CategoryEmbedding::operator()(const IntegerRows& x, const std::string& place) const {
  const Index columns = std::ssize(sizes_), n = x.num_rows(), embedded = width();
  require<ShapeError>(x.columns == columns, place, ": rows of ", x.columns, " integers, expected ", columns);
  const auto rows = std::make_shared<Array<local_index>>(static_cast<std::size_t>(n * columns));
  for (Index i = 0; i < n; ++i)
    for (Index c = 0; c < columns; ++c) {
      const Index value = x.row(i)[c], size = sizes_[static_cast<std::size_t>(c)];
      require<InputError>(0 <= value && value < size, place, ": row ", i, ", column ", c, " is ", value,
                          ", expected ", index_range(size));
      (*rows)[i * columns + c] = static_cast<local_index>(first_[c] + value);
    }
  const Tensor& weight = weight_.value();
  Tensor y({n, embedded});
  parallel_for_each(n, 64, [&](Index i) {
    const local_index* const row = rows->data() + i * columns;
    std::copy_n(weight.row(row[0]), embedded, y.row(i));
    for (Index c = 1; c < columns; ++c) add_row(weight.row(row[c]), embedded, y.row(i));
  });
  if (!recording({&weight_})) return y;
  return record(std::move(y),
                [dw = weight_.gradient(), rows, columns, sums = rank_sums()](const Tensor& grad) {
                  if (sums != nullptr)
                    return add_rows_by_id(*sums, dw, std::vector<Index>(rows->begin(), rows->end()), grad);
                  dw->add([&](Tensor& out, bool accumulate) {
                    if (!accumulate) out.fill(0);
                    parallel_for_each(columns, 1, [&](Index c) {
                      for (Index i = 0; i < grad.num_rows(); ++i)
                        add_row(grad.row(i), grad.row_size(), out.row((*rows)[i * columns + c]));
                    });
                  });
                });
}

namespace {

Tensor initial_rows(const Communicator& comm, const PartitionBook& book, std::span<const Index> original_ids,
                    Index width, double bound, const RandomKey& key) {
  return comm.agree([&] {
    require<InputError>(width >= 1 && bound >= 0, "DistributedEmbedding: width ", width, " and bound ", bound,
                        ", expected 1 or more and 0 or more");
    const Index expected = comm.rank() < book.num_parts() ? book.num_nodes(comm.rank()) : 0;
    require<ShapeError>(std::ssize(original_ids) == expected, "DistributedEmbedding: ", original_ids.size(),
                        " original ids, expected ", expected, ", as the partition book says");
    comm.require_equal(CollectiveCall("DistributedEmbedding")
                           .equal("width", width)
                           .equal("bound", bound)
                           .equal("seed", key.seed)
                           .equal("stream", key.stream));
    Tensor rows({expected, width});
    const Random random(key);
    parallel_for_each(expected, 256, [&](Index i) {
      for (Index j = 0; j < width; ++j)
        rows.row(i)[j] =
            static_cast<real>(bound * (2 * random.uniform(static_cast<std::uint64_t>(original_ids[i]),
                                                          static_cast<std::uint64_t>(j)) -
                                       1));
    });
    return rows;
  });
}

/// Sums the rows with equal ids, in their order in `rows`.
SparseRows summed(std::span<const Index> ids, const Tensor& rows) {
  SparseRows sums;
  sums.ids.assign(ids.begin(), ids.end());
  std::sort(sums.ids.begin(), sums.ids.end());
  sums.ids.erase(std::unique(sums.ids.begin(), sums.ids.end()), sums.ids.end());
  Array<Index> position(ids.size());
  for (Index i = 0; i < std::ssize(ids); ++i)
    position[i] = std::lower_bound(sums.ids.begin(), sums.ids.end(), ids[i]) - sums.ids.begin();
  sums.rows = Tensor::zeros(rows.shape().with_rows(std::ssize(sums.ids)));
  scatter_add_rows(rows, position, sums.rows);
  return sums;
}

}  // namespace

DistributedEmbedding::DistributedEmbedding(std::string name, const Communicator& comm,
                                           const PartitionBook& book, std::span<const Index> original_ids,
                                           Index width, Generator& gen, double bound)
    : name_(std::move(name)),
      original_ids_(comm.agree([&] { return Array<Index>(original_ids.begin(), original_ids.end()); })),
      mine_(initial_rows(comm, book, original_ids, width, bound, gen.next_stream())),
      rows_(comm, book, mine_) {}

Variable DistributedEmbedding::operator()(std::span<const Index> ids) {
  return comm().agree([&] {
    const bool kept = Tape::current() != nullptr;
    const CallScope compared(comm(), CollectiveCall("DistributedEmbedding::operator()")
                                         .equal("embedding", name_)
                                         .equal("recording for a backward pass (Tape in scope)", kept));
    Variable rows(rows_.pull_all(ids), kept);
    if (kept) uses_.change().push_back({std::make_shared<const Array<Index>>(ids.begin(), ids.end()), rows});
    return rows;
  });
}

Variable DistributedEmbedding::operator()() {
  const bool kept = Tape::current() != nullptr;
  Variable rows(mine_, kept);
  if (!kept) return rows;
  const Index count = mine_.num_rows();
  Array<Index> ids = consecutive(count == 0 ? 0 : book().begin(comm().rank()), count);
  uses_.change().push_back({std::make_shared<const Array<Index>>(std::move(ids)), rows});
  return rows;
}

SparseRows DistributedEmbedding::gradient() const {
  return comm().agree([&] {
    const CallScope compared(comm(),
                             CollectiveCall("DistributedEmbedding::gradient").equal("embedding", name_));
    Index count = 0;
    for (const Use& use : uses_.get())
      if (use.rows.grad().defined()) count += std::ssize(*use.ids);
    Array<Index> ids;
    ids.reserve(count);
    Tensor rows({count, width()});
    for (const Use& use : uses_.get()) {
      const Tensor gradient = use.rows.grad();
      if (!gradient.defined()) continue;
      std::copy_n(gradient.data(), gradient.size(), rows.row(std::ssize(ids)));
      ids.insert(ids.end(), use.ids->begin(), use.ids->end());
    }
    const SparseRows here = summed(ids, rows);
    const RowRoute route(comm(), book().owners(here.ids));
    const Array<Index> arrived_ids = route.forward(std::span<const Index>(here.ids));
    return summed(arrived_ids, route.forward(here.rows));
  });
}
}}  // namespace sar
