// SPDX-License-Identifier: MIT

// Graph::call: relations that read the same source rows. If they fetch together (fetches_together:
// the halo fits max_halo_bytes), one exchange fetches the halo for all of them, and each relation runs on
// a view of its graph with the halo rows among its sources. Otherwise each relation fetches for itself, in
// stages.
//
// Relations that fetch together are, in mode rematerialize, recorded as operations that compute the
// relation again in the backward pass. The first one to run fetches the shared rows again; they are freed
// with the last. The gradients of the shared rows are summed and pushed to the owners once.
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/core/trace/trace.hpp>
#include <sar/graph/message/graph.hpp>
#include <sar/graph/message/graph_plan.hpp>
#include <sar/graph/message/held_rows.hpp>
#include <sar/graph/message/operation.hpp>

#include <algorithm>
#include <memory>
#include <optional>

namespace sar { inline namespace SAR_PRECISION {
namespace {

using RelationCall = Graph::RelationCall;

/// Source rows that several relations read: in the forward pass, and again from the first backward pass of a
/// relation to the last. Each relation holds a reference.
struct SharedRows {
  Variable x;
  std::optional<HeldRows> held = {};  ///< empty on a single rank: the rows are those of x
  GradientPtr gradient = {};          ///< of the held rows; null for constants
  Tensor rows = {};

  Variable get() {
    if (!held) return x;
    if (!rows.defined()) rows = held->fetch();
    return {rows, gradient != nullptr};
  }
  /// Adds the gradient of one relation to the gradient of the rows.
  void add_gradient(const Variable& of_relation) const {
    if (held && of_relation.grad().defined()) gradient->add(of_relation.gradient()->take());
  }
};

/// Adds the name of the relation to a trace.
void describe(TraceScope& scope, const RelationCall& call) {
  if (tracing()) scope.detail(call.type.canonical_name());
}

/// Returns the result of one relation as an operation that keeps only what it needs to recompute the result.
Variable recomputed(const Graph& graph, const RelationCall& call, const std::shared_ptr<SharedRows>& shared) {
  Tensor value;
  bool recorded = false;
  {
    const Tape only_asked_for_gradients;
    const Variable y = call.compute(graph, shared->get());
    value = y.value();
    recorded = y.requires_grad();
  }
  if (!recorded) return value;
  return record_collective(graph.comm(), value, [graph, call, shared](const Tensor& grad) {
    TraceScope scope("relation backward", TraceKind::compute);
    describe(scope, call);
    const Variable rows = shared->get();
    Tape tape;
    tape.backward(call.compute(graph, rows), grad);
    shared->add_gradient(rows);
  });
}

}  // namespace

void Graph::call(const Variable& x, std::span<const RelationCall> calls,
                 FunctionRef<void(std::size_t call, Variable result)> take) const {
  if (calls.empty()) return;
  const auto described_call = [&] {
    CollectiveCall described("Graph::call");
    refuse_tangents({&x}, "Graph::call");
    described.equal(options()).equal(OperationScopes()).equal("number of relations", calls.size());
    for (const RelationCall& each : calls) {
      const Graph& graph = (*this)[each.type];
      require<InputError>(each.type.source == calls.front().type.source, "Graph::call: relations from '",
                          calls.front().type.source, "' and from '", each.type.source,
                          "', expected one type of sources");
      require<ShapeError>(x.defined() && x.num_rows() == graph.num_src_nodes(), "source rows of shape ",
                          x.shape(), " for the edge type '", each.type.canonical_name(), "', which has ",
                          graph.num_src_nodes(), " source nodes on rank ", comm().rank());
      described.equal("edge type (number)",
                      std::find(edge_types().begin(), edge_types().end(), each.type) - edge_types().begin());
    }
    return described.operand("the source rows", x.shape(), x.requires_grad());
  };
  collective(comm(), described_call, [&] {
    const bool together = fetches_together(x, calls);
    const bool again = Tape::current() != nullptr && !keeps_halo_rows(options()) && calls.size() > 1 &&
                       (together || comm().size() == 1);
    const auto graph_of = [&](const RelationCall& each) {
      return together ? holding_halo(each.type) : (*this)[each.type];
    };
    Variable rows = x;
    const auto shared = std::make_shared<SharedRows>(SharedRows{.x = x});
    if (together) {
      shared->held.emplace((*this)[calls.front().type], x);
      rows = shared->held->fetch();
      if (recording({&x}))
        rows =
            record_collective(comm(), rows, [held = *shared->held](const Tensor& grad) { held.push(grad); });
      shared->gradient = rows.gradient();
      shared->rows = rows.value();
    }
    for (std::size_t k = 0; k < calls.size(); ++k) {
      TraceScope scope("relation", TraceKind::compute);
      describe(scope, calls[k]);
      const Graph graph = graph_of(calls[k]);
      take(k, again && calls[k].keeps_rows ? recomputed(graph, calls[k], shared)
                                           : calls[k].compute(graph, rows));
    }
    shared->rows = Tensor();
  });
}
}}  // namespace sar
