#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# train_networks_test.sh MPIRUN_SH MPIEXEC RANKS TOOLS_DIR: every convolution with the ways to train it: batch norm, message flow
# graphs, sparse features, stages and relations give the losses that they must give.
source "$(dirname "$0")/../support/program_test.sh"

# A bias in front of a batch norm has a gradient of zero, and rounding does not move it, although Adam would scale it up.
for python in python3 /usr/bin/python3 none; do "$python" -c 'import numpy' 2>/dev/null && break; done
for model in sage gcn gat rgcn gin; do
  for epochs in 1 4; do
    "${run[@]}" "$programs/train" --graph sbm --nodes 500 --classes 4 --degree 6 --hidden 16 --epochs $epochs --model $model --batch-norm \
      --partition random --eval-every 0 --save-weights bn$epochs.safetensors >out 2>err || fail "--batch-norm --model $model ends with $?"
  done
  [ "$python" = none ] && continue
  "$python" - $model <<'END' >out 2>err || fail "biases of $model in front of a batch norm"
import json, struct, sys
import numpy as np
def moved(name):
    values = []
    for file in "bn1.safetensors", "bn4.safetensors":
        data = open(file, "rb").read()
        size = struct.unpack("<Q", data[:8])[0]
        entry = json.loads(data[8:8 + size])[name]
        values.append(np.frombuffer(data[8 + size:][slice(*entry["data_offsets"])], {"F32": np.float32, "F64": np.float64}[entry["dtype"]]))
    return bool(np.any(values[0] != values[1]))
name = {"sage": "convs.%d.fc_self.bias", "gin": "layers.%d.apply_func.3.bias", "rgcn": "layers.%d.h_bias"}.get(sys.argv[1], "layers.%d.bias")
assert [moved(name % layer) for layer in range(3)] == [False, False, True], [moved(name % layer) for layer in range(3)]
if sys.argv[1] == "gin":
    assert not any(moved("layers.%d.apply_func.0.bias" % layer) for layer in range(3))
END
done

# With --mfg, a step computes less and gives the same losses.
for model in "sage --residual linear --jk cat --pre-linear" gcn gat "gat --attn-dropout 0.3" "gatv2 --attn-dropout 0.3" rgcn "rgcn --num-bases 3"; do
  for mfg in "" --mfg; do
    "${run[@]}" "$programs/train" --graph sbm --nodes 2000 --classes 4 --degree 6 --train-share 0.01 --layers 2 --hidden 32 --epochs 8 \
      --dropout 0.3 --model $model --partition random --eval-every 0 --log log$mfg.jsonl $mfg >out 2>err || fail "--mfg ends with $?"
  done
  paste log.jsonl log--mfg.jsonl | sed -n 's/.*"loss":\([^,]*\),.*"comm_bytes":\([0-9]*\),.*"loss":\([^,]*\),.*"comm_bytes":\([0-9]*\),.*/\1 \2 \3 \4/p' >both
  awk -v ranks="$ranks" '{ if (($1 - $3) ^ 2 > 1e-8 * $1 ^ 2 || (ranks > 1 && $4 > 0.8 * $2)) exit 1; ++n } END { exit n != 8 }' both ||
    fail "$model: loss and comm_bytes without and with --mfg: $(cat both)"
done

# Sparse features give the losses of dense ones, also from a partition directory.
for model in gcn gin; do
  for sparse in no yes; do
    "${run[@]}" "$programs/train" --graph karate --layers 2 --hidden 8 --epochs 4 --dropout 0.5 --model $model --eval-every 0 \
      --sparse-features $sparse --log log-$sparse.jsonl >out-$sparse 2>err || fail "--sparse-features $sparse ends with $?"
  done
  grep -q "34 features (sparse, 2.9 % of the values are not 0)" out-yes || fail "the first lines do not say that features are sparse"
  grep -q "34 features," out-no || fail "the first lines say that dense features are sparse"
  paste log-no.jsonl log-yes.jsonl | sed -n 's/.*"loss":\([^,]*\),.*"loss":\([^,]*\),.*/\1 \2/p' |
    awk '{ if (($1 - $2) ^ 2 > 1e-8 * $1 ^ 2) exit 1; ++n } END { exit n != 4 }' || fail "$model: losses with --sparse-features yes"
done

# Relations and GIN: the losses of one rank, on any number, with stages and messages cut; and with --mfg, where all nodes are seeds
# because batch norm takes its statistics over them.
for model in gin rgcn "rgcn --num-bases 2"; do
  train=("$programs/train" --graph sbm --nodes 1000 --classes 4 --degree 8 --train-share 1 --layers 2 --hidden 16 --epochs 6
    --dropout 0.3 --model $model --partition random --eval-every 0)
  "$1" "$2" 1 "${train[@]}" --log log1.jsonl >out 2>err || fail "--model $model ends with $?"
  for options in "" --mfg "--max-halo-bytes 640 --mode sequential"; do
    "${run[@]}" "${train[@]}" --log log.jsonl $options >out 2>err || fail "--model $model $options ends with $?"
    paste log1.jsonl log.jsonl | sed -n 's/.*"loss":\([^,]*\),.*"loss":\([^,]*\),.*/\1 \2/p' >both
    awk '{ if (($1 - $2) ^ 2 > 1e-8 * $1 ^ 2) exit 1; ++n } END { exit n != 6 }' both ||
      fail "--model $model: losses on 1 and on $ranks ranks, with $options: $(cat both)"
  done
done
"${run[@]}" "$programs/train" --graph karate --model rgcn --num-rels 2 --epochs 5 >out 2>err || fail "rgcn on karate ends with $?"

