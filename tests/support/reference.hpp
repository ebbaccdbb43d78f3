// SPDX-License-Identifier: MIT

/// Golden vectors (tests/data/golden): reading the arrays and arguments of a case, and comparing with the
/// tolerance of the precision.
#pragma once

#include <sar/core/tensor/tensor.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {
struct SafetensorsEntry;
}}

namespace sar::test {

/// Largest accepted error relative to the largest element: 1e-9 in double precision, 1e-4 in single.
double tolerance();

/// max |a - b| / max(|b|, tiny) over all elements; infinity when shapes differ or a value is not finite.
double relative_error(const Tensor& a, const Tensor& b);
/// The same for a tensor against double precision values in row-major order.
double relative_error(const Tensor& a, const std::vector<double>& b);

struct GoldenFile;

/// The directory of the golden vectors: that of the variable SAR_GOLDEN, which pack.py wrote from another set
/// of the generator, or tests/data/golden.
std::string golden_directory();

/// The names of all cases of a group ("conv"), sorted: "conv/AGNNConv__bipartite", ...
std::vector<std::string> golden_cases(const std::string& group);

/// One case, e.g. Case("conv/SAGEConv__mean").
class Case {
 public:
  explicit Case(const std::string& name);
  [[nodiscard]] bool has(const std::string& array) const;
  [[nodiscard]] Tensor tensor(const std::string& array) const;  ///< float64 array as real
  [[nodiscard]] std::vector<double> values(const std::string& array) const;
  [[nodiscard]] std::vector<Index> indices(const std::string& array) const;      ///< int64 array
  [[nodiscard]] std::vector<std::uint8_t> mask(const std::string& array) const;  ///< bool array
  /// What follows the prefix in the names of arrays, sorted.
  [[nodiscard]] std::vector<std::string> arrays(const std::string& prefix) const;
  [[nodiscard]] std::string arg(const std::string& key) const;  ///< throws when there is none
  [[nodiscard]] double number(const std::string& key) const;

 private:
  [[nodiscard]] const SafetensorsEntry& entry(const std::string& array) const;

  const GoldenFile& golden_;
  std::string prefix_;
};

}  // namespace sar::test
