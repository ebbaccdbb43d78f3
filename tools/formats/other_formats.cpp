// SPDX-License-Identifier: MIT
#include "other_formats.hpp"

#include "formats/packed/text_file.hpp"
#include "formats/packed/zip_file.hpp"
#include "text.hpp"

#include <sar/core/error.hpp>

#include <algorithm>
#include <initializer_list>

namespace sar::formats {
namespace {

std::string lower_beginning(std::string_view text) {
  return lower_case(text.substr(0, 100));
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
std::string format_of(const std::string& path, const FirstLines& first) {
  const std::string_view text = first.text;
  const std::string begin = lower_beginning(trimmed(text.substr(text.find_first_not_of(" \t\r\n"))));
  if (begin.starts_with('{') || begin.starts_with('['))
    return "JSON (it begins with '" + begin.substr(0, 1) + "')";
  if (begin.starts_with('<')) return "XML (it begins with '<'), as GraphML and GEXF are";
  if (is_lgl(path, first)) return "LGL (comments that name nodes stand between the lines)";
  const std::string line = lower_beginning(first.lines.empty() ? "" : trimmed(first.lines.front().text));
  const auto starts = [&](std::string_view with) { return line.starts_with(with); };
  if (starts("*vertices") || starts("*network") || starts("*arcs") || starts("*edges")) return "Pajek's";
  if (starts("digraph") || starts("strict ") || (starts("graph") && line.ends_with('{'))) return "DOT";
  if (starts("graph [") || line == "graph" || (starts("creator ") && count_words(line) == 2)) return "GML";
  if (path.ends_with(".graph") || path.ends_with(".metis")) return "METIS' (by its name)";
  if ((starts("p ") && count_words(line) == 4) || (starts("c ") && count_words(line) > 3)) return "DIMACS'";
  return "";
}

bool has_extension(const std::string& path, std::initializer_list<const char*> extensions) {
  const std::string name = lower_case(path.substr(path.size() - std::min<std::size_t>(path.size(), 20)));
  return std::ranges::any_of(extensions, [&](const char* extension) { return name.ends_with(extension); });
}

/// torch.save writes a zip archive with data.pkl.
bool is_pickle(const std::string& path, const std::string& begin) {
  if (begins_as_zip(begin)) {
    const ZipFile archive(path, "a zip archive");
    return std::ranges::any_of(archive.members(),
                               [](const ZipMember& member) { return member.name.ends_with("data.pkl"); });
  }
  const bool by_bytes = begin.size() > 1 && begin[0] == '\x80' && begin[1] >= 2 && begin[1] <= 5;
  return by_bytes || has_extension(path, {".pkl", ".pickle", ".pt", ".pth"});
}

void refuse_pickle(const std::string& path) {
  const bool is_torch = has_extension(path, {".pt", ".pth"});
  throw InputError(
      concat(path, ": a pickle of Python can run any program and is not read; export it in Python: ",
             is_torch ? concat("import numpy, torch; data = torch.load('", path, "', weights_only=False)")
                      : concat("import numpy, pickle; data = pickle.load(open('", path, "', 'rb'))"),
             "; numpy.savez('graph.npz', x=data.x, edge_index=data.edge_index, y=data.y, "
             "train_mask=data.train_mask, val_mask=data.val_mask, test_mask=data.test_mask), and give "
             "graph.npz"));
}

}  // namespace

void refuse_binary_formats(const std::string& path) {
  const std::string begin = read_beginning(path, 8);
  if (is_pickle(path, begin)) refuse_pickle(path);
  require<InputError>(!begin.starts_with("\x93NUMPY"), path,
                      ": is one array, expected a graph: the directory of the arrays with an edge_index.npy, "
                      "or in Python: numpy.savez('graph.npz', edges=numpy.load('",
                      path, "'))");
  const bool is_matlab = begin.starts_with("MATLAB 5"), is_hdf5 = begin.starts_with("\x89HDF");
  require<InputError>(
      !is_matlab && !is_hdf5, path, ": ", is_matlab ? "a file of MATLAB" : "HDF5",
      " is not read, expected a .npz file, as numpy.savez('graph.npz', edge_index=..., x=..., "
      "y=...) writes it in Python");
}

void refuse_other_formats(const std::string& path, const FirstLines& first) {
  if (first.text.find_first_not_of(" \t\r\n") == std::string_view::npos) return;
  const std::string format = format_of(path, first);
  require<InputError>(format.empty(), path, ": the text is in the format ", format,
                      ", expected a text with an edge a line (or --columns source=1,target=2, if it is one)");
}

}  // namespace sar::formats
