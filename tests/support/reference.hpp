/// Golden vectors of tests/data: reading the .npy files of a case, and comparing with the tolerance of the
/// precision.
#pragma once

#include <sar/core/tensor.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace sar::test {

/// Largest accepted error relative to the largest element: 1e-9 in double precision, 1e-4 in single.
double tolerance();

/// max |a - b| / max(|b|, tiny) over all elements; infinity when shapes differ or a value is not finite.
double relative_error(const Tensor& a, const Tensor& b);
/// The same for a tensor against double precision values in row-major order.
double relative_error(const Tensor& a, const std::vector<double>& b);

/// One directory of golden vectors, e.g. Case("conv/SAGEConv__mean").
class Case {
 public:
  explicit Case(const std::string& name);
  [[nodiscard]] bool has(const std::string& file) const;       ///< file without ".npy"
  [[nodiscard]] Tensor tensor(const std::string& file) const;  ///< float64 array as real
  [[nodiscard]] std::vector<double> values(const std::string& file) const;
  [[nodiscard]] std::vector<Index> indices(const std::string& file) const;      ///< int64 array
  [[nodiscard]] std::vector<std::uint8_t> mask(const std::string& file) const;  ///< bool array
  [[nodiscard]] std::vector<std::string> files(
      const std::string& prefix) const;                         ///< what follows the prefix, sorted
  [[nodiscard]] std::string arg(const std::string& key) const;  ///< of args.txt; throws when missing
  [[nodiscard]] double number(const std::string& key) const;

 private:
  std::string directory_;
  std::map<std::string, std::string> args_;
};

}  // namespace sar::test
