// SPDX-License-Identifier: MIT
#include "graph/construct/host_arrays.hpp"
#include "graph/data/dataset_files.hpp"

#include <doctest/doctest.h>
#include <support/rows.hpp>

#include <sar/data.hpp>
#include <sar/models.hpp>

#include <sar.h>

#include <cfenv>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

namespace sar::test {
namespace {

constexpr std::int32_t own = sizeof(real) == sizeof(double) ? SAR_FLOAT64 : SAR_FLOAT32;
constexpr std::int32_t other = own == SAR_FLOAT64 ? SAR_FLOAT32 : SAR_FLOAT64;
constexpr int in_feats = 4, out_feats = 3, steps = 5;
const std::string description =
    R"({"sar_model": 1, "type": "sage", "in_feats": 4, "hidden": 8, "out_feats": 3, "layers": 3, "norm": "batch", "dropout": 0.25})";

/// The text of the last error is in the message of a failed test.
#define SAR_OKAY(call) REQUIRE_MESSAGE((call) == SAR_OK, sar_last_error())

sar_array array_of(const Tensor& x) {
  return {const_cast<real*>(x.data()), own, SAR_NODE_FIELD, x.num_rows(), x.row_size(), 0, {0, 0}};
}

/// A graph of this rank's arrays, its features, targets and labels.
struct Problem {
  explicit Problem(const Communicator& c, const char* options = nullptr)
      : comm(c),
        whole(random_graph("c_api", 60, 60, 300, 5)),
        host(host_arrays(c, whole, Ownership::scattered, 5)),
        x(host.node_rows(random_values(Shape{60, in_feats}, 1))),
        target(host.node_rows(random_values(Shape{60, out_feats}, 2))) {
    for (const Index v : host.my_nodes) {
      labels.push_back(v % out_feats);
      mask.push_back(v % 4 != 1);
    }
    SAR_OKAY(sar_comm_create(comm.handle(), &c_comm));
    SAR_OKAY(sar_graph_from_global(c_comm, std::ssize(host.node_ids), host.node_ids.data(),
                                   std::ssize(host.src), host.src.data(), host.dst.data(),
                                   host.edge_ids.data(), nullptr, options, &graph));
    SAR_OKAY(sar_model_create(c_comm, description.c_str(), 9, &model));
    SAR_OKAY(sar_optimizer_create(model, R"({"optimizer": "adamw", "lr": 0.02, "weight_decay": 0.01})",
                                  &optimizer));
  }
  ~Problem() {
    sar_optimizer_free(optimizer);
    sar_model_free(model);
    sar_graph_free(graph);
    sar_comm_free(c_comm);
  }
  Problem(const Problem&) = delete;
  Problem& operator=(const Problem&) = delete;

  [[nodiscard]] std::vector<double> c_losses(const sar_array& from, const sar_array& to) const {
    std::vector<double> losses(steps);
    for (double& loss : losses)
      SAR_OKAY(sar_train_step(model, optimizer, graph, nullptr, &from, nullptr, SAR_LOSS_MSE, &to, 0, nullptr,
                              &loss));
    return losses;
  }

  Communicator comm;
  WholeGraph whole;
  HostArrays host;
  Tensor x, target;
  std::vector<std::int64_t> labels;
  std::vector<std::uint8_t> mask;
  sar_comm c_comm = nullptr;
  sar_graph graph = nullptr;
  sar_model model = nullptr;
  sar_optimizer optimizer = nullptr;
};

/// The same training by the classes of C++.
struct CppTraining {
  explicit CppTraining(const Problem& problem)
      : p(problem),
        graph(p.comm, p.host.node_ids, p.host.edges()),
        x(p.x),
        gen(9),
        model(ModelDescription::from_json(description), p.comm, gen),
        optimizer(model.named_parameters(), {.lr = 0.02, .weight_decay = 0.01}) {}

  template <class Loss>
  double step(const Loss& loss_of) {
    model.train();
    Tape tape;
    const Variable loss = loss_of(model(graph, x));
    const double value = loss.value().item();
    tape.backward(loss);
    gather_grads(p.comm, model);
    optimizer.step();
    optimizer.zero_grad();
    return value;
  }
  std::vector<double> losses() {
    std::vector<double> all;
    for (int i = 0; i < steps; ++i)
      all.push_back(step([&](const Variable& y) { return mse(y, p.target, p.comm); }));
    return all;
  }

  const Problem& p;
  HostGraph graph;
  Tensor x;
  Generator gen;
  GraphModel model;
  AdamW optimizer;
};

TEST_CASE("two models that train in turn on rounded rows have the losses that each has alone") {
  const Communicator comm = Communicator::world();
  const char* const options =
      own == SAR_FLOAT64 ? R"({"halo_format": "bf16"})" : R"({"halo_format": "int8"})";
  const auto losses_of_step = [](const Problem& p) {
    const sar_array x = array_of(p.x), target = array_of(p.target);
    double trained = 0, evaluated = 0;
    SAR_OKAY(sar_train_step(p.model, p.optimizer, p.graph, nullptr, &x, nullptr, SAR_LOSS_MSE, &target, 0,
                            nullptr, &trained));
    SAR_OKAY(
        sar_evaluate(p.model, p.graph, nullptr, &x, nullptr, SAR_LOSS_MSE, &target, 0, nullptr, &evaluated));
    return std::vector<double>{trained, evaluated};
  };
  const Problem alone(comm, options), a(comm, options), b(comm, options);
  std::vector<std::vector<double>> losses;
  for (int i = 0; i < steps; ++i) losses.push_back(losses_of_step(alone));
  for (int i = 0; i < steps; ++i) {
    CHECK(losses_of_step(a) == losses[static_cast<std::size_t>(i)]);
    CHECK(losses_of_step(b) == losses[static_cast<std::size_t>(i)]);
  }
}

TEST_CASE("a training on rounded rows that resumes has the losses of one that was not stopped") {
  const Communicator comm = Communicator::world();
  const char* const options =
      own == SAR_FLOAT64 ? R"({"halo_format": "bf16"})" : R"({"halo_format": "int8"})";
  const TemporaryDirectory directory(comm);
  const Problem first(comm, options), second(comm, options);
  sar_checkpoints files = nullptr;
  SAR_OKAY(sar_checkpoints_create(first.c_comm, directory.path().c_str(), 2, 9, &files));
  (void)first.c_losses(array_of(first.x), array_of(first.target));
  SAR_OKAY(sar_checkpoints_save(files, 5, first.model, first.optimizer));
  std::int32_t epoch = 0;
  sar_checkpoints read = nullptr;
  SAR_OKAY(sar_checkpoints_create(second.c_comm, directory.path().c_str(), 2, 9, &read));
  SAR_OKAY(sar_checkpoints_load_latest(read, second.model, second.optimizer, &epoch));
  CHECK(epoch == 5);
  CHECK(second.c_losses(array_of(second.x), array_of(second.target)) ==
        first.c_losses(array_of(first.x), array_of(first.target)));
  SAR_OKAY(sar_checkpoints_free(read));
  SAR_OKAY(sar_checkpoints_free(files));
}

#if defined(__x86_64__)
TEST_CASE("numbers that overflow are errors in a host that traps floating-point exceptions") {
  const Communicator comm = Communicator::world();
  const Problem problem(comm);
  const double most = std::numeric_limits<real>::max();
  const sar_array x = array_of(problem.x), y = array_of(problem.target);
  const Tensor large_x = Tensor::full(problem.x.shape(), static_cast<real>(most)),
               large_y = Tensor::full(problem.target.shape(), static_cast<real>(most / 4)),
               infinite = Tensor::full(problem.x.shape(), std::numeric_limits<real>::infinity()),
               of_edges = random_values(Shape{5, 1}, 3);
  const sar_array of_large_x = array_of(large_x), of_large_y = array_of(large_y),
                  of_infinite = array_of(infinite), edges = array_of(of_edges);
  sar_model normalized = nullptr;
  SAR_OKAY(sar_model_create(problem.c_comm, R"({"sar_model": 1, "type": "mesh_graph_net", "in_feats": 4,
      "edge_feats": 1, "hidden": 8, "out_feats": 3, "layers": 1, "normalize": true})",
                            9, &normalized));
  std::feclearexcept(FE_ALL_EXCEPT);
  const int before = feenableexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW);
  double loss = -1;
  std::vector<int> found;
  const auto step = [&](const sar_array& from, const sar_array& to) {
    found.push_back(sar_train_step(problem.model, problem.optimizer, problem.graph, nullptr, &from, nullptr,
                                   SAR_LOSS_MSE, &to, 0, nullptr, &loss));
  };
  step(x, of_large_y);
  step(of_large_x, y);
  step(of_infinite, y);
  found.push_back(sar_model_update_statistics(normalized, &of_infinite, &edges, &y));
  step(x, y);
  const int trapped = fegetexcept(), raised = std::fetestexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW);
  fedisableexcept(FE_ALL_EXCEPT);
  feenableexcept(before);
  CHECK(trapped == (FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW));
  CHECK(raised == 0);
  SAR_OKAY(sar_model_free(normalized));
  for (std::size_t k = 0; k < 4; ++k) CHECK(found[k] == SAR_ERROR_INPUT);
  CHECK(found.back() == SAR_OK);
}
#endif

TEST_CASE("on a reproducible graph, a training by sar.h has the same bits on one rank and on all") {
  const char* const options = R"({"reproducible": true})";
  const Problem all(Communicator::world(), options), one(Communicator::self(), options);
  CHECK(all.c_losses(array_of(all.x), array_of(all.target)) ==
        one.c_losses(array_of(one.x), array_of(one.target)));
}

TEST_CASE("a training by sar.h is that of C++, to the bit") {
  const Communicator comm = Communicator::world();
  const Problem problem(comm);
  CppTraining cpp(problem);
  CHECK(problem.c_losses(array_of(problem.x), array_of(problem.target)) == cpp.losses());

  SUBCASE("labels with a mask") {
    double loss = 0;
    const sar_array x = array_of(problem.x);
    SAR_OKAY(sar_train_step_labels(problem.model, problem.optimizer, problem.graph, nullptr, &x, nullptr,
                                   std::ssize(problem.labels), problem.labels.data(),
                                   std::ssize(problem.mask), problem.mask.data(), &loss));
    CHECK(loss ==
          cpp.step([&](const Variable& y) { return cross_entropy(y, problem.labels, problem.mask, comm); }));
  }

  SUBCASE("losses of fields, with a mask and without") {
    const sar_array x = array_of(problem.x), target = array_of(problem.target);
    std::vector<Index> rows;
    for (std::size_t i = 0; i < problem.mask.size(); ++i)
      if (problem.mask[i] != 0) rows.push_back(static_cast<Index>(i));
    cpp.model.eval();
    const Variable y = cpp.model(cpp.graph, problem.x);
    const Variable some = gather_rows(y, rows), wanted = gather_rows(Variable(problem.target), rows);
    const auto evaluated = [&](std::int32_t kind, bool masked) {
      double loss = 0;
      SAR_OKAY(sar_evaluate(problem.model, problem.graph, nullptr, &x, nullptr, kind, &target,
                            masked ? std::ssize(problem.mask) : 0, masked ? problem.mask.data() : nullptr,
                            &loss));
      return loss;
    };
    CHECK(evaluated(SAR_LOSS_MSE, false) == double{mse(y, problem.target, comm).value().item()});
    CHECK(evaluated(SAR_LOSS_MSE, true) == double{mse(some, wanted, comm).value().item()});
    CHECK(evaluated(SAR_LOSS_L1, true) == double{l1(some, wanted, comm).value().item()});
    CHECK(evaluated(SAR_LOSS_HUBER, true) == double{huber(some, wanted, comm).value().item()});
    CHECK(evaluated(SAR_LOSS_BCE, true) ==
          double{bce_with_logits(some, wanted.value(), comm).value().item()});
    double loss = 0;
    SAR_OKAY(sar_evaluate_labels(problem.model, problem.graph, nullptr, &x, nullptr,
                                 std::ssize(problem.labels), problem.labels.data(), 0, nullptr, &loss));
    const std::vector<std::uint8_t> all(problem.mask.size(), 1);
    CHECK(loss == double{cross_entropy(y, problem.labels, all, comm).value().item()});
  }

  SUBCASE("prediction, in every layout of the result") {
    cpp.model.eval();
    const Tensor wanted = cpp.model(cpp.graph, problem.x).value();
    sar_predictor predictor = nullptr;
    SAR_OKAY(sar_predictor_create(problem.model, problem.graph, &predictor));
    const sar_array x = array_of(problem.x);
    Tensor result(wanted.shape());
    sar_array out = array_of(result);
    for (int run = 0; run < 2; ++run) {
      result.fill(-1);
      SAR_OKAY(sar_predictor_run(predictor, &x, nullptr, &out));
      CHECK(std::ranges::equal(std::as_const(result).values(), wanted.values()));
    }
    const Index n = wanted.num_rows(), leading = n + 2;
    std::vector<double> columns(static_cast<std::size_t>(leading * out_feats), -7);
    out = {columns.data(), SAR_FLOAT64, SAR_FIELD_NODE, n, out_feats, leading, {0, 0}};
    SAR_OKAY(sar_predictor_run(predictor, &x, nullptr, &out));
    SUBCASE("of a predictor") {}
    SUBCASE("of sar_predict(), which gives the same") {
      std::ranges::fill(columns, -7);
      SAR_OKAY(sar_predict(problem.model, problem.graph, nullptr, &x, nullptr, &out));
    }
    bool same = true, gaps_stay = true;
    for (Index j = 0; j < out_feats; ++j) {
      for (Index i = 0; i < n; ++i) same = same && columns[j * leading + i] == double{wanted.row(i)[j]};
      for (Index i = n; i < leading; ++i) gaps_stay = gaps_stay && columns[j * leading + i] == -7;
    }
    CHECK(same);
    CHECK(gaps_stay);
    SAR_OKAY(sar_predictor_free(predictor));
  }
}

/// `x` in another layout, whose numbers are kept in `storage`.
template <class T>
sar_array converted(const Tensor& x, std::int32_t precision, std::int32_t order, Index gap,
                    std::vector<T>& storage) {
  const Index n = x.num_rows(), k = x.row_size();
  const bool by_nodes = order == SAR_NODE_FIELD;
  const Index leading = (by_nodes ? k : n) + gap;
  storage.assign(static_cast<std::size_t>(leading * (by_nodes ? n : k)), T{99});
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < k; ++j)
      storage[by_nodes ? i * leading + j : j * leading + i] = static_cast<T>(x.row(i)[j]);
  return {storage.data(), precision, order, n, k, leading, {0, 0}};
}

TEST_CASE("arrays of both precisions and orders, with gaps and without, give the same losses") {
  const Communicator comm = Communicator::world();
  Tensor rounded;  // numbers that both precisions have
  std::vector<double> wanted;
  for (const std::int32_t precision : {own, other})
    for (const std::int32_t order : {SAR_NODE_FIELD, SAR_FIELD_NODE})
      for (const Index gap : {0, 3}) {
        CAPTURE(precision);
        CAPTURE(order);
        CAPTURE(gap);
        Problem problem(comm);
        for (real& v : problem.x.values()) v = static_cast<real>(static_cast<float>(v));
        for (real& v : problem.target.values()) v = static_cast<real>(static_cast<float>(v));
        if (wanted.empty()) wanted = CppTraining(problem).losses();
        std::vector<float> x32, y32;
        std::vector<double> x64, y64;
        const bool is_double = precision == SAR_FLOAT64;
        const sar_array x = is_double ? converted(problem.x, precision, order, gap, x64)
                                      : converted(problem.x, precision, order, gap, x32);
        const sar_array y = is_double ? converted(problem.target, precision, order, gap, y64)
                                      : converted(problem.target, precision, order, gap, y32);
        CHECK(problem.c_losses(x, y) == wanted);
      }
}

TEST_CASE("an error of one rank is the status and the text of all ranks, and all can go on") {
  const Communicator comm = Communicator::world();
  const Problem problem(comm);
  const int last = comm.size() - 1;
  const bool wrong = comm.rank() == last;
  const std::string who = comm.size() == 1 ? "" : concat("rank ", last, ": ");
  const auto is_refused = [&](int status, int expected, const std::string& text) {
    CHECK(status == expected);
    CHECK(std::string(sar_last_error()).starts_with(who + text));
  };
  sar_array x = array_of(problem.x), y = array_of(problem.target);
  double loss = -1;
  const auto step = [&](sar_model model, sar_graph graph, const sar_array* from) {
    return sar_train_step(model, problem.optimizer, graph, nullptr, from, nullptr, SAR_LOSS_MSE, &y, 0,
                          nullptr, &loss);
  };
  is_refused(step(wrong ? nullptr : problem.model, problem.graph, &x), SAR_ERROR_HANDLE,
             "the handle 'model' is null");
  is_refused(step(problem.model, wrong ? nullptr : problem.graph, &x), SAR_ERROR_HANDLE,
             "the handle 'graph' is null");
  is_refused(step(problem.model, problem.graph, wrong ? nullptr : &x), SAR_ERROR_INPUT,
             "the array 'x' is null");
  sar_array narrow = x;
  narrow.fields = in_feats - 1;
  is_refused(step(problem.model, problem.graph, wrong ? &narrow : &x), SAR_ERROR_SHAPE,
             "the array 'x' has 3 fields, expected 4");
  CHECK(loss == -1);
  sar_model model = nullptr;
  is_refused(sar_model_create(problem.c_comm, description.c_str(), 1, wrong ? nullptr : &model),
             SAR_ERROR_INPUT, "the pointer for the new handle is null");
  CHECK(model == nullptr);
  if (comm.size() == 1)
    is_refused(sar_comm_create(MPI_COMM_WORLD, nullptr), SAR_ERROR_INPUT, "the pointer 'comm'");
  sar_comm another = nullptr;
  is_refused(sar_comm_create(MPI_COMM_WORLD, wrong ? nullptr : &another), SAR_ERROR_INPUT,
             "the pointer 'comm' is null");
  SAR_OKAY(step(problem.model, problem.graph, &x));
  CHECK(loss == CppTraining(problem).losses()[0]);
}

TEST_CASE("refused steps change nothing: the losses are those of a training without them, to the bit") {
  const Communicator comm = Communicator::world();
  const Problem problem(comm);
  const bool wrong = comm.rank() == comm.size() - 1;
  const sar_array x = array_of(problem.x), y = array_of(problem.target);
  for (
      const char* network :
      {R"({"sar_model": 1, "type": "gat", "in_feats": 4, "hidden": 8, "out_feats": 3, "layers": 2, "heads": 2,
            "dropout": 0.25, "attention_dropout": 0.5})",
       R"({"sar_model": 1, "type": "sage", "in_feats": 4, "hidden": 8, "out_feats": 3, "layers": 2,
            "norm": "batch", "dropout": 0.25})"}) {
    CAPTURE(network);
    struct Training {
      sar_model model = nullptr;
      sar_optimizer optimizer = nullptr;
    } calm, disturbed;
    for (Training* each : {&calm, &disturbed}) {
      SAR_OKAY(sar_model_create(problem.c_comm, network, 9, &each->model));
      SAR_OKAY(sar_optimizer_create(each->model, R"({"optimizer": "adam", "lr": 0.02})", &each->optimizer));
    }
    const auto step = [&](const Training& training, const sar_array* from, std::int32_t kind,
                          const sar_array* to, double& loss) {
      return sar_train_step(training.model, training.optimizer, problem.graph, nullptr, from, nullptr, kind,
                            to, 0, nullptr, &loss);
    };
    for (int round = 0; round < steps; ++round) {
      double unchanged = -1, expected = 0, loss = 0;
      sar_array narrow = x;
      narrow.fields = in_feats - 1;
      CHECK(step(disturbed, wrong ? &narrow : &x, SAR_LOSS_MSE, &y, unchanged) == SAR_ERROR_SHAPE);
      CHECK(step(disturbed, wrong ? nullptr : &x, SAR_LOSS_MSE, &y, unchanged) == SAR_ERROR_INPUT);
      CHECK(step(disturbed, &x, wrong ? 99 : SAR_LOSS_MSE, &y, unchanged) == SAR_ERROR_INPUT);
      std::vector<std::int64_t> labels = problem.labels;
      if (wrong && !labels.empty()) labels[0] = 99;  // found by the loss, after the forward pass
      CHECK(sar_train_step_labels(disturbed.model, disturbed.optimizer, problem.graph, nullptr, &x, nullptr,
                                  std::ssize(labels), labels.data(), 0, nullptr,
                                  &unchanged) == SAR_ERROR_INPUT);
      CHECK(unchanged == -1);
      SAR_OKAY(step(calm, &x, SAR_LOSS_MSE, &y, expected));
      SAR_OKAY(step(disturbed, &x, SAR_LOSS_MSE, &y, loss));
      CHECK(loss == expected);
    }
    for (const Training& each : {calm, disturbed}) {
      SAR_OKAY(sar_optimizer_free(each.optimizer));
      SAR_OKAY(sar_model_free(each.model));
    }
  }
}

TEST_CASE("rows of edges travel to the graph's order and back; a graph of local numbers is the same") {
  const Communicator comm = Communicator::world();
  const Problem problem(comm);
  const HostGraph graph(comm, problem.host.node_ids, problem.host.edges());
  const Index given = graph.num_given_edges(), edges = graph.num_edges();
  const Tensor rows = problem.host.edge_rows(random_values(Shape{std::ssize(problem.whole.src), 2}, 3));
  Tensor ordered(Shape{edges, 2}), back(Shape{given, 2});
  const sar_array in = array_of(rows);
  sar_array out = array_of(ordered), again = array_of(back);
  SAR_OKAY(sar_graph_edges_to_graph_order(problem.graph, nullptr, &in, nullptr, &out));
  SAR_OKAY(sar_graph_edges_to_given_order(problem.graph, nullptr, &out, 0, &again));
  CHECK(std::ranges::equal(std::as_const(ordered).values(), graph.to_graph_order(rows).values()));
  CHECK(std::ranges::equal(std::as_const(back).values(), rows.values()));
  std::vector<std::int64_t> ids(static_cast<std::size_t>(edges));
  SAR_OKAY(sar_graph_edge_ids(problem.graph, nullptr, edges, ids.data()));
  CHECK(std::ranges::equal(ids, graph.edge_ids()));

  const LocalArrays local = local_arrays(problem.host);
  sar_graph same = nullptr;
  SAR_OKAY(sar_graph_from_local(problem.c_comm, std::ssize(problem.host.node_ids),
                                std::ssize(local.global_ids), local.global_ids.data(), std::ssize(local.src),
                                local.src.data(), local.dst.data(), problem.host.edge_ids.data(), nullptr,
                                nullptr, &same));
  const sar_array x = array_of(problem.x), y = array_of(problem.target);
  double loss = 0, loss_of_same = 0;
  SAR_OKAY(
      sar_evaluate(problem.model, problem.graph, nullptr, &x, nullptr, SAR_LOSS_MSE, &y, 0, nullptr, &loss));
  SAR_OKAY(
      sar_evaluate(problem.model, same, nullptr, &x, nullptr, SAR_LOSS_MSE, &y, 0, nullptr, &loss_of_same));
  CHECK(loss == loss_of_same);
  SAR_OKAY(sar_graph_free(same));
}

/// A mesh that has changed: other nodes and other edges, with weights, on other ranks.
struct NewMesh {
  NewMesh(const Communicator& comm, Ownership how, std::uint64_t seed)
      : whole(random_graph("c_api_new_mesh", 45, 45, 200, seed)),
        host(host_arrays(comm, whole, how, seed)),
        local(local_arrays(host)),
        x(host.node_rows(random_values(Shape{45, in_feats}, 3))),
        target(host.node_rows(random_values(Shape{45, out_feats}, 4))),
        weight(host.edge_rows(random_values(Shape{std::ssize(whole.src), 1}, 5))) {}

  [[nodiscard]] int rebuild(sar_graph graph, bool in_local_numbers) const {
    const sar_array weights = array_of(weight);
    if (in_local_numbers)
      return sar_graph_rebuild_from_local(graph, std::ssize(host.node_ids), std::ssize(local.global_ids),
                                          local.global_ids.data(), std::ssize(local.src), local.src.data(),
                                          local.dst.data(), host.edge_ids.data(), &weights);
    return sar_graph_rebuild_from_global(graph, std::ssize(host.node_ids), host.node_ids.data(),
                                         std::ssize(host.src), host.src.data(), host.dst.data(),
                                         host.edge_ids.data(), &weights);
  }

  WholeGraph whole;
  HostArrays host;
  LocalArrays local;
  Tensor x, target, weight;
};

TEST_CASE("a graph that is rebuilt is that of C++ of the new mesh; training and predictors go on with it") {
  const Communicator comm = Communicator::world();
  const Problem problem(comm);
  CppTraining cpp(problem);
  sar_graph graph = nullptr;
  const HostArrays& old = problem.host;
  SAR_OKAY(sar_graph_from_global(problem.c_comm, std::ssize(old.node_ids), old.node_ids.data(),
                                 std::ssize(old.src), old.src.data(), old.dst.data(), old.edge_ids.data(),
                                 nullptr, R"({"add_reverse_edges": true})", &graph));
  sar_predictor predictor = nullptr, idle = nullptr;
  SAR_OKAY(sar_predictor_create(problem.model, graph, &predictor));
  SAR_OKAY(sar_predictor_create(problem.model, graph, &idle));  // runs again after several rebuilds
  const sar_array old_x = array_of(problem.x);
  Tensor old_result(Shape{problem.x.num_rows(), out_feats});
  sar_array old_out = array_of(old_result);
  SAR_OKAY(sar_predictor_run(predictor, &old_x, nullptr, &old_out));

  std::uint64_t seed = 10;
  for (const Ownership how : {Ownership::scattered, Ownership::halves, Ownership::one_rank})
    for (const bool in_local_numbers : {false, true}) {
      CAPTURE(static_cast<int>(how));
      CAPTURE(in_local_numbers);
      const NewMesh mesh(comm, how, ++seed);
      SAR_OKAY(mesh.rebuild(graph, in_local_numbers));
      const Tensor weight = mesh.weight.reshape({mesh.weight.num_rows()});
      cpp.graph = HostGraph(comm, mesh.host.node_ids, mesh.host.edges(weight), {.add_reverse_edges = true});
      cpp.x = mesh.x;

      std::int64_t nodes = 0, edges = 0, given_edges = 0, global_nodes = 0, global_edges = 0;
      SAR_OKAY(sar_graph_num_nodes(graph, nullptr, &nodes, &global_nodes));
      SAR_OKAY(sar_graph_num_edges(graph, nullptr, &edges, &global_edges, &given_edges));
      CHECK(nodes == cpp.graph.num_nodes());
      CHECK(given_edges == std::ssize(mesh.host.src));
      CHECK(global_nodes == 45);
      CHECK(global_edges == 2 * std::ssize(mesh.whole.src));
      std::vector<std::int64_t> ids(static_cast<std::size_t>(edges));
      SAR_OKAY(sar_graph_edge_ids(graph, nullptr, edges, ids.data()));
      CHECK(std::ranges::equal(ids, cpp.graph.edge_ids()));

      const sar_array x = array_of(mesh.x), target = array_of(mesh.target);
      double loss = 0;
      SAR_OKAY(sar_train_step(problem.model, problem.optimizer, graph, nullptr, &x, nullptr, SAR_LOSS_MSE,
                              &target, 0, nullptr, &loss));
      CHECK(loss == cpp.step([&](const Variable& y) { return mse(y, mesh.target, comm); }));

      cpp.model.eval();
      const Tensor wanted = cpp.model(cpp.graph, mesh.x).value();
      Tensor result(wanted.shape());
      sar_array out = array_of(result);
      for (int run = 0; run < 3; ++run) {
        result.fill(-1);
        SAR_OKAY(sar_predictor_run(predictor, &x, nullptr, &out));
        CHECK(std::ranges::equal(std::as_const(result).values(), wanted.values()));
      }
      CHECK(sar_predictor_run(predictor, &old_x, nullptr, &old_out) == SAR_ERROR_SHAPE);
      if (how == Ownership::one_rank) {
        result.fill(-1);
        SAR_OKAY(sar_predictor_run(idle, &x, nullptr, &out));
        CHECK(std::ranges::equal(std::as_const(result).values(), wanted.values()));
      }
    }
  SAR_OKAY(sar_graph_free(graph));
  SAR_OKAY(sar_predictor_free(idle));
  SAR_OKAY(sar_predictor_free(predictor));
}

TEST_CASE(
    "a graph that cannot be rebuilt on one rank is as it was on all of them, and so are its predictors") {
  const Communicator comm = Communicator::world();
  const Problem problem(comm);
  const int last = comm.size() - 1;
  const bool wrong = comm.rank() == last;
  const sar_array x = array_of(problem.x);
  sar_predictor predictor = nullptr;
  SAR_OKAY(sar_predictor_create(problem.model, problem.graph, &predictor));
  Tensor before(Shape{problem.x.num_rows(), out_feats}), after(before.shape());
  sar_array out = array_of(before);
  SAR_OKAY(sar_predictor_run(predictor, &x, nullptr, &out));

  const NewMesh mesh(comm, Ownership::scattered, 20);
  const auto is_refused = [&](int status, int expected, const std::string& text) {
    CHECK(status == expected);
    const std::string found = sar_last_error();
    CHECK_MESSAGE(found.find(text) != std::string::npos, found);
    if (comm.size() > 1) CHECK(found.starts_with(concat("rank ", last, ": ")));
  };
  NewMesh bad = mesh;
  if (wrong) bad.host.src.at(0) = 123456789;  // no rank gives this node
  is_refused(bad.rebuild(problem.graph, false), SAR_ERROR_INPUT, "123456789");
  bad = mesh;
  if (wrong) bad.local.dst.at(0) = 1000;
  is_refused(bad.rebuild(problem.graph, true), SAR_ERROR_INPUT, "1000");
  void* const no_graph = problem.c_comm;
  is_refused(mesh.rebuild(wrong ? static_cast<sar_graph>(no_graph) : problem.graph, false), SAR_ERROR_HANDLE,
             "is a sar_comm, expected a sar_graph");

  out = array_of(after);
  SAR_OKAY(sar_predictor_run(predictor, &x, nullptr, &out));
  CHECK(std::ranges::equal(std::as_const(after).values(), std::as_const(before).values()));
  SAR_OKAY(sar_predictor_free(predictor));
}

TEST_CASE(
    "a graph with types has the edges, ids and rows that were given; a loaded model predicts the same") {
  const Communicator comm = Communicator::world();
  constexpr Index nodes = 12;
  const PartitionBook book = PartitionBook::even(nodes, comm.size());
  std::vector<std::int64_t> node_ids, from, edge_ids, same_ids;
  for (Index v = book.begin(comm.rank()); v < book.end(comm.rank()); ++v) {
    node_ids.push_back(v);
    from.push_back((v + 1) % nodes);
    edge_ids.push_back(100 + v);
    same_ids.push_back(7);
  }
  const auto count = std::ssize(node_ids);
  const Tensor x = random_values(Shape{count, 2}, 1), wide = random_values(Shape{count, 3}, 2);
  sar_comm c_comm = nullptr;
  sar_graph graph = nullptr;
  sar_model model = nullptr, loaded = nullptr;
  SAR_OKAY(sar_comm_create(comm.handle(), &c_comm));
  SAR_OKAY(sar_graph_create(c_comm, nullptr, &graph));
  const auto add_edges = [&](const std::vector<std::int64_t>& ids, std::int32_t add_reverse) {
    SAR_OKAY(sar_graph_add_nodes(graph, "a", count, node_ids.data()));
    SAR_OKAY(sar_graph_add_edges(graph, "a", "r", "a", count, from.data(), node_ids.data(), ids.data(),
                                 nullptr, add_reverse));
  };
  std::int64_t edges = 0, all = 0, given = 0;
  for (const std::int32_t add_reverse : {0, 1}) {
    add_edges(edge_ids, add_reverse);
    SAR_OKAY(sar_graph_build(graph));
    for (const char* const type : {static_cast<const char*>(nullptr), "r", "a:r:a"}) {
      SAR_OKAY(sar_graph_num_edges(graph, type, &edges, &all, &given));
      CHECK(edges == (1 + add_reverse) * count);
      CHECK(all == (1 + add_reverse) * nodes);
      CHECK(given == count);
    }
  }
  const sar_array rows = array_of(x);
  if (comm.size() > 1) {
    const sar_array several = array_of(comm.rank() == 0 ? wide : x);
    CHECK(sar_graph_set_rows(graph, "a", &several) == SAR_ERROR_INPUT);
    CHECK(std::string(sar_last_error()).find("number of fields") != std::string::npos);
  }
  SAR_OKAY(sar_graph_set_rows(graph, "a", &rows));
  SAR_OKAY(
      sar_model_create(c_comm,
                       R"({"sar_model": 1, "type": "hetero-sage", "in_feats": 2, "hidden": 4, "out_feats": 3,
                                "layers": 2, "node_types": ["a"], "edge_types": [["a", "r", "a"]]})",
                       3, &model));
  const TemporaryDirectory directory(comm);
  const std::string path = directory.path() + "/model.safetensors";
  SAR_OKAY(sar_model_save(model, path.c_str()));
  SAR_OKAY(sar_model_load(c_comm, path.c_str(), &loaded));
  Tensor y({count, 3}), again({count, 3});
  sar_array out = array_of(y), of_loaded = array_of(again);
  SAR_OKAY(sar_predict(model, graph, "a", &rows, nullptr, &out));
  SAR_OKAY(sar_predict(loaded, graph, nullptr, &rows, nullptr, &of_loaded));
  CHECK(same_bits(y, again));

  // ids of edges are read: these are not unique; the graph stays as it was
  add_edges(same_ids, 0);
  CHECK(sar_graph_build(graph) == SAR_ERROR_INPUT);
  CHECK(std::string(sar_last_error()).find('7') != std::string::npos);
  SAR_OKAY(sar_predict(model, graph, "a", &rows, nullptr, &of_loaded));
  CHECK(same_bits(y, again));
  SAR_OKAY(sar_model_free(loaded));
  SAR_OKAY(sar_model_free(model));
  SAR_OKAY(sar_graph_free(graph));
  SAR_OKAY(sar_comm_free(c_comm));
}

TEST_CASE(
    "each type of a graph has the sizes, ids and orders of C++, and a step reads the rows of all types") {
  const Communicator comm = Communicator::world();
  constexpr Index fluids = 14, solids = 5;
  const PartitionBook fluid_book = PartitionBook::even(fluids, comm.size()),
                      solid_book = PartitionBook::even(solids, comm.size());
  std::vector<std::int64_t> fluid, solid, src, dst, from, to, ids;
  for (Index v = fluid_book.begin(comm.rank()); v < fluid_book.end(comm.rank()); ++v) {
    fluid.push_back(v);
    for (const Index step : {1, 3}) {  // edges into nodes of other ranks
      src.push_back(v);
      dst.push_back((v + step) % fluids);
    }
    from.push_back(v % solids);
    to.push_back((v + fluids / 2) % fluids);
    ids.push_back(1000 + v);
  }
  for (Index v = solid_book.begin(comm.rank()); v < solid_book.end(comm.rank()); ++v) solid.push_back(v);
  const EdgeType flows{"fluid", "flows", "fluid"}, heats{"solid", "heats", "fluid"};
  const HostGraph wanted(
      comm, {{"fluid", fluid}, {"solid", solid}},
      {{flows, {.src = src, .dst = dst}, true}, {heats, {.src = from, .dst = to, .ids = ids}}});
  sar_comm c_comm = nullptr;
  sar_graph graph = nullptr;
  SAR_OKAY(sar_comm_create(comm.handle(), &c_comm));
  SAR_OKAY(sar_graph_create(c_comm, nullptr, &graph));
  SAR_OKAY(sar_graph_add_nodes(graph, "fluid", std::ssize(fluid), fluid.data()));
  SAR_OKAY(sar_graph_add_nodes(graph, "solid", std::ssize(solid), solid.data()));
  SAR_OKAY(sar_graph_add_edges(graph, "fluid", "flows", "fluid", std::ssize(src), src.data(), dst.data(),
                               nullptr, nullptr, 1));
  SAR_OKAY(sar_graph_add_edges(graph, "solid", "heats", "fluid", std::ssize(from), from.data(), to.data(),
                               ids.data(), nullptr, 0));
  SAR_OKAY(sar_graph_build(graph));

  std::int64_t nodes = 0, global_nodes = 0, edges = 0, global_edges = 0, given_edges = 0;
  SAR_OKAY(sar_graph_num_nodes(graph, nullptr, &nodes, &global_nodes));
  CHECK(nodes == std::ssize(fluid) + std::ssize(solid));
  CHECK(global_nodes == fluids + solids);
  SAR_OKAY(sar_graph_num_nodes(graph, "solid", &nodes, &global_nodes));
  CHECK(nodes == std::ssize(solid));
  CHECK(global_nodes == solids);
  SAR_OKAY(sar_graph_num_edges(graph, nullptr, &edges, &global_edges, &given_edges));
  CHECK(edges == wanted.num_edges());
  CHECK(global_edges == 5 * fluids);
  CHECK(given_edges == 3 * std::ssize(fluid));
  for (const auto& [name, type, given] : {std::tuple{"flows", flows, std::ssize(src)},
                                          std::tuple{"solid:heats:fluid", heats, std::ssize(from)}}) {
    CAPTURE(name);
    SAR_OKAY(sar_graph_num_edges(graph, name, &edges, &global_edges, &given_edges));
    CHECK(edges == wanted[type].num_edges());
    CHECK(global_edges == wanted[type].num_global_edges());
    CHECK(given_edges == given);
    std::vector<std::int64_t> found(static_cast<std::size_t>(edges));
    SAR_OKAY(sar_graph_edge_ids(graph, name, edges, found.data()));
    CHECK(std::ranges::equal(found, wanted[type].edge_ids()));
    const Tensor rows = random_values(Shape{given, 2}, 20 + comm.rank());
    Tensor ordered(Shape{edges, 2}), back(Shape{given, 2});
    const sar_array in = array_of(rows);
    sar_array out = array_of(ordered), again = array_of(back);
    SAR_OKAY(sar_graph_edges_to_graph_order(graph, name, &in, nullptr, &out));
    CHECK(same_bits(ordered, wanted.to_graph_order(type, rows)));
    SAR_OKAY(sar_graph_edges_to_given_order(graph, name, &out, 0, &again));
    CHECK(same_bits(back, rows));
  }

  // the results of a type are those of C++, whose rows are the ones given, and the ones set for the others
  const char* const text = R"({"sar_model": 1, "type": "rgcn", "in_feats": 2, "hidden": 4, "out_feats": 3,
      "layers": 2, "node_types": ["fluid", "solid"], "inputs": {"solid": 1},
      "edge_types": [["fluid", "flows", "fluid"], ["solid", "heats", "fluid"]]})";
  Generator gen(9);
  GraphModel cpp(ModelDescription::from_json(text), comm, gen);
  cpp.eval();
  const Tensor x = random_values(Shape{std::ssize(fluid), 2}, 30 + comm.rank()),
               unread = random_values(Shape{std::ssize(fluid), 2}, 40 + comm.rank()),
               s = random_values(Shape{std::ssize(solid), 1}, 50 + comm.rank());
  const GraphModel::Rows results = cpp(wanted, GraphModel::Rows{{"fluid", x}, {"solid", s}});
  sar_model model = nullptr;
  SAR_OKAY(sar_model_create(c_comm, text, 9, &model));
  const sar_array rows = array_of(x), others = array_of(unread), of_solid = array_of(s);
  Tensor y({std::ssize(fluid), 3}), z({std::ssize(solid), 3});
  sar_array out = array_of(y), out_of_solid = array_of(z);
  CHECK(sar_predict(model, graph, "fluid", &rows, nullptr, &out) == SAR_ERROR_INPUT);
  CHECK(std::string(sar_last_error()).find("without rows of 'solid'") != std::string::npos);
  SAR_OKAY(sar_graph_set_rows(graph, "solid", &of_solid));
  SAR_OKAY(sar_graph_set_rows(graph, "fluid", &others));  // not read where a call gives the rows of the type
  SAR_OKAY(sar_predict(model, graph, "fluid", &rows, nullptr, &out));
  CHECK(same_bits(y, results.at("fluid").value()));
  SAR_OKAY(sar_graph_set_rows(graph, "fluid", &rows));
  SAR_OKAY(sar_predict(model, graph, "solid", &of_solid, nullptr, &out_of_solid));
  CHECK(same_bits(z, results.at("solid").value()));
  const Tensor target = random_values(Shape{std::ssize(fluid), 3}, 60 + comm.rank());
  const sar_array to_reach = array_of(target);
  double loss = 0;
  SAR_OKAY(sar_evaluate(model, graph, "fluid", &rows, nullptr, SAR_LOSS_MSE, &to_reach, 0, nullptr, &loss));
  CHECK(loss == double{mse(results.at("fluid"), target, comm).value().item()});
  SAR_OKAY(sar_model_free(model));
  SAR_OKAY(sar_graph_free(graph));
  SAR_OKAY(sar_comm_free(c_comm));
}

TEST_CASE("parameters are read and written") {
  const Communicator comm = Communicator::world();
  const Problem problem(comm);
  std::int64_t count = 0;
  SAR_OKAY(sar_model_num_parameters(problem.model, &count));
  CppTraining cpp(problem);
  const std::vector<NamedParameter> own_parameters = cpp.model.named_parameters();
  REQUIRE(count == std::ssize(own_parameters));
  for (std::int64_t i = 0; i < count; ++i) {
    const char* name = nullptr;
    std::int64_t rows = 0, fields = 0;
    SAR_OKAY(sar_model_parameter(problem.model, i, &name, &rows, &fields));
    CHECK(name == own_parameters[i].name);
    const Tensor& value = own_parameters[i].parameter.value();
    REQUIRE(rows * fields == value.size());
    std::vector<double> values(static_cast<std::size_t>(value.size()));
    sar_array array = sar_array_double(values.data(), rows, fields);
    SAR_OKAY(sar_model_get_parameter(problem.model, i, &array));
    CHECK(std::ranges::equal(values, value.values()));
    for (double& v : values) v = 0.5;
    SAR_OKAY(sar_model_set_parameter(problem.model, i, &array));
    std::vector<double> found(values.size());
    array.data = found.data();
    SAR_OKAY(sar_model_get_parameter(problem.model, i, &array));
    CHECK(found == values);
  }
}

TEST_CASE(
    "a potential is that of C++, of positions and of edge vectors; the last of several ranks is empty") {
  const Communicator comm = Communicator::world();
  const std::int64_t owners = std::max(comm.size() - 1, 1), all = 3 * owners;
  std::vector<std::int64_t> ids, src, dst;
  for (std::int64_t v = 3 * comm.rank(); v < std::min(3 * comm.rank() + std::int64_t{3}, all); ++v) {
    ids.push_back(v);
    for (const std::int64_t u : {(v + 1) % all, (v + all - 1) % all}) {
      src.push_back(u);
      dst.push_back(v);
    }
  }
  const Index n = std::ssize(ids);
  std::vector<std::int32_t> species;
  for (const std::int64_t v : ids) species.push_back(static_cast<std::int32_t>(v % 2));
  const HostGraph graph(comm, ids, {.src = src, .dst = dst});
  Tensor x({n, 3});
  for (Index i = 0; i < x.size(); ++i)
    x.data()[i] = static_cast<real>(std::cos(static_cast<double>(5 * (3 * 3 * comm.rank() + i))));
  const auto potential = load_potential(comm, SAR_TEST_DATA "/weights/potential.safetensors");
  const PotentialValues wanted = (*potential)(
      graph, {.species = std::vector<Index>(species.begin(), species.end()), .positions = x}, true);
  const Tensor vectors = slice_columns(Variable(relative_positions(graph, x).value()), 0, 3).value();

  sar_comm c_comm = nullptr;
  sar_graph c_graph = nullptr;
  sar_potential c_potential = nullptr;
  SAR_OKAY(sar_comm_create(comm.handle(), &c_comm));
  SAR_OKAY(sar_graph_from_global(c_comm, n, ids.data(), std::ssize(src), src.data(), dst.data(), nullptr,
                                 nullptr, nullptr, &c_graph));
  SAR_OKAY(sar_potential_load(c_comm, SAR_TEST_DATA "/weights/potential.safetensors", &c_potential));
  std::int32_t number = -1;
  double cutoff = 0;
  SAR_OKAY(sar_potential_species(c_potential, "b", &number));
  SAR_OKAY(sar_potential_cutoff(c_potential, &cutoff));
  CHECK(number == 1);
  CHECK(cutoff == 4);
  CHECK(sar_potential_species(c_potential, "c", &number) == SAR_ERROR_INPUT);
  CHECK(sar_last_error() == std::string("the potential does not know the species 'c', expected one of a, b"));
  const sar_array positions = array_of(x), edges = array_of(vectors);
  for (const bool by_vectors : {false, true}) {
    Tensor forces({n, 3}), virials({n, 9}), centroids({n, 9});
    double energy = 0, virial[9] = {};
    std::vector<double> energies(static_cast<std::size_t>(n));
    sar_array c_forces = array_of(forces), c_virials = array_of(virials), c_centroids = array_of(centroids);
    SAR_OKAY(sar_potential_evaluate(c_potential, c_graph, n, species.data(),
                                    by_vectors ? nullptr : &positions, by_vectors ? &edges : nullptr, &energy,
                                    virial, energies.data(), &c_forces, &c_virials, &c_centroids, nullptr,
                                    nullptr));
    CHECK(energy == wanted.energy);
    CHECK(std::ranges::equal(virial, wanted.virial));
    CHECK(energies == wanted.energies);
    CHECK(same_bits(forces, wanted.forces));
    CHECK(same_bits(virials, wanted.virials));
    CHECK(same_bits(centroids, wanted.centroid_virials));
    energy = 0;
    centroids = Tensor({n, 9});
    c_centroids = array_of(centroids);
    SAR_OKAY(sar_potential_evaluate(c_potential, c_graph, n, species.data(), &positions, nullptr, &energy,
                                    nullptr, nullptr, nullptr, nullptr, &c_centroids, nullptr, nullptr));
    CHECK(energy == wanted.energy);
    CHECK(same_bits(centroids, wanted.centroid_virials));
  }
  double deviation = 1;
  std::vector<double> deviations(static_cast<std::size_t>(n), 1);
  SAR_OKAY(sar_potential_evaluate(c_potential, c_graph, n, species.data(), &positions, nullptr, nullptr,
                                  nullptr, nullptr, nullptr, nullptr, nullptr, &deviation,
                                  deviations.data()));
  CHECK(deviation == 0);
  CHECK(deviations == std::vector<double>(static_cast<std::size_t>(n), 0));
  // a committee
  const TemporaryDirectory directory(comm);
  const std::string path = directory.path() + "/committee.safetensors";
  ModelDescription of_three = potential->description();
  of_three.committee = 3;
  Generator gen(2);
  Potential committee(of_three, gen);
  save_potential(comm, path, committee);
  const PotentialValues of_committee =
      committee(graph, {.species = std::vector<Index>(species.begin(), species.end()), .positions = x}, false,
                /*force_deviations=*/true);
  SAR_OKAY(sar_potential_free(c_potential));
  SAR_OKAY(sar_potential_load(c_comm, path.c_str(), &c_potential));
  SAR_OKAY(sar_potential_evaluate(c_potential, c_graph, n, species.data(), &positions, nullptr, nullptr,
                                  nullptr, nullptr, nullptr, nullptr, nullptr, &deviation,
                                  deviations.data()));
  CHECK(deviation == of_committee.energy_deviation);
  CHECK(deviation > 0);
  CHECK(deviations == of_committee.force_deviations);
  SAR_OKAY(sar_potential_free(c_potential));
  // a potential of MACE
  const std::string mace = directory.path() + "/mace.safetensors";
  save_potential(comm, mace,
                 Potential({.type = "mace",
                            .hidden = 4,
                            .layers = 2,
                            .species = {"a", "b"},
                            .cutoff = 4,
                            .num_basis = 4,
                            .max_l = 2},
                           gen));
  const PotentialValues of_mace = (*load_potential(comm, mace))(
      graph, {.species = std::vector<Index>(species.begin(), species.end()), .positions = x});
  SAR_OKAY(sar_potential_load(c_comm, mace.c_str(), &c_potential));
  for (int twice = 0; twice < 2; ++twice) {
    Tensor forces({n, 3});
    double energy = 0, virial[9] = {};
    sar_array c_forces = array_of(forces);
    SAR_OKAY(sar_potential_evaluate(c_potential, c_graph, n, species.data(), &positions, nullptr, &energy,
                                    virial, nullptr, &c_forces, nullptr, nullptr, nullptr, nullptr));
    CHECK(energy == of_mace.energy);
    CHECK(std::ranges::equal(virial, of_mace.virial));
    CHECK(same_bits(forces, of_mace.forces));
  }
  SAR_OKAY(sar_potential_free(c_potential));
  SAR_OKAY(sar_graph_free(c_graph));
  SAR_OKAY(sar_comm_free(c_comm));
}

TEST_CASE("a learner is that of C++; the potential may be freed before it") {
  const Communicator comm = Communicator::world();
  const std::string path = SAR_TEST_DATA "/weights/potential.safetensors";
  const auto potential = load_potential(comm, path);
  PotentialLearner wanted(comm, *potential, {.batch_size = 1, .lr = 0.01});
  LabelledStructure structure{
      .positions = {1000.1, 0, 0.3, 1002.2, 0, 0.7},
      .species = {0, 1},
      .cell = {.vectors = {{{5, 0, 0}, {0, 6, 0}, {1, 0, 5}}}, .periodic = {true, true, true}},
      .energy = -3,
      .forces = {0.5, 0, 0, -0.5, 0, 0},
      .stress = Matrix3{{{0.25, 0, 0}, {0, 0.5, 0}, {0, 0, 0.125}}}};
  wanted.add(structure);
  LabelledStructure alone = structure;
  alone.cell = {};
  alone.forces.clear();
  alone.stress.reset();
  wanted.add(alone);
  const PotentialErrors errors = wanted.train(3);

  const TemporaryDirectory directory(comm);
  const std::string folder = directory.path() + "/learner";
  for (const bool again : {false, true}) {
    sar_comm c_comm = nullptr;
    sar_potential c_potential = nullptr;
    sar_learner learner = nullptr;
    SAR_OKAY(sar_comm_create(comm.handle(), &c_comm));
    SAR_OKAY(sar_potential_load(c_comm, path.c_str(), &c_potential));
    SAR_OKAY(sar_learner_create(c_potential, folder.c_str(), 1, 0.01, &learner));
    SAR_OKAY(sar_potential_free(c_potential));
    std::int64_t count = -1;
    SAR_OKAY(sar_learner_num_structures(learner, &count));
    CHECK(count == (again ? 2 : 0));
    if (!again) {
      const sar_array positions = sar_array_double(structure.positions.data(), 2, 3);
      const sar_array forces = sar_array_double(structure.forces.data(), 2, 3);
      const sar_array cell = sar_array_double(structure.cell.vectors[0].data(), 3, 3);
      const sar_array stress = sar_array_double((*structure.stress)[0].data(), 3, 3);
      const std::int32_t species[] = {0, 1};
      double loss = 0, energy_error = 0, force_error = 0;
      CHECK(sar_learner_train(learner, 1, &loss, nullptr, nullptr) == SAR_ERROR_INPUT);
      CHECK(std::string(sar_last_error()).find("no structures") != std::string::npos);
      SAR_OKAY(sar_learner_add(learner, 2, species, &positions, -3, &forces, &cell, &stress));
      SAR_OKAY(sar_learner_add(learner, 2, species, &positions, -3, nullptr, nullptr, nullptr));
      SAR_OKAY(sar_learner_train(learner, 3, &loss, &energy_error, &force_error));
      CHECK(loss == errors.loss);
      CHECK(energy_error == errors.energy_per_atom);
      CHECK(force_error == errors.force);
      CHECK(loss > 0);
    }
    SAR_OKAY(sar_learner_free(learner));
    SAR_OKAY(sar_comm_free(c_comm));
  }
}

}  // namespace
}  // namespace sar::test
