// SPDX-License-Identifier: MIT

/// A small graph and operands on it, made anew for each call.
#pragma once

#include "failures/calls.hpp"

#include <sar/data.hpp>
#include <sar/models.hpp>

#include <cmath>
#include <memory>
#include <utility>

namespace sar::test {

constexpr Index scene_nodes = 18;
constexpr Index scene_width = 3;

/// In-edges of this rank's nodes; `weighted`: with weights.
inline EdgeList scene_edges(const PartitionBook& book, int rank, bool weighted = false) {
  EdgeList edges;
  for (Index v = book.begin(rank); v < book.end(rank); ++v)
    for (Index k = 0; k < 3; ++k) {
      edges.src.push_back((7 * v + 5 * k + 1) % scene_nodes);
      edges.dst.push_back(v);
      edges.id.push_back(3 * v + k);
      if (weighted) edges.weight.push_back(static_cast<real>(1 + k));
    }
  return edges;
}

/// Numbers that depend on `first` and their position.
inline Tensor scene_values(const Shape& shape, Index first) {
  Tensor values(shape);
  for (Index i = 0; i < values.size(); ++i)
    values.data()[i] = static_cast<real>(1.5 + std::sin(static_cast<double>(first + i)));
  return values;
}

inline std::vector<double> numbers(const Tensor& values) {
  if (!values.defined()) return {};
  return {values.values().begin(), values.values().end()};
}

struct Scene {
  Scene(const Communicator& communicator, const GraphOptions& options, bool is_wrong)
      : comm(communicator),
        wrong(is_wrong),
        book(PartitionBook::even(scene_nodes, comm.size())),
        graph(comm, book, book, scene_edges(book, comm.rank()), true, options),
        x(scene_values({graph.num_src_nodes() + (wrong ? 1 : 0), scene_width}, book.begin(comm.rank())),
          true),
        e(scene_values({graph.num_edges(), 1}, 5), true) {}

  Communicator comm;
  bool wrong;
  PartitionBook book;
  Graph graph;
  Variable x;  ///< [nodes, 3]; a row too many where the call is wrong
  Variable e;  ///< [edges, 1], positive
  Generator gen{0};
  bool mixed = false;  ///< whether the operation and its backward pass are in mixed precision
  std::unique_ptr<Tape> tape = {};
  Variable out = {};
};

using Operation = std::function<Variable()>;
/// Makes the operation of a scene, with what it needs.
using MakeOperation = std::function<Operation(Scene&)>;

/// A differentiable operation on a scene, and its way back.
void add_operation(std::vector<Call>& calls, const Communicator& comm, const std::string& name,
                   const MakeOperation& make, const GraphOptions& options = {});

/// A call that makes a T out of nothing but the communicator.
template <class T, class Run, class Numbers>
void add_maker(std::vector<Call>& calls, const std::string& name, bool has_wrong, Run run,
               Numbers to_numbers) {
  calls.push_back({name, has_wrong, [=](bool wrong) -> Attempt {
                     auto made = std::make_shared<std::optional<T>>();
                     auto prepared = std::make_shared<decltype(run(wrong))>(run(wrong));
                     return {[made, prepared] { made->emplace((*prepared)()); },
                             [made, to_numbers] { return to_numbers(**made); }};
                   }});
}

}  // namespace sar::test
