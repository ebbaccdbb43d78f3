// SPDX-License-Identifier: MIT

// Forward: the rows of the weight are added in the order of the columns. Backward: the columns have rows of
// their own in the gradient of the weight, so that each is summed by one thread, in the order of the rows.
#include <sar/autograd/row_sums.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/nn/modules/category_embedding.hpp>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

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
    first_.push_back(rows);
    rows += size;
  }
  Tensor weight({rows, width});
  for (std::size_t c = 0; c < sizes_.size(); ++c) {
    const Index begin = first_[static_cast<Index>(c)];
    weight.slice_rows(begin, begin + sizes_[c])
        .copy_from(init::xavier_uniform({sizes_[c], width}, 1, gen.next_stream()));
  }
  weight_ = Variable(std::move(weight), true);
  register_parameter("weight", weight_);
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
  return record(std::move(y), [dw = weight_.gradient(), rows, columns,
                               sums = rank_sums()](const Tensor& grad) {
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

}}  // namespace sar
