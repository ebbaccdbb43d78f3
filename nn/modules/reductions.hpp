// SPDX-License-Identifier: MIT

/// Differentiable sums over all ranks, for drag, conservation laws, energies and readouts of the whole graph.
///
/// The rows of a graph are distributed over the ranks; the parameters of a network are replicated. Two sorts
/// of results are the same on every rank, and their gradients have different meanings:
///
/// - *A loss*, from nn/train/loss.hpp or from sum, mean and dot below, is ONE value, although every rank has
///   a copy. Tape::backward gives each rank the gradient of its own rows. Losses may be added, scaled,
///   squared and so on, in the same way on every rank, before backward(). They must not be the input of a
///   layer with parameters, and must not be combined with node rows.
/// - *A replicated value*, from all_reduce and the pooling layers, is the input of further layers on every
///   rank and ends in a loss. The gradient that arrives at it on a rank is that rank's share; the backward
///   pass sums the shares of all ranks. gather_grads does the same for a parameter.
///
///     const Variable drag = sum(force * area, comm);                                        // a loss
///     tape.backward(mse(y, target, comm) + (drag - measured) * (drag - measured));
///
///     const Variable whole = AvgPooling()(graph, h);                        // a replicated value, [1, D]
///     tape.backward(mse(head(whole), target_of_the_graph, comm));
///
/// mse(head(whole), ...) is the mean over the equal copies on all ranks, and therefore equals the loss of one
/// copy. sum and dot would count one copy per rank: reduce a replicated value with a mean. A rank may have no
/// rows.
#pragma once

#include <sar/autograd/ops.hpp>
#include <sar/comm/communicator.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// Returns the sum of x over the rows of all ranks as a loss: [1], or, with ReduceDim::rows, the sum of each
/// column, with x.shape() without its first extent. Accumulates in double precision and rounds once. Throws
/// ShapeError for ReduceDim::columns. Collective: one all_reduce in the forward pass, none in the backward
/// pass.
Variable sum(const Variable& x, const Communicator& comm, ReduceDim over = ReduceDim::all);

/// Returns that sum divided by the number of elements (or rows) of all ranks, as a loss. Also throws
/// InputError if there are none. Collective: two all_reduces in the forward pass.
Variable mean(const Variable& x, const Communicator& comm, ReduceDim over = ReduceDim::all);

/// Returns the sum of x y over the elements of all ranks as a loss, [1]. x and y have the same shape, and
/// both may require a gradient; each is kept if the other requires one. Throws ShapeError if the shapes
/// differ. Collective, as sum.
Variable dot(const Variable& x, const Variable& y, const Communicator& comm);

/// Returns the elementwise sum, maximum or minimum of x over the ranks as a replicated value; x has the same
/// shape on every rank. Sums accumulate in double precision. The gradient of a maximum or minimum goes to the
/// lowest rank that has it. A NaN on any rank makes the result NaN. Every rank gets the same bits.
///
/// Throws InputError if the ranks pass different shapes or operations, or if the result requires a gradient
/// on some ranks only. Collective, also in the backward pass: one all_reduce in each (for a maximum or
/// minimum, an all_gather in the forward pass).
Variable all_reduce(const Variable& x, const Communicator& comm, ReduceOp op = ReduceOp::sum);

/// Collective. Returns, for each group g < `groups`, the sum of x[i] over the rows i of all ranks with
/// groups_of[i] = g: [groups], of x [n, 1]. A loss, as above. Throws ShapeError on every rank for other
/// shapes and for groups that do not exist.
[[nodiscard]] Variable sum_of_groups(const Variable& x, const RowIds& groups_of, Index groups,
                                     const Communicator& comm);
}}  // namespace sar
