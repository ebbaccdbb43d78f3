// SPDX-License-Identifier: MIT

/// Graph samples: their fields and edges, batches as one graph, and which batches there are, for all
/// distributions over the ranks.
#include "graph/samples/sample_graphs.hpp"
#include "support/rows.hpp"
#include "support/thrown.hpp"

#include <sar/core/error.hpp>
#include <sar/graph/message/agreement.hpp>
#include <sar/graph/sampling/graph_samples.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

constexpr Index graphs = 13;

std::vector<Index> all_positions(const GraphSamples& samples) {
  std::vector<Index> positions;
  for (Index g = 0; g < samples.num_graphs(); ++g) positions.push_back(g);
  return positions;
}

std::vector<Index> list(const Array<local_index>& values) {
  return {values.begin(), values.end()};
}

/// The ids of the graphs of all ranks in each batch, sorted in a batch.
std::vector<std::vector<Index>> batches_of(const Communicator& comm, SampleLoader& loader,
                                           std::uint64_t epoch, Index first = 0) {
  std::vector<std::vector<Index>> batches;
  loader.start_epoch(epoch, first);
  while (const auto next = loader.next()) {
    CHECK(next->number == first + std::ssize(batches));
    CHECK(std::ssize(next->positions) == next->batch.num_graphs());
    CHECK(comm.all_reduce(next->batch.num_graphs()) == next->batch.num_global_graphs());
    batches.push_back(comm.all_gather(std::span<const Index>(next->batch.samples().ids)));
    std::ranges::sort(batches.back());
  }
  return batches;
}

}  // namespace

TEST_CASE("edges are sorted, reversed and looped with their fields") {
  GraphSamples samples;
  samples.add(4, 3, std::vector<Index>{2, 0, 0, 0}, std::vector<Index>{0, 1, 1, 0});
  samples.add(9, 1, {}, {});
  samples.edges.tensors["w"] = Tensor::from({4, 1}, {10, 11, 12, 13});
  samples.edges.integers["k"] = IntegerRows{1, Array<Index>{0, 1, 2, 3}};
  CHECK(thrown<InputError>([&] { samples.check(); }) ==
        "graph samples: the edges of graph 4 are not sorted by destination and source, expected a call of "
        "sort_edges");
  sort_edges(samples);
  samples.check();
  CHECK(list(samples.src) == std::vector<Index>{0, 2, 0, 0});
  CHECK(list(samples.dst) == std::vector<Index>{0, 0, 1, 1});
  CHECK(same_bits(samples.edges.tensors.at("w"), Tensor::from({4, 1}, {13, 10, 11, 12})));
  CHECK(samples.edges.integers.at("k").values == Array<Index>{3, 0, 1, 2});
  add_reverse_edges(samples);
  CHECK(list(samples.src) == std::vector<Index>{0, 0, 1, 1, 2, 0, 0, 0});
  CHECK(list(samples.dst) == std::vector<Index>{0, 0, 0, 0, 0, 1, 1, 2});
  CHECK(same_bits(samples.edges.tensors.at("w"), Tensor::from({8, 1}, {13, 13, 11, 12, 10, 11, 12, 10})));
  add_self_loops(samples);
  CHECK(samples.num_edges(0) == 11);
  CHECK(samples.num_edges(1) == 1);
  CHECK(samples.edges.tensors.at("w").row(11)[0] == 0);
  samples.check();
}

TEST_CASE("chosen samples have their fields") {
  const GraphSamples samples = make_samples(0, graphs);
  const GraphSamples chosen = samples.select(std::vector<Index>{7, 3, 7});
  chosen.check();
  CHECK(chosen.ids == Array<Index>{7, 3, 7});
  const GraphSamples seven = make_samples(7, 8), three = make_samples(3, 4);
  CHECK(chosen.num_nodes() == 2 * seven.num_nodes() + three.num_nodes());
  CHECK(chosen.num_edges() == 2 * seven.num_edges() + three.num_edges());
  const auto rows = [](const Tensor& all, Index begin, const Tensor& expected) {
    CHECK(same_bits(all.slice_rows(begin, begin + expected.num_rows()).clone(), expected));
  };
  for (Index g = 0; g < 3; ++g) {
    CAPTURE(g);
    const GraphSamples& expected = g == 1 ? three : seven;
    const Index node = chosen.node_begin[g];
    rows(chosen.nodes.tensors.at("x"), node, expected.nodes.tensors.at("x"));
    rows(chosen.edges.tensors.at("w"), chosen.edge_begin[g], expected.edges.tensors.at("w"));
    rows(chosen.graphs.tensors.at("y"), g, expected.graphs.tensors.at("y"));
    CHECK(chosen.nodes.integers.at("kind").row(node)[0] == expected.nodes.integers.at("kind").row(0)[0]);
  }
  CHECK(samples.select({}).num_graphs() == 0);
  CHECK(samples.select({}).nodes.tensors.at("x").shape() == Shape{0, sample_width});
  CHECK(thrown<InputError>([&] { (void)samples.select(std::vector<Index>{13}); }) ==
        "there is no graph at position 13, expected 0 to 12");
}

TEST_CASE("a batch computes what each sample computes alone") {
  const Communicator comm = Communicator::world();
  for (const PartitionBook& book : sample_books(graphs, comm.size())) {
    const GraphSamples mine = make_samples(book.begin(comm.rank()), book.end(comm.rank()));
    const SampleBatch batch(comm, mine);
    CHECK(batch.num_global_graphs() == graphs);
    CHECK(batch.graph().num_edges() == mine.num_edges());
    CHECK(batch.graph().num_global_nodes() == comm.all_reduce(mine.num_nodes()));
    const auto sums = [](const SampleBatch& of) {
      const GraphSamples& samples = of.samples();
      return of.graph()
          .update_all(fn::u_mul_e(samples.nodes.tensors.at("x"), samples.edges.tensors.at("w")), fn::sum)
          .value();
    };
    const Tensor all = sums(batch);
    for (Index g = 0; g < mine.num_graphs(); ++g) {
      CAPTURE(mine.ids[g]);
      const SampleBatch alone(Communicator::self(), make_samples(mine.ids[g], mine.ids[g] + 1));
      const Tensor expected = sums(alone);
      CHECK(same_bits(all.slice_rows(mine.node_begin[g], mine.node_begin[g + 1]).clone(), expected));
      for (Index v = mine.node_begin[g]; v < mine.node_begin[g + 1]; ++v) {
        CHECK(batch.graph_of_nodes()[v] == g);
        CHECK(batch.graph().src_ids()[v] == id_in_samples(mine.ids[g], v - mine.node_begin[g]));
      }
      for (Index k = 0; k < mine.num_edges(g); ++k)
        CHECK(batch.graph().edge_ids()[mine.edge_begin[g] + k] == id_in_samples(mine.ids[g], k));
    }
  }
}

TEST_CASE("every sample is in one batch of an epoch, in the same one for every number of ranks") {
  const Communicator comm = Communicator::world(), self = Communicator::self();
  const auto whole = std::make_shared<const GraphSamples>(make_samples(0, graphs));
  for (const PartitionBook& book : sample_books(graphs, comm.size()))
    for (const bool shuffle : {true, false}) {
      const auto mine =
          std::make_shared<const GraphSamples>(make_samples(book.begin(comm.rank()), book.end(comm.rank())));
      const DataLoaderOptions options{.batch_size = 4, .shuffle = shuffle, .seed = 3};
      SampleLoader loader(comm, mine, all_positions(*mine), options);
      SampleLoader alone(self, whole, all_positions(*whole), options);
      REQUIRE(loader.num_batches() == 4);
      CHECK(loader.num_samples() == graphs);
      for (const std::uint64_t epoch : {1, 2}) {
        const auto found = batches_of(comm, loader, epoch);
        CHECK(found == batches_of(self, alone, epoch));
        std::vector<Index> all;
        for (const auto& batch : found) all.insert(all.end(), batch.begin(), batch.end());
        std::ranges::sort(all);
        CHECK(all == all_positions(*whole));
        CHECK(batches_of(comm, loader, epoch, 2) == std::vector(found.begin() + 2, found.end()));
      }
      if (shuffle) CHECK(batches_of(comm, loader, 1) != batches_of(comm, loader, 2));
    }
}

TEST_CASE("batches of some of the samples are at the positions that were given") {
  const Communicator comm = Communicator::world();
  for (const PartitionBook& book : sample_books(graphs, comm.size())) {
    const auto mine =
        std::make_shared<const GraphSamples>(make_samples(book.begin(comm.rank()), book.end(comm.rank())));
    std::vector<Index> odd;  // of the samples of all ranks, the last first
    for (Index i = mine->num_graphs() - 1; i >= 0; --i)
      if (mine->ids[i] % 2 == 1) odd.push_back(i);
    SampleLoader loader(comm, mine, odd, {.batch_size = 4, .seed = 3});
    loader.start_epoch(1);
    std::vector<Index> all;
    while (const auto next = loader.next()) {
      for (Index i = 0; i < std::ssize(next->positions); ++i)
        CHECK(next->batch.samples().ids[i] == mine->ids[next->positions[i]]);
      for (const Index id : comm.all_gather(std::span<const Index>(next->batch.samples().ids)))
        all.push_back(id);
    }
    std::ranges::sort(all);
    CHECK(all == std::vector<Index>{1, 3, 5, 7, 9, 11});
  }
}

TEST_CASE("wrong samples, the same exception on all ranks") {
  const Communicator comm = Communicator::world();
  const bool last = comm.rank() == comm.size() - 1;
  const auto batch_of = [&](GraphSamples samples) { const SampleBatch batch(comm, std::move(samples)); };
  const auto text = [&](const auto& change) {
    GraphSamples samples = make_samples(2 * comm.rank() + 1, 2 * comm.rank() + 3);
    if (last) change(samples);
    return thrown_by_all<InputError>(comm, [&] { batch_of(samples); });
  };
  CHECK(text([](GraphSamples& s) {
          s.nodes.tensors["x"] = Tensor({1, 2});
        }).find("the field x of the nodes has 1 rows, expected ") != std::string::npos);
  CHECK(text([](GraphSamples& s) {
          s.edges.integers["k"] = {};
        }).find("the field k of the edges has 0 rows") != std::string::npos);
  CHECK(text([](GraphSamples& s) { s.ids[0] = -1; }) ==
        "graph samples: the id of a graph is -1, expected 0 to 2147483647");
  CHECK(text([](GraphSamples& s) { s.src.pop_back(); }).find("sources and") != std::string::npos);
  CHECK(text([](GraphSamples& s) { s.node_begin.pop_back(); }).find("beginnings of nodes") !=
        std::string::npos);
  CHECK(text([](GraphSamples& s) { s.src[0] = 99; }).find(", expected ends below ") != std::string::npos);
  if (comm.size() > 1)
    CHECK(text([](GraphSamples& s) {
            s.graphs.tensors.erase("y");
          }).starts_with("SampleBatch is called with a different list of fields on different ranks"));
  CHECK(thrown_by_all<InputError>(comm, [&] { batch_of({}); }) ==
        "a batch of no graph samples, expected at least one on any rank");
  GraphSamples samples;
  CHECK(thrown<InputError>([&] { samples.add(3, 2, std::vector<Index>{0}, std::vector<Index>{2}); }) ==
        "graph 3: edge 0 is (0, 2), and there are 2 nodes, expected ends below that");
  CHECK(thrown<InputError>([&] { samples.add(3, 2, std::vector<Index>{0}, {}); }) ==
        "graph 3 has edges with 1 sources and 0 destinations, expected as many");
  const auto mine = std::make_shared<const GraphSamples>(make_samples(comm.rank(), comm.rank() + 1));
  const auto load = [&](const std::vector<Index>& positions) {
    return thrown_by_all<InputError>(comm, [&] { const SampleLoader loader(comm, mine, positions); });
  };
  CHECK(load({0, 0}) == "the graph at position 0 is given twice");
  CHECK(load({1}) == "there is no graph at position 1, expected 0 to 0");
}

TEST_CASE("spread batch: graphs without nodes") {
  const Communicator world = Communicator::world();
  GraphSamples empty;
  if (world.rank() == 0) empty.add(0, 0, {}, {});
  const SpreadBatch batch(world, empty);
  CHECK(batch.num_global_graphs() == 1);
  CHECK(batch.graph().num_global_nodes() == 0);
}

TEST_CASE("spread batch: the results of a SampleBatch, on ranks with even numbers of nodes") {
  const Communicator world = Communicator::world();
  for (const PartitionBook& book : sample_books(graphs, world.size()))
    for (const bool with_large : {false, true}) {
      CAPTURE(with_large);
      const bool has_large = with_large && world.rank() == world.size() - 1;
      GraphSamples samples =
          make_samples(book.begin(world.rank()), book.end(world.rank()) + (has_large ? 1 : 0));
      if (has_large) {  // a ring in place of the graph behind the last one, with the values of a smaller one
        GraphSamples ring;
        std::vector<Index> from(97), to(97);
        for (Index i = 0; i < 97; ++i) {
          from[static_cast<std::size_t>(i)] = i;
          to[static_cast<std::size_t>(i)] = (i + 5) % 97;
        }
        std::vector<Index> kept = all_positions(samples);
        kept.pop_back();
        const GraphSamples rest = samples.select(kept);
        ring = rest;
        ring.add(graphs, 97, from, to);
        const auto longer = [](const Tensor& rows, Index count) {
          Tensor all = Tensor::full({count, rows.row_size()}, 0.5);
          std::ranges::copy(rows.values(), all.data());
          return all;
        };
        ring.nodes.tensors["x"] = longer(rest.nodes.tensors.at("x"), ring.num_nodes());
        for (Index v = rest.num_nodes(); v < ring.num_nodes(); ++v)
          ring.nodes.tensors["x"].row(v)[0] = static_cast<real>(v);
        ring.edges.tensors["w"] = longer(rest.edges.tensors.at("w"), ring.num_edges());
        for (Index k = rest.num_edges(); k < ring.num_edges(); ++k)
          ring.edges.tensors["w"].row(k)[0] = static_cast<real>(k * k % 19);
        ring.graphs.tensors["y"] = longer(rest.graphs.tensors.at("y"), ring.num_graphs());
        ring.nodes.integers["kind"].values.resize(static_cast<std::size_t>(2 * ring.num_nodes()), 7);
        samples = ring;
        sort_edges(samples);
      }
      const SpreadBatch batch(world, samples);
      const SampleBatch whole(world, samples);
      CHECK(batch.num_global_graphs() == whole.num_global_graphs());
      const auto sums = [](const Graph& graph, const SampleFields& nodes, const SampleFields& edges) {
        return graph.update_all(fn::u_mul_e(nodes.tensors.at("x"), edges.tensors.at("w")), fn::sum).value();
      };
      const Tensor expected = sums(whole.graph(), samples.nodes, samples.edges);
      const Tensor found = batch.to_samples(sums(batch.graph(), batch.nodes(), batch.edges()));
      REQUIRE(found.shape() == expected.shape());
      for (Index i = 0; i < found.size(); ++i)
        CHECK(static_cast<double>(found.data()[i]) ==
              doctest::Approx(static_cast<double>(expected.data()[i])));
      const Array<Index> numbers = batch.route().back(std::span<const Index>(batch.graph_of_nodes()));
      const Index first = gather_book(world, samples.num_graphs()).begin(world.rank());
      for (Index v = 0; v < samples.num_nodes(); ++v) CHECK(numbers[v] == first + whole.graph_of_nodes()[v]);
      const IntegerRows& kind = batch.nodes().integers.at("kind");
      std::vector<Index> second;
      for (Index v = 0; v < kind.num_rows(); ++v) second.push_back(kind.row(v)[1]);
      const Array<Index> back = batch.route().back(std::span<const Index>(second));
      for (Index v = 0; v < samples.num_nodes(); ++v)
        CHECK(back[v] == samples.nodes.integers.at("kind").row(v)[1]);

      // A sample with at most N / P nodes is on one rank; shares are even but for the half of such a sample.
      const Index nodes = world.all_reduce(samples.num_nodes()), ranks = world.size(),
                  mine = batch.graph().num_nodes();
      CHECK(mine * ranks <= nodes + ranks * 7);
      if (with_large) CHECK(mine * ranks >= nodes - ranks * 7);
      std::vector<Index> sizes;
      for (Index g = 0; g < samples.num_graphs(); ++g) sizes.push_back(samples.num_nodes(g));
      sizes = world.all_gather(std::span<const Index>(sizes));
      std::vector<Index> here(sizes.size(), 0);
      for (const Index g : batch.graph_of_nodes()) ++here[static_cast<std::size_t>(g)];
      for (std::size_t g = 0; g < sizes.size(); ++g)
        if (sizes[g] * ranks <= nodes) CHECK((here[g] == 0 || here[g] == sizes[g]));
    }
  const SpreadBatch one(world, make_samples(world.rank(), world.rank() + 1));
  CHECK(thrown_by_all<ShapeError>(world, [&] {
          (void)one.to_samples(Tensor::zeros({one.graph().num_nodes() + 1, 1}));
        }).starts_with("SpreadBatch::to_samples of "));
  CHECK(thrown_by_all<InputError>(world, [&] { SpreadBatch(world, GraphSamples{}); }) ==
        "a batch of no graph samples, expected at least one on any rank");
}
