"""Permutations with one and several consumers: no output of a delegate may alias an input or another one.

XNNPACK takes no delegate that passes a tensor through, and a clone that lowering removes makes one (issue
#19152). The first model is the issue's own.
"""

from __future__ import annotations

import torch

from executorch_goldens import Data, Example, case

SHAPE = (2, 3, 5)


class ReshapeAndSum(torch.nn.Module):
    """The model of issue #19152."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = x.permute(0, 2, 1)
        return y.reshape(x.shape[0], -1), y.sum(dim=1)


class CloneAndItself(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = x.permute(0, 2, 1)
        return y.clone(), y


class ContiguousCumsumAndSum(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = x.permute(0, 2, 1)
        return y.contiguous().cumsum(1), y.sum(1)


class ReluCloneAndItself(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = torch.relu(x)
        return y.clone(), y


class Reshape(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.permute(0, 2, 1).reshape(x.shape[0], -1)


class Sum(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.permute(0, 2, 1).sum(dim=1)


class ItselfAndSum(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = x.permute(0, 2, 1)
        return y, y.sum(dim=1)


@case(guards="a permutation that a reshape and a sum consume lowers", issue=19152)
def permute_reshape_sum(data: Data) -> Example:
    return Example(ReshapeAndSum(), (data.tensor("x", *SHAPE),))


@case(guards="a permutation returned beside its clone lowers to two outputs", issue=19152)
def permute_clone(data: Data) -> Example:
    return Example(CloneAndItself(), (data.tensor("x", *SHAPE),))


@case(guards="a permutation made contiguous for one consumer of two lowers", issue=19152)
def permute_contiguous_cumsum(data: Data) -> Example:
    return Example(ContiguousCumsumAndSum(), (data.tensor("x", *SHAPE),))


@case(guards="any value returned beside its clone lowers, permuted or not", issue=19152)
def relu_clone(data: Data) -> Example:
    return Example(ReluCloneAndItself(), (data.tensor("x", *SHAPE),))


@case(guards="control for issue #19152: only a reshape consumes the permutation")
def permute_reshape(data: Data) -> Example:
    return Example(Reshape(), (data.tensor("x", *SHAPE),))


@case(guards="control for issue #19152: only a sum consumes the permutation")
def permute_sum(data: Data) -> Example:
    return Example(Sum(), (data.tensor("x", *SHAPE),))


@case(guards="control for issue #19152: the permutation is an output and a sum consumes it")
def permute_itself_sum(data: Data) -> Example:
    return Example(ItselfAndSum(), (data.tensor("x", *SHAPE),))
