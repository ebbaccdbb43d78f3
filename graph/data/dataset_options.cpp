// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/graph/data/dataset_options.hpp>

#include <algorithm>

namespace sar { inline namespace SAR_PRECISION {

const DataField* find_field(const std::vector<DataField>& fields,
                            const std::map<std::string, std::string>& names, const std::string& key,
                            std::initializer_list<const char*> usual, const std::string& place) {
  const auto named = [&](const std::string& name) {
    const auto found = std::ranges::find(fields, name, &DataField::name);
    return found == fields.end() ? nullptr : &*found;
  };
  if (const auto given = names.find(key); given != names.end()) {
    const DataField* field = named(given->second);
    require<InputError>(field != nullptr, place, ": the data are ",
                        fields.empty() ? "none" : joined(fields, &DataField::name), ", expected ",
                        given->second, " among them, which shall be the ", given->first);
    return field;
  }
  for (const char* name : usual)
    if (const DataField* field = named(name); field != nullptr) return field;
  return nullptr;
}

bool is_sampled(Index node, Index num_nodes) {
  constexpr Index most = 4096;
  return node % std::max<Index>((num_nodes + most - 1) / most, 1) == 0;
}

bool becomes_sparse(SparseFeatures sparse, const DataField& field, Index rows, Index stored) {
  constexpr Index least_columns = 64, one_in = 8;
  const Index columns = field.row_size();
  if (sparse != SparseFeatures::automatic) return sparse == SparseFeatures::yes && columns > 1;
  return columns >= least_columns && one_in * stored <= rows * columns;
}
}}  // namespace sar
