"""``goldens count DIR``, and ``goldens run --names``."""

from pathlib import Path

from executorch_goldens.running.additions import Addition


def add_to(subparsers):
    parser = subparsers.add_parser("count", description="Count the goldens of a folder.")
    parser.add_argument("folder", metavar="DIR", type=Path)
    parser.set_defaults(run=run)


def run(arguments):
    print(len(list(arguments.folder.rglob("*.txt"))))
    return 0


class Names(Addition):
    def judged(self, folder, outcomes):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "names.txt").write_text(" ".join(outcome.variation for outcome in outcomes))
