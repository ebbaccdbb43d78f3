// SPDX-License-Identifier: MIT

/// message_sums() against sums of message rows, which a reproducible graph makes: values, tangents and
/// gradients, in all modes.
#include "nn/atoms/crystal.hpp"
#include "nn/conv/conv_cases.hpp"
#include "support/random_tensor.hpp"

#include <sar/autograd/variable.hpp>
#include <sar/nn/atoms/message_sums.hpp>
#include <sar/nn/modules/reductions.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <utility>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

constexpr Index feats = 20;  // vectors of channels, and a rest

struct Kind {
  bool vectors, tangents, wants_edges;
};

/// Values, tangents and gradients of the operands of one run, by number.
std::vector<Tensor> run(const CrystalPart& part, const Kind& kind) {
  const Index n = part.crystal.x.num_rows();
  const RadialFunctions functions{.cutoff = crystal_cutoff, .num_basis = 5};
  std::vector<Variable> leaves;
  const auto leaf = [&](const Tensor& x, bool wanted = true) { return leaves.emplace_back(x, wanted); };
  const auto operand = [&](const Tensor& x, const Tensor& tangent, bool wanted = true) {
    const Variable value = leaf(x, wanted);
    return kind.tangents ? make_dual(value, leaf(tangent, wanted)) : value;
  };
  const auto of_nodes = [&](const Shape& shape, std::uint64_t key) {
    return part.mine(random_tensor(shape, key));
  };
  MessageSumOperands o{.phi = operand(of_nodes({n, 3 * feats}, 1), of_nodes({n, 3 * feats}, 2)),
                       .vectors = {},
                       .positions = operand(part.mine(part.crystal.x), of_nodes({n, 3}, 3), kind.wants_edges),
                       .shifts = operand(part.shifts,
                                         GoldenGraph::rows(random_tensor(part.crystal.shifts.shape(), 4),
                                                           part.graph.edge_ids()),
                                         kind.wants_edges),
                       .filter = leaf(random_tensor({3 * feats, functions.num_basis + 1}, 5)),
                       .functions = functions};
  if (kind.vectors) o.vectors = operand(of_nodes({n, 3, feats}, 6), of_nodes({n, 3, feats}, 7));
  std::vector<Tensor> results;
  {
    Tape tape;
    const Variable out = message_sums(part.graph, o);
    const auto loss_of = [&](const Variable& x, std::uint64_t key) {
      results.push_back(x.value());
      return sum(x * Variable(of_nodes({n, 4 * feats}, key)), part.graph.comm());
    };
    Variable loss = loss_of(out.primal(), 8);
    if (kind.tangents) loss = std::exchange(loss, {}) + loss_of(out.tangent(), 9);
    tape.backward(loss);
  }
  for (const Variable& x : leaves)
    if (x.requires_grad()) results.push_back(x.grad());
  return results;
}

}  // namespace

TEST_CASE("sums of messages are those of message rows, with their tangents and gradients, in all modes") {
  const Communicator world = Communicator::world();
  const Crystal crystal = unit_crystal();
  std::size_t number = 0;
  for (const Books& books : test_books(crystal.graph, world.size()))
    for (const GraphOptions& options : ways_of_case(number++))
      for (const bool vectors : {false, true})
        for (const bool tangents : {false, true})
          for (const bool wants_edges : {false, true}) {
            CAPTURE(vectors);
            CAPTURE(tangents);
            CAPTURE(wants_edges);
            const Kind kind{vectors, tangents, wants_edges};
            GraphOptions rows = options;
            rows.reproducible = true;
            const std::vector<Tensor> found = run(CrystalPart(world, crystal, books, options), kind),
                                      expected = run(CrystalPart(world, crystal, books, rows), kind);
            REQUIRE(found.size() == expected.size());
            for (std::size_t i = 0; i < found.size(); ++i) {
              CAPTURE(i);
              CHECK(error_of_part(found[i], expected[i], expected[i]) < 100 * tolerance());
            }
          }
}

TEST_CASE("sums of messages: a gradient of the tangent of shifts alone") {
  const Communicator world = Communicator::world();
  const Crystal crystal = unit_crystal();
  const CrystalPart part(world, crystal, test_books(crystal.graph, world.size()).front(), {});
  const Index n = crystal.x.num_rows();
  const RadialFunctions functions{.cutoff = crystal_cutoff, .num_basis = 5};
  const Tensor phi = part.mine(random_tensor({n, 3 * feats}, 1)),
               seed = part.mine(random_tensor({n, 4 * feats}, 2));
  const auto gradient = [&](bool of_all) {
    const Variable tangent(part.shifts, true);
    const MessageSumOperands o{.phi = Variable(phi, of_all),
                               .vectors = {},
                               .positions = part.mine(crystal.x),
                               .shifts = make_dual(part.shifts, tangent),
                               .filter = random_tensor({3 * feats, functions.num_basis + 1}, 5),
                               .functions = functions};
    Tape tape;
    tape.backward(sum(message_sums(part.graph, o).tangent() * Variable(seed), world));
    return tangent.grad();
  };
  REQUIRE(gradient(false).defined());
  CHECK(same_bits(gradient(false), gradient(true)));
}

TEST_CASE("sums of messages: positions are not rounded with halo rows") {
  const Communicator world = Communicator::world();
  const Crystal crystal = unit_crystal();
  const CrystalPart part(world, crystal, test_books(crystal.graph, world.size()).front(),
                         {.halo_format = HaloFormat::bf16});
  const RadialFunctions functions{.cutoff = crystal_cutoff, .num_basis = 5};
  MessageSumOperands o{.phi = part.mine(random_tensor({crystal.x.num_rows(), 3 * feats}, 1)),
                       .vectors = {},
                       .positions = part.mine(crystal.x),
                       .shifts = part.shifts,
                       .filter = random_tensor({3 * feats, functions.num_basis + 1}, 5),
                       .functions = functions};
  const std::string text = thrown_by_all<InputError>(world, [&] { (void)message_sums(part.graph, o); });
  CHECK(text.find("positions of atoms on a graph whose halo rows are rounded") != std::string::npos);
  o.positions = Tensor::zeros(o.positions.shape());
  CHECK_NOTHROW((void)message_sums(part.graph, o));
}
