# awk -v counts=0 -f check.awk ROOMS FILE...: see check.sh. FILE...: all sources and CMakeLists.txt of the tree, by relative paths.

function found(text) {
  problems[++num_problems] = text
}
function folder_of(path) {
  sub(/\/?[^\/]*$/, "", path)
  return path
}
function unit_of(path) {
  sub(/\.[ch]pp$/, "", path)
  return path
}
function trimmed(text) {
  gsub(/^[ \t]+|[ \t]+$/, "", text)
  return text
}
# The room with the longest name that leads to `path`, or "".
function room_of(path) {
  while ((path = folder_of(path)) != "")
    if (path in may) return path
  return ""
}
# A line of code without comments and without the texts of its literals.
function code_of(line) {
  gsub(/\\\\|\\"|\\'/, "", line)
  gsub(/R"\(([^)]|\)[^"])*\)"/, "\"\"", line)
  gsub(/'[^']'/, "0", line)
  gsub(/"[^"]*"/, "\"\"", line)
  sub(/\/\/.*/, "", line)
  gsub(/\/\*[^*]*\*\//, "", line)
  return trimmed(line)
}
function occurrences(text, pattern) {
  return gsub(pattern, "&", text)
}
# The name of the function whose head is `text`.
function function_name(text) {
  gsub(/\[\[[^\]]*\]\]/, "", text)
  if (match(text, /operator *(\(\)|\[\]|[^A-Za-z( ]+) *\(/)) return substr(text, RSTART, RLENGTH - 1)
  if (!match(text, /[A-Za-z_~][A-Za-z0-9_:~]*\(/)) return "?"
  return substr(text, RSTART, RLENGTH - 1)
}
# Follows the braces of a line of code to find where functions begin and end. Sources have clang-format's layout: a blank precedes the brace of a body.
function follow_braces(line, i, c, length_, before) {
  for (i = 1; i <= length(line); ++i) {
    c = substr(line, i, 1)
    if (c == "{") {
      before = i > 1 ? substr(line, i - 1, 1) : " "
      if (inside || (before != " " && before != ")") || trimmed(statement) ~ /[=,(]$/) ++inside
      else if (statement ~ /\(/ && trimmed(statement) !~ /^(template *<.*> *)?(namespace|class|struct|union|enum|extern)[^a-z]/) {
        inside = 1
        in_body = 1
      } else {
        statement = ""
        continue
      }
    } else if (c == "}") {
      if (inside && --inside == 0 && in_body) {
        function_ends()
        in_body = 0
        statement = ""
        continue
      } else if (!inside) statement = ""
    } else if (!inside && c == ";") statement = ""
    else if (!inside) {
      if (statement == "") {
        if (c == " ") continue
        begins_at = FNR
      }
      statement = statement c
      if (statement ~ /^(public|private|protected):$/) statement = ""
    }
  }
  if (!inside && statement != "") statement = statement " "
}
function function_ends(lines) {
  lines = FNR - begins_at + 1
  ++num_functions
  longest_name[num_functions] = function_name(statement) " (" FILENAME ":" begins_at ")"
  longest_lines[num_functions] = lines
  if (lines > room_longest[room]) {
    room_longest[room] = lines
    room_longest_name[room] = longest_name[num_functions]
  }
}
# The file of the tree that `line`, an #include, names; "" for one from elsewhere.
function included_file(line, path) {
  path = line
  sub(/^#include [<"]/, "", path)
  sub(/[>"].*/, "", path)
  if (line ~ /^#include <sar\//) {
    sub(/^sar\//, "", path)
    if (path == "config.hpp") return ""
    if (path == "sar.hpp") return "nn/sar.hpp"
    if (!(path in exists)) found(FILENAME ":" FNR ": there is no " path)
    return path
  }
  if (line !~ /^#include "/) return ""
  if (folder_of(FILENAME) "/" path in exists) return folder_of(FILENAME) "/" path
  if ("tools/" path in exists) return "tools/" path
  if ("examples/" path in exists) return "examples/" path
  found(FILENAME ":" FNR ": there is no " path)
  return ""
}
# Whether files of unit `from` in `room` may include files of room `to`.
function allowed(from, room, to, list) {
  if (room == to) return 1
  list = " " may[room] " "
  if (index(list, " " to " ")) return 1
  sub(/.*\//, "", from)
  return index(list, " " to "(" from ") ") > 0
}
function check_includes(i, to, public, queue, first, last, parts) {
  queue[last = 1] = "nn/sar.hpp"
  public["nn/sar.hpp"] = 1
  for (first = 1; first <= last; ++first)
    for (i = 1; i <= num_includes; ++i)
      if (include_from[i] == queue[first] && !(include_to[i] in public)) {
        public[include_to[i]] = 1
        queue[++last] = include_to[i]
      }
  for (i = 1; i <= num_includes; ++i) {
    room = room_of(include_from[i])
    to = room_of(include_to[i])
    if (room == "" || to == "" || allowed(unit_of(include_from[i]), room, to)) continue
    if (index(" " may[room] " ", " public ") && to != "tools" && to != "examples") {
      if (!(include_to[i] in public)) found(include_at[i] ": " include_to[i] " is not public: nn/sar.hpp does not include it")
    } else found(include_at[i] ": " room " may not include " include_to[i])
  }
  for (i = 1; i <= num_foreign; ++i)
    if (foreign_from[i] in public) found(foreign_at[i] ": a public header shows " foreign_what[i])
}
# Units include units; each cycle among them is shown once, as a shortest one through its units.
function check_cycles(i, j, from, to, edge, removed, n, left, ends, name, start, queue, first, last, previous, path, k, parts, least, shown) {
  for (i = 1; i <= num_includes; ++i) {
    from = unit_of(include_from[i])
    to = unit_of(include_to[i])
    if (from != to && !((from, to) in edge)) {
      edge[from, to] = include_at[i]
      edge_from[++num_edges] = from
      edge_to[num_edges] = to
      left[from] = left[to] = 1
    }
  }
  do {  # units without a way in or without a way out are in no cycle
    removed = 0
    split("", ends)
    for (j = 1; j <= num_edges; ++j)
      if (left[edge_from[j]] && left[edge_to[j]]) {
        ends["out", edge_from[j]] = 1
        ends["in", edge_to[j]] = 1
      }
    for (name in left)
      if (left[name] && !((("in", name) in ends) && (("out", name) in ends))) {
        left[name] = 0
        removed = 1
      }
  } while (removed)
  for (i = 1; i <= num_edges; ++i) {
    start = edge_from[i]
    if (!left[start]) continue
    split("", previous)
    queue[1] = start
    last = 1
    for (first = 1; first <= last && !(start in previous); ++first)
      for (j = 1; j <= num_edges; ++j)
        if (edge_from[j] == queue[first] && left[edge_to[j]] && !(edge_to[j] in previous)) {
          previous[edge_to[j]] = queue[first]
          queue[++last] = edge_to[j]
        }
    if (!(start in previous)) continue
    n = 0
    name = start
    do {
      parts[++n] = name
      name = previous[name]
    } while (name != start)
    least = 1
    for (k = 2; k <= n; ++k)
      if (parts[k] < parts[least]) least = k
    path = parts[least]  # `parts` runs against the includes
    for (k = 1; k <= n; ++k) path = path " -> " parts[(least - 1 - k + 2 * n) % n + 1]
    if (!(path in shown)) found("cycle: " path)
    shown[path] = 1
  }
}
function check_build_files(path, folder, name) {
  for (path in exists) {
    if (path !~ /\.cpp$/) continue
    folder = folder_of(path)
    name = substr(path, length(folder) + 2)
    if (!(folder in cmake) || !index(cmake[folder], " " name " ")) found(path ": is not in " folder "/CMakeLists.txt")
  }
}
function print_rooms(i, name) {
  printf "%-16s %5s %6s %6s  %s\n", "room", "files", "lines", "code", "longest function"
  for (i = 1; i <= num_rooms; ++i) {
    name = rooms[i]
    printf "%-16s %5d %6d %6d  %3d %s\n", name, room_files[name], room_lines[name], room_code[name], room_longest[name], room_longest_name[name]
  }
  print ""
  for (i = 1; i <= num_rooms; ++i) {
    name = rooms[i]
    if (purpose[name] == "") found(main_file[name] ": its head has no paragraph \"Room " name ": ...\"")
    else printf "%-16s %s\n", name, purpose[name]
  }
  print ""
}
function print_counts(i, n, best) {
  printf "lines                       %6d\n", all_lines
  printf "lines without comments      %6d\n", all_code
  printf "static_cast<std::size_t>    %6d\n", num_casts
  printf "agree(                      %6d\n", num_agree
  printf "calls of all_to_all_v       %6d\n", num_routing
  printf "functions above 60 lines    %6d\n", num_long
  print "longest functions"
  for (n = 1; n <= 10; ++n) {
    best = 0
    for (i = 1; i <= num_functions; ++i)
      if (longest_lines[i] > (best ? longest_lines[best] : 0)) best = i
    if (!best) break
    printf "  %4d %s\n", longest_lines[best], longest_name[best]
    longest_lines[best] = 0
  }
}
BEGIN {
  for (i = 2; i < ARGC; ++i)
    if (ARGV[i] ~ /pp$/) exists[ARGV[i]] = 1
}

# the table of rooms
FILENAME == "-" {
  if (split($0, cells, "|") != 3) next
  name = trimmed(cells[1])
  rooms[++num_rooms] = name
  may[name] = trimmed(cells[2])
  main_file[name] = trimmed(cells[3])
  n = split(may[name], words, " ")
  for (i = 1; i <= n; ++i) {
    sub(/\(.*/, "", words[i])
    if (words[i] != "public" && words[i] != "mpi" && !(words[i] in may)) found("the table: " name " may include " words[i] ", which is not above it")
  }
  next
}
FNR == 1 {
  room = room_of(FILENAME)
  statement = ""
  inside = in_body = 0
  in_head = FILENAME == main_file[room]
  if (FILENAME ~ /pp$/) {
    if (room == "" && !counts) found(FILENAME ": is in no room")
    ++room_files[room]
  }
}
FILENAME ~ /CMakeLists/ {
  gsub(/[()"]/, " ")
  cmake[folder_of(FILENAME)] = cmake[folder_of(FILENAME)] " " $0 " "
  next
}
{
  ++room_lines[room]
  ++all_lines
}
in_head && !/^\/\/\// { in_head = 0 }
in_head {
  if (index($0, "/// Room " room ": ") == 1) {
    in_purpose = 1
    $0 = substr($0, length("/// Room " room ": ") + 1)
  } else sub(/^\/\/\/ ?/, "")
  if (in_purpose) {
    if ($0 ~ /^ *$/) in_purpose = 0
    else if (match($0, /\.( |$)/)) {
      purpose[room] = trimmed(purpose[room] " " substr($0, 1, RSTART))
      in_purpose = 0
    } else purpose[room] = purpose[room] " " $0
  }
  next
}
/^#include / {
  ++room_code[room]
  if ($0 ~ /<mpi\.h>/ && !index(" " may[room] " ", " mpi ")) found(FILENAME ":" FNR ": " room " may not use MPI")
  if ($0 ~ /<(Eigen|oneapi\/tbb|tbb)\//) {
    foreign_from[++num_foreign] = FILENAME
    foreign_at[num_foreign] = FILENAME ":" FNR
    foreign_what[num_foreign] = substr($0, 10)
  }
  if (!counts && (to = included_file($0)) != "") {
    include_from[++num_includes] = FILENAME
    include_to[num_includes] = to
    include_at[num_includes] = FILENAME ":" FNR
  }
  next
}
/^ *#/ || continued {
  continued = /\\$/
  next
}
{
  code = code_of($0)
  if (code == "") next
  ++room_code[room]
  if (code ~ /(^|[^A-Za-z0-9_])MPI_[A-Z]/ && !index(" " may[room] " ", " mpi ")) found(FILENAME ":" FNR ": " room " may not use MPI")
  follow_braces(code)
  if (counts) {
    num_casts += occurrences(code, "static_cast<std::size_t>")
    num_agree += occurrences(" " code, "[^A-Za-z0-9_]agree\\(")
    num_routing += occurrences(" " code, "[.>]all_to_all_v[(<]")
  }
}
END {
  for (i = 1; i <= num_functions; ++i) num_long += longest_lines[i] > 60
  for (name in room_code) all_code += room_code[name]
  if (counts) {
    print_counts()
    exit
  }
  print_rooms()
  check_includes()
  check_build_files()
  check_cycles()
  for (i = 1; i <= num_problems; ++i) print problems[i]
  exit num_problems > 0
}
