// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/graph/message/frame.hpp>

namespace sar { inline namespace SAR_PRECISION {

const Variable& Frame::at(const std::string& field) const {
  const auto found = fields_.find(field);
  if (found != fields_.end() && found->second.defined()) return found->second;
  const std::string there = joined(keys(), [](const std::string& key) { return "\"" + key + "\""; });
  throw InputError(concat(name_, found == fields_.end() ? " has no field \"" : " has no value in field \"",
                          field, "\"; ", there.empty() ? "it is empty" : "its fields are " + there));
}

std::vector<std::string> Frame::keys() const {
  std::vector<std::string> keys;
  for (const auto& [key, value] : fields_) keys.push_back(key);
  return keys;
}

}}  // namespace sar
