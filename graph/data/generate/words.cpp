// SPDX-License-Identifier: MIT

// Each rank reads the features of an even share of the papers in chunks and keeps the words that are not
// 0: O(papers x width / P) time, 24 bytes per word of a paper. The edges of the two relations are copies
// of this list.
#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/error.hpp>
#include <sar/graph/data/generate/words.hpp>
#include <sar/graph/data/row_chunks.hpp>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {
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
    comm().agree([&] {
      words_.id.resize(words_.src.size());
      std::iota(words_.id.begin(), words_.id.end(), first);
    });
  }

  GraphSource& papers_;
  EdgeList words_;  // from papers to words
};

}  // namespace

std::unique_ptr<GraphSource> words_source(GraphSource& papers) {
  return papers.comm().agree([&] { return std::make_unique<WordsSource>(papers); });
}

}}  // namespace sar
