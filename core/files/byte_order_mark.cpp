// SPDX-License-Identifier: MIT
#include "byte_order_mark.hpp"

#include <sar/core/error.hpp>

namespace sar { inline namespace SAR_PRECISION {

Index byte_order_mark(std::string_view beginning, const std::string& path) {
  using namespace std::string_view_literals;
  if (beginning.starts_with("\xEF\xBB\xBF"sv)) return 3;
  const bool utf32 = beginning.starts_with("\xFF\xFE\0\0"sv) || beginning.starts_with("\0\0\xFE\xFF"sv);
  const bool utf16 = beginning.starts_with("\xFF\xFE"sv) || beginning.starts_with("\xFE\xFF"sv);
  require<InputError>(!utf32 && !utf16, path, ": the text is in UTF-", utf32 ? 32 : 16,
                      " by its first bytes, expected UTF-8 (iconv -f UTF-", utf32 ? 32 : 16, " -t UTF-8)");
  return 0;
}

}}  // namespace sar
