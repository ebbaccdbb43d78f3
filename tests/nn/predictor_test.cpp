#include "graph/test_graphs.hpp"
#include "support/rows.hpp"

#include <doctest/doctest.h>
#include <mpi.h>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/core/memory.hpp>
#include <sar/nn/mesh_graph_net.hpp>
#include <sar/nn/model/predictor.hpp>
#include <sar/nn/sage_conv.hpp>

#include <cstdlib>
#include <new>
#include <string>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

std::size_t allocations = 0;
int all_reduces = 0;

constexpr Index num_nodes = 60, in_feats = 5, out_feats = 3, edge_feats = 2;

GraphShardManager graph_of(const Communicator& comm, const PartitionBook& book) {
  return renamed_shard(comm, random_graph("random", num_nodes, num_nodes, 400, 1), book, {}, true);
}

Tensor rows_of(const Communicator& comm, const PartitionBook& book, std::uint64_t stream) {
  return local_rows(random_values(num_nodes * in_feats, stream), book, comm.rank(), in_feats);
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
Tensor forward(GraphModel& model, const GraphShardManager& graph, const Tensor& x, const Tensor& edges = {}) {
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
  Variable operator()(const GraphShardManager& graph, const Variable& x, const F& before_layer) {
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

extern "C" int MPI_Allreduce(const void* from, void* to, int count, MPI_Datatype type, MPI_Op op,
                             MPI_Comm comm) {
  ++all_reduces;
  return PMPI_Allreduce(from, to, count, type, op, comm);
}

TEST_CASE("a prediction has the bits of the forward pass, in memory of the caller, with the weights of now") {
  const Communicator comm = Communicator::world();
  for (const PartitionBook& book : row_splits(num_nodes, comm.size())) {
    const GraphShardManager graph = graph_of(comm, book);
    for (const std::string& type : ModelDescription::types()) {
      for (const std::string norm : {"none", "batch", "layer"}) {
        const ModelDescription description = description_of(type, norm);
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
  const GraphShardManager graph = graph_of(comm, book);
  GraphModel model = model_of(comm, {.in_feats = in_feats, .hidden = in_feats, .out_feats = in_feats});
  Predictor predict(model, graph);
  for (int call = 0; call < 3; ++call) {
    Tensor x = rows_of(comm, book, 3);
    const Tensor expected = forward(model, graph, x);
    predict(x, {}, x);
    CHECK(same_bits(x, expected));
  }
}

TEST_CASE("after two calls a prediction allocates nothing") {
  const ThreadLimit one_thread(1);
  const Communicator comm = Communicator::world();
  const PartitionBook book = PartitionBook::even(num_nodes, comm.size());
  const GraphShardManager graph = graph_of(comm, book);
  Generator gen(3);
  MeshGraphNet mesh(
      {.node_feats = in_feats, .edge_feats = edge_feats, .out_feats = out_feats, .hidden = 8, .blocks = 2},
      gen);
  const Tensor x = rows_of(comm, book, 1);
  const Tensor edges = Tensor::full({graph.num_edges(), edge_feats}, real{0.5});
  Tensor out({graph.num_nodes(), out_feats});
  const auto check = [&](Predictor& predict, const Tensor& of_edges) {
    predict(x, of_edges, out);
    predict(x, of_edges, out);
    const std::size_t live = live_bytes(), before = allocations;
    reset_peak_bytes();
    for (int call = 0; call < 5; ++call) predict(x, of_edges, out);
    CHECK(allocations == before);
    CHECK(predict.allocations() == 0);
    CHECK(live_bytes() == live);
    CHECK(peak_bytes() == live);
  };
  for (const std::string type : {"sage", "gcn"}) {
    CAPTURE(type);
    GraphModel model = model_of(comm, description_of(type));
    Predictor predict(model, graph);
    check(predict, {});
  }
  Predictor predict(
      mesh,
      [&](const GraphShardManager& on, const Variable& rows, const Variable& of_edges) {
        return mesh(on, rows, of_edges);
      },
      {.in_feats = in_feats, .out_feats = out_feats, .edge_feats = edge_feats}, graph);
  check(predict, edges);
  const NoTape no_tape;
  CHECK(same_bits(out, mesh(graph, x, edges).value()));
}

TEST_CASE("on several ranks, a later call synchronizes once for each exchange of rows and once at the end") {
  const Communicator comm = Communicator::world();
  const PartitionBook book = PartitionBook::even(num_nodes, comm.size());
  const GraphShardManager graph = graph_of(comm, book);
  const ModelDescription description = description_of("sage");
  GraphModel model = model_of(comm, description);
  Predictor predict(model, graph);
  Tensor out({graph.num_nodes(), out_feats});
  const Tensor x = rows_of(comm, book, 1);
  const auto synchronizations = [&] {
    const int before = all_reduces;
    predict(x, {}, out);
    return all_reduces - before;
  };
  const int first = synchronizations();
  for (int call = 0; call < 3; ++call)
    CHECK(synchronizations() == (comm.size() > 1 ? description.layers + 1 : 0));
  if (comm.size() > 1) CHECK(first > description.layers + 1);
}

TEST_CASE("wrong arguments throw the same on all ranks, and the predictor goes on") {
  const Communicator comm = Communicator::world();
  const PartitionBook book = PartitionBook::even(num_nodes, comm.size());
  const GraphShardManager graph = graph_of(comm, book);
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
  const auto any = [&](const GraphShardManager&, const Variable& rows, const Variable&) { return rows; };
  CHECK(contains(thrown<InputError>([&] { Predictor(model, any, {.in_feats = 1}, graph); }),
                 "widths 1, 0 and 0"));
  Predictor other(model, any, {.in_feats = in_feats, .out_feats = out_feats}, graph);
  CHECK(contains(thrown<ShapeError>([&] { other(x, {}, out); }), "whose result has shape"));
}

TEST_CASE("what a network throws on one rank, at any time, is thrown on all ranks") {
  const Communicator comm = Communicator::world();
  for (const PartitionBook& book : row_splits(num_nodes, comm.size())) {
    const GraphShardManager graph = graph_of(comm, book);
    Generator gen(3);
    TwoLayers network(gen);
    int fails_before = -1, fails_on = -1;
    Predictor predict(
        network,
        [&](const GraphShardManager& on, const Variable& x, const Variable&) {
          return network(on, x, [&](int layer) {
            if (layer == fails_before && comm.rank() == fails_on) throw InputError("no weather today");
          });
        },
        {.in_feats = in_feats, .out_feats = out_feats}, graph);
    const Tensor x = rows_of(comm, book, 1);
    Tensor out({graph.num_nodes(), out_feats});
    predict(x, {}, out);
    const Tensor expected = out.clone();
    for (int call = 0; call < 9 * comm.size(); ++call) {
      fails_before = call % 3;
      fails_on = call / 9;
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
