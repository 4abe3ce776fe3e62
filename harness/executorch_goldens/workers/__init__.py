"""All exports of a run: templates, the order of their exports, and the seconds of each."""
