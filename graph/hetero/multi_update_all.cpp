// SPDX-License-Identifier: MIT

// Relations that read the same variable form a group, which Graph::call() computes: O(R^2)
// comparisons of R relations and one all_reduce of R numbers, because the groups must be the same on all
// ranks. Groups come in the order of their first relation.
#include <sar/core/error.hpp>
#include <sar/graph/hetero/cross_reduce.hpp>
#include <sar/graph/kernels/message_row.hpp>
#include <sar/graph/message/edge_messages.hpp>
#include <sar/graph/message/graph.hpp>
#include <sar/graph/message/operation.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
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
                        "multi_update_all: an operand of the message of '", part.type->canonical_name(),
                        "' is undefined");
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
      require<InputError>(message.message == reduce.message, "multi_update_all: the message of '",
                          type.canonical_name(), "' is called \"", message.message,
                          "\", the reduction wants \"", reduce.message, "\"");
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
