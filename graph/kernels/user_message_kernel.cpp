// SPDX-License-Identifier: MIT

/// User-defined messages; the head of user_message_kernel.hpp has the algorithm.
///
/// Loop order: groups of 2 chunks per thread; the chunks of a group in parallel, each with its own lists of
/// edges, gathered rows and, in the backward pass, tape. Rows are gathered into a copy when the function asks
/// for them; edge rows that are contiguous in memory are passed as a view. A chunk reduces its rows in the
/// parallel loop, except the first one, which it may share with the previous chunk: first rows are added
/// after the loop in the order of the chunks.
#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/core/rows/rows.hpp>
#include <sar/core/simd/loop_hints.hpp>
#include <sar/core/threads/rank_sums.hpp>
#include <sar/graph/kernels/gather_sum.hpp>
#include <sar/graph/kernels/row_loops.hpp>
#include <sar/graph/kernels/user_message_kernel.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

bool same(const Variable& a, const Variable& b) {
  const TypedRows x = a.rows(), y = b.rows();
  return x.at(0) == y.at(0) && a.gradient() == b.gradient() && a.shape() == b.shape();
}

constexpr Index block_bytes = Index{1} << 17;  // bytes of rows that one task moves
constexpr Index narrow_rows = 16;              // rows of fewer numbers are copied without a call of memcpy

Index rows_per_task(Index width) {
  return std::max<Index>(block_bytes / std::max<Index>(width * static_cast<Index>(sizeof(real)), 1), 16);
}

/// Computes out[k] = scale[ids[k]] * x[ids[k]]. A row has `width` values, real or Bfloat16, and rows of x are
/// `stride` values apart; `scale` null means 1. Reads and writes one row per id and prefetches rows some ids
/// ahead.
void take_rows(ConstTypedNumbers numbers, Index stride, Index width, const Array<local_index>& ids,
               const real* scale, real* out) {
  if (width == 0) return;
  with_type(numbers, [&]<class X>(const X* x) {
    const Index row_bytes = width * static_cast<Index>(sizeof(X)), ahead = rows_ahead(row_bytes);
    const auto n = static_cast<Index>(ids.size());
    const auto row = [&](Index k) { return x + ids[k] * stride; };
    parallel_for_each(n, rows_per_task(width), [&](Index k) {
      if (k + ahead < n) prefetch_bytes(row(k + ahead), row_bytes);
      real* to = out + k * width;
      if constexpr (!std::is_same_v<X, real>)
        widen(row(k), width, to);
      else if (width < narrow_rows)
        for (Index j = 0; j < width; ++j) to[j] = row(k)[j];
      else
        std::memcpy(to, row(k), row_bytes);
      if (scale == nullptr) return;
      const real factor = scale[ids[k]];
      for (Index j = 0; j < width; ++j) to[j] *= factor;
    });
  });
}
/// The same with the rows of x.
void take_rows(const TypedRows& x, const Array<local_index>& ids, const real* scale, real* out) {
  take_rows(x.numbers(), x.row_size(), x.row_size(), ids, scale, out);
}

/// Sets out[ids[k]] = x[k] for distinct ids.
void put_rows(const Tensor& x, const Array<local_index>& ids, TypedRows& out) {
  const Index width = x.row_size();
  Bfloat16* const rounded = out.bfloat16();
  real* const reals = out.is_real() ? out.reals().data() : nullptr;
  parallel_for_each(x.num_rows(), rows_per_task(width), [&](Index k) {
    if (rounded != nullptr)
      narrow(x.row(k), width, rounded + ids[k] * width);
    else
      std::copy(x.row(k), x.row(k) + width, reals + ids[k] * width);
  });
}

/// For groups of the rows of x, computes
///
///     out[row(i)] += scale[row(i)] * sum of the rows of x at the positions of group i
///
/// `scale` null means 1. `out` has reals or exact sums. Precision and threading as in gather_sum.
void add_rows_to(TypedNumbers out, const EdgeRows& groups, const Tensor& x, const real* scale = nullptr) {
  gather_sum({.edges = groups,
              .row_scale = scale,
              .x = x.data(),
              .x_rows = x.num_rows(),
              .out = out,
              .width = x.row_size(),
              .accumulate = true,
              .accumulator = out.exact_sums() != nullptr ? Accumulator::exact : Accumulator::rounded});
}

/// Returns what add_rows_to() would add to row row(0) of an `out` of this type: [1, width].
TypedRows sum_of_first(EdgeRows groups, const Tensor& x, NumberType type, const real* scale = nullptr) {
  TypedRows sum({1, x.row_size()}, type);
  sum.set_zero();
  if (scale != nullptr) scale += groups.row(0);
  groups = groups.slice(0, 1);
  groups.rows = nullptr;
  add_rows_to(sum.numbers(), groups, x, scale);
  return sum;
}

/// Returns whether the rows are consecutive and ascending.
bool follow_each_other(const Array<local_index>& rows) {
  if (rows.empty()) return false;
  const auto differs = [](local_index a, local_index b) { return b != a + 1; };
  return std::ranges::adjacent_find(rows, differs) == rows.end();
}

}  // namespace

std::size_t MessageOperands::find(const Variable& x, std::size_t call) const {
  if (call < calls.size() && same(slots[calls[call]], x)) return calls[call];
  const auto is_x = [&](const Variable& slot) { return same(slot, x); };
  return std::find_if(slots.begin(), slots.end(), is_x) - slots.begin();
}

Index MessageInputs::u_width() const {
  Index width = 0;
  for (const Variable& x : u.slots) width += x.shape().row_size();
  return width;
}

Variable beside_tangent(const Variable& message) {
  if (!message.is_dual()) return message;
  const Shape rows{message.num_rows(), message.shape().row_size()};
  return concat_columns({reshape(message.primal(), rows), reshape(message.tangent(), rows)});
}

/// The implementation of EdgeBatch. Rows are gathered on demand, once per variable.
class UserMessageKernel::Batch final : public EdgeBatch {
 public:
  Batch(const Operands& operands, const EdgeBlock& block, const Stage* stage)
      : o_(operands), block_(block), stage_(stage) {
    u_.leaves.resize(o_.inputs.u.slots.size());
    v_.leaves.resize(o_.inputs.v.slots.size());
    e_.leaves.resize(o_.inputs.e.slots.size());
  }

  [[nodiscard]] Index num_edges() const override { return block_.size(); }
  [[nodiscard]] Variable src(const Variable& x) const override {
    if (x.is_dual()) return apply_linear(x, [&](const Variable& part) { return src(part); });
    return leaf(u_, o_.inputs.u, x, "src", [&](std::size_t slot, Tensor& rows) {
      Index offset = 0;
      for (std::size_t i = 0; i < slot; ++i) offset += o_.inputs.u.slots[i].shape().row_size();
      take_rows(stage_->rows.from(offset), o_.inputs.u_width(), rows.row_size(), block_.src, nullptr,
                rows.data());
    });
  }
  [[nodiscard]] Variable dst(const Variable& x) const override {
    if (x.is_dual()) return apply_linear(x, [&](const Variable& part) { return dst(part); });
    return leaf(v_, o_.inputs.v, x, "dst",
                [&](std::size_t, Tensor& rows) { take_rows(x.rows(), block_.dst, nullptr, rows.data()); });
  }
  [[nodiscard]] Variable edata(const Variable& x) const override {
    if (x.is_dual()) return apply_linear(x, [&](const Variable& part) { return edata(part); });
    return leaf(e_, o_.inputs.e, x, "edata",
                [&](std::size_t, Tensor& rows) { take_rows(x.rows(), block_.edge, nullptr, rows.data()); });
  }
  [[nodiscard]] RowIds ids() const override {
    require<InputError>(o_.edge_ids.size() == static_cast<std::size_t>(o_.num_edges),
                        "a message function asks for edges.ids(), which drop_edge_ids() has dropped");
    return known(ids_, [&](local_index e) { return o_.edge_ids[e]; });
  }
  [[nodiscard]] RowIds rows() const override {
    return known(rows_, [](local_index e) { return static_cast<Index>(e); });
  }

  /// Gradients of the rows of a slot; undefined if no gradient arrived.
  [[nodiscard]] Tensor grad_u(std::size_t slot) const { return u_.leaves[slot].grad(); }
  [[nodiscard]] Tensor grad_v(std::size_t slot) const { return v_.leaves[slot].grad(); }
  [[nodiscard]] Tensor grad_e(std::size_t slot) const { return e_.leaves[slot].grad(); }

 private:
  struct Leaves {
    PassVector<Variable> leaves;  // by slot; undefined until requested
    std::size_t calls = 0;
  };

  template <class Gather>
  Variable leaf(Leaves& known, const MessageOperands& operands, const Variable& x, const char* what,
                const Gather& gather) const {
    const std::size_t slot = operands.find(x, known.calls++);
    require<InputError>(slot < operands.slots.size(), "a message function asks edges.", what,
                        "() for a variable of shape ", x.shape(),
                        " that it did not ask for when it was called without edges; it must ask for the same "
                        "variables in every block, and for none that it computes itself");
    Variable& result = known.leaves[slot];
    if (result.defined()) return result;
    if (&known == &e_ && x.type() == NumberType::reals && follow_each_other(block_.edge)) {  // a view
      const Index first = block_.edge.front();
      return result = Variable(x.value().slice_rows(first, first + block_.size()), x.requires_grad());
    }
    Tensor rows(x.shape().with_rows(block_.size()));
    if (rows.size() > 0) gather(slot, rows);
    return result = Variable(std::move(rows), x.requires_grad());
  }
  [[nodiscard]] const Variable& field(MessageTarget of, const std::string& name) const override {
    const auto& fields = o_.inputs.of(of).fields;
    const auto found = fields.find(name);
    require<InputError>(found != fields.end(), "a message function asks edges.",
                        std::array{"src", "dst", "edata"}[static_cast<std::size_t>(of)],
                        "() for the field \"", name,
                        "\", which it did not ask for when it was called without edges");
    return found->second;
  }

  /// Creates the ids at the first call. They live as long as the batch and every copy.
  template <class IdOf>
  const RowIds& known(std::optional<RowIds>& ids, const IdOf& id_of) const {
    if (ids) return *ids;
    Array<Index> made(block_.edge.size());
    std::transform(block_.edge.begin(), block_.edge.end(), made.begin(), id_of);
    return ids.emplace(std::move(made));
  }

  const Operands& o_;
  const EdgeBlock& block_;
  const Stage* stage_;
  mutable std::optional<RowIds> ids_, rows_;
  mutable Leaves u_, v_, e_;
};

namespace {

/// to += row, of the same type; reals are multiplied by `scale`
void add_row(const TypedRows& row, TypedNumbers to, real scale = 1) {
  for (Index j = 0; j < row.size(); ++j)
    if (const ExactSum* const sums = row.exact_sums(); sums != nullptr)
      to.exact_sums()[j].add(sums[j]);
    else
      to.reals()[j] += scale * row.reals().data()[j];
}

/// Stores the first exception that `work` throws. Errors of the communication in progress are not caught.
void guarded(std::exception_ptr& failure, FunctionRef<void()> work) {
  try {
    work();
  } catch (const CommunicationError&) {
    throw;
  } catch (...) {
    failure = std::current_exception();
  }
}

}  // namespace

void UserMessageKernel::for_blocks(FunctionRef<void(Work&)> compute, FunctionRef<void(std::span<Work>)> add) {
  const Index threads = num_threads();
  blocks_.for_each(
      works_, o_.serial || threads == 1 ? 1 : 2 * threads,
      [&](Work& work, Index b) {
        guarded(work.failure, [&] {
          blocks_.write(b, work.block, work.groups);
          compute(work);
        });
      },
      [&](std::span<Work> works) {
        for (const Work& work : works)
          if (!failure_) failure_ = work.failure;
        if (!failure_) guarded(failure_, [&] { add(works); });
        return !failure_;
      });
}

Variable UserMessageKernel::call(const Batch& batch) const {
  const RankSumsScope scope(o_.captures_exactly ? chunk_sums()
                                                : nullptr);  // ranks have different numbers of chunks
  Variable message = beside_tangent(o_.function(batch));
  const Shape expected = o_.inputs.message.with_rows(batch.num_edges());
  require<ShapeError>(message.shape() == expected, "a message function returns a tensor of shape ",
                      message.shape(), " for ", batch.num_edges(), " edges, expected ", expected);
  return message;
}

void UserMessageKernel::begin() {
  o_.out.set_zero();
  if (o_.argmax != nullptr) std::fill_n(o_.argmax, o_.out.size(), local_index{-1});
}

void UserMessageKernel::accumulate(const Stage& stage) {
  if (failure_) return;
  blocks_.by_destination(stage);
  for_blocks(
      [&](Work& work) {
        const NoTape nothing_is_recorded;
        reduce(work, call(Batch(o_, work.block, &stage)).value());
      },
      [&](std::span<Work> works) {
        for (Work& work : works) add_first(work);
      });
}

void UserMessageKernel::reduce(Work& work, const Tensor& messages) {
  if (o_.by_edge) return put_rows(messages, work.block.edge, o_.out);
  if (o_.argmax != nullptr) return reduce_extremum(work, messages);
  const EdgeRows groups = work.groups.edge_rows();
  work.first = sum_of_first(groups, messages, o_.out.type(), exact() ? o_.dst_scale : nullptr);
  add_rows_to(o_.out.numbers(), groups.slice(1, groups.num_rows), messages, o_.dst_scale);
}

void UserMessageKernel::reduce_extremum(Work& work, const Tensor& messages) {
  const EdgeRows groups = work.groups.edge_rows();
  const Index width = messages.row_size();
  work.first = Tensor({1, width});
  work.first_argmax.assign(width, -1);
  for_row_blocks(groups, 3 * width * static_cast<Index>(sizeof(real)), [&](Index first, Index last) {
    for (Index i = first; i < last; ++i) {
      const Index v = groups.row(i);
      real* out = (i == 0 ? work.first : o_.out.slice_rows(v, v + 1)).reals().data();
      local_index* argmax = i == 0 ? work.first_argmax.data() : o_.argmax + v * width;
      for (Index k = groups.begin[i]; k < groups.end[i]; ++k)
        take_extremum(
            messages.row(k), [e = work.block.edge[k]](Index) { return e; }, out, argmax, width);
    }
  });
}

/// `argmax` is -1 in all columns before the first message of a row.
template <class EdgeOf>
void UserMessageKernel::take_extremum(const real* m, const EdgeOf& edge_of, real* out, local_index* argmax,
                                      Index width) const {
  if (width > 0 && argmax[0] < 0) {
    std::copy_n(m, width, out);
    for (Index j = 0; j < width; ++j) argmax[j] = edge_of(j);
  } else if (o_.reduce == Reduce::min) {
    SAR_ISA::lanes::take_extremum<true>(width, m, edge_of, o_.edge_ids.data(), out, argmax);
  } else {
    SAR_ISA::lanes::take_extremum<false>(width, m, edge_of, o_.edge_ids.data(), out, argmax);
  }
}

void UserMessageKernel::add_first(const Work& work) {
  if (o_.by_edge) return;
  const Index v = work.groups.rows.front(), width = work.first.row_size();
  if (o_.argmax == nullptr)
    return add_row(work.first, o_.out.numbers(v), o_.dst_scale != nullptr ? o_.dst_scale[v] : 1);
  take_extremum(
      work.first.reals().data(), [&](Index j) { return work.first_argmax[j]; }, o_.out.reals().row(v),
      o_.argmax + v * width, width);
}

Tensor UserMessageKernel::seed(const EdgeBlock& block) const {
  Tensor seed(o_.inputs.message.with_rows(block.size()));
  if (seed.size() == 0) return seed;
  const Index width = seed.row_size();
  const Array<local_index>& rows = o_.by_edge ? block.edge : block.dst;
  take_rows(o_.grad_out, rows, o_.dst_scale, seed.data());
  if (o_.argmax == nullptr) return seed;
  parallel_for_each(block.size(), std::max<Index>((Index{1} << 14) / width, 1), [&](Index k) {
    const local_index* argmax = o_.argmax + block.dst[k] * width;
    real* g = seed.row(k);
    for (Index j = 0; j < width; ++j) g[j] = argmax[j] == block.edge[k] ? g[j] : real{0};
  });
  return seed;
}

void UserMessageKernel::backward(const Stage& stage, TypedNumbers grad_src, bool accumulate) {
  if (grad_src.defined() && !accumulate) {
    const Index n = stage.size() * o_.inputs.u_width() * bytes_of(grad_src.type());
    parallel_for(n, Index{1} << 18,
                 [&, bytes = static_cast<char*>(grad_src.memory())](Index begin, Index end) {
                   std::fill(bytes + begin, bytes + end, char{0});
                 });
  }
  if (failure_) return;
  if (grad_src.defined())
    blocks_.by_source(stage);
  else
    blocks_.by_destination(stage);
  for_blocks([&](Work& work) { differentiate(work, stage, grad_src); },
             [&](std::span<Work> works) { add_gradients(works, grad_src); });
}

void UserMessageKernel::begin_backward() {
  if (o_.num_edges > 0) return;
  guarded(failure_, [&] {
    const GraphShard none;
    Work work;
    differentiate(work, {none, 0, 0, nullptr}, nullptr);
    pass_on(work.outer);
  });
}

void UserMessageKernel::pass_on(OuterGradients& of_chunk) {
  if (!o_.captures_exactly) return of_chunk.pass_on();
  const OuterGradients::Scope scope(captured_);
  of_chunk.pass_on();
}

void UserMessageKernel::differentiate(Work& work, const Stage& stage, TypedNumbers grad_src) {
  const EdgeBlock& block = work.block;
  work.first = {};
  work.rows_v.assign(o_.grad_v.size(), Tensor());
  const OuterGradients::Scope outer(work.outer);
  const Batch batch(o_, block, &stage);
  {
    Tape tape;
    const Variable message = call(batch);
    if (!message.requires_grad()) return;
    tape.backward(message, seed(block));
  }
  if (block.size() == 0) return;

  if (grad_src.defined()) {
    if (const Tensor rows = source_gradients(batch); rows.defined()) {
      const EdgeRows groups = work.groups.edge_rows();
      work.first = sum_of_first(groups, rows, grad_src.type());
      add_rows_to(grad_src, groups.slice(1, groups.num_rows), rows);
    }
  }
  bool grouped = false;
  for (std::size_t i = 0; i < o_.grad_v.size(); ++i) {
    if (!o_.grad_v[i].defined()) continue;
    work.rows_v[i] = batch.grad_v(i);
    if (work.rows_v[i].defined() && !std::exchange(grouped, true)) work.groups_v.build(block.dst);
  }
  for (std::size_t i = 0; i < o_.grad_e.size(); ++i) {
    if (!o_.grad_e[i].defined()) continue;
    if (const Tensor rows = batch.grad_e(i); rows.defined()) put_rows(rows, block.edge, o_.grad_e[i]);
  }
}

/// Returns the gradients of all source variables side by side, in the layout of halo rows; undefined if none
/// arrived.
Tensor UserMessageKernel::source_gradients(const Batch& batch) const {
  const PassVector<Variable>& slots = o_.inputs.u.slots;
  if (slots.size() == 1) return batch.grad_u(0);
  Tensor rows = Tensor::zeros({batch.num_edges(), o_.inputs.u_width()});
  Index offset = 0;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const Index width = slots[i].shape().row_size();
    if (const Tensor part = batch.grad_u(i); part.defined())
      copy_columns(part.reshape({batch.num_edges(), width}), 0, rows, offset, width);
    offset += width;
  }
  return rows;
}

void UserMessageKernel::add_gradients(std::span<Work> works, TypedNumbers grad_src) {
  for (Work& work : works) {
    pass_on(work.outer);
    if (work.first.defined())
      add_row(work.first, grad_src.from(work.groups.rows.front() * work.first.size()));
  }
  for (std::size_t i = 0; i < o_.grad_v.size(); ++i) {
    if (!o_.grad_v[i].defined()) continue;
    const Index rows = o_.grad_v[i].num_rows(), slice = std::max<Index>(rows / (4 * num_threads()), 64);
    parallel_for(rows, slice, [&](Index begin, Index end) {
      for (const Work& work : works) {
        if (!work.rows_v[i].defined()) continue;
        const Array<local_index>& ids = work.groups_v.rows;
        const auto group = [&](Index row) { return std::ranges::lower_bound(ids, row) - ids.begin(); };
        add_rows_to(o_.grad_v[i].numbers(), work.groups_v.edge_rows().slice(group(begin), group(end)),
                    work.rows_v[i]);
      }
    });
  }
}
}}  // namespace sar
