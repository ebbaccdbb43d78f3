# SPDX-License-Identifier: MIT

# awk -v to=DIR -f cut_fragments.awk FILE.md...: writes each block that begins with ```cpp NAME to DIR/NAME.inc.
/^```/ {
  if (name != "") close(to "/" name ".inc")
  name = $1 == "```cpp" ? $2 : ""
  if (name != "") {
    print "#line " FNR + 1 " \"" FILENAME "\"" > (to "/" name ".inc")
    next
  }
}
name != "" { print > (to "/" name ".inc") }
