// SPDX-License-Identifier: MIT

/// OGB's datasets of node property and link prediction as sources of graphs.
///
/// Room tools/formats/ogb: The files of OGB's datasets.
#pragma once

#include "formats/source_options.hpp"

#include <sar/comm/communicator.hpp>
#include <sar/graph/data/graph_source.hpp>

#include <memory>
#include <string>

namespace sar::formats {

/// A folder of one homogeneous graph as the ogb package downloads it: raw/*.csv.gz, or raw/data.npz with
/// raw/node-label.npz, and split/<scheme>/{train,valid,test}.csv.gz. Node data are "features" of `real`,
/// "labels" ([N], or [N, tasks]; missing: -1 or NaN), "train_mask", "val_mask", "test_mask", and what
/// other files there are under their own names, such as "node_year"; edge data are "features" and others.
/// For link prediction a split has pairs of nodes in the place of nodes: in split/<scheme>/train.npz the
/// arrays "edge" [n, 2], or "source_node" and "target_node" [n]; perhaps "edge_neg" [m, 2], or
/// "target_node_neg" [n, k], the k other destinations against which a pair stands; or the same in files
/// split/<scheme>/train/edge.csv.gz and so on. Undirected datasets list each edge once, here, too.
///
/// A folder of one graph with several types (ogbn-mag) has raw/num-node-dict.csv.gz,
/// raw/triplet-type-list.csv.gz, raw/relations/<src>___<name>___<dst>/edge.csv.gz and num-edge-list.csv.gz,
/// raw/node-feat/<type>/node-feat.csv.gz, raw/node-label/<type>/node-label.csv.gz,
/// raw/node_X/<type>/node_X.csv.gz, and split/<scheme>/<type>/{train,valid,test}.csv.gz. Data have the same
/// names. Types are in the order of their names, as in the ogb package. A split of links (ogbl-biokg) has
/// the arrays "head", "relation" and "tail" [n] in the place of pairs, and perhaps "head_neg" and "tail_neg"
/// [n, k], the k other heads and tails of each; the field "edge_reltype" of the edges of a type is its number
/// in "relation".
///
/// Reads everything, except for arrays that are stored in .npz files: their rows are read when they are asked
/// for. Collective; throws InputError, the same on every rank.
std::unique_ptr<GraphSource> open_ogb_source(const Communicator& comm, const std::string& path,
                                             const SourceOptions& options);

}  // namespace sar::formats
