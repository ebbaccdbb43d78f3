// SPDX-License-Identifier: MIT

// Hits at K is a radix select of the keys of scores; MRR counts the negatives above each positive and adds
// the reciprocals of the counted ranks. O(n) and O(n k) time, 8 bytes per local score.
#include <sar/autograd/tape.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/comm/rows/row_route.hpp>
#include <sar/core/error.hpp>
#include <sar/core/memory/index_arrays.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/graph/topology/sharded_graph.hpp>
#include <sar/nn/models/ranking.hpp>
#include <sar/nn/train/score_keys.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

namespace {

/// Returns the k-th largest key of all ranks, 1 <= k <= their number. A radix select: it fixes one digit at a
/// time, from the highest one.
ScoreKey kth_largest(const Array<ScoreKey>& keys, std::int64_t k, const Communicator& comm) {
  ScoreKey prefix = 0, known = 0;
  for (int shift = 56; shift >= 0; shift -= 8) {
    std::array<std::int64_t, 256> counts{};
    for (const ScoreKey key : keys)
      if ((key & known) == prefix) ++counts[key >> shift & 255];
    comm.all_reduce(std::span<std::int64_t>(counts));
    ScoreKey digit = 255;
    for (; k > counts[digit]; --digit) k -= counts[digit];
    prefix |= digit << shift;
    known |= ScoreKey{255} << shift;
  }
  return prefix;
}

/// Returns 2 (rank - 1) of one positive.
Index twice_rank(double positive, const real* negatives, Index k) {
  Index twice = 0;
  for (Index j = 0; j < k; ++j) {
    const auto negative = static_cast<double>(negatives[j]);
    twice += negative > positive ? 2 : negative == positive ? 1 : 0;
  }
  return twice;
}

}  // namespace

double hits_at_k(const Tensor& positive, const Tensor& negative, Index k, const Communicator& comm) {
  return comm.agree([&] {
    require<InputError>(k >= 1, "hits_at_k: K is ", k, ", expected 1 or more");
    const Array<ScoreKey> positives = score_keys(positive.values(), "hits_at_k", "positives");
    const Array<ScoreKey> negatives = score_keys(negative.values(), "hits_at_k", "negatives");
    const ScoreCounts counts =
        count_scores(positive.size(), negative.size(), comm, CollectiveCall("hits_at_k").equal("K", k));
    if (counts.negatives < k) return 1.0;
    const ScoreKey kth = kth_largest(negatives, k, comm);
    const std::int64_t hits =
        std::count_if(positives.begin(), positives.end(), [&](ScoreKey key) { return key > kth; });
    return static_cast<double>(comm.all_reduce(hits)) / static_cast<double>(counts.positives);
  });
}

double mean_reciprocal_rank(const Tensor& positive, const Tensor& negative, const Communicator& comm) {
  return comm.agree([&] {
    const Index n = positive.size(), k = n == 0 ? 0 : negative.size() / n;
    const Shape& shape = negative.shape();
    require<ShapeError>(negative.size() == n * k && (shape.dims() != 2 || shape[0] == n),
                        "mean_reciprocal_rank: negatives have shape ", shape, ", expected [", n, ", k] for ",
                        n, " positives");
    (void)score_keys(positive.values(), "mean_reciprocal_rank", "positives");
    (void)score_keys(negative.values(), "mean_reciprocal_rank", "negatives");
    const ScoreCounts counts = count_scores(n, negative.size(), comm, CollectiveCall("mean_reciprocal_rank"));
    std::vector<std::int64_t> with_rank(static_cast<std::size_t>(2 * comm.all_reduce(k, ReduceOp::max) + 1));
    for (Index i = 0; i < n; ++i)
      ++with_rank[static_cast<std::size_t>(twice_rank(positive.data()[i], negative.data() + i * k, k))];
    comm.all_reduce(std::span<std::int64_t>(with_rank));
    double sum = 0;
    for (std::size_t twice = 0; twice < with_rank.size(); ++twice)
      sum += static_cast<double>(with_rank[twice]) / (1 + static_cast<double>(twice) / 2);
    return sum / static_cast<double>(counts.positives);
  });
}

// Filtered ranks. Queries are processed in chunks: the owner of the given end computes the query row, and an
// all_gather sends the queries of a chunk to all ranks. The owners of the targets share the targets' scores
// by an all_reduce.
//
// Loop order on each rank: tiles of 64 node rows, transposed once per tile; queries in parallel; columns;
// the 64 lanes of a tile in the innermost, vectorized loop. Each tile stays in the cache for all queries.
// Only counts are kept: scores above the target count 2, ties 1. The scores of known edges are then computed
// again and subtracted, and an all_reduce sums the counts over the ranks.

namespace {

constexpr Index lanes = 64;  // node rows that are scored at once

/// A transposed tile of node rows: [width, lanes].
using Block = std::vector<real>;

struct Query {
  Index node, rel, target;  // the given end and the end to rank
};

/// Computes s[l], the score of lane l of the tile for the query; larger is nearer. All lanes use the same
/// order of additions, so that equal rows get equal scores. For the same reason it is not inlined: there is
/// exactly one compiled form.
[[gnu::noinline]] void score_block(RowComparison kind, const real* query, const real* block, Index width,
                                   real* s) {
  std::fill_n(s, lanes, real{0});
  if (kind == RowComparison::dot) {
    for (Index j = 0; j < width; ++j)
      for (Index l = 0; l < lanes; ++l) s[l] += query[j] * block[j * lanes + l];
  } else if (kind == RowComparison::l1) {
    for (Index j = 0; j < width; ++j)
      for (Index l = 0; l < lanes; ++l) s[l] -= std::abs(query[j] - block[j * lanes + l]);
  } else if (kind == RowComparison::l2) {  // squared lengths have the order of lengths
    for (Index j = 0; j < width; ++j)
      for (Index l = 0; l < lanes; ++l) {
        const real d = query[j] - block[j * lanes + l];
        s[l] -= d * d;
      }
  } else {
    const Index half = width / 2;
    for (Index j = 0; j < half; ++j)
      for (Index l = 0; l < lanes; ++l) {
        const real re = query[j] - block[j * lanes + l];
        const real im = query[half + j] - block[(half + j) * lanes + l];
        s[l] -= std::sqrt(re * re + im * im);
      }
  }
}

/// Copies `count` rows of h, at most `lanes`, into the tile and zeroes the remaining lanes.
template <class RowOf>
void fill_block(const Tensor& h, Index count, const RowOf& row_of, Block& block) {
  const Index width = h.row_size();
  block.assign(static_cast<std::size_t>(width * lanes), real{0});
  for (Index l = 0; l < count; ++l) {
    const real* row = h.row(row_of(l));
    for (Index j = 0; j < width; ++j) block[static_cast<std::size_t>(j * lanes + l)] = row[j];
  }
}

struct RowRange {
  Index begin, end;
  [[nodiscard]] bool contains(Index row) const { return begin <= row && row < end; }
};

/// Counts, among the rows of this rank, those that rank before the target of each query.
struct Counter {
  RowComparison kind;
  const Tensor& h;
  const Communicator& comm;
  Index first_node;  ///< global id of local row 0
  const KnownEdges& known;
  std::span<const RelationRows> rows_of_relations;
  EdgeEnd wanted;

  /// Returns 2 (rank - 1) of the target of each query, summed over all ranks. The queries are the same on all
  /// ranks. Collective.
  [[nodiscard]] std::vector<Index> count(std::span<const Query> queries, std::span<const real> values) const {
    const std::vector<real> targets = scores_of_targets(queries, values);
    std::vector<Index> twice(queries.size(), 0);
    comm.agree([&] {
      Block block;
      for (Index begin = 0; begin < h.num_rows(); begin += lanes) {
        const Index end = std::min(begin + lanes, h.num_rows());
        fill_block(
            h, end - begin, [&](Index l) { return begin + l; }, block);
        parallel_for_each(std::ssize(queries), 16, [&](Index i) {
          twice[i] += of_block(queries[i], values.data() + i * h.row_size(), block, {begin, end}, targets[i]);
        });
      }
      parallel_for_each(std::ssize(queries), 16, [&](Index i) {
        twice[i] -= of_known(queries[i], values.data() + i * h.row_size(), targets[i]);
      });
    });
    comm.all_reduce(std::span<Index>(twice));
    return twice;
  }

  /// Returns the local rows that may be the wanted end of the query.
  [[nodiscard]] RowRange candidates(const Query& query) const {
    if (rows_of_relations.empty()) return {0, h.num_rows()};
    const RelationRows& of = rows_of_relations[static_cast<std::size_t>(query.rel)];
    return wanted == EdgeEnd::destination ? RowRange{of.dst_begin, of.dst_end}
                                          : RowRange{of.src_begin, of.src_end};
  }

  /// Returns the scores of the targets on all ranks; the owner of a target computes its score. Collective.
  [[nodiscard]] std::vector<real> scores_of_targets(std::span<const Query> queries,
                                                    std::span<const real> values) const {
    std::vector<real> targets(queries.size(), real{0});
    comm.agree([&] {
      parallel_for(std::ssize(queries), 16, [&](Index first, Index last) {
        Block block;
        real s[lanes];
        for (Index i = first; i < last; ++i) {
          const Index row = queries[i].target - first_node;
          if (row < 0 || row >= h.num_rows()) continue;
          fill_block(
              h, 1, [&](Index) { return row; }, block);
          score_block(kind, values.data() + i * h.row_size(), block.data(), h.row_size(), s);
          require<InputError>(!std::isnan(s[0]), "filtered_ranks: the score of node ", queries[i].target,
                              " for node ", queries[i].node, " and relation ", queries[i].rel, " is NaN");
          targets[i] = s[0];
        }
      });
    });
    comm.all_reduce(std::span<real>(targets));
    return targets;
  }

  /// Returns twice the number of larger scores plus the number of equal scores, over the lanes `which`.
  [[nodiscard]] Index of_lanes(const Query& query, const real* values, const Block& block, RowRange which,
                               real target) const {
    real s[lanes];
    score_block(kind, values, block.data(), h.row_size(), s);
    Index larger = 0, equal = 0, smaller = 0;
    for (Index l = which.begin; l < which.end; ++l) {
      larger += s[l] > target ? 1 : 0;
      equal += s[l] == target ? 1 : 0;
      smaller += s[l] < target ? 1 : 0;
    }
    require<InputError>(larger + equal + smaller == which.end - which.begin,
                        "filtered_ranks: a score for node ", query.node, " and relation ", query.rel,
                        " is NaN");
    return 2 * larger + equal;
  }

  /// Counts over the candidates among the local rows `block_rows`, without the target.
  [[nodiscard]] Index of_block(const Query& query, const real* values, const Block& block,
                               RowRange block_rows, real target) const {
    const RowRange all = candidates(query);
    const RowRange some{std::max(all.begin, block_rows.begin), std::min(all.end, block_rows.end)};
    if (some.begin >= some.end) return 0;
    const Index itself = some.contains(query.target - first_node) ? 1 : 0;  // its own score is equal and was
                                                                            // counted
    return of_lanes(query, values, block, {some.begin - block_rows.begin, some.end - block_rows.begin},
                    target) -
           itself;
  }

  /// Counts over the candidates that form a known edge, without the target.
  [[nodiscard]] Index of_known(const Query& query, const real* values, real target) const {
    const RowRange all = candidates(query);
    std::vector<Index> rows;
    for (const KnownEdges::Edge& edge : known.ends(wanted, query.node, query.rel))
      if (edge.other != query.target && all.contains(edge.other - first_node))
        rows.push_back(edge.other - first_node);
    Block block;
    Index twice = 0;
    for (Index begin = 0; begin < std::ssize(rows); begin += lanes) {
      const Index count = std::min(lanes, std::ssize(rows) - begin);
      fill_block(
          h, count, [&](Index l) { return rows[static_cast<std::size_t>(begin + l)]; }, block);
      twice += of_lanes(query, values, block, {0, count}, target);
    }
    return twice;
  }
};

/// Returns the query rows of `queries`, computed from the node rows of this rank. Local.
Tensor query_rows(const RelationPredictor& predictor, const Tensor& h, Index first_node, EdgeEnd wanted,
                  const Array<Query>& queries) {
  const NoTape no_tape;
  Tensor rows({std::ssize(queries), h.row_size()});
  std::vector<Index> rels;
  for (Index i = 0; i < std::ssize(queries); ++i) {
    std::copy_n(h.row(queries[i].node - first_node), h.row_size(), rows.row(i));
    rels.push_back(queries[i].rel);
  }
  return predictor.query(wanted, rows, std::move(rels)).value();
}

/// Returns the ranks of the ends `wanted` of all edges. The owner of the given end computes the query.
Array<double> ranks_of(EdgeEnd wanted, const RelationPredictor& predictor, const Tensor& h,
                       const Communicator& comm, const PartitionBook& book, const RelationEdges& edges,
                       const Counter& counter) {
  const bool to_dst = wanted == EdgeEnd::destination;
  const Array<Index>& given = to_dst ? edges.src : edges.dst;
  const Array<Index>& targets = to_dst ? edges.dst : edges.src;
  Array<double> ranks(given.size());
  const auto owner = [&](Index i) { return book.owner(given[i]); };
  const auto rank = [&](const RowRoute& route, Index first, Index last) {
    Array<Query> queries;
    for (Index i = first; i < last; ++i) queries.push_back({given[i], edges.rels[i], targets[i]});
    const Array<Query> mine = route.forward(std::span<const Query>(queries));
    const Tensor values =
        comm.agree([&] { return query_rows(predictor, h, book.begin(comm.rank()), wanted, mine); });
    const Index begin = gather_book(comm, std::ssize(mine)).begin(comm.rank());
    const std::vector<Query> all = comm.all_gather(std::span<const Query>(mine));
    const std::vector<real> all_values = comm.all_gather(std::span<const real>(values.values()));
    const std::vector<Index> twice = counter.count(all, all_values);
    const Array<Index> back = route.back(std::span<const Index>(twice).subspan(begin, mine.size()));
    for (Index i = first; i < last; ++i) ranks[i] = 1 + static_cast<double>(back[i - first]) / 2;
  };
  // every rank holds the queries of all ranks
  route_chunks(comm, edges.size(), comm.size() * (h.row_size() * sizeof(real) + sizeof(Query)), owner, rank);
  return ranks;
}

void require_edges(const char* call, const RelationEdges& edges, const PartitionBook& book) {
  require<ShapeError>(edges.dst.size() == edges.src.size() && edges.rels.size() == edges.src.size(), call,
                      ": ", edges.src.size(), " sources, ", edges.rels.size(), " relations and ",
                      edges.dst.size(), " destinations, expected as many of each");
  for (const Array<Index>* ends : {&edges.src, &edges.dst})
    for (const Index node : *ends)
      require<InputError>(node >= 0 && node < book.num_nodes(), call, ": an edge has the end ", node,
                          ", expected a node from 0 to ", book.num_nodes() - 1);
}

}  // namespace

RelationEdges relation_edges(const HomogeneousForm& form) {
  const GraphTopology& graph = form.graph.topology();
  return graph.comm.agree([&] {
    const Index first = graph.dst_book.begin(graph.comm.rank());
    const Array<Index> nodes = graph.with_halo(consecutive(first, form.graph.num_nodes()));
    const auto n = static_cast<std::size_t>(graph.num_edges());
    RelationEdges edges{Array<Index>(n), Array<Index>(n), Array<Index>(n)};
    std::ranges::copy(form.etypes.numbers(), edges.rels.begin());
    graph.for_each_edge([&](Index u, Index v, Index edge) {
      edges.src[edge] = nodes[u];
      edges.dst[edge] = first + v;
    });
    return edges;
  });
}

KnownEdges::KnownEdges(const Graph& graph, const RelationEdges& edges) {
  const Communicator& comm = graph.comm();
  const PartitionBook& book = graph.topology().dst_book;
  comm.agree([&] {
    require_edges("KnownEdges", edges, book);
    const auto gather = [&](const Array<Index>& nodes, const Array<Index>& others, Array<Edge>& to) {
      const auto owner = [&](Index i) { return book.owner(others[i]); };
      const auto send = [&](const RowRoute& route, Index first, Index last) {
        Array<Edge> some;
        for (Index i = first; i < last; ++i) some.push_back({nodes[i], edges.rels[i], others[i]});
        const Array<Edge> arrived = route.forward(std::span<const Edge>(some));
        to.insert(to.end(), arrived.begin(), arrived.end());
      };
      route_chunks(comm, edges.size(), sizeof(Edge), owner, send);
      std::sort(to.begin(), to.end());
      to.erase(std::unique(to.begin(), to.end()), to.end());
    };
    gather(edges.src, edges.dst, by_source_);
    gather(edges.dst, edges.src, by_destination_);
  });
}

std::span<const KnownEdges::Edge> KnownEdges::ends(EdgeEnd wanted, Index node, Index rel) const {
  const Array<Edge>& edges = wanted == EdgeEnd::destination ? by_source_ : by_destination_;
  const auto begin = std::lower_bound(edges.begin(), edges.end(), Edge{node, rel, 0});
  const auto end = std::lower_bound(begin, edges.end(), Edge{node, rel + 1, 0});
  return {edges.data() + (begin - edges.begin()), static_cast<std::size_t>(end - begin)};
}

std::vector<RelationRows> relation_rows(const HomogeneousForm& form) {
  return relation_ends(form.node_types, form.edge_types, form.first_row);
}

FilteredRanks filtered_ranks(const RelationPredictor& predictor, const Graph& graph, const Tensor& h,
                             const RelationEdges& edges, const KnownEdges& known,
                             std::span<const RelationRows> rows) {
  const Communicator& comm = graph.comm();
  const PartitionBook& book = graph.topology().dst_book;
  return comm.agree([&] {
    const Shape expected{book.num_nodes(comm.rank()), predictor.width()};
    require<ShapeError>(h.shape() == expected, "filtered_ranks: representations have shape ", h.shape(),
                        ", expected ", expected);
    require_edges("filtered_ranks", edges, book);
    require<ShapeError>(rows.empty() || std::ssize(rows) == predictor.num_rels(), "filtered_ranks: rows of ",
                        rows.size(), " relations, expected ", predictor.num_rels());
    for (const Index rel : edges.rels)
      require<InputError>(rel >= 0 && rel < predictor.num_rels(), "filtered_ranks: relation ", rel,
                          ", expected 0 to ", predictor.num_rels() - 1);
    for (const RelationRows& of : rows)
      for (const auto& [begin, end] :
           {std::pair(of.src_begin, of.src_end), std::pair(of.dst_begin, of.dst_end)})
        require<InputError>(0 <= begin && begin <= end && end <= h.num_rows(), "filtered_ranks: rows ", begin,
                            " to ", end, " of a relation, rank ", comm.rank(), " has ", h.num_rows());
    const CallScope compared(comm, CollectiveCall("filtered_ranks")
                                       .equal("comparison of rows", predictor.comparison())
                                       .equal("width", predictor.width())
                                       .equal("number of relations", predictor.num_rels())
                                       .equal("choice of the rows of relations", !rows.empty()));
    const auto of = [&](EdgeEnd wanted) {
      return ranks_of(wanted, predictor, h, comm, book, edges,
                      {predictor.comparison(), h, comm, book.begin(comm.rank()), known, rows, wanted});
    };
    return FilteredRanks{of(EdgeEnd::destination), of(EdgeEnd::source)};
  });
}

RankMetrics rank_metrics(const FilteredRanks& ranks, std::span<const Index> ks, const Communicator& comm) {
  return comm.agree([&] {
    CollectiveCall call("rank_metrics");
    for (const Index k : ks) {
      require<InputError>(k >= 1, "rank_metrics: K is ", k, ", expected 1 or more");
      call.equal("K", k);
    }
    const CallScope compared(comm, call);
    struct Run {
      Index twice, count;
    };
    std::map<Index, Index> counts;  // number of edges by twice the rank
    for (const Array<double>* some : {&ranks.of_destinations, &ranks.of_sources})
      for (const double rank : *some) ++counts[static_cast<Index>(2 * rank)];
    std::vector<Run> runs;
    for (const auto& [twice, count] : counts) runs.push_back({twice, count});
    counts.clear();
    for (const Run& run : comm.all_gather(std::span<const Run>(runs))) counts[run.twice] += run.count;
    RankMetrics metrics{.hits = std::vector<double>(ks.size(), 0)};
    double all = 0;
    for (const auto& [twice, count] : counts) {
      const auto n = static_cast<double>(count), rank = static_cast<double>(twice) / 2;
      all += n;
      metrics.mrr += n / rank;
      metrics.mean_rank += n * rank;
      for (std::size_t i = 0; i < ks.size(); ++i)
        if (twice <= 2 * ks[i]) metrics.hits[i] += n;
    }
    require<InputError>(all > 0, "rank_metrics: no rank has the rank of an edge");
    metrics.mrr /= all;
    metrics.mean_rank /= all;
    for (double& hits : metrics.hits) hits /= all;
    return metrics;
  });
}
}}  // namespace sar
