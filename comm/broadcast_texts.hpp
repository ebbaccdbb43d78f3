// SPDX-License-Identifier: MIT

/// Broadcasts a list of texts.
#pragma once

#include <sar/comm/communicator.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// Collective. Returns the texts of rank 0; the other ranks may pass a list of any length.
inline std::vector<std::string> broadcast_texts(const Communicator& comm, std::vector<std::string> texts) {
  return comm.agree([&] {
    std::uint64_t count = texts.size();
    comm.broadcast(std::span<std::uint64_t>(&count, 1), 0);
    texts.resize(count);
    for (std::string& text : texts) text = comm.broadcast(text, 0);
    return std::move(texts);
  });
}

}}  // namespace sar
