# SPDX-License-Identifier: MIT

# awk -f check_words.awk glossary.md FILE...: fails when a document, or a comment or a text in a source, has a word that the glossary refuses
# everywhere: one that stands as `code` behind "Not:". Code in documents is not read. A word is also found with letters added: neighbours.
FILENAME == ARGV[1] {
  if (!(at = index($0, "Not:"))) next
  rest = substr($0, at)
  while (match(rest, /`[^`]+`/)) {
    words = words (words == "" ? "" : "|") tolower(substr(rest, RSTART + 1, RLENGTH - 2))
    rest = substr(rest, RSTART + RLENGTH)
  }
  refused = "(^|[^a-z_:])(" words ")"
  next
}
FNR == 1 {
  document = FILENAME ~ /\.md$/
  fenced = 0
}
document && /^ *```/ { fenced = !fenced }
document && (fenced || /^    /) { next }
{
  if (document) {
    prose = $0
    gsub(/`[^`]*`|\]\([^)]*\)/, " ", prose)
  } else {
    prose = ""
    rest = $0
    while (match(rest, /"([^"\\]|\\.)*"|\/\/.*|\/\*.*|^ \* .*|!>.*|^ *#[^i].*/)) {
      prose = prose " " substr(rest, RSTART, RLENGTH)
      rest = substr(rest, RSTART + RLENGTH)
    }
  }
  if (match(tolower(prose), refused)) {
    print FILENAME ":" FNR ": " substr(prose, RSTART, RLENGTH) " is a word that docs/glossary.md refuses: " $0
    bad = 1
  }
}
END { exit bad || words == "" }
