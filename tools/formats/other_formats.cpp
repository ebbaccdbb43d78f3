#include "other_formats.hpp"

#include "text.hpp"

#include <sar/core/error.hpp>

#include <algorithm>
#include <cctype>

namespace sar::formats {
namespace {

std::string lower_case(std::string_view text) {
  std::string lower;
  for (const char c : text.substr(0, 100))
    lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

std::size_t count_words(std::string_view line) {
  std::size_t words = 0;
  for (Fields fields(line, blanks); fields.next();) ++words;
  return words;
}

/// igraph's LGL has a comment with the name of a node before the lines of its edges.
bool is_lgl(const std::string& path, const FirstLines& first) {
  if (path.ends_with(".lgl") || path.ends_with(".lgl.gz")) return true;
  const auto names_a_node = [](const FirstLines::Line& comment) {
    return trimmed(comment.text).starts_with("# ") && count_words(comment.text) == 2;
  };
  return first.comments.size() > 1 && first.comments_before_data == 1 &&
         std::ranges::all_of(first.comments, names_a_node);
}

/// A name of the format; empty: an edge list.
std::string format_of(const std::string& path, std::string_view text, const FirstLines& first) {
  const std::string begin = lower_case(trimmed(text.substr(text.find_first_not_of(" \t\r\n"))));
  if (begin.starts_with('{') || begin.starts_with('['))
    return "JSON (it begins with '" + begin.substr(0, 1) + "')";
  if (begin.starts_with('<')) return "XML (it begins with '<'), as GraphML and GEXF are";
  if (is_lgl(path, first)) return "LGL (comments that name nodes stand between the lines)";
  const std::string line = lower_case(first.lines.empty() ? "" : trimmed(first.lines.front().text));
  const auto starts = [&](std::string_view with) { return line.starts_with(with); };
  if (starts("*vertices") || starts("*network") || starts("*arcs") || starts("*edges")) return "Pajek's";
  if (starts("digraph") || starts("strict ") || (starts("graph") && line.ends_with('{'))) return "DOT";
  if (starts("graph [") || line == "graph" || (starts("creator ") && count_words(line) == 2)) return "GML";
  if (path.ends_with(".graph") || path.ends_with(".metis")) return "METIS' (by its name)";
  if ((starts("p ") && count_words(line) == 4) || (starts("c ") && count_words(line) > 3)) return "DIMACS'";
  return "";
}

}  // namespace

void refuse_other_formats(const std::string& path, std::string_view text, const FirstLines& first) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) return;
  const std::string format = format_of(path, text, first);
  require<InputError>(format.empty(), path, ": the text is in the format ", format,
                      ", expected a text with an edge a line (or --columns source=1,target=2, if it is one)");
}

}  // namespace sar::formats
