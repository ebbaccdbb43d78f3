// SPDX-License-Identifier: MIT

/// Two trainings on one thread: each has the bits that it has alone, however they take turns.
#include "graph/test_graphs.hpp"
#include "support/rows.hpp"

#include <doctest/doctest.h>
#include <sar/data.hpp>
#include <sar/models.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

constexpr Index num_nodes = 36, in_feats = 5, out_feats = 3;
constexpr int steps = 4;
constexpr bool has_int8 = sizeof(real) == sizeof(float);

EdgeList edges_of(const PartitionBook& book, int rank) {
  EdgeList edges;
  for (Index v = book.begin(rank); v < book.end(rank); ++v)
    for (Index k = 0; k < 4; ++k) {
      edges.src.push_back((5 * v + 11 * k + 3) % num_nodes);
      edges.dst.push_back(v);
      edges.id.push_back(4 * v + k);
    }
  return edges;
}

struct Settings {
  ModelDescription network;
  HaloFormat format = HaloFormat::exact;
  MatmulPrecision precision = MatmulPrecision::highest;
  std::uint64_t seed = 0;
};

const Settings sage{{.type = "sage",
                     .in_feats = in_feats,
                     .hidden = 8,
                     .out_feats = out_feats,
                     .norm = "batch",
                     .dropout = 0.3},
                    has_int8 ? HaloFormat::int8 : HaloFormat::bf16,
                    MatmulPrecision::medium,
                    7};
const Settings gat{{.type = "gat",
                    .in_feats = in_feats,
                    .hidden = 8,
                    .out_feats = out_feats,
                    .layers = 2,
                    .dropout = 0.2,
                    .heads = 2},
                   HaloFormat::bf16,
                   MatmulPrecision::high,
                   11};

class Training {
 public:
  Training(const Communicator& comm, const Graph& graph, const Settings& settings)
      : comm_(comm),
        settings_(settings),
        graph_(graph),
        gen_(settings.seed),
        net_(settings.network, comm, gen_),
        adam_(net_.named_parameters(), {.lr = 0.01}) {
    GraphOptions options = graph.options();
    options.halo_format = settings.format;
    graph_.set_options(options);
    const PartitionBook book = PartitionBook::even(num_nodes, comm.size());
    x_ = my_rows(random_values({num_nodes, in_feats}, settings.seed), book, comm.rank());
    y_ = my_rows(random_values({num_nodes, out_feats}, settings.seed + 1), book, comm.rank());
  }

  /// `meanwhile` runs between the forward and the backward pass.
  void step(const std::function<void()>& meanwhile = [] {}) {
    const HaloStep halo_step(settings_.seed, ++number_);
    const MatmulPrecisionScope precision(settings_.precision);
    Tape tape;
    const Variable loss = mse(net_(graph_, x_), y_, comm_);
    meanwhile();
    tape.backward(loss);
    gather_grads(comm_, net_);
    adam_.step();
    adam_.zero_grad();
    losses_.push_back(static_cast<double>(loss.value().item()));
  }

  /// Losses of the steps, and the weights after the last.
  [[nodiscard]] std::vector<double> numbers() const {
    std::vector<double> all = losses_;
    for (const Variable& parameter : net_.parameters())
      for (const real value : parameter.value().values()) all.push_back(double{value});
    return all;
  }

 private:
  Communicator comm_;
  Settings settings_;
  Graph graph_;
  Generator gen_;
  GraphModel net_;
  Adam adam_;
  Tensor x_, y_;
  std::uint64_t number_ = 0;
  std::vector<double> losses_;
};

Graph make_graph(const Communicator& comm) {
  const PartitionBook book = PartitionBook::even(num_nodes, comm.size());
  return {comm, book, book, edges_of(book, comm.rank()), true};
}

std::vector<double> alone(const Communicator& comm, const Settings& settings) {
  Training training(comm, make_graph(comm), settings);
  for (int i = 0; i < steps; ++i) training.step();
  return training.numbers();
}

}  // namespace

TEST_CASE("two models that train in turn have the bits that each has alone") {
  const Communicator comm = Communicator::world();
  const std::vector<double> sage_alone = alone(comm, sage), gat_alone = alone(comm, gat);
  const Graph graph = make_graph(comm);  // one for both
  {
    Training a(comm, graph, sage), b(comm, graph, gat);
    for (int i = 0; i < steps; ++i) a.step(), b.step();
    CHECK(a.numbers() == sage_alone);
    CHECK(b.numbers() == gat_alone);
  }
  {  // steps of one within those of the other
    Training a(comm, graph, sage), b(comm, graph, gat), other(comm, graph, sage);
    for (int i = 0; i < steps; ++i) a.step([&] { b.step([&] { other.step(); }); });
    CHECK(a.numbers() == sage_alone);
    CHECK(b.numbers() == gat_alone);
    CHECK(other.numbers() == sage_alone);
  }
}

TEST_CASE("formats, precisions and steps are not without effect") {
  const Communicator comm = Communicator::world();
  const auto changes = [&](const std::function<void(Settings&)>& change) {
    Settings other = sage;
    change(other);
    return alone(comm, other) != alone(comm, sage);
  };
  const bool has_halo = comm.size() > 1;
  CHECK(changes([](Settings& s) { s.format = HaloFormat::exact; }) == has_halo);
  CHECK(changes([](Settings& s) { s.precision = MatmulPrecision::highest; }) == has_int8);
}

TEST_CASE("biases in front of a batch norm get no gradient") {
  const Communicator comm = Communicator::world();
  const Graph graph = make_graph(comm);
  Generator gen(3);
  GraphModel net(sage.network, comm, gen);
  const Variable x(Tensor::full({graph.num_nodes(), in_feats}, 1));
  Tape tape;
  tape.backward(sum(net(graph, x)));
  for (const NamedParameter& named : net.named_parameters())
    if (named.name.ends_with(".bias") && named.name.starts_with("convs."))
      CHECK(named.parameter.grad().defined() == named.name.starts_with("convs.2."));
}
