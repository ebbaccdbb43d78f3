# SPDX-License-Identifier: MIT

"""The functions of the compiled package torch_scatter that the layers of PyTorch Geometric 1.7 to 2.2 call, written with PyTorch alone."""
import torch


def scatter(src, index, dim=-1, out=None, dim_size=None, reduce='sum'):
    dim = dim % src.dim()
    size = list(src.shape)
    size[dim] = dim_size if dim_size is not None else int(index.max()) + 1
    if index.dim() == 1:
        index = index.view([-1 if d == dim else 1 for d in range(src.dim())]).expand_as(src)
    sums = torch.zeros(size, dtype=src.dtype).scatter_add(dim, index, src)
    if reduce in ('sum', 'add'):
        return sums
    if reduce == 'mean':
        return sums / torch.zeros(size, dtype=src.dtype).scatter_add(dim, index, torch.ones_like(src)).clamp(min=1)
    reduce = {'max': 'amax', 'min': 'amin', 'mul': 'prod'}[reduce]
    return torch.zeros(size, dtype=src.dtype).scatter_reduce(dim, index, src, reduce, include_self=False)


def scatter_add(src, index, dim=-1, out=None, dim_size=None):
    return scatter(src, index, dim, out, dim_size)


def scatter_mean(src, index, dim=-1, out=None, dim_size=None):
    return scatter(src, index, dim, out, dim_size, 'mean')


def not_needed(*arguments, **options):
    raise NotImplementedError


scatter_max = scatter_min = scatter_mul = gather_csr = segment_csr = scatter_softmax = scatter_std = not_needed
