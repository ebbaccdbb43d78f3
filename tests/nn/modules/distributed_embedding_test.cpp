// SPDX-License-Identifier: MIT
#include "graph/data/dataset_files.hpp"
#include "support/reference.hpp"
#include "support/rows.hpp"
#include "support/thrown.hpp"

#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/nn/train/optimizer.hpp>

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <numeric>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

/// Original ids that do not follow the order of the rows.
Index original(Index row, Index n) {
  return (row * 5 + 3) % n;  // n is no multiple of 5
}

std::vector<Index> originals(const Communicator& comm, const PartitionBook& book) {
  std::vector<Index> ids;
  for (Index row = book.begin(comm.rank()); row < book.end(comm.rank()); ++row)
    ids.push_back(original(row, book.num_nodes()));
  return ids;
}

/// An embedding with what is needed to train it.
struct Embedded {
  Generator gen{3};
  DistributedEmbedding embedding;
  std::unique_ptr<SparseOptimizer> optimizer;

  Embedded(const Communicator& comm, const PartitionBook& book, Index width, const std::string& name = "node")
      : embedding(name, comm, book, originals(comm, book), width, gen) {}
  void set(const Tensor& whole) {
    embedding.comm().barrier();
    embedding.mine().copy_from(my_rows(whole, embedding.book(), embedding.comm().rank()));
    embedding.rows().barrier();
  }
  [[nodiscard]] Tensor all() const {
    std::vector<Index> ids(embedding.book().num_nodes());
    std::iota(ids.begin(), ids.end(), Index{0});
    return embedding.rows().pull_all(ids);
  }
};

std::unique_ptr<SparseOptimizer> make(const Case& golden, DistributedEmbedding& embedding) {
  const std::string kind = golden.arg("optimizer");
  const double lr = golden.number("lr");
  if (kind == "SparseSGD")
    return std::make_unique<SparseSGD>(EmbeddingRefs{embedding}, SparseSGDOptions{.lr = lr});
  if (kind == "SparseAdagrad")
    return std::make_unique<SparseAdagrad>(
        EmbeddingRefs{embedding},
        SparseAdagradOptions{.lr = lr,
                             .lr_decay = golden.number("lr_decay"),
                             .initial_accumulator = golden.number("initial_accumulator_value"),
                             .eps = golden.number("eps")});
  return std::make_unique<SparseAdam>(EmbeddingRefs{embedding},
                                      SparseAdamOptions{.lr = lr,
                                                        .beta1 = golden.number("beta1"),
                                                        .beta2 = golden.number("beta2"),
                                                        .eps = golden.number("eps")});
}

/// The step of a golden case, or one like it: the sum of the looked-up rows times weights. Every rank takes
/// some of the ids, in two calls; the last of several ranks takes none.
void take_step(Embedded& e, const std::vector<Index>& ids, const Tensor& weight) {
  const Communicator& comm = e.embedding.comm();
  const int workers = std::max(1, comm.size() - 1);
  Tape tape;
  Variable loss;
  for (const Index half : {0, 1}) {
    std::vector<Index> mine;
    std::vector<real> factors;
    for (Index i = half; i < std::ssize(ids); i += 2) {
      if (i / 2 % workers != comm.rank()) continue;
      mine.push_back(ids[i]);
      factors.insert(factors.end(), weight.row(i), weight.row(i) + weight.row_size());
    }
    const Variable rows = e.embedding(mine);
    CHECK(rows.shape() == Shape{std::ssize(mine), e.embedding.width()});
    const Variable part = sum(rows * Variable(Tensor::from(rows.shape(), std::span<const real>(factors))));
    loss = half == 0 ? part : loss + part;
  }
  tape.backward(loss);
  e.optimizer->step();
  e.optimizer->zero_grad();
}

std::string numbered(const char* name, int step) {
  return name + std::string(".step_") + std::to_string(step);
}

}  // namespace

TEST_CASE("sparse optimizers: golden vectors") {
  const Communicator comm = Communicator::world();
  for (const std::string& name : golden_cases("sparse")) {
    const Case golden(name);
    const Tensor init = golden.tensor("init");
    for (const PartitionBook& book : row_splits(init.num_rows(), comm.size())) {
      CAPTURE(name);
      Embedded e(comm, book, init.row_size());
      e.set(init);
      e.optimizer = make(golden, e.embedding);
      CHECK(e.optimizer->kind() == golden.arg("optimizer"));
      for (int step = 0; step < static_cast<int>(golden.number("steps")); ++step) {
        CAPTURE(step);
        const Tensor before = e.all();
        const std::vector<Index> ids = golden.indices(numbered("ids", step));
        take_step(e, ids, golden.tensor(numbered("weight", step)));
        const Tensor after = e.all();
        CHECK(relative_error(after, golden.values(numbered("rows", step))) < tolerance());
        for (Index row = 0; row < after.num_rows(); ++row)
          if (std::ranges::count(ids, row) == 0)
            CHECK(std::equal(after.row(row), after.row(row) + after.row_size(), before.row(row)));
      }
    }
  }
  CHECK(golden_cases("sparse").size() == 3);
}

TEST_CASE("rows start alike for every number of ranks and every partition") {
  const Communicator comm = Communicator::world();
  constexpr Index n = 23, width = 4;
  const Tensor alone = Embedded(Communicator::self(), PartitionBook::even(n, 1), width).all();
  real least = 1, most = -1;
  for (const real value : alone.values()) least = std::min(least, value), most = std::max(most, value);
  CHECK(least < real(-0.9));
  CHECK(least >= -1);
  CHECK(most > real(0.9));
  CHECK(most < 1);
  for (const PartitionBook& book : row_splits(n, comm.size()))
    CHECK(same_bits(Embedded(comm, book, width).all(), alone));
}

TEST_CASE("the gradient of rows is that of finite differences") {
  const Communicator comm = Communicator::world();
  constexpr Index n = 7, width = 2;
  for (const PartitionBook& book : row_splits(n, comm.size())) {
    Embedded e(comm, book, width);
    std::vector<Index> ids;  // rank 0 looks nothing up; row 6 is never looked up
    for (Index k = 0; k < 5 * comm.rank() + (comm.size() == 1 ? 8 : 0); ++k) ids.push_back((k * k) % 6);
    const auto loss = [&] {
      const Variable rows = e.embedding(ids);
      return sum(sigmoid(rows) * rows * rows);
    };
    {
      Tape tape;
      tape.backward(loss());
    }
    const SparseRows gradient = e.embedding.gradient();
    const double step = sizeof(real) == 8 ? 1e-5 : 1e-2, accepted = sizeof(real) == 8 ? 1e-7 : 1e-3;
    Index with_gradient = 0;
    for (Index row = 0; row < n; ++row)
      for (Index j = 0; j < width; ++j) {
        double difference = 0;
        for (const double side : {1.0, -1.0}) {
          const std::vector<Index> moved{row};
          std::vector<real> shift(width), back(width);
          shift[j] = static_cast<real>(side * step);
          const Tensor before = e.embedding.rows().pull_all(moved);
          comm.barrier();
          if (comm.rank() == 0) e.embedding.rows().push_add(moved, shift);
          e.embedding.rows().barrier();
          difference += side * comm.all_reduce(static_cast<double>(loss().value().item())) / (2 * step);
          if (comm.rank() == 0) e.embedding.rows().push(moved, before);
          e.embedding.rows().barrier();
        }
        if (book.owner(row) != comm.rank()) continue;
        const auto found = std::ranges::find(gradient.ids, row);
        const double value =
            found == gradient.ids.end() ? 0 : gradient.rows.row(found - gradient.ids.begin())[j];
        with_gradient += found == gradient.ids.end() ? 0 : 1;
        CHECK(std::abs(value - difference) <= accepted * std::max(1.0, std::abs(difference)));
      }
    CHECK(with_gradient == std::ssize(gradient.ids) * width);
    CHECK(comm.all_reduce(std::ssize(gradient.ids)) > 0);
  }
}

TEST_CASE("without a tape nothing is kept, and zero_grad() forgets") {
  const Communicator comm = Communicator::world();
  Embedded e(comm, PartitionBook::even(6, comm.size()), 2);
  const std::vector<Index> ids{0, 5};
  CHECK_FALSE(e.embedding(ids).requires_grad());
  {
    Tape tape;
    tape.backward(sum(e.embedding(ids)));
  }
  const SparseRows once = e.embedding.gradient();
  for (const real value : once.rows.values()) CHECK(value == comm.size());
  CHECK(comm.all_reduce(std::ssize(once.ids)) == 2);
  e.embedding.zero_grad();
  CHECK(e.embedding.gradient().ids.empty());
}

TEST_CASE("a training that is resumed on another number of ranks goes on as it would have") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory directory(comm);
  const Case golden("sparse/SparseAdam");
  const auto step = [&](Embedded& e, int k, const std::vector<Index>& row_of) {
    std::vector<Index> ids = golden.indices(numbered("ids", k));
    for (Index& id : ids) id = row_of[id];
    take_step(e, ids, golden.tensor(numbered("weight", k)));
  };
  constexpr Index n = 11, width = 3;
  std::vector<Index> row_of(n);  // of an original id
  for (Index row = 0; row < n; ++row) row_of[original(row, n)] = row;
  for (const bool adagrad : {false, true}) {
    const std::string path = directory.path() + (adagrad ? "/adagrad" : "/adam");
    const auto make_optimizer = [&](Embedded& e) {
      if (adagrad)
        e.optimizer = std::make_unique<SparseAdagrad>(EmbeddingRefs{e.embedding});
      else
        e.optimizer = std::make_unique<SparseAdam>(EmbeddingRefs{e.embedding}, SparseAdamOptions{.lr = 0.1});
    };
    Embedded through(comm, row_splits(n, comm.size()).back(), width);
    make_optimizer(through);
    for (const int k : {0, 1, 3}) step(through, k, row_of);
    through.optimizer->set_lr(0.07);
    through.optimizer->save(path);
    for (const int k : {4, 0}) step(through, k, row_of);

    // each rank by itself
    Embedded alone(Communicator::self(), PartitionBook::even(n, 1), width);
    make_optimizer(alone);
    alone.optimizer->load(path);
    CHECK(alone.optimizer->lr() == 0.07);
    for (const int k : {4, 0}) step(alone, k, row_of);
    CHECK(relative_error(alone.all(), through.all()) < tolerance());

    // all ranks, with another partition
    Embedded again(comm, row_splits(n, comm.size()).front(), width);
    make_optimizer(again);
    again.optimizer->load(path);
    for (const int k : {4, 0}) step(again, k, row_of);
    CHECK(relative_error(again.all(), through.all()) < tolerance());
  }
}

TEST_CASE("what was pushed is there before step() and load() change rows") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory directory(comm);
  constexpr Index n = 6, width = 2;
  Embedded e(comm, PartitionBook::even(n, comm.size()), width);
  SparseSGD sgd({e.embedding}, {.lr = 0.5});
  sgd.save(directory.path() + "/saved");
  const Tensor saved = e.all();
  const std::vector<Index> ids{0, n - 1};
  {
    Tape tape;
    tape.backward(sum(e.embedding(ids)));
  }
  const Tensor pushed = Tensor::from({2, width}, {8, 9, 10, 11});
  if (comm.rank() == comm.size() - 1) e.embedding.rows().push(ids, pushed);
  sgd.step();
  const Tensor moved = e.embedding.rows().pull_all(ids);
  for (Index i = 0; i < moved.size(); ++i)
    CHECK(moved.data()[i] == pushed.data()[i] - real(0.5) * static_cast<real>(comm.size()));

  if (comm.rank() == comm.size() - 1) e.embedding.rows().push_add(ids, pushed);
  sgd.load(directory.path() + "/saved");
  CHECK(same_bits(e.all(), saved));

  sgd.step();
  sgd.set_lr(0.25);
  const Tensor before = e.all();
  comm.barrier();
  const std::vector<Index> bad{n};
  if (comm.rank() == 0) CHECK_THROWS_AS((void)e.embedding.rows().pull(bad), InputError);
  CHECK(thrown_by_all<InputError>(comm, [&] { sgd.load(directory.path() + "/saved"); }) ==
        "pull: id 0 of 1 is 6, expected 0 to 5");
  CHECK(sgd.lr() == 0.25);
  CHECK(same_bits(e.all(), before));
}

TEST_CASE("what does not fit is refused on all ranks, and nothing has changed") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory directory(comm);
  const PartitionBook book = PartitionBook::even(9, comm.size());
  Embedded e(comm, book, 2);
  SparseAdam adam({e.embedding});
  const std::string path = directory.path() + "/saved";
  adam.save(path);
  CHECK(thrown_by_all<InputError>(comm, [&] { adam.save(path); }) ==
        path + ": exists already, expected a directory that can be made");
  SparseSGD sgd({e.embedding});
  CHECK(thrown_by_all<InputError>(comm, [&] { sgd.load(path); }) ==
        path +
            "/state.safetensors: the optimizer is 'SparseAdam' with lr '0.001', expected SparseSGD and a "
            "number");
  CHECK(thrown_by_all<InputError>(comm, [&] { sgd.load(path + "2"); }).starts_with(path + "2/state"));
  Embedded wider(comm, book, 3);
  SparseAdam of_wider({wider.embedding});
  const Tensor before = wider.all();
  CHECK(thrown_by_all<InputError>(comm, [&] {
          of_wider.load(path);
        }).find("(9, 2), expected floating-point numbers (9, 3)") != std::string::npos);
  CHECK(same_bits(wider.all(), before));
  Embedded other(comm, book, 2, "edge");
  SparseAdam of_other({other.embedding});
  CHECK(thrown_by_all<InputError>(comm, [&] { of_other.load(path); }).find("'edge.step'") !=
        std::string::npos);
  if (comm.rank() == comm.size() - 1) std::filesystem::remove(path + "/node.exp_avg.npy");
  comm.barrier();
  CHECK(thrown_by_all<InputError>(comm, [&] { adam.load(path); }).starts_with(path + "/node.exp_avg.npy: "));
  if (comm.rank() == 0) {  // the lowest bit of the last number
    std::fstream file(path + "/node.rows.npy", std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(-static_cast<int>(sizeof(real)), std::ios::end);
    const int low = file.get();
    file.seekp(-static_cast<int>(sizeof(real)), std::ios::end).put(static_cast<char>(low ^ 1));
  }
  comm.barrier();
  CHECK(thrown_by_all<InputError>(comm, [&] { adam.load(path); })
            .starts_with(path + "/node.rows.npy: the rows have the checksum "));

  CHECK(thrown<InputError>([&] {
          SparseAdam({e.embedding, e.embedding});
        }) == "two embeddings have the name 'node', expected different names");
  CHECK(thrown<InputError>([&] { SparseSGD({e.embedding}, {.lr = -1}); }) ==
        "the optimizer option lr is -1, expected 0 or more");
  CHECK(thrown<InputError>([&] {
          SparseAdam({e.embedding}, {.beta2 = 1});
        }).starts_with("the optimizer options"));
  CHECK(thrown<InputError>([&] {
          SparseAdagrad({e.embedding}, {.eps = std::numeric_limits<double>::quiet_NaN()});
        }).starts_with("the optimizer option eps is "));
  CHECK(thrown_by_all<InputError>(comm, [&] {
          const std::vector<Index> bad{comm.rank() == comm.size() - 1 ? Index{9} : Index{0}};
          (void)e.embedding(bad);
        }) == "pull_all: id 0 of 1 is 9, expected 0 to 8");
  Generator gen(0);
  CHECK(thrown_by_all<ShapeError>(comm,
                                  [&] {
                                    std::vector<Index> ids = originals(comm, book);
                                    if (comm.rank() == 0) ids.pop_back();
                                    DistributedEmbedding("short", comm, book, ids, 2, gen);
                                  }) == concat("DistributedEmbedding: ", book.num_nodes(0) - 1,
                                               " original ids, expected ", book.num_nodes(0),
                                               ", as the partition book says"));
  CHECK(thrown_by_all<InputError>(comm, [&] {
          DistributedEmbedding("narrow", comm, book, originals(comm, book), 0, gen);
        }).starts_with("DistributedEmbedding: width 0"));
}
