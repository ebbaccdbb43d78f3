// SPDX-License-Identifier: MIT
#include "support/reference.hpp"
#include "support/rows.hpp"
#include "support/thrown.hpp"

#include <sar/autograd/gradcheck.hpp>
#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/nn/models/link_predictor.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

using Loss = std::function<Variable(const Variable&, const Variable&, const Communicator&)>;

const std::vector<std::pair<std::string, Loss>> losses = {
    {"bce", [](const auto& p, const auto& q, const auto& comm) { return link_bce_with_logits(p, q, comm); }},
    {"margin", [](const auto& p, const auto& q, const auto& comm) { return link_margin(p, q, comm); }},
    {"margin_half",
     [](const auto& p, const auto& q, const auto& comm) { return link_margin(p, q, comm, 0.5); }},
    {"info_nce", [](const auto& p, const auto& q, const auto& comm) { return info_nce(p, q, comm); }},
    {"info_nce_cold",
     [](const auto& p, const auto& q, const auto& comm) { return info_nce(p, q, comm, 0.2); }}};

}  // namespace

TEST_CASE("losses of pairs: golden vectors") {
  const Communicator world = Communicator::world();
  for (const auto& [name, loss] : losses) {
    CAPTURE(name);
    const Case golden("link/" + name);
    const Tensor pos = golden.tensor("pos"), neg = golden.tensor("neg");
    for (const PartitionBook& book : row_splits(pos.num_rows(), world.size()))
      for (const bool flat : {false, true}) {
        const Variable p(my_rows(pos, book, world.rank()), true), q(my_rows(neg, book, world.rank()), true);
        Tape tape;
        const Index mine = book.num_nodes(world.rank());
        const Variable value = flat ? loss(reshape(p, {mine}), reshape(q, {mine * neg.row_size(), 1}), world)
                                    : loss(p, q, world);
        CHECK(relative_error(value.value(), golden.values("out")) < tolerance());
        CHECK(same_on_all_ranks(world, value.value()));
        tape.backward(value);
        const Index first = book.begin(world.rank());
        CHECK(error_of_rows(p.grad(), golden.tensor("grad_pos"), first) < tolerance());
        CHECK(error_of_rows(q.grad(), golden.tensor("grad_neg"), first) < tolerance());
      }
  }
}

TEST_CASE("losses of pairs: finite differences") {
  const Communicator self = Communicator::self();
  Tensor neg = random_values({4, 3}, 2);
  const Variable p(random_values({4, 1}, 1), true);
  for (Index i = 0; i < neg.num_rows(); ++i)  // margin - p + q is not near 0
    for (Index j = 0; j < 3; ++j)
      neg.row(i)[j] = p.value().data()[i] + static_cast<real>(j % 2 == 0 ? 0.5 + 0.1 * j : -1.5 - 0.1 * i);
  const Variable q(neg, true);
  for (const auto& [name, loss] : losses) {
    CAPTURE(name);
    CHECK_NOTHROW(gradcheck([&, f = loss](const auto& in) { return f(in[0], in[1], self); }, {p, q}));
  }
}

TEST_CASE("bce takes any numbers of positives and negatives") {
  const Communicator world = Communicator::world();
  const bool first = world.rank() == 0;
  const Variable p(Tensor::full({first ? 2 : 0, 1}, 0)), q(Tensor::full({first ? 0 : 3, 1}, 0));
  CHECK(link_bce_with_logits(p, q, world).value().item() == doctest::Approx(std::log(2.0)));
}

TEST_CASE("losses of pairs: what is wrong on one rank is an error on all") {
  const Communicator world = Communicator::world();
  const bool last = world.rank() == world.size() - 1;
  const Variable p(Tensor::zeros({2, 1})), q(Tensor::zeros({last ? 3 : 2, 1}));
  CHECK(thrown_by_all<ShapeError>(world, [&] { (void)link_margin(p, q, world); }) ==
        "link_margin: 3 negatives for 2 positives, expected the same number, 1 or more, for each");
  CHECK_THROWS_AS(info_nce(p, q, world), ShapeError);
  CHECK(thrown_by_all<InputError>(world, [&] { (void)info_nce(p, p, world, last ? 0 : 1); }) ==
        "info_nce: the temperature is 0, expected a positive number");
  const Variable none(Tensor::zeros({0, 1}));
  for (const auto& [name, loss] : losses) {
    CAPTURE(name);
    CHECK_THROWS_AS(loss(none, none, world), InputError);
  }
}
