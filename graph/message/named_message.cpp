// SPDX-License-Identifier: MIT

// Messages on frames: each function resolves the names of fields to Variables and calls the function for
// Variables.
#include <sar/core/error.hpp>
#include <sar/graph/message/frame.hpp>
#include <sar/graph/message/graph_shard_manager.hpp>
#include <sar/graph/message/message.hpp>
#include <sar/graph/message/named_message.hpp>

namespace sar { inline namespace SAR_PRECISION {
namespace {

const Variable& field_of(const GraphShardManager& graph, MessageTarget target, const std::string& field) {
  const Frame& frame = target == MessageTarget::u   ? graph.srcdata()
                       : target == MessageTarget::v ? graph.dstdata()
                                                    : graph.edata();
  return frame.at(field);
}

}  // namespace

Message resolve(const GraphShardManager& graph, const NamedMessage& named) {
  Message message{.op = named.op, .lhs = named.lhs, .rhs = named.rhs, .u = {}, .v = {}, .e = {}};
  message.operand(named.lhs) = field_of(graph, named.lhs, named.lhs_field);
  if (named.op != Message::Op::copy) message.operand(named.rhs) = field_of(graph, named.rhs, named.rhs_field);
  return message;
}

void GraphShardManager::update_all(const NamedMessage& message, const NamedReduce& reduce) const {
  comm().agree([&] {
    require<InputError>(message.message == reduce.message, "update_all: the message is called \"",
                        message.message, "\", the reduction wants \"", reduce.message, "\"");
    dstdata()[reduce.out] = update_all(resolve(*this, message), reduce.reduce);
  });
}

void GraphShardManager::update_all(const MessageFunction& message, const NamedReduce& reduce) const {
  comm().agree([&] { dstdata()[reduce.out] = update_all(message, reduce.reduce); });
}

void GraphShardManager::apply_edges(const NamedMessage& message) const {
  comm().agree([&] { edata()[message.message] = apply_edges(resolve(*this, message)); });
}

void GraphShardManager::apply_edges(const MessageFunction& message, const std::string& out) const {
  comm().agree([&] { edata()[out] = apply_edges(message); });
}

}}  // namespace sar
