# SPDX-License-Identifier: MIT

# Folders with several types in OGB's layout, sourced by tests: `mag_folder DIR` is like ogbn-mag (labels of papers, features of papers only),
# `biokg_folder DIR` is like ogbl-biokg (no features; a split of triples, with other heads and tails of each in validation and test).

# ogb_relation DIR SRC NAME DST NUMBER: the files of an edge type, of which stdin has the edges.
ogb_relation() {
  local folder=$1/raw/relations/$2___$3___$4
  mkdir -p "$folder"
  cat >"$folder/edge.csv"
  wc -l <"$folder/edge.csv" | tr -d ' ' >"$folder/num-edge-list.csv"
  sed "s/.*/$5/" "$folder/edge.csv" >"$folder/edge_reltype.csv"
  echo "$2,$3,$4" >>"$1/raw/triplet-type-list.csv"
}

# Edges join nodes of the same one of four groups mostly; every fifth joins any.
# ogb_edges SOURCES DESTINATIONS EDGES SALT
ogb_edges() {
  awk -v n="$1" -v m="$2" -v edges="$3" -v salt="$4" 'BEGIN {
    srand(salt)
    while (i < edges) {
      u = int(rand() * n); v = int(rand() * m)
      if (i % 5 > 0) v = v - v % 4 + u % 4
      if (v < m && u != v && !((u, v) in seen)) { seen[u, v]; print u "," v; ++i }
    } }'
}

mag_folder() {
  mkdir -p "$1/raw/node-feat/paper" "$1/raw/node-label/paper" "$1/raw/node_year/paper" "$1/split/time/paper"
  printf 'author,field_of_study,institution,paper\n60,16,8,120\n' >"$1/raw/num-node-dict.csv"
  printf 'author,field_of_study,institution,paper\nFalse,False,False,True\n' | tee "$1/raw/nodetype-has-feat.csv" >"$1/raw/nodetype-has-label.csv"
  ogb_edges 60 8 60 1 | ogb_relation "$1" author affiliated_with institution 0
  ogb_edges 60 120 400 2 | ogb_relation "$1" author writes paper 1
  ogb_edges 120 120 500 3 | ogb_relation "$1" paper cites paper 2
  ogb_edges 120 16 240 4 | ogb_relation "$1" paper has_topic field_of_study 3
  awk 'BEGIN { srand(5); for (v = 0; v < 120; ++v) { for (j = 0; j < 6; ++j) printf "%s%.4f", j ? "," : "", rand() + (v % 4 == j); print "" } }' >"$1/raw/node-feat/paper/node-feat.csv"
  seq 0 119 | awk '{ print $1 % 4 }' >"$1/raw/node-label/paper/node-label.csv"
  seq 0 119 | awk '{ print 2000 + $1 % 20 }' >"$1/raw/node_year/paper/node_year.csv"
  seq 0 119 | awk '$1 % 5 < 3' >"$1/split/time/paper/train.csv"
  seq 0 119 | awk '$1 % 5 == 3' >"$1/split/time/paper/valid.csv"
  seq 0 119 | awk '$1 % 5 == 4' >"$1/split/time/paper/test.csv"
}

biokg_folder() {
  local part
  mkdir -p "$1"/raw "$1"/split/random/{train,valid,test}
  printf 'disease,drug,protein\n24,40,60\n' >"$1/raw/num-node-dict.csv"
  # head, relation, tail and part of each triple; the graph has those of training
  {
    ogb_edges 24 60 200 11 | sed 's/^/disease disease-protein protein 0 /'
    ogb_edges 40 24 160 12 | sed 's/^/drug drug-disease disease 1 /'
    ogb_edges 40 60 300 13 | sed 's/^/drug drug-protein protein 2 /'
    ogb_edges 60 60 300 14 | sed 's/^/protein protein-protein protein 3 /'
  } | awk '{ part = NR % 10 < 8 ? "train" : NR % 10 == 8 ? "valid" : "test"; print $0, part }' >"$1/triples"
  while read -r src name dst number; do
    awk -v name="$name" '$2 == name && $6 == "train" { print $5 }' "$1/triples" | ogb_relation "$1" "$src" "$name" "$dst" "$number"
  done <<'END'
disease disease-protein protein 0
drug drug-disease disease 1
drug drug-protein protein 2
protein protein-protein protein 3
END
  for part in train valid test; do
    awk -v part="$part" -v folder="$1/split/random/$part" '
      BEGIN { size["disease"] = 24; size["drug"] = 40; size["protein"] = 60 }
      $6 == part {
        split($5, ends, ",")
        print ends[1] > (folder "/head.csv"); print $4 > (folder "/relation.csv"); print ends[2] > (folder "/tail.csv")
        if (part == "train") next
        heads = tails = ""
        for (k = 0; k < 8; ++k) {
          heads = heads (k ? "," : "") ((ends[1] * 7 + 5 * k + NR) % size[$1])
          tails = tails (k ? "," : "") ((ends[2] * 3 + 7 * k + NR) % size[$3])
        }
        print heads > (folder "/head_neg.csv"); print tails > (folder "/tail_neg.csv")
      }' "$1/triples"
  done
}
