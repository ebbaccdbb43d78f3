// SPDX-License-Identifier: MIT

/// Mini-batches: which seeds come together, and training on them for every number of ranks.
#include "graph/test_graphs.hpp"
#include "support/random_tensor.hpp"
#include "support/reference.hpp"
#include "support/rows.hpp"
#include "support/thrown.hpp"

#include <doctest/doctest.h>
#include <sar/autograd/gathered_rows.hpp>
#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/graph/sampling/data_loader.hpp>
#include <sar/nn/conv/sage_conv.hpp>
#include <sar/nn/modules/dropout.hpp>
#include <sar/nn/modules/module.hpp>
#include <sar/nn/modules/norms.hpp>
#include <sar/nn/train/distributed.hpp>
#include <sar/nn/train/loss.hpp>
#include <sar/nn/train/optimizer.hpp>

#include <algorithm>
#include <limits>
#include <numeric>

using namespace sar;
using namespace sar::test;

namespace {

/// Every third node is none.
std::vector<Index> seeds_of(const PartitionBook& book, int rank) {
  std::vector<Index> seeds;
  for (Index v = book.begin(rank); v < book.end(rank); ++v)
    if (v % 3 != 1) seeds.push_back(v);
  return seeds;
}

using Batches = std::vector<std::vector<Index>>;

/// The original ids of the seeds of all ranks in each batch, sorted in a batch.
Batches batches_of(const Communicator& comm, DataLoader& loader, std::uint64_t epoch, Index first = 0) {
  Batches batches;
  loader.start_epoch(epoch, first);
  while (const auto batch = loader.next()) {
    CHECK(batch->number == first + std::ssize(batches));
    CHECK(batch->blocks.back().num_dst_nodes() == std::ssize(batch->seeds));
    std::vector<Index> mine;
    for (const Index seed : batch->seeds) mine.push_back(original_id(seed));
    batches.push_back(comm.all_gather(std::span<const Index>(mine)));
    std::sort(batches.back().begin(), batches.back().end());
  }
  return batches;
}

std::vector<Index> all_of(const Batches& batches) {
  std::vector<Index> all;
  for (const auto& batch : batches) all.insert(all.end(), batch.begin(), batch.end());
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace

TEST_CASE("every seed is in one batch of an epoch, in the same one for every number of ranks") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = random_graph("random", 60, 60, 400, 1);
  const Communicator self = Communicator::self();
  const PartitionBook one = PartitionBook::even(60, 1);
  const Graph alone = renamed_shard(self, whole, one);
  for (const Books& books : test_books(whole, comm.size())) {
    const Graph graph = renamed_shard(comm, whole, books.src);
    for (const bool shuffle : {true, false})
      for (const bool drop_last : {true, false}) {
        const DataLoaderOptions options{
            .batch_size = 7, .shuffle = shuffle, .drop_last = drop_last, .seed = 9};
        DataLoader loader(NeighborSampler(graph, {2}), seeds_of(books.src, comm.rank()), options);
        DataLoader want(NeighborSampler(alone, {2}), seeds_of(one, 0), options);
        REQUIRE(loader.num_batches() == (drop_last ? 5 : 6));
        CHECK(loader.num_seeds() == (drop_last ? 35 : 40));
        const Batches first = batches_of(comm, loader, 1), second = batches_of(comm, loader, 2);
        CHECK(first == batches_of(self, want, 1));
        CHECK(second == batches_of(self, want, 2));
        CHECK((first == second) == !shuffle);
        CHECK(batches_of(comm, loader, 1) == first);
        DataLoaderOptions reseeded = options;
        reseeded.seed = 10;
        DataLoader other(NeighborSampler(graph, {2}), seeds_of(books.src, comm.rank()), reseeded);
        CHECK((batches_of(comm, other, 1) == first) == !shuffle);
        for (std::size_t b = 0; b < 5; ++b) CHECK(first[b].size() == 7);
        std::vector<Index> expected;
        for (const Index seed : seeds_of(one, 0)) expected.push_back(original_id(seed));
        std::sort(expected.begin(), expected.end());
        const std::vector<Index> seen = all_of(first);
        if (drop_last) {
          CHECK(seen.size() == 35);
          CHECK(std::adjacent_find(seen.begin(), seen.end()) == seen.end());
          CHECK(std::includes(expected.begin(), expected.end(), seen.begin(), seen.end()));
        } else {
          CHECK(seen == expected);
        }
        if (!shuffle) CHECK(first[0] == std::vector<Index>(expected.begin(), expected.begin() + 7));
        const Batches rest = batches_of(comm, loader, 1, 3);  // as after a checkpoint
        CHECK(rest == Batches(first.begin() + 3, first.end()));
      }
  }
}

TEST_CASE("batches of a size per rank") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = random_graph("random", 60, 60, 400, 1);
  for (const Books& books : test_books(whole, comm.size())) {
    const Graph graph = renamed_shard(comm, whole, books.src);
    const std::vector<Index> seeds = seeds_of(books.src, comm.rank());
    const auto mine = static_cast<Index>(seeds.size());
    DataLoader loader(NeighborSampler(graph, {2}), seeds, {.batch_size = 4, .per_rank = true});
    CHECK(loader.num_batches() == comm.all_reduce((mine + 3) / 4, ReduceOp::max));
    CHECK(loader.num_seeds() == 40);
    loader.start_epoch(1);
    Index seen = 0;
    while (const auto batch = loader.next()) {
      CHECK(std::ssize(batch->seeds) == std::clamp<Index>(mine - 4 * batch->number, 0, 4));
      seen += std::ssize(batch->seeds);
    }
    CHECK(seen == mine);
    const DataLoader full(NeighborSampler(graph, {2}), seeds,
                          {.batch_size = 4, .per_rank = true, .drop_last = true});
    CHECK(full.num_batches() == comm.all_reduce(mine / 4, ReduceOp::min));
  }
}

TEST_CASE("no seeds at all, batches larger than the seeds, and bad input") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = random_graph("random", 60, 60, 400, 1);
  const PartitionBook book = PartitionBook::even(60, comm.size());
  const Graph graph = renamed_shard(comm, whole, book);
  const NeighborSampler sampler(graph, {2});
  DataLoader none(sampler, std::span<const Index>(), {});
  CHECK(none.num_batches() == 0);
  none.start_epoch(1);
  CHECK(!none.next().has_value());
  DataLoader one(sampler, seeds_of(book, comm.rank()), {.batch_size = 1000});
  CHECK(one.num_batches() == 1);
  CHECK(batches_of(comm, one, 1)[0].size() == 40);
  const DataLoader largest(sampler, seeds_of(book, comm.rank()),
                           {.batch_size = std::numeric_limits<Index>::max()});
  CHECK(largest.num_batches() == 1);
  if (comm.size() > 1) {
    one.start_epoch(comm.rank() == 0 ? 1 : 2);
    CHECK(thrown_by_all<InputError>(comm, [&] {
            (void)one.next();
          }).find("a different epoch on different ranks") != std::string::npos);
  }
  const auto text = [&](const DataLoaderOptions& options, std::vector<Index> seeds) {
    return thrown_by_all<InputError>(comm, [&] { DataLoader(sampler, seeds, options); });
  };
  CHECK(text({.batch_size = 0}, {}) == "the batch size is 0, expected 1 or more");
  const Index first = book.begin(comm.rank());
  CHECK(text({}, {first, first}).find("is given twice") != std::string::npos);
  CHECK(text({}, {60}).find("seed 60 is no node") != std::string::npos);
  if (comm.size() > 1)
    CHECK(text({.batch_size = 5 + comm.rank()}, {}).find("a different batch size on different ranks") !=
          std::string::npos);
  CHECK(thrown<InputError>([&] { one.start_epoch(1, 2); }) == "there is no batch 2, expected 0 to 1");
}

namespace {

/// SAGE, batch norm, ReLU, dropout, SAGE.
struct Net : Module {
  ModuleList<SAGEConv> convs;
  ModuleList<DistributedBN1D> norms;
  ModuleList<Dropout> dropouts;

  Net(const Communicator& comm, double dropout) {
    register_module("convs", convs);
    register_module("norms", norms);
    register_module("dropouts", dropouts);
    Generator gen(3);
    convs.emplace_back(5, 6, gen);
    convs.emplace_back(6, 4, gen);
    norms.emplace_back(6, comm);
    dropouts.emplace_back(dropout, gen);
  }
  Variable operator()(const LayerGraphs& graphs, const Variable& x, bool normalizes) {
    Variable h = convs[0](graphs[0], x);
    if (normalizes) h = norms[0](h);
    return convs[1](graphs[1], dropouts[0](relu(h), graphs[0].dst_ids()));
  }
};

Array<std::int64_t> labels_of(std::span<const Index> nodes) {
  Array<std::int64_t> labels;
  for (const Index v : nodes) labels.push_back((v * v + v / 3) % 4);
  return labels;
}

/// The losses of all steps of three epochs.
std::vector<double> curve(const Communicator& comm, const WholeGraph& whole, const PartitionBook& book,
                          std::vector<Index> fan_outs) {
  const Graph graph = renamed_shard(comm, whole, book);
  const Tensor features = local_rows(random_values(whole.num_src * 5, 1), book, comm.rank(), 5);
  Net net(comm, 0.4);
  Adam adam(net.named_parameters(), {.lr = 0.05});
  DataLoader loader(NeighborSampler(graph, std::move(fan_outs), {.seed = 2}), seeds_of(book, comm.rank()),
                    {.batch_size = 9, .seed = 3});
  std::vector<double> losses;
  for (std::uint64_t epoch = 1; epoch <= 3; ++epoch) {
    loader.start_epoch(epoch);
    while (const auto batch = loader.next()) {
      const Variable x = deferred_gather_rows(features, batch->blocks.front().src_rows());
      Tape tape;
      const Variable logits = net(batch->blocks, x, /*normalizes=*/true);
      const Array<std::uint8_t> mask(batch->seeds.size(), 1);
      const Variable loss =
          cross_entropy(logits, labels_of({batch->seeds.data(), batch->seeds.size()}), mask, comm);
      tape.backward(loss);
      gather_grads(comm, net);
      adam.step();
      adam.zero_grad();
      losses.push_back(static_cast<double>(loss.value().item()));
    }
  }
  return losses;
}

}  // namespace

TEST_CASE("the sampled curve is the same for every number of ranks, with batch norm and dropout") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = random_graph("random", 60, 60, 400, 1);
  const auto want = curve(Communicator::self(), whole, PartitionBook::even(60, 1), {3, 2});
  REQUIRE(want.size() == 15);
  for (const Books& books : test_books(whole, comm.size())) {
    const auto got = curve(comm, whole, books.src, {3, 2});
    REQUIRE(got.size() == want.size());
    for (std::size_t i = 0; i < got.size(); ++i)  // errors of float grow in 15 steps
      CHECK(std::abs(got[i] - want[i]) < (sizeof(real) == 8 ? 1e-9 : 2e-3) * want[i]);
  }
}

TEST_CASE("with all in-edges, loss and gradients are those of the whole graph for the same seeds") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = random_graph("random", 60, 60, 400, 1);
  for (const Books& books : test_books(whole, comm.size())) {
    const Graph graph = renamed_shard(comm, whole, books.src);
    const Tensor features = local_rows(random_values(whole.num_src * 5, 1), books.src, comm.rank(), 5);
    DataLoader loader(NeighborSampler(graph, {-1, -1}), seeds_of(books.src, comm.rank()), {.batch_size = 11});
    loader.start_epoch(4);
    while (const auto batch = loader.next()) {
      const auto gradients = [&](bool sampled) {
        Net net(comm, 0.3);
        Tape tape;
        const Variable x =
            sampled ? deferred_gather_rows(features, batch->blocks.front().src_rows()) : Variable(features);
        Variable logits = sampled ? net(batch->blocks, x, false) : net(graph, x, false);
        if (!sampled) logits = gather_rows(logits, batch->blocks.back().dst_rows());
        const Array<std::uint8_t> mask(batch->seeds.size(), 1);
        const Variable loss =
            cross_entropy(logits, labels_of({batch->seeds.data(), batch->seeds.size()}), mask, comm);
        tape.backward(loss);
        gather_grads(comm, net);
        std::vector<Tensor> found{loss.value().clone()};
        for (const auto& named : net.convs[0].named_parameters())
          found.push_back(named.parameter.grad().clone());
        for (const auto& named : net.convs[1].named_parameters())
          found.push_back(named.parameter.grad().clone());
        return found;
      };
      const std::vector<Tensor> want = gradients(false), got = gradients(true);
      REQUIRE(got.size() == want.size());
      for (std::size_t i = 0; i < got.size(); ++i)
        CHECK(error_of_part(got[i], want[i], want[i]) < tolerance());
    }
  }
}
