/// Differentiable sums over all ranks: drag, conservation, energies, and readouts of the whole graph.
///
/// A graph's rows are spread over the ranks, and a network's parameters are on all of them. Two kinds of
/// results are the same on every rank, and their gradients mean different things:
///
/// - *A loss*, from nn/loss.hpp or from sum, mean and dot below. It is ONE number, although every rank has
///   it, and Tape::backward gives each rank the gradient of its own rows. Losses may be added, scaled, squared
///   and so on, alike on every rank, before backward(). Nothing else may be computed from them: no layer with
///   parameters, and no rows of nodes.
/// - *A value*, from all_reduce and the pooling layers. It goes on through a network, on every rank, and ends
///   in a loss. What arrives at it on a rank is that rank's share of the gradient; the shares of all ranks
///   are added up in the backward pass. So are the shares of a parameter, by gather_grads.
///
///     const Variable drag = sum(force * area, comm);                                        // a loss
///     tape.backward(mse(y, target, comm) + (drag - measured) * (drag - measured));
///
///     const Variable whole = AvgPooling()(graph, h);                                        // a value, [1, D]
///     tape.backward(mse(head(whole), target_of_the_graph, comm));
///
/// mse(head(whole), ...) takes the mean over the equal copies of all ranks, so that it is that of one of
/// them. sum and dot of a value would count the copy of each rank: end a value in a mean. A rank may have no
/// rows.
#pragma once

#include <sar/autograd/ops.hpp>
#include <sar/comm/communicator.hpp>

namespace sar::inline SAR_PRECISION {

/// A loss: the sum over the rows of all ranks of x, [1]; over == ReduceDim::rows: of each column,
/// x.shape() without its first extent. Taken in double precision and rounded once. Throws ShapeError for ReduceDim::columns. Collective: one all_reduce
/// in the forward pass, none in the backward pass.
Variable sum(const Variable& x, const Communicator& comm, ReduceDim over = ReduceDim::all);

/// A loss: that sum, divided by the number of elements (of rows) of all ranks. Throws InputError, too, when
/// there are none. Collective: two all_reduces in the forward pass.
Variable mean(const Variable& x, const Communicator& comm, ReduceDim over = ReduceDim::all);

/// A loss: the sum of x y over the elements of all ranks, [1]. x and y have the same shape and may want a
/// gradient; each is kept if the other wants one. Throws ShapeError when the shapes differ. Collective as
/// above.
Variable dot(const Variable& x, const Variable& y, const Communicator& comm);

/// A value: the sum (the maximum, the minimum) over the ranks of their x, element by element; x has the same
/// shape on every rank. Sums are taken in double precision. The gradient of a maximum or minimum goes to the
/// lowest rank that has it; NaN on any rank is the result. Every rank gets the same bits.
///
/// Throws InputError when the ranks call it with different shapes or operations, or when the result wants a
/// gradient on some ranks only. Collective, also in the backward pass: one all_reduce each (for a
/// maximum or minimum, an all_gather in the forward pass).
Variable all_reduce(const Variable& x, const Communicator& comm, ReduceOp op = ReduceOp::sum);

}  // namespace sar
