# SPDX-License-Identifier: MIT

# awk -f headers.awk HEADER...: prints the functions that a header declares and does not define. The headers given have no source of their
# name, so that no reader would know where such a function is.

# Line `line` without comments, literals and directives of the preprocessor. A raw string on one line is a literal.
function code_of(line) {
  if (in_comment) {
    if (!match(line, /\*\//)) return ""
    line = substr(line, RSTART + 2)
    in_comment = 0
  }
  if (continued || line ~ /^ *#/) {
    continued = line ~ /\\$/
    return ""
  }
  gsub(/\\\\|\\"|\\'/, "", line)
  gsub(/'[^']'/, "0", line)
  gsub(/"[^"]*"/, "", line)
  sub(/\/\/.*/, "", line)
  gsub(/\/\*[^*]*\*\//, "", line)
  if (match(line, /\/\*/)) {
    in_comment = 1
    line = substr(line, 1, RSTART - 1)
  }
  return line
}
# The name of the function whose head is `text`, "" where it is none: an initial value, a type, a type of functions.
function function_name(text) {
  if (text ~ /(^|[^a-z_])(using|typedef|friend|static_assert)[^a-z_]/) return ""
  gsub(/\[\[[^]]*\]\]/, "", text)
  gsub(/(alignas|decltype|noexcept|explicit|requires) *\([^()]*(\([^()]*\)[^()]*)*\)/, "", text)
  if (match(text, /operator *(\(\)|\[\]|[^A-Za-z( ]+|[A-Za-z_:]+) *\(/)) return substr(text, RSTART, RLENGTH - 1)
  while (gsub(/<[^<>]*>/, "", text)) continue
  sub(/=.*/, "", text)
  if (!match(text, /[A-Za-z_~][A-Za-z0-9_:~]*\(/)) return ""
  text = substr(text, RSTART, RLENGTH - 1)
  sub(/.*::/, "", text)
  return text
}
function declaration_ends(name) {
  if (statement !~ /= *(0|default|delete) *$/ && (name = function_name(statement)) != "") {
    declared[++num_declared] = name
    line_of[num_declared] = begins_at
  }
}
# Scopes: n(amespace), t(ype), or anything else. Statements are of namespaces and types.
function scope_begins() {
  if (statement ~ /(^|[^a-z_])(namespace|extern)[^a-z_(]/) return "n"
  if (statement ~ /^ *(template *<.*> *)?(class|struct|union|enum)[^a-z_]/ && statement !~ /\)/) return statement ~ /enum/ ? "e" : "t"
  if (function_name(statement) != "") {
    defined[function_name(statement)] = 1
    return "f"
  }
  return "i"
}
function follow(text, i, c) {
  for (i = 1; i <= length(text); ++i) {
    c = substr(text, i, 1)
    if (depth && scope[depth] ~ /[efi]/) {
      if (c == "{") scope[++depth] = scope[depth - 1]
      else if (c == "}" && scope[depth--] == "f" && scope[depth] != "f") statement = ""
    } else if (c == "{" && round == 0) {
      scope[++depth] = scope_begins()
      if (scope[depth] ~ /[nt]/) statement = ""
    } else if (c == "}" && round == 0) {
      --depth
      statement = ""
    } else if (c == ";" && round == 0) {
      declaration_ends()
      statement = ""
    } else {
      if (c ~ /[({]/) ++round
      if (c ~ /[)}]/) --round
      if (statement ~ /^ *$/) {
        statement = ""
        begins_at = FNR
      }
      statement = statement c
      if (statement ~ /^(public|private|protected):$/) statement = ""
    }
  }
  statement = statement " "
}
function header_ends(i, name) {
  for (i = 1; i <= num_declared; ++i) {
    name = declared[i]
    if (name in defined) continue
    print file ":" line_of[i] ": declares " name "(), and there is no source of this name"
    status = 1
  }
}
FNR == 1 {
  if (file != "") header_ends()
  file = FILENAME
  num_declared = 0
  split("", defined)
  depth = round = in_comment = continued = 0
  statement = ""
}
{
  follow(code_of($0))
}
END {
  if (file != "") header_ends()
  exit status
}
