#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# accuracy.sh TRAIN DATA OUT [PYTHON [ROW...]]: the table of docs/accuracy.md. For each row, TRAIN trains on 10 splits or seeds, and PYTHON, which has
# PyTorch Geometric, runs bench/peer/nodes.py with the same options. OUT gets a folder of logs for each row; what has its log there is not run again.
# PYTHON may be empty: then there is no column for PyTorch Geometric. A ROW is named as its folder: cora_gcn. THREADS (2) threads each.
#
# DATA has cora/ (Planetoid's split as .npy files) and published/ (minesweeper.npz, chameleon_filtered.npz, texas.npz, citeseer.npz, DE.json, DE_edges.csv,
# DE_target.csv, as their authors give them).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
train=$1 data=$2 out=$3 python=${4:-}
shift $(($# < 4 ? $# : 4))
published=$data/published threads=${THREADS:-2}

# FOLDER | dataset | network | metric in the log | how a split is drawn, or nothing | the number of a paper | all other options
rows() {
  local gcn="--model gcn --add-self-loops" sage="--model sage" gat="--model gat --add-self-loops"
  local of="--normalize-features --layers 2 --weight-decay 5e-4 --epochs 200 --runs 10"
  local attention="--hidden 64 --heads 8 --dropout 0.6 --attn-dropout 0.6 --lr 0.005"
  echo "cora_gcn|Cora|GCN|acc||81.5 [a]|--dataset $data/cora $of $gcn --hidden 16 --dropout 0.5"
  echo "cora_sage|Cora|SAGE|acc|||--dataset $data/cora $of $sage --hidden 64 --dropout 0.5"
  echo "cora_gat|Cora|GAT|acc||83.0 &plusmn; 0.7 [b]|--dataset $data/cora $of $gat $attention"
  local draw="--split-nodes 20/class,500,1000"
  of="--dataset $published/citeseer.npz --add-reverse-edges --drop-duplicates $of"
  echo "citeseer_gcn|Citeseer|GCN|acc|$draw|73.1 &plusmn; 0.7 [c]|$of $gcn --hidden 16 --dropout 0.5"
  echo "citeseer_sage|Citeseer|SAGE|acc|$draw|72.3 &plusmn; 0.6 [c]|$of $sage --hidden 64 --dropout 0.5"
  echo "citeseer_gat|Citeseer|GAT|acc|$draw|72.2 &plusmn; 0.8 [c]|$of $gat $attention"
  of="--dataset $published/minesweeper.npz --add-reverse-edges --layers 12 --hidden 64 --residual linear --norm batch --jk last --dropout 0.2"
  of+=" --epochs 300 --eval-every 5 --metric roc-auc --splits 0,1,2"
  echo "minesweeper_gcn|minesweeper, ROC-AUC|GCN|auc||97.9 &plusmn; 0.2 [c]|$of $gcn"
  echo "minesweeper_sage|minesweeper, ROC-AUC|SAGE|auc||97.8 &plusmn; 0.6 [c]|$of $sage"
  echo "minesweeper_gat|minesweeper, ROC-AUC|GAT|auc||97.7 &plusmn; 0.7 [c]|$of $gat --heads 1"
  of="--dataset $published/chameleon_filtered.npz --add-reverse-edges --layers 2 --hidden 64 --residual linear --norm batch --jk last"
  of+=" --dropout 0.5 --weight-decay 1e-3 --epochs 200 --splits all"
  echo "chameleon_filtered_gcn|chameleon_filtered|GCN|acc||46.3 &plusmn; 3.4 [c]|$of $gcn"
  echo "chameleon_filtered_sage|chameleon_filtered|SAGE|acc||44.8 &plusmn; 4.7 [c]|$of $sage"
  echo "chameleon_filtered_gat|chameleon_filtered|GAT|acc||44.1 &plusmn; 4.2 [c]|$of $gat --heads 4"
  of="--dataset $published/texas.npz --add-reverse-edges --layers 2 --hidden 64 --dropout 0.5 --weight-decay 5e-4 --epochs 200 --splits all"
  echo "texas_gcn|texas|GCN|acc|||$of $gcn"
  echo "texas_sage|texas|SAGE|acc|||$of $sage"
  echo "texas_gat|texas|GAT|acc|||$of $gat --heads 4"
  of="--dataset $published/DE_edges.csv --node-table $published/DE_target.csv --node-columns key=new_id,labels=mature --node-features $published/DE.json"
  of+=" --add-reverse-edges --layers 2 --hidden 64 --norm batch --jk last --dropout 0.5 --epochs 100 --metric roc-auc --runs 10"
  draw="--split-nodes 0.6,0.2,0.2"
  echo "twitch_DE_gcn|twitch DE, ROC-AUC|GCN|auc|$draw||$of $gcn"
  echo "twitch_DE_sage|twitch DE, ROC-AUC|SAGE|auc|$draw||$of $sage"
  echo "twitch_DE_gat|twitch DE, ROC-AUC|GAT|auc|$draw||$of $gat --heads 4"
}

# "97.1 &plusmn; 0.3" of {"mean": 0.971, "std": 0.003
percent() { sed 's/.*"mean": *\([0-9.e+-]*\), *"std": *\([0-9.e+-]*\).*/\1 \2/' | awk '{ printf "%.1f &plusmn; %.1f", 100 * $1, 100 * $2 }'; }

echo "| dataset | network | sar | PyG | paper |"
echo "|---|---|---|---|---|"
while IFS='|' read -r name dataset network metric draw paper options; do
  [ $# -eq 0 ] || [[ " $* " == *" $name "* ]] || continue
  folder=$out/$name
  mkdir -p "$folder"
  log=$folder/train.jsonl
  if ! { [ -s "$log" ] && tail -n 1 "$log" | grep -q '^{"runs"'; }; then
    # shellcheck disable=SC2086
    "$train" $options $draw ${draw:+--predict "$folder/predictions"} --threads "$threads" --log "$log" >"$folder/train.out"
  fi
  if [ -n "$python" ] && [ ! -s "$folder/peer.json" ]; then
    # shellcheck disable=SC2086
    "$python" "$here/peer/nodes.py" $options ${draw:+--drawn "$folder/predictions"} --threads "$threads" --log "$folder/peer.json" >"$folder/peer.out"
  fi
  ours=$(tail -n 1 "$log" | sed "s/.*\"test_$metric\":\({[^}]*\).*/\1/" | percent)
  theirs=$([ ! -s "$folder/peer.json" ] || percent <"$folder/peer.json")
  echo "| $dataset | $network | $ours | $theirs | $paper |"
done < <(rows)
