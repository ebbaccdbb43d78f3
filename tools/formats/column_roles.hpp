// SPDX-License-Identifier: MIT

/// Local. What the columns of a table of edges or nodes mean: by the options, by the names of a header, or of
/// edges else by their places.
#pragma once

#include "first_lines.hpp"
#include "source_options.hpp"
#include "text_table.hpp"

#include <sar/config.hpp>

#include <string_view>
#include <vector>

namespace sar::formats {

/// The first lines of a table, field by field. Fields keep their quotes.
struct TableSample {
  std::vector<std::string_view> header;             ///< empty: there is none
  std::vector<std::vector<std::string_view>> rows;  ///< of equal length; at least one
};

/// The role of each column. Source and destination are, in this order: what SourceOptions::columns says; the
/// columns of a header that are called so (source and target, src and dst, from and to, user and item, u and
/// v, ...); or the first two that are no row numbers. Of the others, a header's names decide: weight,
/// features, split, label, type; what it calls otherwise is ignored. Without a name, one column of numbers is
/// the weight, several are features. Throws InputError where this does not decide, with the option that does.
std::vector<Column> column_roles(const TableSample& sample, const SourceOptions& options);

/// The table of nodes that begins with these lines. Its columns have the roles that
/// SourceOptions::node_columns say, or usual names: the only column called id, node, key, ...; label, class,
/// target, y; train_mask, val_mask, test_mask, split. If the user gives the key by its number, the first line
/// is no header where it has numbers alone, or keys are integers from the first line on, or one of its words
/// stands in the same column of another line; then columns have numbers for names. There are no categories
/// yet. Throws LineError where this does not say the key, and for a column that there is not.
TextTable node_table_of(const FirstLines& first, const SourceOptions& options);

}  // namespace sar::formats
