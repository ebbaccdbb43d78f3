// SPDX-License-Identifier: MIT

/// A batch of graph samples as Python has it: a graph.
#pragma once

#include <sar/bindings/python/call.hpp>
#include <sar/graph/message/graph.hpp>
#include <sar/graph/sampling/graph_samples.hpp>

#include <utility>

namespace sar { inline namespace SAR_PRECISION { namespace python {

struct BatchedGraph : Graph {
  explicit BatchedGraph(SampleBatch of) : Graph(of.graph()), batch(std::move(of)) {}

  SampleBatch batch;
};

}}}  // namespace sar
