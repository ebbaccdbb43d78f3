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
#include <sar/core/threads/parallel.hpp>
#include <sar/core/trace/trace.hpp>
#include <sar/graph/message/graph.hpp>
#include <sar/graph/message/graph_plan.hpp>
#include <sar/graph/message/operation.hpp>

#include <algorithm>
#include <memory>
#include <optional>

namespace sar { inline namespace SAR_PRECISION {
namespace {

using RelationCall = Graph::RelationCall;

/// Copies rows of the stages to where they are held, and gradients back.
class HeldRowsKernel final : public ShardKernel {
 public:
  HeldRowsKernel(const GraphTopology& graph, const Tensor& held, Tensor* filled = nullptr)
      : graph_(graph), held_(held), filled_(filled) {}

  void accumulate(const Stage& stage) override {
    copy(stage, [&](Index row, Index count, Index first) {
      std::copy_n(stage.rows.reals() + first, count, filled_->row(row) + first);
    });
  }
  [[nodiscard]] bool needs_source_in_backward() const override { return false; }
  void backward(const Stage& stage, TypedNumbers grad_src, bool accumulate) override {
    copy(stage, [&](Index row, Index count, Index first) {
      const real* from = held_.row(row) + first;
      real* to = grad_src.reals() + first;
      if (accumulate)
        for (Index i = 0; i < count; ++i) to[i] += from[i];
      else
        std::copy_n(from, count, to);
    });
  }

 private:
  /// body(first row of the stage among those held, numbers, number of the first one in the stage), in blocks
  template <class Body>
  void copy(const Stage& stage, const Body& body) const {
    constexpr Index at_once = Index{1} << 16;
    const Index row = (&stage.shard == &graph_.local ? 0 : graph_.local.num_src_rows) + stage.begin;
    parallel_for(stage.size() * held_.row_size(), at_once,
                 [&](Index first, Index last) { body(row, last - first, first); });
  }

  const GraphTopology& graph_;
  const Tensor& held_;
  Tensor* filled_;
};

/// The source rows x [local sources, ...] followed by the halo rows, [local sources + halo rows, ...]: the
/// input of graphs made by ShardedGraph::holding_halo(). One fetch; backward, one push of the gradients of
/// halo rows to their owners.
struct HeldRows {
  Tensor x;
  GradientPtr gradient;

  TypedRows forward(const Driver& driver) const {
    const GraphTopology& graph = driver.graph();
    Tensor held(x.shape().with_rows(graph.local.num_src_rows + graph.remote.num_src_rows));
    HeldRowsKernel kernel(graph, held, &held);
    driver.forward(x, kernel);
    return held;
  }
  void backward(const Driver& driver, const Tensor& grad) const {
    HeldRowsKernel kernel(driver.graph(), grad);
    driver.backward(x, x.shape(), kernel, gradient);
  }
};

/// Source rows that several relations read: in the forward pass, and again from the first backward pass of a
/// relation to the last. Each relation holds a reference.
struct SharedRows {
  Variable x;
  std::optional<Driver> driver = {};  ///< empty on a single rank: the rows are those of x
  GradientPtr gradient = {};          ///< of the held rows; null for constants
  Tensor rows = {};

  /// The rows that are held, the same ones in each call.
  [[nodiscard]] Variable fetch(bool recorded) const {
    return run_pass(*driver, {"fetch shared halo", "push shared halo"}, recorded,
                    HeldRows{x.value(), recorded ? x.gradient() : nullptr});
  }
  Variable get() {
    if (!driver) return x;
    if (!rows.defined()) rows = fetch(false).value();
    return {rows, gradient != nullptr};
  }
  /// Adds the gradient of one relation to the gradient of the rows.
  void add_gradient(const Variable& of_relation) const {
    if (driver && of_relation.grad().defined()) gradient->add(of_relation.gradient()->take());
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
    OperationCall described("Graph::call", *this);
    described.equal("number of relations", calls.size());
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
    return described.sources("the source rows", x);
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
      const Graph& first = (*this)[calls.front().type];
      shared->driver.emplace(first.shards(), first.options(), false);
      rows = shared->fetch(recording({&x}));
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
