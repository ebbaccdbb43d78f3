// SPDX-License-Identifier: MIT

// Mistakes of callers that the types refuse. Each assertion is about an expression that must not compile,
// beside the right one where there is one; there is nothing to run.
#include <sar/autograd/tape.hpp>
#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/distributed_tensor.hpp>
#include <sar/core/tensor/tensor.hpp>
#include <sar/graph/message/graph.hpp>
#include <sar/graph/message/started_sum.hpp>
#include <sar/nn/conv/graph_conv.hpp>
#include <sar/nn/modules/module.hpp>
#include <sar/nn/train/optimizer.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

using namespace sar;

// A rank can send numbers and plain structs; a pointer means nothing on another rank.
template <class T>
concept reduced = requires(const Communicator& comm, T value) { comm.all_reduce(value); };
static_assert(reduced<double> && !reduced<std::string>);
template <class T>
concept gathered = requires(const Communicator& comm, const T& value) { comm.all_gather(value); };
static_assert(gathered<std::int64_t> && !gathered<std::vector<std::int64_t>> && !gathered<std::string>);

// A tensor borrows memory that outlives the call and holds numbers of its own precision.
template <class Values>
concept borrowed = requires(Values&& values) { Tensor::borrow(std::forward<Values>(values), Shape{2}); };
static_assert(borrowed<std::vector<real>&> && borrowed<std::span<const real>>);
static_assert(!borrowed<std::vector<real>>);
static_assert(!borrowed<std::vector<other_precision>&> && !borrowed<other_precision*>);
static_assert(!borrowed<std::vector<int>&>);

// Rows that are pushed have the element type of the distributed tensor.
template <class T, class Rows>
concept pushed = requires(const DistributedTensor<T>& to, std::span<const Index> ids, const Rows& rows) {
  to.push(ids, rows);
};
static_assert(pushed<real, Tensor> && pushed<std::int64_t, std::vector<std::int64_t>>);
static_assert(!pushed<std::int64_t, Tensor> && !pushed<real, std::vector<std::int64_t>>);

// What belongs to a scope or has parameters of its own is not copied by accident.
static_assert(!std::is_copy_constructible_v<Tape> && !std::is_move_constructible_v<Tape>);
static_assert(!std::is_copy_constructible_v<NoTape>);
static_assert(!std::is_copy_constructible_v<GraphConv> && !std::is_copy_assignable_v<GraphConv>);
static_assert(!std::is_copy_constructible_v<Adam>);

// A started sum has one owner, which finishes it once.
static_assert(!std::is_copy_constructible_v<StartedSum> && !std::is_default_constructible_v<StartedSum>);

// A variable is not made of a number by accident, and a graph not of a communicator.
static_assert(std::is_constructible_v<Variable, Tensor> && !std::is_convertible_v<real, Variable>);
static_assert(!std::is_convertible_v<Communicator, Graph>);

}  // namespace
