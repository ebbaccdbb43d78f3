#include <sar/core/error.hpp>
#include <sar/core/random.hpp>
#include <sar/graph/bijection.hpp>
#include <sar/graph/distribute.hpp>
#include <sar/graph/generators.hpp>

#include <algorithm>
#include <cmath>

namespace sar {
namespace {

/// One family of draws for each purpose.
enum Stream : std::uint64_t {
  order_stream = 0x73626d00,
  edge_stream,
  centre_stream,
  noise_stream,
  split_stream
};

void check(const SbmOptions& sbm) {
  require<InputError>(sbm.classes >= 1, "sbm: ", sbm.classes, " classes, expected at least 1");
  require<InputError>(sbm.nodes / 2 >= sbm.classes, "sbm: ", sbm.nodes,
                      " nodes, expected at least two for each of the ", sbm.classes, " classes");
  require<InputError>(sbm.degree > 0 && static_cast<double>(sbm.nodes) * sbm.degree < 0x1p60, "sbm: degree ",
                      sbm.degree, " with ", sbm.nodes,
                      " nodes, expected a positive number and fewer than 2^60 edges");
  require<InputError>(sbm.features >= 1, "sbm: ", sbm.features, " features, expected at least 1");
  require<InputError>(sbm.homophily >= 0 && sbm.homophily <= 1, "sbm: homophily ", sbm.homophily,
                      ", expected a number from 0 to 1");
  require<InputError>(std::isfinite(sbm.signal), "sbm: signal ", sbm.signal, ", expected a finite number");
  require<InputError>(sbm.train_share > 0 && sbm.train_share <= 1, "sbm: train_share ", sbm.train_share,
                      ", expected a positive number up to 1");
}

class Generator {
 public:
  explicit Generator(const SbmOptions& sbm)
      : sbm_(sbm),
        node_of_rank_(sbm.nodes, {sbm.seed, order_stream}),
        split_(sbm.nodes, {sbm.seed, split_stream}),
        edge_draws_({sbm.seed, edge_stream}),
        width_(std::sqrt(static_cast<double>(sbm.nodes) + 1) - 1) {}

  /// Both directions of undirected edges [begin, end).
  [[nodiscard]] EdgeList edges(Index begin, Index end) const {
    EdgeList list;
    for (Array<Index>* column : {&list.src, &list.dst, &list.id})
      column->resize(static_cast<std::size_t>(2 * (end - begin)));
    parallel_for(end - begin, 1 << 12, [&](Index first, Index last) {
      for (Index i = first; i < last; ++i) {
        const auto [u, v] = ends(static_cast<std::uint64_t>(begin + i));
        const auto at = static_cast<std::size_t>(2 * i);
        list.src[at] = list.dst[at + 1] = u;
        list.dst[at] = list.src[at + 1] = v;
        list.id[at] = 2 * (begin + i);
        list.id[at + 1] = 2 * (begin + i) + 1;
      }
    });
    return list;
  }

  /// Features, labels and masks of data.original_ids.
  void describe_nodes(NodeData& data) const {
    const auto count = static_cast<Index>(data.original_ids.size());
    data.num_classes = sbm_.classes;
    data.features = Tensor(Shape{count, sbm_.features});
    data.labels.resize(data.original_ids.size());
    for (auto* mask : {&data.train_mask, &data.val_mask, &data.test_mask})
      mask->resize(data.original_ids.size());
    const Tensor centres = class_centres();
    const Random noise({sbm_.seed, noise_stream});
    const auto train_end = static_cast<Index>(std::ceil(sbm_.train_share * static_cast<double>(sbm_.nodes)));
    const Index val_end = train_end + (sbm_.nodes - train_end) / 2;
    parallel_for(count, 256, [&](Index first, Index last) {
      for (Index i = first; i < last; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const Index node = data.original_ids[at];
        data.labels[at] = node_of_rank_.inverse(node) % sbm_.classes;
        const Index position = split_(node);
        data.train_mask[at] = position < train_end;
        data.val_mask[at] = train_end <= position && position < val_end;
        data.test_mask[at] = val_end <= position;
        real* row = data.features.row(i);
        const real* centre = centres.row(data.labels[at]);
        for (Index f = 0; f < sbm_.features; ++f)
          row[f] = centre[f] + static_cast<real>(noise.normal(static_cast<std::uint64_t>(node),
                                                              static_cast<std::uint64_t>(f)));
      }
    });
  }

 private:
  struct Ends {
    Index u;
    Index v;
  };

  /// Inverse of the distribution function F(x) = (sqrt(x + 1) - 1) / (sqrt(N + 1) - 1) of a density (x +
  /// 1)^(-1/2).
  [[nodiscard]] Index draw_rank(double uniform) const {
    const double root = uniform * width_ + 1;
    return std::min(static_cast<Index>(root * root - 1), sbm_.nodes - 1);
  }

  [[nodiscard]] Ends ends(std::uint64_t m) const {
    const Index u = draw_rank(edge_draws_.uniform(m, 0));
    Index label = u % sbm_.classes;
    const double other = edge_draws_.uniform(m, 1) - sbm_.homophily;
    if (other >= 0 && sbm_.classes > 1) {
      const auto others = static_cast<double>(sbm_.classes - 1);
      const auto step = static_cast<Index>(other / (1 - sbm_.homophily) * others);
      label = (label + 1 + std::min(step, sbm_.classes - 2)) % sbm_.classes;
    }
    Index v = u;
    for (std::uint64_t attempt = 2; v == u; ++attempt) {
      v = draw_rank(edge_draws_.uniform(m, attempt));
      v += label - v % sbm_.classes;
      if (v >= sbm_.nodes) v -= sbm_.classes;
    }
    return {node_of_rank_(u), node_of_rank_(v)};
  }

  /// [classes, features]: directions drawn uniformly, of length `signal`.
  [[nodiscard]] Tensor class_centres() const {
    Tensor centres(Shape{sbm_.classes, sbm_.features});
    const Random draws({sbm_.seed, centre_stream});
    parallel_for(sbm_.classes, 16, [&](Index first, Index last) {
      for (Index c = first; c < last; ++c) {
        const auto draw = [&](Index f) {
          return draws.normal(static_cast<std::uint64_t>(c), static_cast<std::uint64_t>(f));
        };
        double squares = 0;
        for (Index f = 0; f < sbm_.features; ++f) squares += draw(f) * draw(f);
        for (Index f = 0; f < sbm_.features; ++f)
          centres.row(c)[f] = static_cast<real>(draw(f) * sbm_.signal / std::sqrt(squares));
      }
    });
    return centres;
  }

  const SbmOptions& sbm_;
  KeyedBijection node_of_rank_;
  KeyedBijection split_;
  Random edge_draws_;
  double width_;
};

}  // namespace

NodeData make_sbm(const Communicator& comm, const SbmOptions& sbm, const DatasetOptions& options) {
  check(sbm);
  require_nodes_for_ranks("sbm", sbm.nodes, comm.size());
  const Generator generator(sbm);
  const auto num_undirected =
      static_cast<Index>(std::llround(static_cast<double>(sbm.nodes) * sbm.degree / 2));
  const PartitionBook shares = PartitionBook::even(num_undirected, comm.size());
  return distribute(comm, "sbm", sbm.nodes,
                    generator.edges(shares.begin(comm.rank()), shares.end(comm.rank())), options,
                    [&](NodeData& data) { generator.describe_nodes(data); });
}

}  // namespace sar
