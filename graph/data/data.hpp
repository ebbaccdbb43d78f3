// SPDX-License-Identifier: MIT

/// Everything of sar::data that a program needs: files, datasets, generators and partitioners.
///
/// Room graph/data: Graphs with data on their nodes and edges, whatever they come from: datasets, generators,
/// partition directories; distribution over the ranks, splits.
#pragma once

#include <sar/graph/data/dataset_options.hpp>
#include <sar/graph/data/dataset_source.hpp>
#include <sar/graph/data/dgl_partition.hpp>
#include <sar/graph/data/distributed_data.hpp>
#include <sar/graph/data/generators.hpp>
#include <sar/graph/data/graph_data.hpp>
#include <sar/graph/data/graph_source.hpp>
#include <sar/graph/data/graph_view.hpp>
#include <sar/graph/data/label_columns.hpp>
#include <sar/graph/data/load_dataset.hpp>
#include <sar/graph/data/partition_directory.hpp>
#include <sar/graph/data/partition_graph.hpp>
#include <sar/graph/data/relation_data.hpp>
#include <sar/graph/data/splits.hpp>
#include <sar/graph/partition/clusters.hpp>
#include <sar/graph/partition/partition.hpp>
#include <sar/sar.hpp>
