#include <sar/core/columns.hpp>
#include <sar/core/error.hpp>
#include <sar/core/parallel.hpp>

namespace sar::inline SAR_PRECISION {
namespace {

constexpr Index grain = Index{1} << 12;  // rows

template <class T>
Tensor join(std::span<const std::span<const T>> columns) {
  require<ShapeError>(!columns.empty(), "from_columns: there are no columns, expected one at least");
  const Index rows = std::ssize(columns[0]);
  for (Index j = 0; j < std::ssize(columns); ++j)
    require<ShapeError>(std::ssize(columns[j]) == rows, "from_columns: column ", j, " has ",
                        columns[j].size(), " values, expected ", rows, " as in column 0");
  Tensor x({rows, std::ssize(columns)});
  parallel_for(x.num_rows(), grain, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i)
      for (Index j = 0; j < std::ssize(columns); ++j) x.row(i)[j] = static_cast<real>(columns[j][i]);
  });
  return x;
}

template <class T>
void split(const Tensor& x, std::span<const std::span<T>> columns) {
  require<ShapeError>(x.defined() && std::ssize(columns) == x.row_size(), "copy_to_columns: there are ",
                      columns.size(), " columns for a tensor of shape ", x.shape(),
                      ", expected one for each value of a row");
  for (Index j = 0; j < std::ssize(columns); ++j)
    require<ShapeError>(std::ssize(columns[j]) == x.num_rows(), "copy_to_columns: column ", j, " has ",
                        columns[j].size(), " values for a tensor of shape ", x.shape(), ", expected ",
                        x.num_rows());
  parallel_for(x.num_rows(), grain, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i)
      for (Index j = 0; j < std::ssize(columns); ++j) columns[j][i] = static_cast<T>(x.row(i)[j]);
  });
}

template <class T>
std::span<const T> as_span(const std::initializer_list<T>& list) {
  return {list.begin(), list.size()};
}

}  // namespace

Tensor from_columns(std::span<const std::span<const float>> columns) {
  return join(columns);
}
Tensor from_columns(std::span<const std::span<const double>> columns) {
  return join(columns);
}
Tensor from_columns(std::initializer_list<std::span<const float>> columns) {
  return join(as_span(columns));
}
Tensor from_columns(std::initializer_list<std::span<const double>> columns) {
  return join(as_span(columns));
}

void copy_to_columns(const Tensor& x, std::span<const std::span<float>> columns) {
  split(x, columns);
}
void copy_to_columns(const Tensor& x, std::span<const std::span<double>> columns) {
  split(x, columns);
}
void copy_to_columns(const Tensor& x, std::initializer_list<std::span<float>> columns) {
  split(x, as_span(columns));
}
void copy_to_columns(const Tensor& x, std::initializer_list<std::span<double>> columns) {
  split(x, as_span(columns));
}

}  // namespace sar
