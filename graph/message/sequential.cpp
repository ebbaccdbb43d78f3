#include <sar/core/trace.hpp>
#include <sar/graph/message/sequential.hpp>

#include <algorithm>
#include <optional>

namespace sar {
namespace {

/// A push cuts the piece of a fetch into so many, so that gradients leave while the next ones are computed
/// without holding whole pieces twice.
constexpr Index push_cuts = 4;

struct PieceSizes {
  Index fetch_rows;
  Index push_rows;  ///< divides fetch_rows
};

/// `fetch_and_push`: the way back of a kernel whose source rows are fetched again.
PieceSizes piece_sizes(const ShardedGraph& graph, const GraphOptions& options, const Shape& shape,
                       bool fetch_and_push) {
  // From three workers on, a round comes in two pieces: one is used while the other one arrives, and both
  // together hold one round's rows. Between two workers, the only round arrives during the local shard, and
  // is one piece. Where rows arrive and their gradients leave together, pieces are half as large.
  Index rows = std::max<Index>(graph.max_round_rows, 1);
  if (graph.rounds.size() > 1) rows = (rows + 1) / 2;
  if (fetch_and_push) rows = (rows + 1) / 2;
  if (options.max_halo_bytes > 0) {
    const Index row_bytes = std::max<Index>(shape.row_size(), 1) * static_cast<Index>(sizeof(real));
    rows = std::min(rows, std::max<Index>(options.max_halo_bytes / row_bytes, 1));
    if (rows < push_cuts) return {rows, rows};
    return {rows / push_cuts * push_cuts, rows / push_cuts};
  }
  const Index cut = (rows + push_cuts - 1) / push_cuts;
  return {cut * push_cuts, cut};
}

HaloOptions fetch_options(const ShardedGraph& graph, const GraphOptions& options, const Shape& shape,
                          bool fetch_and_push) {
  if (options.mode == HaloMode::one_shot) return {.piece_rows = 0, .depth = 1, .merge = true};
  return {.piece_rows = piece_sizes(graph, options, shape, fetch_and_push).fetch_rows,
          .depth = options.pipeline_depth,
          .merge = false};
}

/// The shard that a piece of a fetch belongs to.
const GraphShard& shard_of(const ShardedGraph& graph, const GraphOptions& options, std::size_t round) {
  return options.mode == HaloMode::one_shot ? graph.merged() : graph.remote[round];
}

SourcePiece whole(const GraphShard& shard, const real* rows) {
  return {shard, 0, shard.num_src_rows, rows};
}

/// visit(shard) for the shards whose sources are of other workers.
template <class Visit>
void for_remote_shards(const ShardedGraph& graph, const GraphOptions& options, const Visit& visit) {
  if (options.mode == HaloMode::one_shot) return visit(graph.merged());
  for (const GraphShard& shard : graph.remote) visit(shard);
}

/// Gradients of halo rows: computed by the kernel cut by cut, and sent.
class GradientSender {
 public:
  GradientSender(const ShardedGraph& graph, const GraphOptions& options, const Shape& shape,
                 ShardKernel& kernel, Tensor* sum, bool fetch_and_push)
      : graph_(graph), one_shot_(options.mode == HaloMode::one_shot), shape_(shape), kernel_(kernel) {
    if (sum == nullptr) return;
    const PieceSizes sizes = piece_sizes(graph, options, shape, fetch_and_push);
    push_rows_ = sizes.push_rows;
    const auto depth = static_cast<int>(sizes.fetch_rows / sizes.push_rows) * options.pipeline_depth;
    push_.emplace(graph.comm, *sum, graph.rounds,
                  HaloOptions{.piece_rows = push_rows_, .depth = depth, .wait_for_start = true});
  }

  /// Together with a fetch, or alone.
  void start(HaloFetch* fetch) {
    if (fetch != nullptr)
      fetch->start(push_ ? &*push_ : nullptr);
    else if (push_)
      push_->start();
  }

  void progress() {
    if (push_) push_->progress();
  }
  [[nodiscard]] bool adds_before_finish() const { return push_ && push_->adds_before_finish(); }
  void receive_all_but_last() {
    if (push_) push_->receive_all_but_last();
  }
  void finish() {
    if (push_) push_->finish();
  }

  /// Rows [begin, end) of a round; `rows` holds their values, or is null.
  void compute_and_send(std::size_t round, Index begin, Index end, const real* rows) {
    if (begin == end) return;
    TraceScope scope("remote shard", TraceKind::compute);
    scope.detail("round ", round, ", rows ", begin, " to ", end);
    const GraphShard& shard = one_shot_ ? graph_.merged() : graph_.remote[round];
    const Index offset = one_shot_ ? offset_of(round) : 0;
    if (!push_) {
      kernel_.backward({shard, offset + begin, offset + end, rows}, nullptr, false);
      return;
    }
    for (Index from = begin; from < end; from += push_rows_) {
      const Index to = std::min(end, from + push_rows_);
      Tensor gradient(shape_.with_rows(to - from));
      kernel_.backward({shard, offset + from, offset + to,
                        rows != nullptr ? rows + (from - begin) * shape_.row_size() : nullptr},
                       gradient.data(), false);
      push_->send(round, from, to, std::move(gradient));
    }
  }

 private:
  [[nodiscard]] Index offset_of(std::size_t round) const {
    Index offset = 0;
    for (std::size_t r = 0; r < round; ++r) offset += graph_.rounds[r].recv_rows;
    return offset;
  }

  const ShardedGraph& graph_;
  bool one_shot_;
  Shape shape_;
  ShardKernel& kernel_;
  Index push_rows_ = 1;
  std::optional<HaloPush> push_;
};

/// Hands a fetched piece to the sender; a merged piece holds the rows of all rounds one after the other.
void send_piece(const ShardedGraph& graph, bool one_shot, const HaloFetch::Piece& piece,
                GradientSender& sender) {
  if (!one_shot) {
    sender.compute_and_send(piece.round, piece.begin, piece.end, piece.rows.data());
    return;
  }
  Index offset = 0;
  for (std::size_t round = 0; round < graph.rounds.size(); ++round) {
    sender.compute_and_send(round, 0, graph.rounds[round].recv_rows, piece.rows.row(offset));
    offset += graph.rounds[round].recv_rows;
  }
}

}  // namespace

void forward_shards(const ShardedGraph& graph, const GraphOptions& options, const Tensor& src,
                    ShardKernel& kernel, KeptRows* keep, FunctionRef<void()> local_work) {
  if (!src.defined()) {
    local_work();
    kernel.accumulate(whole(graph.local, nullptr));
    for_remote_shards(graph, options,
                      [&](const GraphShard& shard) { kernel.accumulate(whole(shard, nullptr)); });
    return;
  }
  HaloFetch fetch(graph.comm, src, graph.rounds, fetch_options(graph, options, src.shape(), false));
  const auto progress = [&] { fetch.progress(); };
  const PollScope poll(progress);
  local_work();
  {
    const TraceScope scope("local shard", TraceKind::compute);
    kernel.accumulate(whole(graph.local, src.data()));
  }
  for (auto piece = fetch.next(); piece; piece.reset(), piece = fetch.next()) {
    TraceScope scope("remote shard", TraceKind::compute);
    scope.detail("round ", piece->round, ", rows ", piece->begin, " to ", piece->end);
    kernel.accumulate({shard_of(graph, options, piece->round), piece->begin, piece->end, piece->rows.data()});
    if (keep != nullptr) keep->push_back(std::move(*piece));
  }
  fetch.finish();
}

void backward_shards(const ShardedGraph& graph, const GraphOptions& options, const Tensor& src,
                     const Shape& src_shape, ShardKernel& kernel, const KeptRows* kept, Tensor* grad_src,
                     bool accumulate) {
  const bool one_shot = options.mode == HaloMode::one_shot;
  const bool needs_source = kernel.needs_source_in_backward();
  const auto local_shard = [&](bool add) {
    const TraceScope scope("local shard", TraceKind::compute);
    kernel.backward(whole(graph.local, needs_source ? src.data() : nullptr),
                    grad_src != nullptr ? grad_src->data() : nullptr, add);
  };

  if (needs_source && kept == nullptr) {  // the local shard covers the wait for the first rows
    HaloOptions how = fetch_options(graph, options, src_shape, grad_src != nullptr);
    how.wait_for_start = true;
    HaloFetch fetch(graph.comm, src, graph.rounds, how);
    GradientSender sender(graph, options, src_shape, kernel, grad_src, true);
    sender.start(&fetch);
    const auto progress_fetch = [&] { fetch.progress(); };
    {
      const PollScope poll(progress_fetch);
      local_shard(accumulate);
    }
    const auto progress = [&] { fetch.progress(), sender.progress(); };
    const PollScope poll(progress);
    for (auto piece = fetch.next(); piece; piece.reset(), piece = fetch.next())
      send_piece(graph, one_shot, *piece, sender);
    fetch.finish();
    sender.receive_all_but_last();
    sender.finish();
    return;
  }

  if (!needs_source && grad_src == nullptr) {  // nothing travels
    local_shard(false);
    for_remote_shards(graph, options, [&](const GraphShard& shard) {
      kernel.backward(whole(shard, nullptr), nullptr, false);
    });
    return;
  }

  // Gradients of halo rows first: they travel while the local shard is computed. Where incoming rows are
  // added before that, the sum has to start from zero.
  GradientSender sender(graph, options, src_shape, kernel, grad_src, false);
  sender.start(nullptr);
  const bool sums_start_early = sender.adds_before_finish();
  if (sums_start_early && !accumulate) grad_src->fill(0);
  const auto progress = [&] { sender.progress(); };
  const PollScope poll(progress);
  if (needs_source)
    for (const HaloFetch::Piece& piece : *kept) send_piece(graph, one_shot, piece, sender);
  else
    for (std::size_t round = 0; round < graph.rounds.size(); ++round)
      sender.compute_and_send(round, 0, graph.rounds[round].recv_rows, nullptr);
  sender.receive_all_but_last();
  local_shard(accumulate || sums_start_early);
  sender.finish();
}

}  // namespace sar
