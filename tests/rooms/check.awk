# SPDX-License-Identifier: MIT

# awk -v counts=0 -f check.awk - FILE... <TABLE: see check.sh. FILE...: all sources and CMakeLists.txt of the tree, by relative paths.

function found(text) {
  problems[++num_problems] = text
}
function folder_of(path) {
  sub(/\/?[^\/]*$/, "", path)
  return path
}
function unit_of(path) {
  sub(/\.[a-z0-9]+$/, "", path)
  return path
}
function trimmed(text) {
  gsub(/^[ \t]+|[ \t]+$/, "", text)
  return text
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
}
# The file of the tree that `line`, an #include, names; "" for one from elsewhere.
function included_file(line, path) {
  path = line
  sub(/^#include [<"]/, "", path)
  sub(/[>"].*/, "", path)
  if (line ~ /^#include <sar\//) {
    sub(/^sar\//, "", path)
    if (path == "config.hpp" || path == "mpi.h") return ""
    if (path in public_head) return public_head[path]
    if (!(path in exists)) found(FILENAME ":" FNR ": there is no " path)
    return path
  }
  if (line !~ /^#include "/) return ""
  if (folder_of(FILENAME) "/" path in exists) return folder_of(FILENAME) "/" path
  if ("tools/" path in exists) return "tools/" path
  if ("examples/" path in exists) return "examples/" path
  if ("bindings/c/" path in exists) return "bindings/c/" path
  found(FILENAME ":" FNR ": there is no " path)
  return ""
}
# Whether `room` is `folder` or one of its subfolders.
function is_within(room, folder) {
  return index(room "/", folder "/") == 1
}
# What forbids that file `from` includes file `to`, "" where nothing does.
function objection(from, to, room, other, rule, n, words, i) {
  room = folder_of(from)
  other = folder_of(to)
  if (room == other || !(room in place) || !(other in place)) return ""
  if (library[room] != "programs" && index(links[library[room]], " " library[other] " ") == 0)
    return room ", of the library " library[room] ", may not include " to ", of the library " library[other]
  if (place[other] > place[room] && !(unit_of(from) == unit_of(main_file[room]) && is_within(other, room)) &&
      !(from in is_public_head && library[room] == library[other]))
    return room " may not include " to ", of a room below it in the table"
  n = split(rules[room], words, " ")
  for (i = 1; i <= n; ++i) {
    if (words[i] == "not" && is_within(other, words[i + 1])) return room " may not include " to
    if (words[i] == "public" && library[other] != "programs" && !(to in public)) return to " is not public"
  }
  return ""
}
function may_use_mpi(room) {
  return !(room in rules) || index(" " rules[room] " ", " mpi ")
}
function check_includes(i, name, text, queue, first, last) {
  for (name in public_head) {
    queue[++last] = public_head[name]
    public[public_head[name]] = 1
  }
  for (first = 1; first <= last; ++first)
    for (i = 1; i <= num_includes; ++i)
      if (include_from[i] == queue[first] && !(include_to[i] in public)) {
        public[include_to[i]] = 1
        queue[++last] = include_to[i]
      }
  for (i = 1; i <= num_includes; ++i)
    if ((text = objection(include_from[i], include_to[i])) != "") found(include_at[i] ": " text)
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
# Every source is in the CMakeLists.txt of its folder or of the one above, and in the library of its room.
function check_build_files(path, folder, name, parent, other) {
  for (path in exists) {
    if (path !~ /\.cpp$/ || path ~ /^tests\//) continue
    folder = folder_of(path)
    parent = folder_of(folder)
    if (!index(cmake[folder], " " substr(path, length(folder) + 2) " ") && !index(cmake[parent], " " substr(path, length(parent) + 2) " "))
      found(path ": is not in " folder "/CMakeLists.txt")
  }
  for (folder in place)
    for (other in links)
      if (library[folder] in links && !index(links[library[folder]], " " other " ") && index(cmake[folder], " sar_" other " ")) found(folder "/CMakeLists.txt: names sar_" other ", its room is of the library " library[folder])
}
# Units of a room, and equal names of units in different rooms under one top folder.
function check_names(i, path, folder, top, name, parts) {
  for (i = 2; i < ARGC; ++i) {
    path = ARGV[i]
    if (path !~ /\.([ch]pp|f90|inc\.in)$/) continue
    folder = folder_of(path)
    if (unit_of(path) in is_unit) continue
    is_unit[unit_of(path)] = 1
    if (++units[folder] == 26) found(folder ": has more than 25 units")
    split(path, parts, "/")
    top = parts[1]
    if ((top == "tests" || top == "examples") && folder != top) top = top "/" parts[2]
    name = substr(unit_of(path), length(folder) + 2)
    if (name == "main") continue
    if ((top, name) in first_of) found(path ": has the name of " first_of[top, name])
    else first_of[top, name] = path
  }
}
function print_rooms(i, name) {
  printf "%-8s %-26s %5s %6s %6s %8s  %s\n", "library", "room", "units", "lines", "code", "comments", "purpose"
  for (i = 1; i <= num_rooms; ++i) {
    name = rooms[i]
    if (purpose[name] == "") found(main_file[name] ": its head has no paragraph \"Room " name ": ...\"")
    printf "%-8s %-26s %5d %6d %6d %7d%%  %s\n", library[name], name, units[name], room_lines[name], room_code[name], 100 * room_comments[name] / (room_comments[name] + room_code[name] + 1), purpose[name]
  }
  print ""
}
function print_counts(i, n, best) {
  printf "lines                       %6d\n", all_lines
  printf "comment lines               %6d\n", all_comments
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
    if (ARGV[i] ~ /\.[ch](pp)?$/) exists[ARGV[i]] = 1
  # what each library may include
  links["sar"] = " sar "
  links["data"] = " data sar "
  links["models"] = " models sar "
  links["c"] = " c models sar "
  links["python"] = " python models data sar "
  public_head["sar.hpp"] = "nn/sar.hpp"
  public_head["data.hpp"] = "graph/data/data.hpp"
  public_head["models.hpp"] = "nn/models/models.hpp"
  for (name in public_head) is_public_head[public_head[name]]
}

# the table of rooms
FILENAME == "-" {
  if (split($0, cells, "|") != 4) next
  name = trimmed(cells[2])
  rooms[++num_rooms] = name
  place[name] = num_rooms
  library[name] = trimmed(cells[1])
  rules[name] = trimmed(cells[3])
  main_file[name] = trimmed(cells[4])
  next
}
FNR == 1 {
  room = folder_of(FILENAME)
  statement = ""
  inside = in_body = 0
  in_head = FILENAME == main_file[room]
  comment = FILENAME ~ /\.(f90|inc(\.in)?)$/ ? "!" : "//"
  if (FILENAME ~ /pp$/ && !(room in place) && !counts && FILENAME !~ /^tests\//) found(FILENAME ": is in no room")
}
FILENAME ~ /CMakeLists/ {
  gsub(/[()"]/, " ")
  cmake[folder_of(FILENAME)] = cmake[folder_of(FILENAME)] " " $0 " "
  next
}
FILENAME ~ /^tests\// { next }
{
  ++room_lines[room]
  ++all_lines
  is_comment = index(trimmed($0), comment) == 1 && $0 ~ /[A-Za-z0-9]/
  room_comments[room] += is_comment
  all_comments += is_comment
}
/namespace sar::inline/ { found(FILENAME ":" FNR ": ctags and cscope do not understand namespace sar::inline") }
in_head && (/SPDX-License-Identifier/ || /^$/) { next }
in_head && !/^(\/\/\/|!>)/ { in_head = 0 }
in_head {
  sub(/^(\/\/\/|!>) ?/, "")
  if (index($0, "Room " room ": ") == 1) {
    in_purpose = 1
    $0 = substr($0, length("Room " room ": ") + 1)
  }
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
  if ($0 ~ /<mpi\.h>/ && !may_use_mpi(room)) found(FILENAME ":" FNR ": " room " may not use MPI")
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
comment == "!" {
  room_code[room] += !is_comment && $0 ~ /[^ ]/
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
  if (code ~ /(^|[^A-Za-z0-9_])MPI_[A-Z]/ && !may_use_mpi(room)) found(FILENAME ":" FNR ": " room " may not use MPI")
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
  check_names()
  print_rooms()
  check_includes()
  check_build_files()
  check_cycles()
  for (i = 1; i <= num_problems; ++i) print problems[i]
  exit num_problems > 0
}
