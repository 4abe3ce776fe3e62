"""The causes of what runs find: cells whose difference is the same edit by the same pass, whoever asks."""
