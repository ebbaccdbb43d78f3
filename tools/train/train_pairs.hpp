// SPDX-License-Identifier: MIT

/// The pairs of nodes of --predict-pairs, and the files of their scores.
#pragma once

#include "options/train_options.hpp"

#include <sar/comm/communicator.hpp>
#include <sar/core/tensor/tensor.hpp>
#include <sar/graph/data/graph_data.hpp>

namespace sar::tools {

/// Pairs of nodes, on any ranks.
struct GivenPairs {
  Array<Index> src, dst;  ///< global ids
  Array<Index> types;     ///< empty: all 0
  Array<Index> rows;      ///< which pair of the file each is, from 0
};

/// Collective. Reads the file of --predict-pairs: a .npy array [pairs, 2], or text with two ids in each line
/// that is neither empty nor a comment, separated by blanks, tabs, commas or semicolons. Where the score
/// depends on the edge type, a third column has its number, 0 to num_types - 1. Ids are those of the dataset,
/// or the names of its nodes. Without the option there are no pairs. Throws InputError, the same on every
/// rank, with the row, for an id that no node has and for other columns.
GivenPairs read_given_pairs(const Communicator& comm, const TrainOptions& o, const NodeData& data,
                            Index num_types);

/// Collective. Writes numbers [n, columns] of the pairs to pair_scores.npy, [pairs] or [pairs, columns], in
/// the library's precision; if the pairs are text, also to pair_scores.txt, a line for each pair. Throws
/// InputError for a number that is not finite, and if a file cannot be written.
void write_pair_scores(const Communicator& comm, const TrainOptions& o, const GivenPairs& pairs,
                       const Tensor& numbers);

}  // namespace sar::tools
