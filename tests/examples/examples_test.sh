#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# examples_test.sh MPIRUN_SH MPIEXEC RANKS EXAMPLES_DIR: the examples that are a page each, as a user runs them.
source "$(dirname "$0")/../support/program_test.sh"

for program in gcn gat graphsage rgcn custom_message link_prediction potential sign; do
  expect 1 "$program: SAR_TRACE: missing/trace: cannot write (No such file or directory)" env SAR_TRACE=missing/trace "$programs/$program"
done
expect 1 "gcn: missing/edge_index.npy: cannot open" "$programs/gcn" missing
expect 0 "test accuracy" "$programs/gcn"
expect 0 "epoch 20" "$programs/graphsage"
expect 0 "epoch 20" "$programs/gat"
expect 0 "epoch 15" "$programs/custom_message"
expect 0 "epoch 20" "$programs/rgcn"
accuracy=$(sed -n 's/^epoch 20 .*validation //p' out)
awk -v a="$accuracy" 'BEGIN { exit !(a > 0.75) }' || fail "rgcn: validation accuracy $accuracy, expected more than 0.75"
expect 0 "test AUC" "$programs/link_prediction"
auc=$(sed -n 's/^test AUC //p' out)
awk -v a="$auc" 'BEGIN { exit !(a > 0.7) }' || fail "link_prediction: test AUC $auc, expected more than 0.7"
expect 0 "corrected and smoothed" "$programs/sign"
accuracy=$(sed -n 's/^test accuracy .*smoothed //p' out)
awk -v a="$accuracy" 'BEGIN { exit !(a > 0.8) }' || fail "sign: accuracy $accuracy, expected more than 0.8"
