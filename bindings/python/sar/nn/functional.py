# SPDX-License-Identifier: MIT

"""Functions of rows, losses and metrics under torch's names."""

from .._sar import (
    abs,
    accuracy,
    average_precision,
    batch_norm_relu_dropout,
    binary_cross_entropy_with_logits,
    clamp,
    cross_entropy,
    edge_softmax,
    elu,
    embedding,
    exp,
    f1_score,
    gelu,
    huber_loss,
    l1_loss,
    leaky_relu,
    linear,
    log,
    log_softmax,
    matmul,
    mean_absolute_error,
    mean_squared_error,
    mse_loss,
    r2_score,
    relu,
    relu_dropout,
    roc_auc,
    sigmoid,
    silu,
    softmax,
    softplus,
    sqrt,
    tanh,
)

__all__ = [
    "abs", "accuracy", "average_precision", "batch_norm_relu_dropout", "binary_cross_entropy_with_logits", "clamp", "cross_entropy",
    "edge_softmax", "elu", "embedding", "exp", "f1_score", "gelu", "huber_loss", "l1_loss", "leaky_relu", "linear", "log", "log_softmax",
    "matmul", "mean_absolute_error", "mean_squared_error", "mse_loss", "r2_score", "relu", "relu_dropout", "roc_auc", "sigmoid",
    "silu", "softmax", "softplus", "sqrt", "tanh",
]
