// SPDX-License-Identifier: MIT

/// The splits of OGB's folders of link prediction: lists of pairs of nodes, and of knowledge graphs: lists of
/// (head, relation, tail) of several edge types.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/graph/data/graph_data.hpp>

#include <optional>
#include <string>
#include <vector>

namespace sar::formats {

/// Collective. Whether the folder of a split has lists of pairs.
bool has_pair_lists(const Communicator& comm, const std::string& split);

/// A relation of a knowledge graph: its number in the lists, and the types of its heads and tails.
struct ListedRelation {
  Index number;
  const NodeTypeData &heads, &tails;
};

/// Collective. The lists of training, validation and test: of pairs, or of the triples of one relation. There
/// are `num_nodes` nodes of all types. Throws InputError, the same on every rank.
std::vector<ListedPairs> read_pair_lists(const Communicator& comm, const std::string& split, Index num_nodes,
                                         const std::optional<ListedRelation>& relation, Index block_bytes);

}  // namespace sar::formats
