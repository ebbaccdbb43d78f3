# SPDX-License-Identifier: MIT

# awk -f check_names.awk HEADER... dgl_names.md: fails when a name in the last column of its tables is in no header.
BEGIN {
  # what fragments of code say besides: the language's, and names of variables
  words = split("auto author const comm data edges edge_in etype g gen graph h in json logits labels m mask message n paper s scope seeds writes x y", list)
  for (i = 1; i <= words; ++i) known[list[i]] = 1
}
FILENAME ~ /message_op\.hpp$/ && /define SAR_BINARY_MESSAGE_OPS/ {  # from which message.hpp makes fn::u_add_v and others
  line = $0
  ends = split("u_v u_e v_u v_e e_u e_v", pairs, " ")
  while (match(line, /each\([a-z]+\)/)) {
    op = substr(line, RSTART + 5, RLENGTH - 6)
    for (i = 1; i <= ends; ++i) known[substr(pairs[i], 1, 2) op substr(pairs[i], 2)] = 1
    line = substr(line, RSTART + RLENGTH)
  }
}
FILENAME !~ /\.md$/ {
  sub(/\/\/.*/, "")
  while (match($0, /[A-Za-z_][A-Za-z0-9_]*/)) {
    known[substr($0, RSTART, RLENGTH)] = 1
    $0 = substr($0, RSTART + RLENGTH)
  }
}
FILENAME ~ /\.md$/ && /^\|/ {
  columns = split($0, cells, "|")
  codes = split(cells[columns - 1], code, "`")
  for (i = 2; i <= codes; i += 2)
    while (match(code[i], /[A-Za-z_][A-Za-z0-9_]*/)) {
      name = substr(code[i], RSTART, RLENGTH)
      ++names
      if (!(name in known)) {
        print FILENAME ":" FNR ": no header has " name
        bad = 1
      }
      code[i] = substr(code[i], RSTART + RLENGTH)
    }
}
END { exit bad || names == 0 }
