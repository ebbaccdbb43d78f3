// SPDX-License-Identifier: MIT

/// What the user says about a graph file because the file does not say it.
#pragma once

#include <sar/config.hpp>

#include <map>
#include <optional>
#include <string>

namespace sar::formats {

enum class NodeIds {
  automatic,  ///< dense for non-negative integers that are all less than four times the number of edges
  dense,      ///< integers from 0 on: the numbers of the nodes
  from_one,   ///< integers from 1 on: the numbers of the nodes and 1
  names,      ///< any words: numbered 0, 1, ... in the order of first appearance
};

/// What the lists of numbers of SourceOptions::node_features are.
enum class FeatureLists {
  automatic,  ///< what the lists show, if they do
  values,     ///< a value for each feature
  indices,    ///< of the features that a node has
};

struct SourceOptions {
  // dataset directories and edge lists
  /// Which file or column is what: {"edge_labels", "stars"}, as DatasetOptions::fields; it keeps this name.
  std::map<std::string, std::string> fields;
  // edge lists
  NodeIds node_ids = NodeIds::automatic;
  std::optional<char> separator;  ///< ' ': any number of blanks; otherwise guessed
  std::optional<bool> header;     ///< is the first line one? Otherwise guessed
  bool ignore_data = false;       ///< columns behind the two nodes are left alone
  /// Role -> column, by its name in the header or its number from 1: {"source", "user"}, {"weight", "3"}.
  /// Roles: source, target, and those of edge data, of which features may be repeated.
  std::multimap<std::string, std::string> columns;
  bool edge_labels = false;  ///< a column rating, score or value has the labels, where none is called so
  bool edge_weights = true;  ///< false: nobody reads them, and they are not checked
  /// Type of edges -> file: {"author:writes:paper", "writes.csv"}; several edge lists are one graph.
  std::map<std::string, std::string> relations;
  /// A file with the ids of the nodes, a row each (read_node_keys): the node of row i has the number i.
  std::string node_keys;
  // graph files of one type of nodes: edge lists, Matrix Market, NumPy's archives
  std::map<std::string, std::string> node_data;  ///< name -> .npy file with one row for each node
  std::string node_table;                        ///< a text with a row for each node (read_node_table)
  /// Role -> column of node_table, by its name or its number from 1. Roles: key, labels, features, one-hot,
  /// train_mask, val_mask, test_mask, split; features and one-hot may be repeated. Column "*": all others.
  std::multimap<std::string, std::string> node_columns;
  std::string missing_label;  ///< node_table: a label that is this text is missing; empty: there is none
  std::string node_features;  ///< JSON with a list of features for each node (read_json_features)
  FeatureLists feature_lists = FeatureLists::automatic;
  /// OGB folders: the name of the folder in split/; empty: the only one. Other formats: the number of a
  /// split, which DatasetOptions::split chooses.
  std::string split;
  // all of them
  Index block_bytes = Index{1} << 22;  ///< of text, that a rank reads at a time
};

}  // namespace sar::formats
