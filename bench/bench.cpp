// SPDX-License-Identifier: MIT
#include "bench.hpp"

#include <iomanip>
#include <sstream>

namespace sar::bench {

void print(const Result& result, std::ostream& out) {
  std::ostringstream line;
  line << std::setprecision(6) << "{\"name\": \"" << result.name << "\", \"threads\": " << result.threads
       << ", \"ranks\": " << result.ranks << ", \"seconds\": " << result.seconds
       << ", \"rate\": " << result.rate << ", \"unit\": \"" << result.unit << "\", ";
  if (result.reference > 0)
    line << "\"reference\": " << result.reference << ", \"ratio\": " << result.rate / result.reference
         << "}\n";
  else
    line << "\"reference\": null, \"ratio\": null}\n";
  out << line.str() << std::flush;
}

}  // namespace sar::bench
