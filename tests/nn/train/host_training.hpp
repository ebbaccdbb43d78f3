// SPDX-License-Identifier: MIT

/// A training inside a host: its graph, its features and its model, on a communicator of its choice.
#pragma once

#include "curve.hpp"
#include "graph/construct/host_arrays.hpp"

#include <support/rows.hpp>

#include <vector>

namespace sar::test {

class HostTraining {
 public:
  HostTraining(const Communicator& comm, std::uint64_t seed)
      : comm_(comm),
        whole_(random_graph("host", 80, 80, 500, seed)),
        host_(host_arrays(comm, whole_, Ownership::scattered, seed)),
        graph_(comm, host_.node_ids, host_.edges()),
        net_({5, 12, 3}, 0.3, comm, seed),
        adam_(net_.named_parameters(), {.lr = 0.02}),
        x_(host_.node_rows(random_values(Shape{80, 5}, seed))) {
    data_.features = Tensor::borrow(x_.data(), x_.shape());
    for (const Index v : host_.my_nodes) {
      data_.labels.push_back(v % 3);
      data_.train_mask.push_back(v % 2 == 0);
    }
  }

  double step() { return test::step(net_, adam_, graph_, data_, comm_); }
  std::vector<double> steps(int count) {
    std::vector<double> losses;
    for (int i = 0; i < count; ++i) losses.push_back(step());
    return losses;
  }

 private:
  Communicator comm_;
  WholeGraph whole_;
  HostArrays host_;
  HostGraph graph_;
  Net net_;
  Adam adam_;
  Tensor x_;
  NodeData data_;
};

}  // namespace sar::test
