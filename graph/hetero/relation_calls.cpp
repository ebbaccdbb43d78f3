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
#include <sar/graph/hetero/cross_reduce.hpp>
#include <sar/graph/hetero/graph_types.hpp>
#include <sar/graph/kernels/message_row.hpp>
#include <sar/graph/message/driver.hpp>
#include <sar/graph/message/edge_messages.hpp>
#include <sar/graph/message/graph.hpp>
#include <sar/graph/message/operation.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

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
                          x.shape(), " for the edge type '", each.type, "', which has ",
                          graph.num_src_nodes(), " source nodes on rank ", comm().rank());
      described.equal("edge type (number)", types().edge_type_number(each.type));
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

// Relations that read the same variable form a group, which Graph::call() computes: O(R^2)
// comparisons of R relations and one all_reduce of R numbers, because the groups must be the same on all
// ranks. Groups come in the order of their first relation.

namespace {

/// Whether a gradient of the message depends on the values of its source rows, which a record then keeps.
bool keeps_source_rows(const Message& message) {
  if (!message.reads(MessageTarget::u) || message.op == Message::Op::copy) return false;
  const Variable& a = message.operand(message.lhs);
  const Variable& b = message.operand(message.rhs);
  const MessageRow row(message.op, a.shape(), b.shape());
  return message.lhs == MessageTarget::u ? row.reads_a(a.requires_grad(), b.requires_grad())
                                         : row.reads_b(a.requires_grad(), b.requires_grad());
}

using MessageReduce = Graph::MessageReduce;

/// One relation of the call.
struct Part {
  const EdgeType* type;
  const MessageReduce* work;
  std::size_t position = 0;  ///< among the relations into the same node type
};

bool same_variable(const Variable& a, const Variable& b) {
  if (a.gradient() != b.gradient() || a.deferred() != b.deferred() || a.shape() != b.shape()) return false;
  return a.deferred() != nullptr || a.value().data() == b.value().data();
}

/// Returns the parts in the order of the graph's edge types.
std::vector<Part> ordered_parts(const Graph& graph, const std::map<EdgeType, MessageReduce>& messages) {
  for (const auto& each : messages) (void)graph[each.first];  // throws for an unknown type
  std::vector<Part> parts;
  std::map<std::string, std::size_t> arrived;
  for (const EdgeType& type : graph.edge_types())
    if (const auto found = messages.find(type); found != messages.end())
      parts.push_back({&found->first, &found->second, arrived[type.destination]++});
  return parts;
}

/// Returns, for each part, the first part that reads the same variable of the same sources on every rank. The
/// ranks must agree, because a rank without rows cannot distinguish constants. Collective.
std::vector<std::int64_t> first_readers(const Communicator& comm, const std::vector<Part>& parts) {
  std::vector<std::int64_t> first;
  for (std::size_t k = 0; k < parts.size(); ++k) {
    std::size_t other = 0;
    const Message& message = parts[k].work->message;
    while (other < k &&
           !(message.reads(MessageTarget::u) && parts[other].work->message.reads(MessageTarget::u) &&
             parts[other].type->source == parts[k].type->source &&
             same_variable(parts[other].work->message.u, message.u)))
      ++other;
    first.push_back(static_cast<std::int64_t>(other));
  }
  if (!first.empty()) comm.all_reduce(std::span<std::int64_t>(first), ReduceOp::max);
  return first;
}

/// Checks that the operands are defined. update_all checks everything else.
void check(const Part& part) {
  for (const MessageTarget target : {MessageTarget::u, MessageTarget::v, MessageTarget::e})
    require<ShapeError>(!part.work->message.reads(target) || part.work->message.operand(target).defined(),
                        "multi_update_all: an operand of the message of '", *part.type, "' is undefined");
}

}  // namespace

Graph::Rows Graph::multi_update_all(const std::map<EdgeType, MessageReduce>& messages,
                                    CrossReduce cross_reduce) const {
  std::vector<Part> parts;
  return collective(
      comm(),
      [&] {
        parts = ordered_parts(*this, messages);
        std::for_each(parts.begin(), parts.end(), check);
        return CollectiveCall("multi_update_all")
            .equal(OperationScopes())
            .equal("number of relations", parts.size())
            .equal("cross reduction", cross_reduce);
      },
      [&] {
        std::map<std::string, std::size_t> counts;
        for (const Part& part : parts) ++counts[part.type->destination];
        std::map<std::string, CrossReducer> reducers;
        for (const auto& [type, count] : counts) reducers.emplace(type, CrossReducer(cross_reduce, count));
        const std::vector<std::int64_t> first = first_readers(comm(), parts);
        for (std::size_t leader = 0; leader < parts.size(); ++leader) {
          if (first[leader] != static_cast<std::int64_t>(leader)) continue;
          const Message& leading = parts[leader].work->message;
          std::vector<const Part*> group;
          std::vector<RelationCall> calls;
          for (std::size_t k = leader; k < parts.size(); ++k) {
            if (first[k] != static_cast<std::int64_t>(leader)) continue;
            group.push_back(&parts[k]);
            const auto compute = [work = *parts[k].work](const Graph& graph, const Variable& rows) {
              Message message = work.message;
              if (message.reads(MessageTarget::u)) message.u = rows;
              return graph.update_all(message, work.reduce);
            };
            calls.push_back({*parts[k].type, compute, keeps_source_rows(parts[k].work->message)});
          }
          const auto take = [&](std::size_t k, Variable y) {
            reducers.at(group[k]->type->destination).take(group[k]->position, std::move(y));
          };
          if (leading.reads(MessageTarget::u))
            call(leading.u, calls, take);
          else
            take(0, calls.front().compute((*this)[calls.front().type], {}));
        }
        Rows results;
        for (auto& [type, reducer] : reducers) results.emplace(type, reducer.result());
        return results;
      });
}

void Graph::multi_update_all(const std::map<EdgeType, NamedMessageReduce>& messages,
                             CrossReduce cross_reduce) const {
  comm().agree([&] {
    std::map<EdgeType, MessageReduce> resolved;
    std::map<std::string, std::string> outs;
    for (const auto& [type, named] : messages) {
      const auto& [message, reduce] = named;
      require<InputError>(message.message == reduce.message, "multi_update_all: the message of '", type,
                          "' is called \"", message.message, "\", the reduction wants \"", reduce.message,
                          "\"");
      const std::string& out = outs.try_emplace(type.destination, reduce.out).first->second;
      require<InputError>(out == reduce.out, "multi_update_all: relations into '", type.destination,
                          "' write the fields \"", out, "\" and \"", reduce.out, "\", expected one");
      resolved.emplace(type, MessageReduce{resolve((*this)[type], message), reduce.reduce});
    }
    for (auto& [type, rows] : multi_update_all(resolved, cross_reduce))
      dstdata(type)[outs.at(type)] = std::move(rows);
  });
}
}}  // namespace sar
