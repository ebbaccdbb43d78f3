#include <sar/autograd/tape.hpp>
#include <sar/comm/rows/halo.hpp>
#include <sar/core/error.hpp>
#include <sar/core/trace.hpp>
#include <sar/core/vector_math.hpp>
#include <sar/graph/kernels/gather_sum.hpp>
#include <sar/graph/message/agreement.hpp>
#include <sar/graph/message/edge_softmax.hpp>
#include <sar/graph/message/sharded_graph.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

namespace sar {
namespace {

/// The nodes that edges are grouped by, numbered so that all groups of this worker have one: its
/// destinations, or its sources followed by the halo rows of round after round.
class Groups {
 public:
  Groups(std::shared_ptr<const ShardedGraph> graph, NormBy by, Index width)
      : graph_(std::move(graph)), by_(by), width_(width) {
    rows_ = own_rows();
    if (by == NormBy::src)
      for (const HaloRound& round : graph_->rounds) rows_ += round.recv_rows;
  }

  [[nodiscard]] Index own_rows() const {
    return by_ == NormBy::dst ? graph_->local.num_dst : graph_->local.num_src_rows;
  }
  [[nodiscard]] Tensor values(real value) const { return Tensor::full(Shape{rows_, width_}, value); }

  /// visit(group, edge) for all edges, those of a group by one thread and in a fixed order.
  template <class Visit>
  void for_edges(const Visit& visit) const {
    Index first_row = 0;
    const auto walk = [&](const GraphShard& shard) {
      const bool by_dst = by_ == NormBy::dst;
      const local_index* offsets = by_dst ? shard.row_begin.data() : shard.transpose().begin.data();
      const local_index* positions = by_dst ? nullptr : shard.transpose_positions().data();
      const Index rows = by_dst ? shard.num_rows() : shard.num_src_rows;
      for_row_blocks(
          offsets, rows, 3 * width_ * static_cast<Index>(sizeof(real)), [&](Index first, Index last) {
            for (Index i = first; i < last; ++i)
              for (Index k = offsets[i]; k < offsets[i + 1]; ++k)
                visit(by_dst ? shard.dst_row(i) : first_row + i, shard.edge(by_dst ? k : positions[k]));
          });
      if (!by_dst) first_row += rows;
    };
    walk(graph_->local);
    for (const GraphShard& shard : graph_->remote) walk(shard);
  }

  /// Replaces each node's maximum and sum of exp(x - maximum) by those over the edges on all ranks.
  void combine_extents(Tensor& maximum, Tensor& sum) const {
    if (by_ == NormBy::dst || graph_->rounds.empty()) return;
    const Communicator& comm = graph_->comm;
    // What this rank has found for the sources of others, in the order of ranks: maxima, then sums.
    std::vector<Index> counts(comm.size(), 0);
    std::vector<Index> first(counts.size(), 0), rows(counts.size(), 0);
    Index offset = own_rows();
    for (const HaloRound& round : graph_->rounds) {
      const auto owner = static_cast<std::size_t>(round.owner);
      first[owner] = offset;
      rows[owner] = round.recv_rows;
      offset += round.recv_rows;
    }
    std::vector<real> outgoing;
    outgoing.reserve(2 * (rows_ - own_rows()) * width_);
    for (std::size_t q = 0; q < counts.size(); ++q) {
      counts[q] = 2 * rows[q] * width_;
      for (const Tensor* part : {&maximum, &sum})
        outgoing.insert(outgoing.end(), part->data() + first[q] * width_,
                        part->data() + (first[q] + rows[q]) * width_);
    }
    const auto incoming = comm.all_to_all_v(std::span<const real>(outgoing), std::span<const Index>(counts));
    std::vector<Index> begin(counts.size(), 0);
    for (std::size_t q = 1; q < counts.size(); ++q) begin[q] = begin[q - 1] + incoming.counts[q - 1];

    for (const HaloRound& round : graph_->rounds) {
      const real* theirs = incoming.values.data() + begin[round.reader];
      const auto count = static_cast<Index>(round.send_rows.size());
      parallel_for(count, 256, [&](Index from, Index to) {
        for (Index i = from; i < to; ++i) {
          const Index at = round.send_rows[i] * width_;
          for (Index j = 0; j < width_; ++j) {
            real& m = maximum.data()[at + j];
            real& s = sum.data()[at + j];
            const real other_m = theirs[i * width_ + j];
            const real other_s = theirs[(count + i) * width_ + j];
            const real larger = std::max(m, other_m);
            s = (s > 0 ? s * std::exp(m - larger) : 0) + other_s * std::exp(other_m - larger);
            m = larger;
          }
        }
      });
    }
    send_to_readers(maximum);
    send_to_readers(sum);
  }

  /// Replaces each node's sum by that over the edges on all ranks.
  void combine_sums(Tensor& sums) const {
    if (by_ == NormBy::dst || graph_->rounds.empty()) return;
    Tensor own = sums.slice_rows(0, own_rows());
    HaloPush push(graph_->comm, own, graph_->rounds, {});
    Index offset = own_rows();
    for (std::size_t r = 0; r < graph_->rounds.size(); ++r) {
      const Index rows = graph_->rounds[r].recv_rows;
      if (rows > 0) push.send(r, 0, rows, sums.slice_rows(offset, offset + rows));
      offset += rows;
    }
    push.receive_all_but_last();
    push.finish();
    send_to_readers(sums);
  }

 private:
  /// Fills the halo rows with those of their owners.
  void send_to_readers(Tensor& values) const {
    HaloFetch fetch(graph_->comm, values.slice_rows(0, own_rows()), graph_->rounds,
                    {.piece_rows = 0, .depth = 1, .merge = true});
    while (auto piece = fetch.next())
      values.slice_rows(own_rows() + piece->begin, own_rows() + piece->end).copy_from(piece->rows);
    fetch.finish();
  }

  std::shared_ptr<const ShardedGraph> graph_;
  NormBy by_;
  Index width_;
  Index rows_ = 0;
};

Tensor forward(const Groups& groups, const Tensor& x) {
  const Index width = x.row_size();
  Tensor y(x.shape());
  Tensor maximum = groups.values(-std::numeric_limits<real>::infinity());
  groups.for_edges([&](Index group, Index edge) {
    real* m = maximum.row(group);
    const real* row = x.row(edge);
    for (Index j = 0; j < width; ++j) m[j] = row[j] > m[j] ? row[j] : m[j];
  });
  groups.for_edges([&](Index group, Index edge) {
    const real* m = std::as_const(maximum).row(group);
    const real* row = x.row(edge);
    real* out = y.row(edge);
    for (Index j = 0; j < width; ++j) out[j] = row[j] - m[j];
  });
  parallel_for(y.size(), 1 << 14, [&](Index first, Index last) {
    vector_math::exp(y.data() + first, y.data() + first, last - first);
  });
  Tensor sum = groups.values(0);
  groups.for_edges([&](Index group, Index edge) {
    real* s = sum.row(group);
    const real* row = std::as_const(y).row(edge);
    for (Index j = 0; j < width; ++j) s[j] += row[j];
  });
  // y is relative to the maximum of this rank's edges, the sum now to that of all
  Tensor factor = maximum.clone();
  groups.combine_extents(maximum, sum);
  parallel_for(factor.size(), 1 << 12, [&](Index first, Index last) {
    for (Index i = first; i < last; ++i) {
      real& f = factor.data()[i];
      f = (f == maximum.data()[i] ? 1 : std::exp(f - maximum.data()[i])) / sum.data()[i];
    }
  });
  groups.for_edges([&](Index group, Index edge) {
    const real* f = std::as_const(factor).row(group);
    real* out = y.row(edge);
    for (Index j = 0; j < width; ++j) out[j] *= f[j];
  });
  return y;
}

Tensor backward(const Groups& groups, const Tensor& y, const Tensor& grad) {
  const Index width = y.row_size();
  Tensor sum = groups.values(0);
  groups.for_edges([&](Index group, Index edge) {
    real* s = sum.row(group);
    const real* g = grad.row(edge);
    const real* row = y.row(edge);
    for (Index j = 0; j < width; ++j) s[j] += g[j] * row[j];
  });
  groups.combine_sums(sum);
  Tensor result(y.shape());
  groups.for_edges([&](Index group, Index edge) {
    const real* s = std::as_const(sum).row(group);
    const real* g = grad.row(edge);
    const real* row = y.row(edge);
    real* out = result.row(edge);
    for (Index j = 0; j < width; ++j) out[j] = row[j] * (g[j] - s[j]);
  });
  return result;
}

}  // namespace

Variable edge_softmax(const GraphShardManager& graph, const Variable& x, NormBy norm_by) {
  const TraceScope scope("edge_softmax", TraceKind::compute);
  return graph.comm().agree([&]() -> Variable {
    require<ShapeError>(x.defined() && x.num_rows() == graph.num_edges(), "edge_softmax of shape ", x.shape(),
                        ", the graph has ", graph.num_edges(), " edges on rank ", graph.comm().rank());
    agree_on_call(graph.comm(), "edge_softmax",
                  std::vector<AgreedItem>{{"norm_by", norm_by},
                                          {"shape of the edge rows", x.shape()},
                                          {"wish for the gradient", x.requires_grad()},
                                          {"tape in scope", Tape::current() != nullptr}});
    const Groups groups(graph.shards(), norm_by, x.shape().row_size());
    Tensor y = forward(groups, x.value());
    if (!recording({&x})) return y;
    Tensor kept = y;
    return record_collective(graph.comm(), std::move(y),
                             [groups, kept = std::move(kept), to = x.gradient()](const Tensor& grad) {
                               const TraceScope backward_scope("edge_softmax backward", TraceKind::compute);
                               to->add(backward(groups, kept, grad));
                             });
  });
}

}  // namespace sar
