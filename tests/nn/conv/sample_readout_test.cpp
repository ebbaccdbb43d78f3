// SPDX-License-Identifier: MIT

/// Readouts of graph samples: values, gradients, other shapes.
#include "graph/message_formula.hpp"
#include "graph/samples/sample_graphs.hpp"
#include "support/rows.hpp"
#include "support/thrown.hpp"

#include <sar/autograd/gradcheck.hpp>
#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/nn/conv/global_pooling.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

using namespace sar;
using namespace sar::test;

namespace {

constexpr Index graphs = 13;

SampleBatch batch_of(const Communicator& comm, const PartitionBook& book) {
  return {comm, make_samples(book.begin(comm.rank()), book.end(comm.rank()))};
}

/// One number by a loop over the nodes of a graph.
double expected(const GraphSamples& samples, const Tensor& x, Index g, Index j, Reduce reduce) {
  const Index begin = samples.node_begin[g], end = samples.node_begin[g + 1];
  if (begin == end) return 0;
  double y = is_extremum(reduce) ? x.row(begin)[j] : 0;
  for (Index v = begin; v < end; ++v) {
    const double value = x.row(v)[j];
    y = reduce == Reduce::max ? std::max(y, value) : reduce == Reduce::min ? std::min(y, value) : y + value;
  }
  return is_extremum(reduce) ? y : y * factor_of_sum(reduce, static_cast<double>(end - begin));
}

}  // namespace

TEST_CASE("readouts are those of loops, and their gradients those of differences") {
  const Communicator comm = Communicator::world();
  for (const PartitionBook& book : sample_books(graphs, comm.size())) {
    const SampleBatch batch = batch_of(comm, book);
    const Index nodes = batch.graph().num_nodes();
    const Tensor x = random_values({nodes, 4}, 1);
    for (const auto& [reduce, name] : reduce_names) {
      CAPTURE(to_string(reduce));
      const Tensor y = readout_nodes(batch, x, reduce).value();
      REQUIRE(y.shape() == Shape{batch.num_graphs(), 4});
      for (Index g = 0; g < batch.num_graphs(); ++g)
        for (Index j = 0; j < 4; ++j)
          CHECK(y.row(g)[j] == doctest::Approx(expected(batch.samples(), x, g, j, reduce)).epsilon(1e-6));
      if (nodes == 0) continue;
      Tensor apart({nodes, 4});  // numbers of a column that differ by more than the step
      for (Index v = 0; v < nodes; ++v)
        for (Index j = 0; j < 4; ++j) apart.row(v)[j] = static_cast<real>((5 * v + 3 * j) % 23) / 8 - 1;
      gradcheck([&](const std::vector<Variable>& in) { return readout_nodes(batch, in[0], reduce); },
                {Variable(apart, true)});
    }
    CHECK(same_bits(SumPooling()(batch, x).value(), readout_nodes(batch, x, Reduce::sum).value()));
    CHECK(same_bits(AvgPooling()(batch, x).value(), readout_nodes(batch, x, Reduce::mean).value()));
    CHECK(same_bits(MaxPooling()(batch, x).value(), readout_nodes(batch, x, Reduce::max).value()));
  }
}

TEST_CASE("the first of equal numbers gets the gradient, and NaN is the maximum") {
  const Communicator self = Communicator::self();
  GraphSamples samples;
  samples.add(0, 3, {}, {});
  samples.add(1, 0, {}, {});
  samples.add(2, 2, {}, {});
  const SampleBatch batch(self, std::move(samples));
  const real nan = std::numeric_limits<real>::quiet_NaN();
  const Variable x(Tensor::from({5, 1}, {1, 2, 2, 3, nan}), true);
  Tape tape;
  const Variable y = readout_nodes(batch, x, Reduce::max);
  CHECK(y.value().row(0)[0] == 2);
  CHECK(y.value().row(1)[0] == 0);
  CHECK(std::isnan(y.value().row(2)[0]));
  tape.backward(y, Tensor::from({3, 1}, {5, 6, 7}));
  CHECK(same_bits(x.grad(), Tensor::from({5, 1}, {0, 5, 0, 0, 7})));
}

TEST_CASE("readouts of other shapes") {
  const Communicator self = Communicator::self();
  const SampleBatch batch(self, make_samples(0, 2));
  CHECK(thrown<ShapeError>([&] {
          (void)readout_nodes(batch, Tensor({1, 2}), Reduce::max);
        }).starts_with("readout_nodes, features have shape [1, 2], expected ["));
  CHECK(thrown<ShapeError>([&] {
          (void)readout_nodes(batch, Tensor({batch.graph().num_nodes()}), Reduce::sum);
        }).starts_with("readout_nodes, features have shape ["));
}
