// SPDX-License-Identifier: MIT

/// For the tests of formats: the bytes of zip archives and of NumPy's arrays.
#pragma once

#include <sar/core/files/npy.hpp>

#include <map>
#include <span>
#include <string>
#include <vector>

namespace sar::test {

/// An archive with these members, in the order of their names. Local.
std::string zip(const std::map<std::string, std::string>& members, bool deflated);

/// An array as numpy.save writes it, of any type; `values` are in C order, also where the file is in Fortran
/// order. Local.
std::string npy(NpyType type, std::vector<Index> shape, std::span<const double> values, bool fortran = false);
inline std::string npy(NpyType type, std::vector<Index> shape, const std::vector<double>& values,
                       bool fortran = false) {
  return npy(type, std::move(shape), std::span<const double>(values), fortran);
}
/// An array of another type, with the given bytes as elements. Local.
std::string raw_npy(const std::string& descr, const std::string& shape, const std::string& elements);

}  // namespace sar::test
