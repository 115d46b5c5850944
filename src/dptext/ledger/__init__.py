"""What units have lost over all releases, and the refusal of the release that would overspend."""
