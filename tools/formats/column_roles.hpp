// SPDX-License-Identifier: MIT

/// Local. What the columns of a table of edges mean: by the options, by the names of a header, or else by
/// their places.
#pragma once

#include "column_names.hpp"
#include "source_options.hpp"

#include <sar/config.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace sar::formats {

struct EdgeColumn {
  std::string name;  ///< in the header; empty: none
  ColumnRole role = ColumnRole::ignored;
  std::string field;  ///< the edge data that it becomes, perhaps with other columns; empty: none
  std::string note;   ///< why it is ignored, where its name does not say it: "row numbers"
};

/// The first lines of a table, field by field. Fields keep their quotes.
struct TableSample {
  bool has_header = false;
  std::vector<std::string_view> header;
  std::vector<std::vector<std::string_view>> rows;  ///< of equal length; at least one
};

/// The role of each column. Source and destination are, in this order: what SourceOptions::columns says; the
/// columns of a header that are called so (source and target, src and dst, from and to, user and item, u and
/// v, ...); or the first two that are no row numbers. Of the others, a header's names decide: weight,
/// features, split, label, type; what it calls otherwise is ignored. Without a name, one column of numbers is
/// the weight, several are features. Throws InputError where this does not decide, with the option that does.
std::vector<EdgeColumn> column_roles(const TableSample& sample, const SourceOptions& options);

/// "source: column 2 'from', target: column 3 'to', weight: none, ignored: column 1 (row numbers)"
std::string describe(const std::vector<EdgeColumn>& columns);

}  // namespace sar::formats
