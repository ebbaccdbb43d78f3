# SPDX-License-Identifier: MIT

# Writes one source that compiles several: all that they include, then each of them in a namespace of its own, so that equal names do not
# meet: awk -v to=FILE -f unit.awk SOURCE...
/^#include/ && !($0 in included) {
  included[$0] = 1
  print > to
}
FNR == 1 {
  name = FILENAME
  sub(/.*\//, "", name)
  sub(/\.cpp$/, "", name)
  parts = parts "\nnamespace of_" name " {\n#include \"" FILENAME "\"\n}\n"
}
END { printf "%s", parts > to }
