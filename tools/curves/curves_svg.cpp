// SPDX-License-Identifier: MIT
#include "curves/curves_svg.hpp"

#include <sar/core/error.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace sar::tools {
namespace {

/// Of a picture, in pixels.
struct Layout {
  static constexpr double width = 720, panel_height = 220, left = 64, right = 120, top = 28, between = 62;
};
constexpr std::size_t most_curve_points = 2000;  // of a curve
constexpr std::array curve_colours{"#35618f", "#d9822b", "#4f8a5b", "#b04a5a", "#7a5fa0", "#5f5f5f"};

std::string svg_text(const std::string& text) {
  constexpr std::array<std::pair<char, const char*>, 4> escapes{
      {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}}};
  std::string out;
  for (const char c : printable(text)) {
    const auto* const escape = std::ranges::find(escapes, c, &std::pair<char, const char*>::first);
    out += escape == escapes.end() ? std::string(1, c) : escape->second;
  }
  return out;
}

std::string svg_number(const char* format, double value) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

std::string text_at(double x, double y, const std::string& text, const char* more) {
  return concat("<text x=\"", svg_number("%.1f", x), "\" y=\"", svg_number("%.1f", y), "\" ", more, ">",
                svg_text(text), "</text>\n");
}

/// An axis from `least` to `most`, which differ, drawn from the pixel `begin` to the pixel `end`.
struct Axis {
  double least, most, begin, end;
  bool is_log = false;

  [[nodiscard]] double operator()(double value) const {
    const double share =
        is_log ? std::log(value / least) / std::log(most / least) : (value - least) / (most - least);
    return begin + share * (end - begin);
  }
  /// Round numbers: 1, 2 or 5 times a power of ten apart, or powers of ten and their multiples by 2 and 5.
  [[nodiscard]] std::vector<double> ticks() const {
    std::vector<double> found;
    if (is_log) {
      for (double power = std::pow(10, std::floor(std::log10(least))); power <= most; power *= 10)
        for (const double factor : {1., 2., 5.})
          if (const double at = power * factor; at >= least && at <= most) found.push_back(at);
      if (found.size() > 6)
        std::erase_if(found, [](double at) {
          const double log = std::log10(at);
          return std::abs(log - std::round(log)) > 1e-9;
        });
      if (found.size() >= 2) return found;
      return {least, most};
    }
    const double raw = (most - least) / 5, power = std::pow(10, std::floor(std::log10(raw)));
    const double step = raw <= power       ? power
                        : raw <= 2 * power ? 2 * power
                        : raw <= 5 * power ? 5 * power
                                           : 10 * power;
    const auto last = static_cast<long>(std::floor(most / step + 1e-9));
    for (auto k = static_cast<long>(std::ceil(least / step - 1e-9)); k <= last; ++k)
      found.push_back(static_cast<double>(k) * step);
    return found;
  }
};

/// Of all points of the panels, those that are finite.
template <class Visit>
void for_points(const CurvePanel& panel, const Visit& visit) {
  for (const Curve& curve : panel.curves)
    for (const auto& [x, y] : curve.points)
      if (std::isfinite(y)) visit(x, y);
}

Axis y_axis(const CurvePanel& panel, double begin, double end) {
  double least = HUGE_VAL, most = -HUGE_VAL;
  for_points(panel, [&](double, double y) {
    least = std::min(least, y);
    most = std::max(most, y);
  });
  if (least > 0 && most >= 30 * least) return {least, most, begin, end, true};
  const double margin = most > least ? 0.04 * (most - least) : std::max(std::abs(most), 1e-12) * 0.1;
  return {least - margin, most + margin, begin, end};
}

/// A path through the points, with gaps where a value is missing.
std::string path_of(const Curve& curve, const Axis& x, const Axis& y, const char* colour) {
  const std::size_t stride = 1 + curve.points.size() / most_curve_points;
  std::string path;
  bool drawing = false;
  std::size_t drawn = 0;
  std::pair<double, double> last{};
  for (std::size_t i = 0; i < curve.points.size(); ++i) {
    const auto& [at, value] = curve.points[i];
    if (i % stride != 0 && i + 1 != curve.points.size()) continue;
    if (!std::isfinite(value)) {
      drawing = false;
      continue;
    }
    last = {x(at), y(value)};
    path += concat(drawing ? "L" : "M", svg_number("%.1f", last.first), " ", svg_number("%.1f", last.second));
    drawing = true;
    ++drawn;
  }
  std::string out =
      concat("<path d=\"", path, "\" fill=\"none\" stroke=\"", colour, "\" stroke-width=\"1.5\"/>\n");
  if (drawn == 1)
    out = concat("<circle cx=\"", svg_number("%.1f", last.first), "\" cy=\"", svg_number("%.1f", last.second),
                 "\" r=\"2.5\" fill=\"", colour, "\"/>\n");
  return drawn == 0 ? "" : out;
}

std::string panel_at(double begin, const CurvePanel& panel, const CurvePicture& picture) {
  const double end = begin + Layout::panel_height;
  std::string out = text_at(Layout::left, begin - 8, panel.title, "font-weight=\"bold\"");
  double first = HUGE_VAL, last = -HUGE_VAL;
  for_points(panel, [&](double x, double) {
    first = std::min(first, x);
    last = std::max(last, x);
  });
  out += concat("<rect x=\"", svg_number("%.1f", Layout::left), "\" y=\"", svg_number("%.1f", begin),
                "\" width=\"", svg_number("%.1f", Layout::width - Layout::left - Layout::right),
                "\" height=\"", svg_number("%.1f", Layout::panel_height),
                "\" fill=\"none\" stroke=\"#999\" stroke-width=\"0.8\"/>\n");
  if (first > last) return out + text_at(Layout::left + 12, begin + 24, "no values", "fill=\"#555\"");
  const Axis x{first, last > first ? last : first + 1, Layout::left, Layout::width - Layout::right};
  const Axis y = y_axis(panel, end, begin);
  const auto line = [](double x1, double y1, double x2, double y2, const char* style) {
    return concat("<path d=\"M", svg_number("%.1f", x1), " ", svg_number("%.1f", y1), "L",
                  svg_number("%.1f", x2), " ", svg_number("%.1f", y2), "\" ", style, "/>\n");
  };
  for (const double tick : y.ticks()) {
    out += line(Layout::left, y(tick), Layout::width - Layout::right, y(tick),
                "stroke=\"#ddd\" stroke-width=\"0.6\"");
    out +=
        text_at(Layout::left - 6, y(tick) + 4, svg_number("%.4g", tick), "text-anchor=\"end\" fill=\"#555\"");
  }
  for (const double tick : x.ticks())
    if (tick == std::round(tick)) {
      out += line(x(tick), end, x(tick), end + 4, "stroke=\"#999\" stroke-width=\"0.8\"");
      out += text_at(x(tick), end + 16, svg_number("%.10g", tick), "text-anchor=\"middle\" fill=\"#555\"");
    }
  out += text_at((Layout::left + Layout::width - Layout::right) / 2, end + 31, picture.x_name,
                 "text-anchor=\"middle\" fill=\"#555\"");
  if (picture.mark >= first && picture.mark <= last) {
    const double at = x(picture.mark);
    out += line(at, begin, at, end, "stroke=\"#888\" stroke-width=\"0.8\" stroke-dasharray=\"3 3\"");
    out += text_at(at, begin - 3, picture.mark_name, "text-anchor=\"middle\" fill=\"#555\" font-size=\"10\"");
  }
  for (std::size_t i = 0; i < panel.curves.size(); ++i) {
    const char* colour = curve_colours[i % curve_colours.size()];
    const double at = begin + 14 + 18 * static_cast<double>(i);
    out += path_of(panel.curves[i], x, y, colour);
    out += line(Layout::width - Layout::right + 10, at - 4, Layout::width - Layout::right + 28, at - 4,
                concat("stroke=\"", colour, "\" stroke-width=\"2\"").c_str());
    out += text_at(Layout::width - Layout::right + 34, at, panel.curves[i].name, "");
  }
  return out;
}

}  // namespace

std::string to_svg(const CurvePicture& picture) {
  const double step = Layout::panel_height + Layout::between;
  const double height = Layout::top + 20 + step * static_cast<double>(picture.panels.size());
  std::string out =
      concat("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ", svg_number("%.0f", Layout::width),
             " ", svg_number("%.0f", height), "\" width=\"", svg_number("%.0f", Layout::width),
             "\" height=\"", svg_number("%.0f", height), "\" font-family=\"sans-serif\" font-size=\"12\">\n",
             "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n");
  out += text_at(Layout::left, 20, picture.title, "font-size=\"13\"");
  for (std::size_t i = 0; i < picture.panels.size(); ++i)
    out += panel_at(Layout::top + 26 + step * static_cast<double>(i), picture.panels[i], picture);
  return out + "</svg>\n";
}

}  // namespace sar::tools
