"""A model of somebody's, for tests of a repository that begins with goldens."""

import torch


class Words(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.last = torch.nn.Linear(12, 8)

    def forward(self, x):
        return self.last(x)


class WakeWord(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = torch.nn.Linear(40, 12)
        self.words = Words()

    def forward(self, sound):
        return self.words(torch.relu(self.hidden(sound)))
