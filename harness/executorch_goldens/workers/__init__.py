"""All exports of a run: templates, in which order exports are handed to them, and what each takes."""
