"""Sentences made up for this library: what a report shows before and after, in place of anybody's texts."""

__all__ = ["SENTENCES"]

SENTENCES = (
    "The doctor said that my knee will be fine in three weeks.",
    "Please book a table for two at an Italian restaurant tomorrow.",
    "My sister lost her job at the bank and moved to London.",
    "I was angry about the long wait, but the nurse was kind.",
    "Write to anna@example.org or call 555 0100 before Friday.",
    "The film was too long and the music was terrible.",
)
