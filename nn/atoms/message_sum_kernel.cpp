// SPDX-License-Identifier: MIT
#include <sar/core/products/matmul.hpp>
#include <sar/nn/atoms/message_sum_kernel.hpp>

#include <algorithm>
#include <span>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// The rows of W that are used.
MatrixView used(const MessageSumKernel::Operands& o) {
  return {o.filter.data(), o.filter_size(), o.filter.row_size(), o.filter.row_size(), 1};
}

}  // namespace

MessageSumKernel::MessageSumKernel(Operands operands)
    : o_(std::move(operands)), weight_(product_method()), transposed_(product_method()) {
  weight_.pack(used(o_));
  transposed_.pack(used(o_).transposed());
}

void MessageSumKernel::Chunk::begin(Index edges) {
  for (Array<local_index>* list : {&src, &dst, &edge}) list->resize(edges);
  rows.clear();
  groups.assign(1, 0);
}

template <class Offset, class Compute, class Add>
void MessageSumKernel::for_chunks(Index num_rows, const Offset& offset, const Compute& compute,
                                  const Add& add) {
  const Index at_once = num_threads() == 1 ? 1 : 2 * num_threads();
  if (std::ssize(chunks_) < at_once) chunks_.resize(static_cast<std::size_t>(at_once));
  for (Index row = 0; row < num_rows;) {
    std::size_t count = 0;
    for (; row < num_rows && std::ssize(chunks_) > static_cast<Index>(count); ++count) {
      const Index first = row++;
      while (row < num_rows && offset(row + 1) - offset(first) <= o_.edge_chunk) ++row;
      chunks_[count].first_row = first;
      chunks_[count].last_row = row;
    }
    parallel_for_each(static_cast<Index>(count), 1,
                      [&](Index i) { compute(chunks_[static_cast<std::size_t>(i)]); });
    for (const Chunk& chunk : std::span(chunks_).first(count)) add(chunk);
  }
}

/// Computes d, the radial rows and the filters of the edges of a chunk, and their tangents.
void MessageSumKernel::make_edge_rows(const Stage& stage, Chunk& chunk) const {
  const Index n = chunk.size(), columns = o_.radial.columns();
  const auto make_vectors = [&](Index first_column, const Tensor& own, const Tensor& shifts, Tensor& out) {
    out = Tensor({n, 3});
    for (Index e = 0; e < n; ++e) {
      const real* from = stage.rows.reals() + chunk.src[e] * o_.source_columns() + first_column;
      const real *to = own.row(chunk.dst[e]), *t = shifts.defined() ? shifts.row(chunk.edge[e]) : nullptr;
      for (Index k = 0; k < 3; ++k)
        out.row(e)[k] =
            static_cast<real>(static_cast<double>(from[k]) + (t != nullptr ? static_cast<double>(t[k]) : 0) -
                              static_cast<double>(to[k]));
    }
  };
  const auto filter_of = [&](const Tensor& radial) {
    Tensor filter({n, o_.filter_size()});
    transposed_.multiply({radial.data(), n, columns - 3, columns, 1}, {filter.data(), o_.filter_size()});
    return filter;
  };
  make_vectors(o_.message_columns(), o_.own, o_.shifts, chunk.d);
  chunk.radial = Tensor({n, columns});
  radial_rows(o_.radial, chunk.d, chunk.radial);
  chunk.filter = filter_of(chunk.radial);
  if (!o_.tangents()) return;
  make_vectors(o_.message_columns() + 3, o_.own_tangent, o_.shifts_tangent, chunk.tangent);
  chunk.radial_tangent = Tensor({n, columns});
  radial_rows_tangent(o_.radial, chunk.d, chunk.tangent, chunk.radial_tangent);
  chunk.filter_tangent = filter_of(chunk.radial_tangent);
}

VectorMessageChunk MessageSumKernel::operands_of(const Stage& stage, Chunk& chunk) const {
  const Index direction = o_.radial.columns() - 3;
  return {.feats = o_.feats,
          .vectors = o_.vectors,
          .tangents = o_.tangents(),
          .sources = stage.rows.reals(),
          .source_stride = o_.source_columns(),
          .filter = chunk.filter.data(),
          .filter_tangent = o_.tangents() ? chunk.filter_tangent.data() : nullptr,
          .direction = chunk.radial.data() + direction,
          .direction_tangent = o_.tangents() ? chunk.radial_tangent.data() + direction : nullptr,
          .direction_stride = o_.radial.columns(),
          .groups = chunk.groups.data(),
          .num_groups = std::ssize(chunk.groups) - 1};
}

void MessageSumKernel::accumulate(const Stage& stage) {
  if (stage.begin == stage.end) return;
  const GraphShard& shard = stage.shard;
  const EdgeRanges ranges = cursor_.ranges(stage);
  const auto offset = [&](Index i) {
    return i < ranges.num_rows ? Index{ranges.before[i]}
                               : Index{ranges.before[i - 1]} + ranges.end[i - 1] - ranges.begin[i - 1];
  };
  const auto compute = [&](Chunk& chunk) {
    chunk.begin(offset(chunk.last_row) - offset(chunk.first_row));
    for (Index i = chunk.first_row, e = 0; i < chunk.last_row; ++i) {
      const auto row = static_cast<local_index>(ranges.row(i));
      for (Index k = ranges.begin[i]; k < ranges.end[i]; ++k, ++e) {
        chunk.src[e] = shard.src[k] - static_cast<local_index>(stage.begin);
        chunk.dst[e] = row;
        chunk.edge[e] = static_cast<local_index>(shard.edge(k));
      }
      chunk.rows.push_back(row);
      chunk.groups.push_back(static_cast<local_index>(e));
    }
    make_edge_rows(stage, chunk);
    VectorMessageChunk of = operands_of(stage, chunk);
    of.others = chunk.src.data();
    add_vector_message_sums(of, chunk.rows.data(), o_.out.data());
  };
  for_chunks(ranges.num_rows, offset, compute, [](const Chunk&) {});
}

void MessageSumKernel::backward(const Stage& stage, TypedNumbers grad_src, bool accumulate) {
  if (stage.begin == stage.end) return;
  const GraphShard& shard = stage.shard;
  const SourceOffsets offsets(shard, stage.begin, stage.end);
  const local_index *dst = shard.transpose().dst.data(), *positions = shard.transpose_positions().data();
  const auto compute = [&](Chunk& chunk) {
    chunk.begin(Index{offsets[chunk.last_row]} - offsets[chunk.first_row]);
    for (Index i = chunk.first_row, e = 0; i < chunk.last_row; ++i) {
      for (Index k = offsets[i]; k < offsets[i + 1]; ++k, ++e) {
        chunk.src[e] = static_cast<local_index>(i);
        chunk.dst[e] = dst[k];
        chunk.edge[e] = static_cast<local_index>(shard.edge(positions[k]));
      }
      chunk.rows.push_back(static_cast<local_index>(i));
      chunk.groups.push_back(static_cast<local_index>(e));
    }
    differentiate(stage, chunk, grad_src.reals(), accumulate);
  };
  for_chunks(
      stage.size(), [&](Index i) { return Index{offsets[i]}; }, compute,
      [&](const Chunk& chunk) {
        if (!o_.grad_filter.defined()) return;
        const Index columns = o_.grad_filter.row_size();
        for (Index i = 0; i < chunk.grad_filter.num_rows(); ++i)
          for (Index j = 0; j < columns; ++j) o_.grad_filter.row(i)[j] += chunk.grad_filter.row(i)[j];
      });
}

void MessageSumKernel::differentiate(const Stage& stage, Chunk& chunk, real* grad_src,
                                     bool accumulate) const {
  const Index n = chunk.size(), width = o_.source_columns(), columns = o_.radial.columns();
  const bool tangents = o_.tangents(), of_edges = o_.grad_edges.defined();
  make_edge_rows(stage, chunk);
  VectorMessageChunk of = operands_of(stage, chunk);
  of.sources += chunk.first_row * width;
  of.others = chunk.dst.data();
  Array<real> unwanted(grad_src == nullptr ? of.num_groups * width : 0);
  real* const to = grad_src != nullptr ? grad_src + chunk.first_row * width : unwanted.data();
  accumulate = accumulate && grad_src != nullptr;
  Tensor grad_direction, grad_direction_tangent;
  if (of_edges) grad_direction = Tensor({n, 3});
  if (of_edges && tangents) grad_direction_tangent = Tensor({n, 3});
  vector_message_gradients(of, o_.grad_out.data(), to, accumulate, grad_direction.data(),
                           grad_direction_tangent.data());

  if (o_.grad_filter.defined()) {
    chunk.grad_filter = Tensor({o_.filter_size(), columns});  // the last 3 columns are not used
    matmul_tn(chunk.filter, chunk.radial, chunk.grad_filter);
    if (tangents) matmul_tn(chunk.filter_tangent, chunk.radial_tangent, chunk.grad_filter, true);
  }
  // The filters are their gradients now. With y = radial_rows(d), dy its tangent: y depends on d, dy on d and
  // on the tangent of d.
  Tensor of_d, of_tangent;
  if (of_edges) {
    const auto of_radial = [&](const Tensor& filter, const Tensor& direction) {
      Tensor result({n, columns});
      const Index size = o_.filter_size();
      weight_.multiply({filter.data(), n, size, size, 1}, {result.data(), columns});
      for (Index e = 0; e < n; ++e)
        std::copy_n(direction.data() + e * 3, 3, result.data() + (e + 1) * columns - 3);
      return result;
    };
    of_d = Tensor({n, 3});
    radial_rows_backward(o_.radial, chunk.d, of_radial(chunk.filter, grad_direction), of_d);
    if (tangents) {
      const Tensor of_radial_tangent = of_radial(chunk.filter_tangent, grad_direction_tangent);
      Tensor second({n, 3});
      radial_rows_tangent_backward(o_.radial, chunk.d, chunk.tangent, of_radial_tangent, second);
      for (Index i = 0; i < second.size(); ++i) of_d.data()[i] += second.data()[i];
      of_tangent = Tensor({n, 3});
      radial_rows_backward(o_.radial, chunk.d, of_radial_tangent, of_tangent);
    }
  }
  const auto give = [&](const Tensor& of_vectors, Tensor edges, Index first_column) {
    for (Index e = 0; of_vectors.defined() && e < n; ++e)
      std::copy_n(of_vectors.data() + 3 * e, 3, edges.data() + Index{3} * chunk.edge[e]);
    for (Index i = 0; i < of.num_groups; ++i) {
      double sum[3] = {};
      for (Index e = chunk.groups[i]; of_vectors.defined() && e < chunk.groups[i + 1]; ++e)
        for (Index k = 0; k < 3; ++k) sum[k] += static_cast<double>(of_vectors.data()[3 * e + k]);
      real* const x = to + i * width + first_column;
      for (Index k = 0; k < 3; ++k) x[k] = static_cast<real>(sum[k]) + (accumulate ? x[k] : 0);
    }
  };
  give(of_d, o_.grad_edges, o_.message_columns());
  if (tangents) give(of_tangent, o_.grad_tangents, o_.message_columns() + 3);
}

}}  // namespace sar
