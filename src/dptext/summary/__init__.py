"""Topics, phrases and trends in the texts of many people, counted with a guarantee per person."""
