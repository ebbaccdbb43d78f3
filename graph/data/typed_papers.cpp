#include <sar/core/error.hpp>
#include <sar/core/keyed_bijection.hpp>
#include <sar/core/parallel.hpp>
#include <sar/core/random.hpp>
#include <sar/graph/data/generators.hpp>
#include <sar/graph/data/hetero_source.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace sar::inline SAR_PRECISION {
namespace {

/// One family of draws for each purpose, and one more for each type.
enum Stream : std::uint64_t {
  edge_stream = 0x74797000,
  order_stream = 0x74797040,
  noise_stream = 0x74797080,
  split_stream = 0x747970c0,
  label_stream
};

constexpr std::size_t paper = 0;

void check(const TypedPapersOptions& o) {
  require<InputError>(o.papers >= 1, "papers: ", o.papers, " papers, expected at least 1");
  require<InputError>(o.degree >= 0 && static_cast<double>(o.papers) * o.degree < 0x1p58, "papers: degree ",
                      o.degree, " with ", o.papers,
                      " papers, expected a number from 0 on and fewer than 2^58 edges");
  require<InputError>(1 <= o.classes && o.classes <= o.features, "papers: ", o.classes, " classes and ",
                      o.features, " features, expected at least one class and as many features as classes");
  require<InputError>(o.train_share > 0 && o.train_share <= 1, "papers: train_share ", o.train_share,
                      ", expected a positive number up to 1");
}

class TypedPapersSource : public HeteroSource {
 public:
  TypedPapersSource(const Communicator& comm, const TypedPapersOptions& options)
      : HeteroSource(comm),
        options_((check(options), options)),
        split_(options.papers, {options.seed, split_stream}) {
    const std::vector<DataField> features{{"features", npy_real, {options.features}}};
    std::vector<DataField> of_papers = features;
    of_papers.push_back({"labels", NpyType::int64, {}});
    for (const char* mask : {"train_mask", "val_mask", "test_mask"})
      of_papers.push_back({mask, NpyType::boolean, {}});
    types_.nodes = {{"paper", options.papers, of_papers},
                    {"author", std::max<Index>(1, options.papers * 3 / 4), features},
                    {"field", std::max<Index>(1, options.papers / 8), features}};
    const double edges = static_cast<double>(options.papers) * options.degree;
    const auto add = [&](const char* src, const char* name, const char* dst, double share) {
      types_.edges.push_back({src, name, dst, static_cast<Index>(std::llround(share * edges)), {}});
    };
    add("author", "writes", "paper", 0.25);
    add("paper", "written", "author", 0.25);
    add("paper", "cites", "paper", 0.2);
    add("paper", "has", "field", 0.125);
    add("field", "of", "paper", 0.125);
    add("author", "knows", "author", 0.05);
  }

  [[nodiscard]] std::string name() const override { return "papers"; }
  [[nodiscard]] std::string description() const override {
    return concat("generated graph papers: ", describe_types());
  }

  [[nodiscard]] EdgeList read_edges_of(std::size_t type) override {
    return comm().agree([&] {
      const SourceEdges& edges = types_.edges.at(type);
      const auto count_of = [&](const std::string& name) {
        return types_.nodes[types_.node_type(name)].num_nodes;
      };
      const Index sources = count_of(edges.src_type), destinations = count_of(edges.dst_type);
      const KeyedBijection order(sources, {options_.seed, order_stream + type});
      const Random draws({options_.seed, edge_stream + type});
      const PartitionBook shares = PartitionBook::even(edges.num_edges, comm().size());
      const Index begin = shares.begin(comm().rank());
      EdgeList list;
      for (Array<Index>* column : {&list.src, &list.dst, &list.id})
        column->resize(shares.num_nodes(comm().rank()));
      parallel_for(list.size(), 1 << 12, [&](Index first, Index last) {
        for (Index e = first; e < last; ++e) {
          const auto row = static_cast<std::uint64_t>(begin + e);
          const double u = draws.uniform(row, 0);
          list.src[e] =
              order(std::min(static_cast<Index>(u * u * static_cast<double>(sources)), sources - 1));
          list.dst[e] =
              std::min(static_cast<Index>(draws.uniform(row, 1) * static_cast<double>(destinations)),
                       destinations - 1);
          list.id[e] = begin + e;
        }
      });
      return list;
    });
  }

  [[nodiscard]] DataArray read_node_data_of(std::size_t type, const std::string& name,
                                            std::span<const Index> nodes) override {
    return comm().agree([&] {
      const auto& fields = types_.nodes.at(type).fields;
      const auto field = std::ranges::find(fields, name, &DataField::name);
      require<InputError>(field != fields.end(), "papers: there are no data of ", types_.nodes[type].name,
                          " named ", name);
      DataArray rows(field->type, field->row_shape, std::ssize(nodes));
      const auto fill = [&]<class T>(T*, const auto& value) {
        auto* out = reinterpret_cast<T*>(rows.bytes.data());
        for (std::size_t i = 0; i < nodes.size(); ++i) out[i] = static_cast<T>(value(nodes[i]));
      };
      constexpr std::uint8_t* flags = nullptr;
      if (name == "features")
        write_features(type, nodes, reinterpret_cast<real*>(rows.bytes.data()));
      else if (name == "labels")
        fill(static_cast<std::int64_t*>(nullptr), [&](Index v) { return label(v); });
      else
        fill(flags, [&](Index v) { return name == part(v); });
      return rows;
    });
  }
  [[nodiscard]] DataArray read_edge_data_of(std::size_t, const std::string& field,
                                            std::span<const Index>) override {
    return comm().agree([&]() -> DataArray {
      throw InputError(concat("papers: there are no data of edges named ", field, ", expected none"));
    });
  }

 private:
  [[nodiscard]] Index label(Index node) const {
    return static_cast<Index>(Random({options_.seed, label_stream}).bits(static_cast<std::uint64_t>(node)) %
                              static_cast<std::uint64_t>(options_.classes));
  }
  /// The mask that a paper is in.
  [[nodiscard]] const char* part(Index node) const {
    const auto train =
        static_cast<Index>(std::ceil(options_.train_share * static_cast<double>(options_.papers)));
    const Index place = split_(node);
    return place < train                                   ? "train_mask"
           : place < train + (options_.papers - train) / 2 ? "val_mask"
                                                           : "test_mask";
  }
  void write_features(std::size_t type, std::span<const Index> nodes, real* out) const {
    const Random noise({options_.seed, noise_stream + type});
    const Index width = options_.features;
    parallel_for(std::ssize(nodes), 256, [&](Index first, Index last) {
      for (Index i = first; i < last; ++i) {
        const Index node = nodes[static_cast<std::size_t>(i)];
        for (Index f = 0; f < width; ++f)
          out[i * width + f] = static_cast<real>(
              noise.normal(static_cast<std::uint64_t>(node), static_cast<std::uint64_t>(f)));
        if (type == paper) out[i * width + label(node)] += 1;
      }
    });
  }

  TypedPapersOptions options_;
  KeyedBijection split_;
};

}  // namespace

std::unique_ptr<GraphSource> typed_papers_source(const Communicator& comm,
                                                 const TypedPapersOptions& options) {
  return std::make_unique<TypedPapersSource>(comm, options);
}

}  // namespace sar
