#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/core/rows.hpp>
#include <sar/graph/kernels/gather_sum.hpp>
#include <sar/graph/kernels/user_message.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace sar::inline SAR_PRECISION {
namespace {

bool same(const Variable& a, const Variable& b) {
  return a.value().data() == b.value().data() && a.gradient() == b.gradient() && a.shape() == b.shape();
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

/// What the function sees of a block. Rows are gathered when it asks for them, once for each variable.
class UserMessageKernel::Batch final : public EdgeBatch {
 public:
  Batch(const Operands& operands, const EdgeBlock& block, const Stage* stage)
      : o_(operands), block_(block), stage_(stage) {
    u_.leaves.resize(o_.inputs.u.slots.size());
    v_.leaves.resize(o_.inputs.v.slots.size());
    e_.leaves.resize(o_.inputs.e.slots.size());
  }
  using EdgeBatch::dst;
  using EdgeBatch::edata;
  using EdgeBatch::src;

  [[nodiscard]] Index num_edges() const override { return block_.size(); }
  [[nodiscard]] Variable src(const Variable& x) const override {
    return leaf(u_, o_.inputs.u, x, "src", [&](std::size_t slot, Tensor& rows) {
      Index offset = 0;
      for (std::size_t i = 0; i < slot; ++i) offset += o_.inputs.u.slots[i].shape().row_size();
      take_rows(stage_->rows + offset, o_.inputs.u_width(), rows.row_size(), block_.src, nullptr,
                rows.data());
    });
  }
  [[nodiscard]] Variable dst(const Variable& x) const override {
    return leaf(v_, o_.inputs.v, x, "dst", [&](std::size_t, Tensor& rows) {
      take_rows(x.value().data(), rows.row_size(), rows.row_size(), block_.dst, nullptr, rows.data());
    });
  }
  [[nodiscard]] Variable edata(const Variable& x) const override {
    return leaf(e_, o_.inputs.e, x, "edata", [&](std::size_t, Tensor& rows) {
      take_rows(x.value().data(), rows.row_size(), rows.row_size(), block_.edge, nullptr, rows.data());
    });
  }
  [[nodiscard]] Variable src(const std::string& name) const override {
    return src(field(o_.inputs.u, name, "src"));
  }
  [[nodiscard]] Variable dst(const std::string& name) const override {
    return dst(field(o_.inputs.v, name, "dst"));
  }
  [[nodiscard]] Variable edata(const std::string& name) const override {
    return edata(field(o_.inputs.e, name, "edata"));
  }
  [[nodiscard]] RowIds ids() const override {
    return known(ids_, [&](local_index e) { return o_.edge_ids[e]; });
  }
  [[nodiscard]] RowIds rows() const override {
    return known(rows_, [](local_index e) { return static_cast<Index>(e); });
  }

  /// Gradient of a slot's rows; undefined when none arrived.
  [[nodiscard]] Tensor grad_u(std::size_t slot) const { return u_.leaves[slot].grad(); }
  [[nodiscard]] Tensor grad_v(std::size_t slot) const { return v_.leaves[slot].grad(); }
  [[nodiscard]] Tensor grad_e(std::size_t slot) const { return e_.leaves[slot].grad(); }

 private:
  struct Leaves {
    std::vector<Variable> leaves;  // by slot; undefined until asked for
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
    Tensor rows(x.shape().with_rows(block_.size()));
    if (rows.size() > 0) gather(slot, rows);
    return result = Variable(std::move(rows), x.requires_grad());
  }
  static const Variable& field(const MessageOperands& operands, const std::string& name, const char* what) {
    const auto found = operands.fields.find(name);
    require<InputError>(found != operands.fields.end(), "a message function asks edges.", what,
                        "() for the field \"", name,
                        "\", which it did not ask for when it was called without edges");
    return found->second;
  }

  /// Made at the first call; lives as long as the batch and every copy.
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

void UserMessageKernel::guarded(FunctionRef<void()> work) {
  if (failure_) return;
  try {
    work();
  } catch (const CommunicationError&) {
    throw;
  } catch (...) {
    failure_ = std::current_exception();
  }
}

Variable UserMessageKernel::call(const Batch& batch) const {
  Variable message = o_.function(batch);
  const Shape expected = o_.inputs.message.with_rows(batch.num_edges());
  require<ShapeError>(message.shape() == expected, "a message function returns a tensor of shape ",
                      message.shape(), " for ", batch.num_edges(), " edges, expected ", expected);
  return message;
}

void UserMessageKernel::begin() {
  o_.out.fill(0);
  if (o_.argmax != nullptr) std::fill_n(o_.argmax, o_.out.size(), local_index{-1});
}

void UserMessageKernel::accumulate(const Stage& stage) {
  guarded([&] {
    const NoTape nothing_is_recorded;
    blocks_.by_destination(stage, [&](const EdgeBlock& block) {
      const Variable message = call(Batch(o_, block, &stage));
      reduce(block, message.value());
    });
  });
}

void UserMessageKernel::reduce(const EdgeBlock& block, const Tensor& messages) {
  if (!o_.reduce) return put_rows(messages, block.edge, o_.out.data());
  groups_.build(block.dst);
  if (*o_.reduce == Reduce::sum || *o_.reduce == Reduce::mean)
    groups_.add_rows_to(o_.out.data(), messages, o_.dst_scale);
  else
    reduce_extremum(block, messages);
}

void UserMessageKernel::reduce_extremum(const EdgeBlock& block, const Tensor& messages) {
  const Index width = messages.row_size();
  const real sign = *o_.reduce == Reduce::min ? -1 : 1;  // the smallest is the largest of the negatives
  const auto id = [&](local_index edge) { return o_.edge_ids[edge]; };
  for_row_blocks(groups_.begin.data(), groups_.size(), 3 * width * static_cast<Index>(sizeof(real)),
                 [&](Index first, Index last) {
                   for (Index i = first; i < last; ++i) {
                     const Index v = groups_.rows[i];
                     real* out = o_.out.row(v);
                     local_index* argmax = o_.argmax + v * width;
                     for (Index k = groups_.begin[i]; k < groups_.begin[i + 1]; ++k) {
                       const Index at = groups_.order[k];
                       const local_index edge = block.edge[at];
                       const real* m = messages.row(at);
                       for (Index j = 0; j < width; ++j) {
                         const bool wins = argmax[j] < 0 || sign * m[j] > sign * out[j] || std::isnan(m[j]) ||
                                           (m[j] == out[j] && id(edge) < id(argmax[j]));
                         out[j] = wins ? m[j] : out[j];
                         argmax[j] = wins ? edge : argmax[j];
                       }
                     }
                   }
                 });
}

Tensor UserMessageKernel::seed(const EdgeBlock& block) const {
  Tensor seed(o_.inputs.message.with_rows(block.size()));
  if (seed.size() == 0) return seed;
  const Index width = seed.row_size();
  const Array<local_index>& rows = o_.reduce ? block.dst : block.edge;
  take_rows(o_.grad_out, width, width, rows, o_.dst_scale, seed.data());
  if (o_.argmax == nullptr) return seed;
  parallel_for(block.size(), std::max<Index>((Index{1} << 14) / width, 1), [&](Index begin, Index end) {
    for (Index k = begin; k < end; ++k) {
      const local_index* argmax = o_.argmax + block.dst[k] * width;
      real* g = seed.row(k);
      for (Index j = 0; j < width; ++j) g[j] = argmax[j] == block.edge[k] ? g[j] : real{0};
    }
  });
  return seed;
}

void UserMessageKernel::backward(const Stage& stage, real* grad_src, bool accumulate) {
  if (grad_src != nullptr && !accumulate) {
    const Index n = (stage.size()) * o_.inputs.u_width();
    parallel_for(n, Index{1} << 16,
                 [&](Index begin, Index end) { std::fill(grad_src + begin, grad_src + end, real{0}); });
  }
  guarded([&] {
    const auto visit = [&](const EdgeBlock& block) { backward_block(block, stage, grad_src); };
    if (grad_src != nullptr)
      blocks_.by_source(stage, visit);
    else
      blocks_.by_destination(stage, visit);
  });
}

void UserMessageKernel::begin_backward() {
  if (!o_.edge_ids.empty()) return;
  guarded([&] {
    const GraphShard none;
    backward_block(EdgeBlock(), {none, 0, 0, nullptr}, nullptr);
  });
}

void UserMessageKernel::backward_block(const EdgeBlock& block, const Stage& stage, real* grad_src) {
  const Batch batch(o_, block, &stage);
  {
    Tape tape;
    const Variable message = call(batch);
    if (!message.requires_grad()) return;
    tape.backward(message, seed(block));
  }
  if (block.size() == 0) return;

  if (grad_src != nullptr) {
    const std::vector<Variable>& slots = o_.inputs.u.slots;
    Tensor rows = batch.grad_u(0);
    if (slots.size() > 1) {  // side by side, as they travel
      rows = Tensor::zeros({block.size(), o_.inputs.u_width()});
      Index offset = 0;
      for (std::size_t i = 0; i < slots.size(); ++i) {
        const Index width = slots[i].shape().row_size();
        if (const Tensor part = batch.grad_u(i); part.defined())
          copy_columns(part.reshape({block.size(), width}), 0, rows, offset, width);
        offset += width;
      }
    }
    if (rows.defined()) {
      groups_.build(block.src);
      groups_.add_rows_to(grad_src, rows);
    }
  }
  bool grouped = false;
  for (std::size_t i = 0; i < o_.grad_v.size(); ++i) {
    const Tensor rows = batch.grad_v(i);
    if (!o_.grad_v[i].defined() || !rows.defined()) continue;
    if (!std::exchange(grouped, true)) groups_.build(block.dst);
    groups_.add_rows_to(o_.grad_v[i].data(), rows);
  }
  for (std::size_t i = 0; i < o_.grad_e.size(); ++i) {
    if (!o_.grad_e[i].defined()) continue;
    if (const Tensor rows = batch.grad_e(i); rows.defined()) put_rows(rows, block.edge, o_.grad_e[i].data());
  }
}

}  // namespace sar
