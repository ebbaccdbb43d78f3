/// Checkpoints of trainings with error feedback: a resumed training has the bits of one that was not
/// interrupted.
#include "graph/data/dataset_files.hpp"
#include "nn/checkpoint_directory.hpp"
#include "support/rows.hpp"
#include "support/thrown.hpp"

#include <doctest/doctest.h>
#include <sar/graph/message/sharded_graph.hpp>
#include <sar/sar.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <string>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

namespace fs = std::filesystem;

constexpr Index num_nodes = 36, in_feats = 5;

std::vector<HaloFormat> rounding_formats() {
  if (sizeof(real) == sizeof(float)) return {HaloFormat::bf16, HaloFormat::int8};
  return {HaloFormat::bf16};  // int8 is refused
}

/// In-edges of this rank's nodes. Those of the last third come from there, so that the last of three equal
/// parts has no halo.
EdgeList edges_of(const PartitionBook& book, int rank) {
  EdgeList edges;
  for (Index v = book.begin(rank); v < book.end(rank); ++v)
    for (Index k = 0; k < 4; ++k) {
      const Index u = (5 * v + 11 * k + 3) % num_nodes, first = num_nodes * 2 / 3;
      edges.src.push_back(v < first ? u : first + u % (num_nodes - first));
      edges.dst.push_back(v);
      edges.id.push_back(4 * v + k);
    }
  return edges;
}

/// A network in training on a graph of its own.
struct Training {
  Communicator comm;
  PartitionBook book;
  GraphShardManager graph;
  Generator gen{3};
  GraphModel net;
  Adam adam;
  Tensor x, y;

  Training(const Communicator& ranks, const PartitionBook& parts, const std::string& type, HaloFormat format)
      : comm(ranks),
        book(parts),
        graph(ranks, parts, parts, edges_of(parts, ranks.rank()), true,
              {.halo_format = format, .halo_error_feedback = true}),
        net({.type = type, .in_feats = in_feats, .hidden = 8, .out_feats = 3, .layers = 3, .dropout = 0.2},
            ranks, gen),
        adam(net.named_parameters(), {.lr = 0.01}),
        x(my_rows(random_values({num_nodes, in_feats}, 1), parts, ranks.rank())),
        y(my_rows(random_values({num_nodes, 3}, 2), parts, ranks.rank())) {}
  explicit Training(const Communicator& ranks, HaloFormat format = HaloFormat::bf16)
      : Training(ranks, PartitionBook::even(num_nodes, ranks.size()), "sage", format) {}

  /// Losses of the steps, and the weights after the last.
  std::vector<double> run(int first, int last) {
    std::vector<double> numbers;
    for (int step = first; step <= last; ++step) {
      start_halo_step(7, static_cast<std::uint64_t>(step));
      Tape tape;
      const Variable loss = mse(net(graph, x), y, comm);
      tape.backward(loss);
      gather_grads(comm, net);
      adam.step();
      adam.zero_grad();
      numbers.push_back(static_cast<double>(loss.value().item()));
    }
    for (const Variable& parameter : net.parameters())
      for (const real value : parameter.value().values()) numbers.push_back(double{value});
    return numbers;
  }
  /// `with`: the graph's errors are part of a checkpoint.
  [[nodiscard]] Checkpointer checkpoints(const std::string& place, bool with = true) const {
    CheckpointerOptions options{.seed = 3};
    if (with) options.feedback_graphs = {graph};
    return {comm, place, options};
  }
  void save(const Checkpointer& to, int epoch) { to.save(epoch, net, adam); }
  bool load(const Checkpointer& from) { return from.load(from.latest(), net, adam).has_halo_errors; }
};

void copy(const std::string& from, const std::string& to) {
  fs::copy(from, to, fs::copy_options::recursive | fs::copy_options::overwrite_existing);
}

}  // namespace

TEST_CASE("interrupted and resumed with error feedback, the bits are those of the uninterrupted training") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory directory(comm);
  int number = 0;
  for (const PartitionBook& book : row_splits(num_nodes, comm.size()))
    for (const std::string type : {"sage", "gat"})
      for (const HaloFormat format : rounding_formats()) {
        CAPTURE(number);
        const std::string place = directory.path() + "/" + std::to_string(number++);
        Training through(comm, book, type, format);
        through.run(1, 3);
        through.save(through.checkpoints(place), 3);
        const std::vector<double> numbers = through.run(4, 6);

        Training again(comm, book, type, format), without(comm, book, type, format);
        again.run(1, 1);  // whatever was before is forgotten
        CHECK(again.load(again.checkpoints(place)));
        CHECK(again.run(4, 6) == numbers);
        CHECK_FALSE(without.load(without.checkpoints(place, false)));
        const bool has_halo = comm.all_reduce(through.graph.shards()->remote.num_src_rows) > 0;
        CHECK((without.run(4, 6) == numbers) != has_halo);
      }
}

TEST_CASE("on other ranks or another partition, the training goes on without errors") {
  const Communicator comm = Communicator::world();
  if (comm.size() == 1) return;
  const TemporaryDirectory directory(comm);
  Training through(comm);
  through.run(1, 3);
  through.save(through.checkpoints(directory.path()), 3);
  const auto check = [&](const Communicator& ranks, const PartitionBook& book) {
    Training again(ranks, book, "sage", HaloFormat::bf16), without(ranks, book, "sage", HaloFormat::bf16);
    again.run(1, 1);  // errors of this step are forgotten, too
    CHECK_FALSE(again.load(again.checkpoints(directory.path())));
    CHECK_FALSE(without.load(without.checkpoints(directory.path(), false)));
    CHECK(again.run(4, 5) == without.run(4, 5));
  };
  check(comm, row_splits(num_nodes, comm.size())[1]);
  check(Communicator::self(), PartitionBook::even(num_nodes, 1));
  CHECK(thrown_by_all<InputError>(comm, [&] {
          const Training alone(Communicator::self());
          Checkpointer(comm, directory.path(), {.feedback_graphs = {alone.graph}});
        }).starts_with("a graph with error feedback is on 1 ranks, its checkpoints on "));
}

TEST_CASE("a checkpoint has its own errors, wherever a run was killed") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory directory(comm);
  const std::string place = directory.path() + "/run", before = directory.path() + "/before";
  Training through(comm);
  through.run(1, 3);
  std::vector<double> numbers;
  {
    const Checkpointer checkpoints = through.checkpoints(place);
    through.save(checkpoints, 3);
    on_rank_0(comm, [&] { copy(place, before); });
    numbers = through.run(4, 4);
    through.save(checkpoints, 3);  // in the place of that before
  }
  comm.agree([&] {
    CHECK(files(place) == std::set<std::string>{"checkpoint-00000003.safetensors", "halo_errors-00000003-1"});
  });
  // as if killed before the second checkpoint got its name
  on_rank_0(comm, [&] { copy(before, place); });
  Training again(comm);
  const Checkpointer checkpoints = again.checkpoints(place);
  comm.agree([&] {
    CHECK(files(place) == std::set<std::string>{"checkpoint-00000003.safetensors", "halo_errors-00000003-0"});
  });
  CHECK(again.load(checkpoints));
  CHECK(again.run(4, 4) == numbers);

  // errors are written, their checkpoint is not
  const std::string five = place + "/checkpoint-00000005.safetensors";
  on_rank_0(comm, [&] { fs::create_directory(five); });
  CHECK(thrown_by_all<InputError>(comm, [&] { again.save(checkpoints, 5); }).starts_with(five));
  on_rank_0(comm, [&] { fs::remove(five); });
  comm.agree([&] { CHECK(files(place).contains("halo_errors-00000005-0")); });
  again.save(checkpoints, 4);
  comm.agree([&] {
    CHECK(files(place) == std::set<std::string>{"checkpoint-00000003.safetensors", "halo_errors-00000003-0",
                                                "checkpoint-00000004.safetensors", "halo_errors-00000004-0"});
  });
  for (const int epoch : {5, 6}) again.save(checkpoints, epoch);
  comm.agree([&] {  // with the checkpoint of epoch 3, its errors went
    CHECK(files(place).size() == 6);
    CHECK_FALSE(files(place).contains("halo_errors-00000003-0"));
  });
}

TEST_CASE("errors that are damaged or missing are an error, and change nothing") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory directory(comm);
  Training through(comm);
  through.run(1, 3);
  const Checkpointer checkpoints = through.checkpoints(directory.path());
  through.save(checkpoints, 3);
  const std::string errors = directory.path() + "/halo_errors-00000003-0";
  Training other(comm), same(comm);
  other.run(1, 2);
  same.run(1, 2);
  const Checkpointer reader = other.checkpoints(directory.path());
  const auto refused = [&](const std::string& file, const std::function<void(const std::string&)>& damage) {
    on_rank_0(comm, [&] {
      fs::remove_all(errors + "-whole");
      copy(errors, errors + "-whole");
      damage(file);
    });
    const std::string message = thrown_by_all<InputError>(comm, [&] { other.load(reader); });
    on_rank_0(comm, [&] {
      fs::remove_all(errors);
      fs::rename(errors + "-whole", errors);
    });
    CHECK(message.starts_with(file + ": "));
    return message.substr(std::min(message.size(), file.size() + 2));
  };
  const std::string first = errors + "/rank-0.safetensors",
                    last = errors + "/rank-" + std::to_string(comm.size() - 1) + ".safetensors";
  CHECK(refused(last, [](const std::string& file) { fs::remove(file); }).starts_with("cannot open"));
  CHECK(refused(last, [](const std::string& file) { fs::resize_file(file, 3); }).starts_with("the file has"));
  CHECK(refused(first, [](const std::string& file) {
          write_safetensors(file, {{"0.0", Tensor::zeros({num_nodes, 2})}}, {}, real_type);
        }) == "there is a tensor '0.0', expected errors of the halo rows of rank 0");
  for (const char* name : {"errors", "7", "1.0", "0.x"})
    CHECK(refused(first, [&](const std::string& file) {
            write_safetensors(file, {{name, Tensor::zeros({num_nodes, 2})}}, {}, real_type);
          }).starts_with("there is a tensor '"));
  if (comm.size() > 1)
    CHECK(refused(first, [](const std::string& file) {
            std::fstream(file, std::ios::in | std::ios::out | std::ios::binary)
                .seekp(-1, std::ios::end)
                .put('\x15');
          }).starts_with("the data have the checksum"));
  CHECK(other.run(3, 4) == same.run(3, 4));
  CHECK(other.load(reader));
}

TEST_CASE("errors of message flow graphs and of relations are kept as well") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory directory(comm);
  const PartitionBook book = PartitionBook::even(num_nodes, comm.size());
  const GraphOptions options{.halo_format = HaloFormat::bf16, .halo_error_feedback = true};
  const int p = comm.rank();
  const Tensor rows = my_rows(random_values({num_nodes, 4}, 1), book, p);
  Generator gen(0);
  Linear model(1, 1, gen);
  Adam adam(model.named_parameters());
  /// The gradient of a step.
  const auto check = [&](const std::string& place, const std::vector<GraphShardManager>& graphs,
                         const std::function<Variable(const Variable&)>& compute, const Tensor& sources) {
    const auto gradient = [&](std::uint64_t step) {
      start_halo_step(7, step);
      const Variable x(sources, true);
      Tape tape;
      const Variable out = compute(x);
      tape.backward(out, random_values(out.shape(), step));
      return x.grad();
    };
    const Checkpointer checkpoints(comm, place, {.feedback_graphs = graphs});
    for (const std::uint64_t step : {1, 2}) (void)gradient(step);
    checkpoints.save(2, model, adam);
    const Tensor third = gradient(3), otherwise = gradient(3);
    CHECK(checkpoints.load(checkpoints.latest(), model, adam).has_halo_errors);
    CHECK(same_bits(gradient(3), third));
    const bool all_same = comm.all_reduce(same_bits(otherwise, third) ? 1 : 0, ReduceOp::min) == 1;
    CHECK(all_same == (comm.size() == 1));
  };

  const GraphShardManager graph(comm, book, book, edges_of(book, p), true, options);
  Array<Index> seeds;
  for (Index v = book.begin(p); v < book.end(p); v += 2) seeds.push_back(v);
  const std::vector<MessageFlowGraph> blocks = construct_mfgs(graph, {seeds.data(), seeds.size()}, 2);
  check(
      directory.path() + "/blocks", {blocks.begin(), blocks.end()},
      [&](const Variable& x) {
        return blocks[1].update_all(fn::copy_u(blocks[0].update_all(fn::copy_u(x), fn::sum)), fn::sum);
      },
      random_values({blocks[0].num_src_nodes(), 4}, 1));

  const EdgeType cites{"paper", "cites", "paper"}, extends{"paper", "extends", "paper"};
  EdgeList half = edges_of(book, p);
  for (Index& u : half.src) u = u / 2;
  const HeteroGraph hetero(comm, {{.name = "paper", .book = book}},
                           {{.type = cites, .edges = edges_of(book, p)}, {.type = extends, .edges = half}},
                           options);
  check(
      directory.path() + "/relations", {hetero[cites], hetero[extends]},
      [&](const Variable& x) {
        const Message message = fn::copy_u(x);
        return hetero
            .multi_update_all({{cites, {message, fn::sum}}, {extends, {message, fn::mean}}}, CrossReduce::sum)
            .at("paper");
      },
      rows);
}
