// SPDX-License-Identifier: MIT

/// Ranks that make different calls: all throw the same, none waits.
#include "failures/argument_calls.hpp"
#include "failures/collective_names.hpp"
#include "graph/data/dataset_files.hpp"
#include "support/thrown.hpp"

#include <doctest/doctest.h>

#include <sar/data.hpp>
#include <sar/models.hpp>

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <cstdlib>

#include <unistd.h>

using namespace sar;
using namespace sar::test;

namespace {

constexpr unsigned seconds_of_a_case = 20;

/// A program that waits ends by SIGALRM.
struct TimeLimit {
  TimeLimit() { alarm(seconds_of_a_case); }
  ~TimeLimit() { alarm(0); }
  TimeLimit(const TimeLimit&) = delete;
  TimeLimit& operator=(const TimeLimit&) = delete;
};

struct Mismatch {
  const char* what;
  std::function<void()> most, last;  ///< what all others do, and what the last rank does
  std::string first_text, last_text;
};

std::string expected(const Communicator& comm, const Mismatch& m) {
  return "the ranks make different calls: rank 0 " + m.first_text + ", rank " +
         std::to_string(comm.size() - 1) + " " + m.last_text;
}

/// All throw `m`'s text, and the communicator works afterwards.
void check(const Communicator& comm, const Mismatch& m) {
  CAPTURE(m.what);
  const TimeLimit limit;
  const bool is_last = comm.rank() == comm.size() - 1;
  std::string text = "nothing thrown";
  try {
    (is_last ? m.last : m.most)();
  } catch (const CommunicationError& error) {
    text = error.what();
  }
  CHECK(text == expected(comm, m));
  CHECK(comm.all_reduce(1) == comm.size());
}

}  // namespace

TEST_CASE("calls of a communicator that do not match") {
  const Communicator comm = Communicator::world();
  if (comm.size() == 1) return;
  const auto barriers = [=](int n) {
    return [=] {
      comm.agree(
          [&] {
            for (int i = 0; i < n; ++i) comm.barrier();
          },
          "steps");
    };
  };
  const auto sum = [=](std::size_t n, ReduceOp op) {
    return [=] {
      std::vector<float> values(n, 1);
      comm.all_reduce(std::span<float>(values), op);
    };
  };
  const auto broadcast = [=](std::size_t n, int root) {
    return [=] {
      std::vector<char> values(n);
      comm.broadcast(std::span<char>(values), root);
    };
  };
  const auto gather = [=] { (void)comm.all_gather(std::int64_t{1}); };
  const auto to_all = [=] {
    const std::vector<Index> values(static_cast<std::size_t>(comm.size())), counts(values.size(), 1);
    (void)comm.all_to_all_v(std::span<const Index>(values), counts);
  };
  const auto barrier = [=] { comm.barrier(); };
  const std::string size = std::to_string(8 * comm.size());
  const std::vector<Mismatch> mismatches{
      {"fewer calls in agree", barriers(2), barriers(1), "calls barrier in steps", "ends agree in steps"},
      {"more calls in agree", barriers(0), barriers(3), "ends agree in steps", "calls barrier in steps"},
      {"agree and a call outside", barriers(1), barrier, "calls barrier in steps", "calls barrier"},
      {"length", sum(3, ReduceOp::sum), sum(5, ReduceOp::sum), "calls all_reduce of 3 float",
       "calls all_reduce of 5 float"},
      {"operation", sum(3, ReduceOp::sum), sum(3, ReduceOp::max), "calls all_reduce of 3 float",
       "calls all_reduce (max) of 3 float"},
      {"type", sum(1, ReduceOp::sum), [=] { (void)comm.all_reduce(std::int32_t{1}); },
       "calls all_reduce of 1 float", "calls all_reduce of 1 int32"},
      {"root", broadcast(4, 0), broadcast(4, 1), "calls broadcast of 4 bytes from rank 0",
       "calls broadcast of 4 bytes from rank 1"},
      {"root that is no rank", broadcast(4, 0), broadcast(4, comm.size()),
       "calls broadcast of 4 bytes from rank 0",
       "calls broadcast of 4 bytes from rank " + std::to_string(comm.size())},
      {"length of a broadcast", broadcast(4, 0), broadcast(0, 0), "calls broadcast of 4 bytes from rank 0",
       "calls broadcast of 0 bytes from rank 0"},
      {"all_gather and barrier", gather, barrier, "calls all_gather of " + size + " bytes", "calls barrier"},
      {"all_to_all_v and all_gather", to_all, gather, "calls all_to_all in all_to_all_v",
       "calls all_gather of " + size + " bytes"},
      {"all_equal and barrier", [=] { (void)comm.all_equal(3); }, barrier, "calls all_equal",
       "calls barrier"}};
  for (const Mismatch& mismatch : mismatches) check(comm, mismatch);
}

TEST_CASE("an exception of one rank reaches a call outside of agree") {
  const Communicator comm = Communicator::world();
  if (comm.size() == 1) return;
  const TimeLimit limit;
  CHECK(thrown_by_all<ShapeError>(comm, [&] {
          if (comm.rank() > 0)
            comm.barrier();
          else
            comm.agree([] { throw ShapeError("a wrong shape"); });
        }) == "a wrong shape");
}

TEST_CASE("operations on graphs that do not match") {
  const Communicator comm = Communicator::world();
  if (comm.size() == 1) return;
  Scene scene(comm, {}, false);
  Linear small(3, 2, scene.gen);
  const auto barrier = [&] { comm.barrier(); };
  const auto update = [&] { (void)scene.graph.update_all(fn::copy_u(scene.x), fn::sum); };
  const std::vector<Mismatch> mismatches{
      {"update_all and barrier", update, barrier, "calls update_all", "calls barrier"},
      {"barrier and update_all", barrier, update, "calls barrier", "calls update_all"},
      {"update_all and edge_softmax", update, [&] { (void)edge_softmax(scene.graph, scene.e); },
       "calls update_all", "calls edge_softmax"},
      {"update_all and gather_grads", update, [&] { gather_grads(comm, small); }, "calls update_all",
       "calls gather_grads"},
      {"one update_all more in agree", [&] { comm.agree([&] { update(), update(); }, "layer"); },
       [&] { comm.agree([&] { update(); }, "layer"); }, "calls update_all", "ends agree in layer"},
      {"one backward pass more",
       [&] {
         Tape tape;
         tape.backward(sum(scene.graph.update_all(fn::copy_u(scene.x), fn::sum)));
       },
       [&] {
         const Tape tape;
         update();
         comm.barrier();
       },
       "calls exchange of rows in a backward pass", "calls barrier"}};
  for (const Mismatch& mismatch : mismatches) check(comm, mismatch);
}

TEST_CASE("losses and metrics that do not match") {
  const Communicator comm = Communicator::world();
  if (comm.size() == 1) return;
  Scene scene(comm, {}, false);
  const Tensor& x = scene.x.value();
  const std::vector<std::int64_t> labels(static_cast<std::size_t>(x.num_rows()), 1);
  const std::vector<std::uint8_t> mask(labels.size(), 1);
  const std::vector<std::pair<std::string, std::function<void()>>> all{
      {"mse", [&] { (void)mse(x, x, comm); }},
      {"l1", [&] { (void)l1(x, x, comm); }},
      {"huber", [&] { (void)huber(x, x, comm); }},
      {"bce_with_logits", [&] { (void)bce_with_logits(x, x, comm); }},
      {"cross_entropy", [&] { (void)cross_entropy(x, labels, mask, comm); }},
      {"accuracy", [&] { (void)accuracy(x, labels, mask, comm); }},
      {"link_bce_with_logits", [&] { (void)link_bce_with_logits(x, x, comm); }},
      {"link_margin", [&] { (void)link_margin(x, x, comm); }},
      {"info_nce", [&] { (void)info_nce(x, x, comm); }},
      {"roc_auc", [&] { (void)roc_auc(x, x, comm); }},
      {"average_precision", [&] { (void)average_precision(x, x, comm); }},
      {"mean_absolute_error", [&] { (void)mean_absolute_error(x, x, mask, comm); }},
      {"mean_reciprocal_rank", [&] { (void)mean_reciprocal_rank(Tensor::zeros({x.num_rows()}), x, comm); }},
      {"sum", [&] { (void)sum(x, comm); }},
      {"dot", [&] { (void)dot(x, x, comm); }}};
  for (const auto& [name, call] : all)
    for (const auto& [other, other_call] : all)
      if (name != other) check(comm, {name.c_str(), call, other_call, "calls " + name, "calls " + other});
}

TEST_CASE("a call at another depth of agree") {
  const Communicator comm = Communicator::world();
  if (comm.size() == 1) return;
  const auto barrier = [&] { comm.barrier(); };
  check(comm, {"depth", [&] { comm.agree(barrier, "steps"); },
               [&] { comm.agree([&] { comm.agree(barrier, "steps"); }, "steps"); },
               "calls barrier in steps within 1 calls of agree", "calls barrier in steps within 2"});
}

TEST_CASE("an argument that differs between ranks is named on all ranks") {
  const Communicator comm = Communicator::world();
  if (comm.size() == 1) return;
  const TemporaryDirectory directory(comm);
  const bool is_last = comm.rank() == comm.size() - 1;
  for (const ArgumentCall& each : argument_calls(comm, directory.path())) {
    CAPTURE(each.name);
    CAPTURE(each.argument);
    const TimeLimit limit;
    const std::string text = thrown_by_all<InputError>(comm, [&] { each.call(is_last); });
    CAPTURE(text);
    CHECK(text.find(" is called with a different " + each.argument) != std::string::npos);
    CHECK(text.find(" on rank 0, ") != std::string::npos);
    each.call(false);
  }
}

TEST_CASE("operations over edges compare the scopes of their ranks") {
  const Communicator comm = Communicator::world();
  if (comm.size() == 1) return;
  const TemporaryDirectory directory(comm);
  const bool is_last = comm.rank() == comm.size() - 1;
  std::set<std::string> seen;
  for (const ArgumentCall& each : argument_calls(comm, directory.path())) {
    const bool is_operation = each.name.starts_with("graph/message/") ||
                              each.name.find("::multi_update_all") != std::string::npos ||
                              each.name.find("Graph::call") != std::string::npos;
    if (!is_operation || !seen.insert(each.name).second) continue;
    CAPTURE(each.name);
    const TimeLimit limit;
    const auto text_with = [&](auto open) {
      return thrown_by_all<InputError>(comm, [&] {
        const auto scope = open(is_last);
        each.call(false);
      });
    };
    if (sizeof(real) == 4)
      CHECK(text_with([](bool mixed) {
              return std::make_unique<MixedPrecisionScope>(mixed);
            }).find(" is called with a different mixed precision on different ranks: false on rank 0, ") !=
            std::string::npos);
    CHECK(text_with([](bool records) {
            return records ? std::make_unique<Tape>() : nullptr;
          }).find(" is called with a different recording for a backward pass (Tape in scope) on ") !=
          std::string::npos);
  }
  CHECK(seen.size() >= 15);
}

TEST_CASE("each collective function of the public headers compares its arguments") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory directory(comm);
  std::set<std::string> covered;
  for (const ArgumentCall& each : argument_calls(comm, directory.path())) {
    std::istringstream names(each.name);
    for (std::string name; std::getline(names >> std::ws, name, ',');) covered.insert(name);
  }
  const auto internal = internal_names(), without = functions_without_arguments();
  for (const std::string& name : collective_names(SAR_SOURCE_DIRECTORY)) {
    CAPTURE(name);
    const bool is_without = std::ranges::any_of(without, [&](const auto& each) {
      const std::string& begin = each.first;
      return name == begin || ((begin.back() == '/' || begin.back() == ' ') && name.starts_with(begin));
    });
    CHECK((covered.contains(name) || internal.contains(name) || is_without));
  }
}

TEST_CASE("gradients and parameters that do not match") {
  const Communicator comm = Communicator::world();
  if (comm.size() == 1) return;
  const TimeLimit limit;
  const bool is_last = comm.rank() == comm.size() - 1;
  const std::string last = std::to_string(comm.size() - 1);
  Generator gen(0);
  Linear other_shape(3, is_last ? 4 : 2, gen);
  CHECK(thrown_by_all<ShapeError>(comm, [&] { gather_grads(comm, other_shape); }) ==
        "gather_grads got parameters of shapes [4, 3], [4], expected [2, 3], [2] as on rank 0");
  CHECK(thrown_by_all<InputError>(comm, [&] { compare_params(comm, other_shape); }) ==
        "the model of rank " + last + " consists of\nweight [4, 3]\nbias [4]\nbut that of rank 0 of\n" +
            "weight [2, 3]\nbias [2]\n");

  Generator same(1);
  Linear linear(3, 2, same);
  compare_params(comm, linear);
  Tensor bias = linear.named_parameters()[1].parameter.value();
  bias.data()[1] = is_last ? real(0.75) : real(0.5);
  const std::string text = "parameter bias: element 1 is 0.75 on rank " + last + ", 0.5 on rank 0";
  CHECK(thrown_by_all<InputError>(comm, [&] { compare_params(comm, linear); }) == text);
  gather_grads(comm, linear);  // does not look at parameters

  if (is_last) setenv("SAR_DEBUG", "1", 1);  // one rank is enough
  const Communicator debugging = Communicator::world();
  unsetenv("SAR_DEBUG");
  CHECK(!comm.debug());
  CHECK(thrown_by_all<InputError>(comm, [&] { gather_grads(debugging, linear); }) == text);
}
