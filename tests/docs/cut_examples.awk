# SPDX-License-Identifier: MIT

# awk -f cut_examples.awk HEADER...: writes each example in a comment of a header, from "/// @code" to "/// @endcode", as a test case
# of its own. It uses the names of the fixture ExampleNames in docs_test.cpp.
FNR == 1 && inside { complain("an example does not end") }
/^ *\/\/\/ @code$/ {
  if (inside) complain("an example within an example")
  inside = 1
  print "TEST_CASE_FIXTURE(ExampleNames, \"the example in " FILENAME ":" FNR "\") {\n#line " FNR + 1 " \"" FILENAME "\""
  next
}
/^ *\/\/\/ @endcode$/ {
  if (!inside) complain("an example does not begin")
  inside = 0
  print "}"
  next
}
/@(end)?code/ { complain("@code and @endcode stand on lines of their own") }
inside && !/^ *\/\/\// { complain("an example does not end"); inside = 0 }
inside {
  sub(/^ *\/\/\/ ?/, "")
  print
}
function complain(text) {
  print FILENAME ":" FNR ": " text > "/dev/stderr"
  bad = 1
}
END {
  if (inside) complain("an example does not end")
  exit bad
}
