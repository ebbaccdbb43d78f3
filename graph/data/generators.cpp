// SPDX-License-Identifier: MIT

// Every draw is a function of the seed and of the number of a node or edge, so that a rank generates its
// share in O(E / P) without communication. The two ends of an edge are computed by inverting the distribution
// function of the density, in closed form.
#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/error.hpp>
#include <sar/core/memory/index_arrays.hpp>
#include <sar/core/random.hpp>
#include <sar/graph/data/columns.hpp>
#include <sar/graph/data/generators.hpp>
#include <sar/graph/data/load_dataset.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

namespace {

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

class SbmSource : public GraphSource {
 public:
  SbmSource(const Communicator& comm, const SbmOptions& sbm)
      : GraphSource(comm, "generated graph", "sbm"),
        sbm_((check(sbm), sbm)),
        node_of_rank_(sbm.nodes, {sbm.seed, RandomStream::sbm_order + 0}),
        split_(sbm.nodes, {sbm.seed, RandomStream::sbm_split + 0}),
        edge_draws_({sbm.seed, RandomStream::sbm_edges + 0}),
        width_(std::sqrt(static_cast<double>(sbm.nodes) + 1) - 1),
        train_end_(static_cast<Index>(std::ceil(sbm.train_share * static_cast<double>(sbm.nodes)))),
        val_end_(train_end_ + (sbm.nodes - train_end_) / 2) {
    NodeTypeData& nodes = types_.node_types.emplace_back();
    nodes.book = slices_of(sbm.nodes);
    nodes.unread = {{"features", npy_real, {sbm.features}},
                    {"labels", NpyType::int64, {}},
                    {"train_mask", NpyType::boolean, {}},
                    {"val_mask", NpyType::boolean, {}},
                    {"test_mask", NpyType::boolean, {}}};
    types_.edge_types.emplace_back().num_edges = 2 * num_undirected();
  }

  [[nodiscard]] std::string description() const override {
    return concat("generated graph sbm, ", num_nodes(), " nodes, ", num_edges(), " edges");
  }

  /// Both directions of this rank's share of the undirected edges.
  [[nodiscard]] EdgeList read_edges(std::size_t) override {
    return comm().agree([&] {
      const PartitionBook shares = slices_of(num_undirected());
      const Index begin = shares.begin(comm().rank()), count = shares.num_nodes(comm().rank());
      EdgeList list;
      for (Array<Index>* column : {&list.src, &list.dst, &list.id}) column->resize(2 * count);
      parallel_for_each(count, 1 << 12, [&](Index i) {
        const auto [u, v] = ends(static_cast<std::uint64_t>(begin + i));
        const Index at = 2 * i;
        list.src[at] = list.dst[at + 1] = u;
        list.dst[at] = list.src[at + 1] = v;
        list.id[at] = 2 * (begin + i);
        list.id[at + 1] = 2 * (begin + i) + 1;
      });
      return list;
    });
  }
  [[nodiscard]] DataArray read_node_data(std::size_t, const std::string& name,
                                         std::span<const Index> nodes) override {
    return comm().agree([&] {
      const auto& fields = types_.node_types[0].unread;
      const auto field = std::ranges::find(fields, name, &DataField::name);
      require<InputError>(field != fields.end(), "sbm: there is no node data '", name,
                          "', expected features, labels, train_mask, val_mask or test_mask");
      DataArray rows(field->type, field->row_shape, std::ssize(nodes));
      auto* bytes = reinterpret_cast<std::uint8_t*>(rows.bytes.data());
      if (name == "features")
        write_features(nodes, reinterpret_cast<real*>(bytes));
      else if (name == "labels")
        write(nodes, reinterpret_cast<std::int64_t*>(bytes), [&](Index node) { return label(node); });
      else
        write(nodes, bytes, [&](Index node) { return name == mask_of(node); });
      return rows;
    });
  }
  [[nodiscard]] DataArray read_edge_data(std::size_t, const std::string& name,
                                         std::span<const Index>) override {
    return comm().agree([&]() -> DataArray {
      throw InputError(concat("sbm: there is no edge data '", name, "', expected none"));
    });
  }

 private:
  [[nodiscard]] Index num_undirected() const {
    return static_cast<Index>(std::llround(static_cast<double>(sbm_.nodes) * sbm_.degree / 2));
  }
  [[nodiscard]] Index label(Index node) const { return node_of_rank_.inverse(node) % sbm_.classes; }
  [[nodiscard]] const char* mask_of(Index node) const {
    const Index place = split_(node);
    return place < train_end_ ? "train_mask" : place < val_end_ ? "val_mask" : "test_mask";
  }

  void write_features(std::span<const Index> nodes, real* out) const {
    const Tensor centres = class_centres();
    const Random noise({sbm_.seed, RandomStream::sbm_noise + 0});
    parallel_for_each(static_cast<Index>(nodes.size()), 256, [&](Index i) {
      const Index node = nodes[i];
      const real* centre = centres.row(label(node));
      for (Index f = 0; f < sbm_.features; ++f)
        out[i * sbm_.features + f] =
            centre[f] +
            static_cast<real>(noise.normal(static_cast<std::uint64_t>(node), static_cast<std::uint64_t>(f)));
    });
  }

  /// out[i] = value(nodes[i])
  template <class T, class Value>
  static void write(std::span<const Index> nodes, T* out, const Value& value) {
    parallel_for_each(static_cast<Index>(nodes.size()), 1 << 12,
                      [&](Index i) { out[i] = static_cast<T>(value(nodes[i])); });
  }

  /// Inverse of the distribution function F(x) = (sqrt(x + 1) - 1) / (sqrt(N + 1) - 1) of a density (x +
  /// 1)^(-1/2).
  [[nodiscard]] Index draw_rank(double uniform) const {
    const double root = uniform * width_ + 1;
    return std::min(static_cast<Index>(root * root - 1), sbm_.nodes - 1);
  }

  [[nodiscard]] std::pair<Index, Index> ends(std::uint64_t m) const {
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
    const Random draws({sbm_.seed, RandomStream::sbm_centres + 0});
    parallel_for_each(sbm_.classes, 16, [&](Index c) {
      const auto draw = [&](Index f) {
        return draws.normal(static_cast<std::uint64_t>(c), static_cast<std::uint64_t>(f));
      };
      double squares = 0;
      for (Index f = 0; f < sbm_.features; ++f) squares += draw(f) * draw(f);
      for (Index f = 0; f < sbm_.features; ++f)
        centres.row(c)[f] = static_cast<real>(draw(f) * sbm_.signal / std::sqrt(squares));
    });
    return centres;
  }

  SbmOptions sbm_;
  KeyedBijection node_of_rank_;
  KeyedBijection split_;
  Random edge_draws_;
  double width_;
  Index train_end_;
  Index val_end_;
};

}  // namespace

NodeData make_sbm(const Communicator& comm, const SbmOptions& sbm, const DatasetOptions& options) {
  return comm.agree([&] {
    const CallScope compared(comm, CollectiveCall("make_sbm")
                                       .equal("nodes", sbm.nodes)
                                       .equal("degree", sbm.degree)
                                       .equal("classes", sbm.classes)
                                       .equal("features", sbm.features)
                                       .equal("homophily", sbm.homophily)
                                       .equal("seed", sbm.seed)
                                       .equal("signal", sbm.signal)
                                       .equal("train_share", sbm.train_share));
    return load_dataset(*sbm_source(comm, sbm), options);
  });
}

std::unique_ptr<GraphSource> sbm_source(const Communicator& comm, const SbmOptions& sbm) {
  return std::make_unique<SbmSource>(comm, sbm);
}

namespace {

constexpr Index num_members = 34;

constexpr std::array<std::pair<Index, Index>, 78> friendships{{
    {0, 1},   {0, 2},   {0, 3},   {0, 4},   {0, 5},   {0, 6},   {0, 7},   {0, 8},   {0, 10},  {0, 11},
    {0, 12},  {0, 13},  {0, 17},  {0, 19},  {0, 21},  {0, 31},  {1, 2},   {1, 3},   {1, 7},   {1, 13},
    {1, 17},  {1, 19},  {1, 21},  {1, 30},  {2, 3},   {2, 7},   {2, 8},   {2, 9},   {2, 13},  {2, 27},
    {2, 28},  {2, 32},  {3, 7},   {3, 12},  {3, 13},  {4, 6},   {4, 10},  {5, 6},   {5, 10},  {5, 16},
    {6, 16},  {8, 30},  {8, 32},  {8, 33},  {9, 33},  {13, 33}, {14, 32}, {14, 33}, {15, 32}, {15, 33},
    {18, 32}, {18, 33}, {19, 33}, {20, 32}, {20, 33}, {22, 32}, {22, 33}, {23, 25}, {23, 27}, {23, 29},
    {23, 32}, {23, 33}, {24, 25}, {24, 27}, {24, 31}, {25, 31}, {26, 29}, {26, 33}, {27, 33}, {28, 31},
    {28, 33}, {29, 32}, {29, 33}, {30, 32}, {30, 33}, {31, 32}, {31, 33}, {32, 33},
}};

/// Who stayed with the instructor when the club split; the others followed the officer.
constexpr std::array<Index, 17> instructor_side{0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 16, 17, 19, 21};
constexpr std::array<Index, 2> heads{0, 33};
constexpr std::array<Index, 4> validation{1, 3, 30, 32};

bool contains(const auto& members, Index v) {
  return std::find(members.begin(), members.end(), v) != members.end();
}

class KarateSource : public GraphSource {
 public:
  explicit KarateSource(const Communicator& comm) : GraphSource(comm, "generated graph", "karate") {
    NodeTypeData& nodes = types_.node_types.emplace_back();
    nodes.book = slices_of(num_members);
    nodes.unread = {{"features", NpyType::uint8, {num_members}}};
    for (const char* field : {"labels", "train_mask", "val_mask", "test_mask"})
      nodes.unread.push_back({field, NpyType::uint8, {}});
    types_.edge_types.emplace_back().num_edges = 2 * std::ssize(friendships);
  }

  [[nodiscard]] EdgeList read_edges(std::size_t) override {
    const PartitionBook shares = slices_of(std::ssize(friendships));
    EdgeList edges;
    for (Index m = shares.begin(comm().rank()); m < shares.end(comm().rank()); ++m) {
      const auto& [u, v] = friendships[m];
      edges.src.insert(edges.src.end(), {u, v});
      edges.dst.insert(edges.dst.end(), {v, u});
      edges.id.insert(edges.id.end(), {2 * m, 2 * m + 1});
    }
    return edges;
  }
  [[nodiscard]] DataArray read_node_data(std::size_t, const std::string& field,
                                         std::span<const Index> nodes) override {
    DataArray rows(NpyType::uint8, {}, std::ssize(nodes));
    if (field == "features") rows = DataArray(NpyType::uint8, {num_members}, std::ssize(nodes));
    std::ranges::fill(rows.bytes, std::byte{0});
    for (Index i = 0; i < rows.num_rows; ++i) {
      const Index member = nodes[static_cast<std::size_t>(i)];
      const bool trains = contains(heads, member), validates = contains(validation, member);
      if (field == "features")
        rows.row(i)[member] = std::byte{1};
      else
        *rows.row(i) = static_cast<std::byte>(field == "labels"       ? !contains(instructor_side, member)
                                              : field == "train_mask" ? trains
                                              : field == "val_mask"   ? validates
                                                                      : !trains && !validates);
    }
    return rows;
  }
  [[nodiscard]] DataArray read_edge_data(std::size_t, const std::string&, std::span<const Index>) override {
    return {};
  }
};

}  // namespace

NodeData make_karate(const Communicator& comm, const DatasetOptions& options) {
  return comm.agree([&] {
    const CallScope compared(comm, CollectiveCall("make_karate"));
    return load_dataset(*karate_source(comm), options);
  });
}

std::unique_ptr<GraphSource> karate_source(const Communicator& comm) {
  return std::make_unique<KarateSource>(comm);
}

// Each rank reads the features of an even share of the papers in chunks and keeps the words that are not
// 0: O(papers x width / P) time, 24 bytes per word of a paper. The edges of the two relations are copies
// of this list.

namespace {

constexpr std::size_t paper = 0, cites = 0, has = 1;

class WordsSource : public GraphSource {
 public:
  explicit WordsSource(GraphSource& papers)
      : GraphSource(papers.comm(), "papers and words of", papers.name()), papers_(papers) {
    const GraphData& given = papers.types();
    require_one_type(papers.name(), given.node_types.size(), given.edge_types.size());
    std::vector<DataField> fields = given.node_types[0].unread;
    const auto features = std::ranges::find_if(
        fields, [](const DataField& field) { return field.name == "features" || field.name == "feat"; });
    require<InputError>(features != fields.end(), papers.name(),
                        ": there are no features, expected the words of ",
                        "each paper as columns that are not 0");
    const DataField words = *features;
    fields.erase(features);
    types_.node_types = {{.name = "paper", .book = given.node_types[0].book, .unread = fields},
                         {.name = "word", .book = slices_of(words.row_size())}};
    read_words(words);
    const Index count = comm().all_reduce(words_.size());
    EdgeTypeData citations = given.edge_types[0];
    citations.src_type = citations.dst_type = "paper";
    citations.name = "cites";
    types_.edge_types = {std::move(citations),
                         {.src_type = "paper", .name = "has", .dst_type = "word", .num_edges = count},
                         {.src_type = "word", .name = "in", .dst_type = "paper", .num_edges = count}};
  }

  [[nodiscard]] EdgeList read_edges(std::size_t type) override {
    if (type == cites) return papers_.read_edges(0);
    return comm().agree([&] {
      EdgeList edges = words_;
      if (type != has) std::swap(edges.src, edges.dst);
      return edges;
    });
  }
  [[nodiscard]] DataArray read_node_data(std::size_t type, const std::string& field,
                                         std::span<const Index> nodes) override {
    require<InputError>(type == paper, name(), ": there are no data of words named ", field);
    return papers_.read_node_data(0, field, nodes);
  }
  [[nodiscard]] DataArray read_edge_data(std::size_t type, const std::string& field,
                                         std::span<const Index> edges) override {
    require<InputError>(type == cites, name(), ": there are no data of words named ", field);
    return papers_.read_edge_data(0, field, edges);
  }

 private:
  /// The words of an even share of the papers, which are numbered by paper and word. Collective.
  void read_words(const DataField& field) {
    for_each_chunk(comm(), field, papers_.num_nodes(), [&](const Array<Index>& nodes, Index begin) {
      const DataArray rows = papers_.read_node_data(0, field.name, nodes);
      comm().agree([&] {
        std::vector<double> values(static_cast<std::size_t>(rows.row_size()));
        for (Index v = 0; v < rows.num_rows; ++v) {
          convert_elements(rows.type, rows.row(v), rows.row_size(), values.data());
          for (Index word = 0; word < rows.row_size(); ++word) {
            if (values[static_cast<std::size_t>(word)] == 0) continue;
            words_.src.push_back(begin + v);
            words_.dst.push_back(word);
          }
        }
      });
    });
    const Index first = gather_book(comm(), words_.size()).begin(comm().rank());
    comm().agree([&] { words_.id = consecutive(first, words_.size()); });
  }

  GraphSource& papers_;
  EdgeList words_;  // from papers to words
};

}  // namespace

std::unique_ptr<GraphSource> words_source(GraphSource& papers) {
  return papers.comm().agree([&] { return std::make_unique<WordsSource>(papers); });
}
}}  // namespace sar
