// SPDX-License-Identifier: MIT

/// What examples share: running one, with an error as one message and an exit code, and full-batch training.
#pragma once

#include <sar/data.hpp>
#include <sar/models.hpp>

#include <mpi.h>

#include <exception>
#include <iostream>

namespace sar::examples {

/// Returns the exit code of `body`, or 1 if it throws on any rank; rank 0 prints the message. No rank waits
/// for a failed one. `body` gets the communicator of all ranks.
template <class Body>
int run(const char* program, const Body& body) {
  try {
    const Communicator comm =
        Communicator::world();  // also throws if the file of SAR_TRACE cannot be written
    return comm.agree([&]() -> int { return body(comm); });
  } catch (const std::exception& error) {  // the same exception on all ranks
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) std::cerr << program << ": " << error.what() << std::endl;
    return 1;
  }
}

/// Collective. Trains a network, net(graph, features) -> scores of the classes of each node, for 20 epochs on
/// all training nodes at once. Rank 0 prints the loss and the validation accuracy.
template <class Net>
void train_nodes(const Communicator& comm, const NodeData& data, const Graph& graph, Net& net) {
  Adam optimizer(net.named_parameters(), {.lr = 0.01});
  for (int epoch = 1; epoch <= 20; ++epoch) {
    net.train();
    Tape tape;  // operations are recorded while the tape exists
    const Variable loss = cross_entropy(net(graph, data.features), data.labels, data.train_mask, comm);
    tape.backward(loss);
    gather_grads(comm, net);  // sum over the ranks: each has seen only its own nodes
    optimizer.step();
    optimizer.zero_grad();

    net.eval();
    const NoTape inference;
    const double valid = accuracy(net(graph, data.features).value(), data.labels, data.val_mask, comm);
    if (comm.rank() == 0)
      std::cout << "epoch " << epoch << "  loss " << loss.value().item() << "  validation " << valid
                << std::endl;
  }
}

}  // namespace sar::examples
