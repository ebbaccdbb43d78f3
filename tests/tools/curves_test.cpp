// SPDX-License-Identifier: MIT
#include "tools/curves/curves_svg.hpp"
#include "tools/curves/event_file.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdio>
#include <limits>
#include <string>

using namespace sar;
using namespace sar::tools;

namespace {

Index count(const std::string& text, const std::string& part) {
  Index found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace

TEST_CASE("a picture has a panel for each set of curves, with gaps where values are missing") {
  const double none = std::numeric_limits<double>::quiet_NaN();
  CurvePicture picture{.title = "a < b & \"c\"", .x_name = "epoch", .mark = 2, .mark_name = "best epoch"};
  picture.panels.push_back({"loss", {{"training", {{1, 100}, {2, 1}, {3, 0.5}}}}});
  picture.panels.push_back({"accuracy", {{"val", {{1, 0.5}, {2, none}, {3, 0.6}, {4, 0.7}}}, {"test", {}}}});
  picture.panels.push_back({"nothing", {{"val", {{1, none}}}}});
  picture.panels.push_back({"one", {{"val", {{1, 3}}}}});
  const std::string svg = to_svg(picture);
  CHECK(svg.starts_with("<svg xmlns="));
  CHECK(svg.ends_with("</svg>\n"));
  CHECK(count(svg, "a &lt; b &amp; &quot;c&quot;") == 1);
  CHECK(count(svg, "stroke-width=\"1.5\"") == 2);
  CHECK(count(svg, "<circle") == 1);
  CHECK(count(svg, "no values") == 1);
  CHECK(count(svg, ">best epoch<") == 2);  // of the panels that have epoch 2
  CHECK(count(svg, ">epoch<") == 3);
  CHECK(count(svg, "nan") == 0);
  CHECK(count(svg, "inf") == 0);
  const auto path = [&](std::size_t number) {  // of a curve
    std::size_t end = svg.find("stroke-width=\"1.5\"");
    for (std::size_t i = 0; i < number; ++i) end = svg.find("stroke-width=\"1.5\"", end + 1);
    const std::size_t begin = svg.rfind("<path", end);
    return svg.substr(begin, end - begin);
  };
  CHECK(count(path(0), "M") == 1);
  CHECK(count(path(0), "L") == 2);
  CHECK(count(path(1), "M") == 2);  // a gap
  CHECK(count(path(1), "L") == 1);
  CHECK(count(svg, ">10<") == 1);  // a logarithmic axis from 0.5 to 100
  CHECK(count(svg, ">100<") == 1);
  // Epochs are equally far apart, the greatest value is on top, and distances are those of logarithms.
  double x[3], y[3];
  const std::string drawn = path(0);
  REQUIRE(std::sscanf(drawn.c_str() + drawn.find('M'), "M%lf %lfL%lf %lfL%lf %lf", &x[0], &y[0], &x[1], &y[1],
                      &x[2], &y[2]) == 6);
  CHECK(x[1] > x[0]);
  CHECK(x[2] - x[1] == doctest::Approx(x[1] - x[0]).epsilon(0.01));
  CHECK(y[1] > y[0]);
  CHECK((y[1] - y[0]) / (y[2] - y[1]) == doctest::Approx(std::log(100) / std::log(2)).epsilon(0.02));
}

TEST_CASE("the check value of CRC-32C") {
  CHECK(crc32c("123456789") == 0xe3069283U);
  CHECK(crc32c("") == 0);
  CHECK(crc32c(std::string(32, '\0')) == 0x8a9136aaU);  // RFC 3720
}
