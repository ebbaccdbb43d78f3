#include "failures/collective_names.hpp"

#include <sar/core/error.hpp>

#include <filesystem>
#include <fstream>
#include <regex>
#include <vector>

namespace sar::test {
namespace {

bool has(const std::string& text, const char* pattern) {
  return std::regex_search(text, std::regex(pattern));
}

/// The lines of a comment, in one.
void add_comment(std::string& comment, const std::string& line) {
  comment.append(" ").append(std::regex_replace(line, std::regex("^ */// ?"), ""));
}

/// Reads declarations at the level of a file or of a class: those indented by 0 or 2 spaces.
void read_header(const std::filesystem::path& path, const std::string& header, std::set<std::string>& names) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  std::size_t i = 0;
  std::string about, comment, scope;
  for (; i < lines.size() && lines[i].starts_with("///"); ++i) add_comment(about, lines[i]);
  const bool all = has(about, "(very function|verything|All functions)( here)? (is|are) collective");
  bool hidden = false;
  for (; i < lines.size(); ++i) {
    const std::string& line = lines[i];
    const std::size_t indent = line.find_first_not_of(' ');
    if (indent == std::string::npos) {
      comment.clear();
    } else if (line.starts_with("}")) {
      scope.clear();
      hidden = false;
    } else if (line.find("///") == indent) {
      if (indent <= 2) add_comment(comment, line);
    } else if (line == " public:" || line == " protected:" || line == " private:") {
      hidden = line != " public:";
    } else if (indent == 0 || indent == 2) {
      std::smatch found;
      if (std::regex_search(line, found, std::regex("^(?:class|struct) (\\w+)")) && line.back() != ';') {
        scope = found[1];
        if (has(comment, "\\bCollective\\b")) names.insert(concat(header, " ", scope));
        comment.clear();
        continue;
      }
      std::string said = comment;
      if (const auto behind = line.find("///<"); behind != std::string::npos) said += line.substr(behind);
      const std::string code = line.substr(0, line.find("///<"));
      const bool is_function =
          !code.starts_with("static_assert") && std::regex_search(code, found, std::regex("(~?\\w+)\\("));
      if (!is_function) {
        if (!has(code, "^ *(template|requires|\\[\\[nodiscard\\]\\]$)")) comment.clear();
        continue;
      }
      const std::string name = found[1];
      const bool collective = has(said, "\\bCollective\\b") || (all && !has(said, "\\b[Ll]ocal\\b"));
      const bool special =
          name.starts_with("~") || name == "static_assert" || has(code, "= (delete|default);");
      if (collective && !hidden && !special)
        names.insert(concat(header, " ", indent == 0 || name == scope ? "" : scope + "::", name));
      comment.clear();
    }
  }
}

}  // namespace

std::set<std::string> collective_names(const std::string& source_directory) {
  std::set<std::string> names;
  for (const std::string folder : {"comm", "graph", "nn"})
    for (const auto& entry : std::filesystem::recursive_directory_iterator(source_directory + "/" + folder))
      if (entry.path().extension() == ".hpp")
        read_header(entry.path(), relative(entry.path(), source_directory).string(), names);
  return names;
}

}  // namespace sar::test
