/// The local half of a halo exchange: rows of a tensor into a message and out of one. For the sources of
/// comm/ only.
#pragma once

#include <sar/comm/rows/halo.hpp>

#include <type_traits>
#include <vector>

namespace sar {

/// One value of each round.
template <class Project>
auto per_round(const std::vector<HaloRound>& rounds, const Project& project) {
  std::vector<std::decay_t<decltype(project(rounds.front()))>> values;
  for (const HaloRound& round : rounds) values.push_back(project(round));
  return values;
}

/// Throws ShapeError when the rounds name rows that `owned` does not have.
void check_rounds(const std::vector<HaloRound>& rounds, const Tensor& owned);

/// A matrix M has the rows M[i] = tensor[rows[i]]; its elements are counted row by row.
///
/// out[k - begin] = element k of M, begin <= k < end
void pack_elements(const Tensor& tensor, const Array<std::int32_t>& rows, Index begin, Index end, real* out);
/// element k of M += values[k - begin], begin <= k < end; the rows are different ones
void add_elements(Tensor& tensor, const Array<std::int32_t>& rows, Index begin, Index end,
                  const real* values);

}  // namespace sar
