// SPDX-License-Identifier: MIT
#include "graph/test_graphs.hpp"
#include "support/mpi_handles.hpp"
#include "support/rows.hpp"

#include <doctest/doctest.h>
#include <mpi.h>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/nn/conv/sage_conv.hpp>
#include <sar/nn/models/mesh_graph_net.hpp>
#include <sar/nn/models/predictor.hpp>

#include <cstdlib>
#include <new>
#include <string>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

std::size_t allocations = 0;

constexpr Index num_nodes = 60, in_feats = 5, out_feats = 3, edge_feats = 2;

Graph graph_of(const Communicator& comm, const PartitionBook& book, bool weighted = true) {
  return renamed_shard(comm, random_graph("random", num_nodes, num_nodes, 400, 1), book, {}, weighted);
}

Tensor rows_of(const Communicator& comm, const PartitionBook& book, std::uint64_t stream) {
  return local_rows(random_values(num_nodes * in_feats, stream), book, comm.rank(), in_feats);
}

/// Each node has edges from the one before and the one behind it: ranks that are no neighbors exchange no
/// rows.
WholeGraph path_graph() {
  WholeGraph path{"path", num_nodes, num_nodes, true, {}, {}};
  for (Index v = 1; v < num_nodes; ++v) {
    path.src.insert(path.src.end(), {v - 1, v});
    path.dst.insert(path.dst.end(), {v, v - 1});
  }
  return path;
}

/// A graph in which the last of several ranks exchanges no rows with the others.
WholeGraph graph_without_last_rank(const PartitionBook& book, std::uint64_t seed) {
  WholeGraph whole = random_graph("random", num_nodes, num_nodes, 400, seed);
  const int last = book.num_parts() - 1;
  for (std::size_t k = 0; k < whole.src.size(); ++k)
    if ((book.owner(whole.src[k]) == last) != (book.owner(whole.dst[k]) == last)) whole.src[k] = whole.dst[k];
  return whole;
}

GraphModel model_of(const Communicator& comm, const ModelDescription& description) {
  Generator gen(7);
  return {description, comm, gen};
}

ModelDescription description_of(const std::string& type, const std::string& norm = {}) {
  if (type == "mesh_graph_net")
    return {
        .type = type, .in_feats = in_feats, .hidden = 8, .out_feats = out_feats, .edge_feats = edge_feats};
  return {
      .type = type, .in_feats = in_feats, .hidden = 8, .out_feats = out_feats, .norm = norm, .dropout = 0.5};
}

/// The forward pass in evaluation mode without a tape, as a tensor of its own.
Tensor forward(GraphModel& model, const Graph& graph, const Tensor& x, const Tensor& edges = {}) {
  const NoTape no_tape;
  const bool training = model.is_training();
  model.eval();
  Tensor y = model(graph, x, edges.defined() ? Variable(edges) : Variable()).value().clone();
  model.train(training);
  return y;
}

/// What `call` throws, on all ranks: "" when nothing.
template <class Exception, class F>
std::string thrown(F&& call) {
  try {
    call();
  } catch (const Exception& error) {
    return error.what();
  }
  return "";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Two layers of SAGE; `before_layer(i)` runs before layer i = 0, 1 and, i = 2, at the end.
struct TwoLayers : Module {
  explicit TwoLayers(Generator& gen) : first(in_feats, 8, gen), second(8, out_feats, gen) {
    register_module("first", first);
    register_module("second", second);
  }
  template <class F>
  Variable operator()(const Graph& graph, const Variable& x, const F& before_layer) {
    before_layer(0);
    const Variable h = first(graph, x);
    before_layer(1);
    Variable y = second(graph, h);
    before_layer(2);
    return y;
  }
  SAGEConv first, second;
};

}  // namespace

// Not inlined: GCC takes malloc and delete, or new and free, side by side for a mistake.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* block = std::malloc(bytes > 0 ? bytes : 1)) return block;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(bytes > 0 ? bytes : 1);
}
[[gnu::noinline]] void operator delete(void* block) noexcept {
  std::free(block);
}
[[gnu::noinline]] void operator delete(void* block, std::size_t) noexcept {
  std::free(block);
}

TEST_CASE("a prediction has the bits of the forward pass, in memory of the caller, with the weights of now") {
  const Communicator comm = Communicator::world();
  for (const PartitionBook& book : row_splits(num_nodes, comm.size())) {
    for (const std::string& type : ModelDescription::types()) {
      for (const std::string norm : {"none", "batch", "layer"}) {
        const ModelDescription description = description_of(type, norm);
        const Graph graph = graph_of(comm, book, layers_without_weights(description).empty());
        const bool reads_edges = description.edge_feats > 0;
        const Tensor edges =
            reads_edges ? Tensor::full({graph.num_edges(), edge_feats}, real{0.5}) : Tensor();
        CAPTURE(type);
        CAPTURE(norm);
        GraphModel model = model_of(comm, description);
        Predictor predict(model, graph);
        std::vector<real> memory(graph.num_nodes() * out_feats + 1);
        for (std::uint64_t call = 0; call < 4; ++call) {
          const Tensor x = rows_of(comm, book, call);
          Tensor out = Tensor::borrow(memory.data() + call % 2, {graph.num_nodes(), out_feats});
          out.fill(-77);
          predict(x, edges, out);
          CHECK(model.is_training());
          CHECK(same_bits(out, forward(model, graph, x, edges)));
          for (Variable& parameter : model.parameters())
            for (real& value : parameter.value().values()) value *= real{1.25};
        }
      }
    }
  }
}

TEST_CASE("a result may be written over x") {
  const Communicator comm = Communicator::world();
  const PartitionBook book = PartitionBook::even(num_nodes, comm.size());
  const Graph graph = graph_of(comm, book);
  GraphModel model = model_of(comm, {.in_feats = in_feats, .hidden = in_feats, .out_feats = in_feats});
  Predictor predict(model, graph);
  for (int call = 0; call < 3; ++call) {
    Tensor x = rows_of(comm, book, 3);
    const Tensor expected = forward(model, graph, x);
    predict(x, {}, x);
    CHECK(same_bits(x, expected));
  }
}

TEST_CASE("from its second call on a prediction allocates nothing, for every type of network") {
  const ThreadLimit one_thread(1);
  const Communicator comm = Communicator::world();
  const PartitionBook book = PartitionBook::even(num_nodes, comm.size());
  const Tensor x = rows_of(comm, book, 1);
  Tensor out({x.num_rows(), out_feats});
  for (const std::string& type : ModelDescription::types()) {
    for (const std::string norm : {"none", "batch", "layer"}) {
      const ModelDescription description = description_of(type, norm);
      const Graph graph = graph_of(comm, book, layers_without_weights(description).empty());
      CAPTURE(type);
      CAPTURE(norm);
      const Tensor edges =
          description.edge_feats > 0 ? Tensor::full({graph.num_edges(), edge_feats}, real{0.5}) : Tensor();
      GraphModel model = model_of(comm, description);
      model.eval();
      Predictor predict(model, graph);
      predict(x, edges, out);
      CHECK(predict.allocations() > 0);
      const std::size_t live = live_bytes(), before = allocations;
      reset_peak_bytes();
      for (int call = 0; call < 5; ++call) {
        predict(x, edges, out);
        CHECK(allocations == before);
        CHECK(predict.allocations() == 0);
      }
      CHECK(live_bytes() == live);
      CHECK(peak_bytes() == live);
      CHECK(same_bits(out, forward(model, graph, x, edges)));
    }
  }
}

TEST_CASE("on several ranks, a later call synchronizes at its first exchange of rows and at its end") {
  const Communicator comm = Communicator::world();
  const PartitionBook book = PartitionBook::even(num_nodes, comm.size());
  const Tensor x = rows_of(comm, book, 1);
  Tensor out({x.num_rows(), out_feats});
  for (const std::string& type : ModelDescription::types()) {
    CAPTURE(type);
    for (const int layers : {1, 2, 5}) {
      ModelDescription description = description_of(type);
      description.layers = layers;
      const Graph graph = graph_of(comm, book, layers_without_weights(description).empty());
      const Tensor edges =
          description.edge_feats > 0 ? Tensor::full({graph.num_edges(), edge_feats}, real{0.5}) : Tensor();
      GraphModel model = model_of(comm, description);
      Predictor predict(model, graph);
      const auto synchronizations = [&] {
        const int before = num_synchronizations();
        predict(x, edges, out);
        return num_synchronizations() - before;
      };
      const int first = synchronizations();
      for (int call = 0; call < 3; ++call) CHECK(synchronizations() == (comm.size() > 1 ? 2 : 0));
      if (comm.size() > 1) CHECK(first > layers + 1);
    }
  }
}

TEST_CASE("where the ranks do something else together, each exchange of rows synchronizes") {
  const Communicator comm = Communicator::world();
  const PartitionBook book = PartitionBook::even(num_nodes, comm.size());
  const Tensor x = rows_of(comm, book, 1);
  Tensor out({book.num_nodes(comm.rank()), out_feats});
  const auto check = [&](const Graph& graph, int synchronizations, auto&& together) {
    Generator gen(3);
    TwoLayers network(gen);
    Predictor predict(
        network,
        [&](const Graph& on, const Variable& rows, const Variable&) { return network(on, rows, together); },
        {.in_feats = in_feats, .out_feats = out_feats}, graph);
    predict(x, {}, out);
    const Tensor expected = out.clone();
    for (int call = 0; call < 3; ++call) {
      const int before = num_synchronizations();
      predict(x, {}, out);
      CHECK(num_synchronizations() - before == (comm.size() > 1 ? synchronizations : 0));
      if (graph.options().halo_format == HaloFormat::exact) CHECK(same_bits(out, expected));
    }
  };
  const Graph graph = graph_of(comm, book);
  check(graph, 4, [&](int layer) {  // at both exchanges, the all_reduce and the end
    if (layer == 1) (void)comm.all_reduce(1.0);
  });
  const Communicator other = Communicator::world();
  check(graph, 3, [&](int layer) {  // at the first exchange, at the end, and in the other communicator
    if (layer == 1) other.agree([] {});
  });
  if (sizeof(real) == sizeof(double)) return;  // which does not travel as int8
  const Graph rounded = renamed_shard(comm, random_graph("random", num_nodes, num_nodes, 400, 1), book,
                                      {.halo_format = HaloFormat::int8}, true);
  check(rounded, 2, [](int) {});  // nothing else: at the first exchange and at the end
}

TEST_CASE("a network that makes other calls than before predicts, too") {
  const Communicator comm = Communicator::world();
  const PartitionBook book = PartitionBook::even(num_nodes, comm.size());
  Generator gen(3);
  SAGEConv first(in_feats, 8, gen), middle(8, 8, gen), wide(8, 11, gen), narrow(11, 8, gen),
      last(8, out_feats, gen);
  TwoLayers module(gen);
  const Tensor x = rows_of(comm, book, 1);
  const auto without_last_rank = [&](std::uint64_t seed) {
    return renamed_shard(comm, graph_without_last_rank(book, seed), book, {}, true);
  };
  const Graph other = without_last_rank(2);
  for (const Graph& graph : {graph_of(comm, book), without_last_rank(1)}) {
    Tensor out({graph.num_nodes(), out_feats});
    int kind = 0;
    const auto network = [&](const Graph& on, const Variable& rows, const Variable&) {
      if (kind == 4) (void)comm.all_reduce(1.0);
      Variable h = first(on, rows);
      if (kind == 1) h = middle(on, h);                         // one exchange more
      if (kind == 2) return last(on, narrow(on, wide(on, h)));  // of other rows
      if (kind == 3) (void)comm.all_reduce(1.0);
      if (kind == 5) return Variable(Tensor::full(out.shape(), real(2)));  // exchanges less
      return last(kind == 6 ? other : on, h);                              // of another graph
    };
    for (int before = 0; before < 7; ++before) {
      for (int after = 0; after < 7; ++after) {
        CAPTURE(before);
        CAPTURE(after);
        Predictor predict(module, network, {.in_feats = in_feats, .out_feats = out_feats}, graph);
        for (const int now : {before, before, after, after, before}) {
          kind = now;
          predict(x, {}, out);
          const NoTape no_tape;
          CHECK(same_bits(out, network(graph, x, {}).value()));
        }
      }
    }
  }
}

TEST_CASE("a rank that fails before a prediction, in agree(), is noticed") {
  const Communicator comm = Communicator::world();
  const PartitionBook book = PartitionBook::even(num_nodes, comm.size());
  const Graph graph = graph_of(comm, book);
  GraphModel model = model_of(comm, description_of("sage"));
  Predictor predict(model, graph);
  const Tensor x = rows_of(comm, book, 1);
  Tensor out({graph.num_nodes(), out_feats});
  const Tensor expected = forward(model, graph, x);
  for (int fails_on = -1; fails_on < comm.size(); ++fails_on) {
    const auto step = [&](bool fails) {
      comm.agree([&] {
        require<InputError>(!fails, "no weather today");
        predict(x, {}, out);
      });
    };
    if (fails_on >= 0)
      CHECK(contains(thrown<InputError>([&] { step(comm.rank() == fails_on); }), "no weather today"));
    for (int call = 0; call < 3; ++call) {
      out.fill(-1);
      step(false);
      CHECK(same_bits(out, expected));
    }
  }
}

TEST_CASE("a prediction in the network of another one") {
  const Communicator comm = Communicator::world();
  const PartitionBook book = PartitionBook::even(num_nodes, comm.size());
  const Graph graph = graph_of(comm, book);
  GraphModel model = model_of(comm, description_of("sage"));
  Predictor inner(model, graph);
  Generator gen(3);
  TwoLayers network(gen);
  const Tensor x = rows_of(comm, book, 1);
  Tensor between({graph.num_nodes(), out_feats}), out({graph.num_nodes(), out_feats});
  bool fails = false;
  Predictor outer(
      network,
      [&](const Graph& on, const Variable& rows, const Variable&) {
        return network(on, rows, [&](int layer) {
          require<InputError>(layer != 1 || !fails, "no weather today");
          if (layer == 1) inner(x, {}, between);
        });
      },
      {.in_feats = in_feats, .out_feats = out_feats}, graph);
  const Tensor expected = forward(model, graph, x);
  for (int call = 0; call < 12; ++call) {
    fails = call % 4 == 3 && comm.rank() == comm.size() - 1;
    between.fill(-1);
    if (call % 4 == 3)
      CHECK(contains(thrown<InputError>([&] { outer(x, {}, out); }), "no weather today"));
    else
      outer(x, {}, out);
    if (call % 4 == 2) inner(x, {}, between);
    if (call % 4 != 3) CHECK(same_bits(between, expected));
  }
}

TEST_CASE("wrong arguments throw the same on all ranks, and the predictor goes on") {
  const Communicator comm = Communicator::world();
  const PartitionBook book = PartitionBook::even(num_nodes, comm.size());
  const Graph graph = graph_of(comm, book);
  GraphModel model = model_of(comm, description_of("sage"));
  Predictor predict(model, graph);
  const Tensor x = rows_of(comm, book, 1);
  Tensor out({graph.num_nodes(), out_feats});
  const Tensor expected = forward(model, graph, x);
  const bool last = comm.rank() == comm.size() - 1;
  for (int round = 0; round < 3; ++round) {
    // on one rank only, while the others compute
    const std::string wide = thrown<ShapeError>([&] {
      predict(last ? Tensor::full({graph.num_nodes(), in_feats + 1}, 1) : x, {}, out);
    });
    CHECK(contains(wide, ", 6]"));
    CHECK(contains(wide, "expected ["));
    CHECK(contains(wide, ", 5]"));
    Tensor small({graph.num_nodes(), out_feats + 1});
    CHECK(contains(thrown<ShapeError>([&] { predict(x, {}, small); }), "array for the result of shape"));
    CHECK(contains(thrown<ShapeError>([&] { predict({}, {}, out); }), "without x"));
    CHECK(contains(thrown<ShapeError>([&] { predict(x, x, out); }), "reads none"));
    const std::vector<real> values(out.size(), 1);
    Tensor constant = Tensor::borrow(values.data(), out.shape());
    if (out.size() > 0)
      CHECK(contains(thrown<InputError>([&] { predict(x, {}, constant); }), "cannot be written"));
    predict(x, {}, out);
    CHECK(same_bits(out, expected));
  }
  CHECK(
      contains(thrown<InputError>([&] { Predictor(model, nullptr, {.in_feats = 1, .out_feats = 1}, graph); }),
               "empty function"));
  const auto any = [&](const Graph&, const Variable& rows, const Variable&) { return rows; };
  CHECK(contains(thrown<InputError>([&] { Predictor(model, any, {.in_feats = 1}, graph); }),
                 "widths 1, 0 and 0"));
  Predictor other(model, any, {.in_feats = in_feats, .out_feats = out_feats}, graph);
  CHECK(contains(thrown<ShapeError>([&] { other(x, {}, out); }), "whose result has shape"));
}

TEST_CASE("what a network throws on one rank, at any time, is thrown on all ranks") {
  const Communicator comm = Communicator::world();
  struct Case {
    WholeGraph whole;
    PartitionBook book;
  };
  std::vector<Case> cases;
  for (const PartitionBook& book : row_splits(num_nodes, comm.size())) {
    cases.push_back({random_graph("random", num_nodes, num_nodes, 400, 1), book});
    cases.push_back({path_graph(), book});
  }
  for (const auto& [whole, book] : cases) {
    const Graph graph = renamed_shard(comm, whole, book, {}, true);
    Generator gen(3);
    TwoLayers network(gen);
    int fails_before = -1, fails_on = -1;
    Predictor predict(
        network,
        [&](const Graph& on, const Variable& x, const Variable&) {
          return network(on, x, [&](int layer) {
            if (layer == fails_before && comm.rank() == fails_on) throw InputError("no weather today");
          });
        },
        {.in_feats = in_feats, .out_feats = out_feats}, graph);
    const Tensor x = rows_of(comm, book, 1);
    Tensor out({graph.num_nodes(), out_feats});
    predict(x, {}, out);
    const Tensor expected = out.clone();
    predict(x, {}, out);  // from here on the ranks know their calls
    for (int call = 0; call < 3 * comm.size(); ++call) {
      fails_before = call % 3;
      fails_on = call / 3;
      CHECK(contains(thrown<InputError>([&] { predict(x, {}, out); }), "no weather today"));
      fails_before = -1;
      for (int again = 0; again < 2; ++again) {
        out.fill(-1);
        predict(x, {}, out);
        CHECK(same_bits(out, expected));
      }
    }
  }
}

TEST_CASE("a prediction is in evaluation mode, and leaves each part in its own") {
  const Communicator world = Communicator::world();
  const PartitionBook book = PartitionBook::even(num_nodes, world.size());
  const Graph graph = graph_of(world, book);
  const Tensor x = rows_of(world, book, 3);
  Generator gen(7);
  TwoLayers net(gen);
  std::vector<bool> seen;
  Predictor predictor(
      net,
      [&](const Graph& on, const Variable& rows, const Variable&) {
        net.for_each_module([&](Module& part) { seen.push_back(part.is_training()); });
        return net(on, rows, [](int) {});
      },
      {.in_feats = in_feats, .out_feats = out_feats}, graph);
  for (const bool root : {false, true}) {
    net.train(root);
    net.first.train(!root);
    Tensor y(Shape{graph.num_dst_nodes(), out_feats});
    seen.clear();
    predictor(x, {}, y);
    CHECK(std::ranges::none_of(seen, [](bool training) { return training; }));
    CHECK(net.is_training() == root);
    CHECK(net.first.is_training() == !root);
    CHECK(net.second.is_training() == root);
  }
}
