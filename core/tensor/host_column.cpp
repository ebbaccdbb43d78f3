// SPDX-License-Identifier: MIT
#include <sar/core/tensor/host_column.hpp>

namespace sar { inline namespace SAR_PRECISION {

Array<Index> box_rows(std::initializer_list<Index> extents, std::initializer_list<Index> begin,
                      std::initializer_list<Index> end) {
  require<ShapeError>(begin.size() == extents.size() && end.size() == extents.size(),
                      "box_rows: ", extents.size(), " extents, ", begin.size(), " begins and ", end.size(),
                      " ends, expected as many");
  Array<Index> rows{0};
  for (std::size_t d = 0; d < extents.size(); ++d) {
    const Index extent = extents.begin()[d], first = begin.begin()[d], last = end.begin()[d];
    require<ShapeError>(0 <= first && first <= last && last <= extent, "box_rows: cells ", first, " to ",
                        last, " (the end not included) of extent ", d, ", which has ", extent);
    Array<Index> longer;
    longer.reserve(rows.size() * static_cast<std::size_t>(last - first));
    for (const Index row : rows)
      for (Index k = first; k < last; ++k) longer.push_back(row * extent + k);
    rows = std::move(longer);
  }
  return rows;
}

}}  // namespace sar
