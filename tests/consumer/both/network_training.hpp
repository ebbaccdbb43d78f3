// SPDX-License-Identifier: MIT

/// The code of both trainings. Its names are in a namespace of their precision, as those of the library are:
/// without it, the linker would take one of two different classes for both.
#pragma once

#include "consumer/training.hpp"
#include "trainings.hpp"

#include <string>

namespace consumer::inline SAR_PRECISION {

class NetworkTraining : public Training {
 public:
  explicit NetworkTraining(MPI_Comm comm)
      : comm_(comm),
        data_(sar::make_karate(comm_, {.add_self_loops = true})),
        graph_(construct_full_graph(comm_, data_)),
        generator_(0),
        model_(data_.features.row_size(), data_.num_classes, generator_),
        optimizer_(model_.named_parameters(), {.lr = 0.01}) {}

  double step() override {
    sar::Tape tape;
    const sar::Variable loss =
        cross_entropy(model_(graph_, data_.features), data_.labels, data_.train_mask, comm_);
    tape.backward(loss);
    gather_grads(comm_, model_);
    optimizer_.step();
    optimizer_.zero_grad();
    return static_cast<double>(loss.value().item());
  }
  std::vector<double> predict() override {
    const sar::Variable y = model_(graph_, data_.features);
    std::vector<double> values(static_cast<std::size_t>(y.value().size()));
    y.value().copy_to(values);
    return values;
  }
  const char* error() override {
    try {
      comm_.agree([&] {
        sar::require<sar::InputError>(comm_.rank() != 0, "a number has ", sizeof(sar::real), " bytes");
      });
    } catch (const sar::InputError& caught) {
      error_ = caught.what();
    }
    return error_.c_str();
  }

 private:
  sar::Communicator comm_;
  sar::NodeData data_;
  sar::Graph graph_;
  sar::Generator generator_;
  Model model_;
  sar::Adam optimizer_;
  std::string error_;
};

}  // namespace consumer
