"""Table 1 of the paper (TrustPilot, 10 folds): accuracy of the sentiment, F1 of attributes; without intervals."""

from __future__ import annotations

SET = "TrustPilot, English, 10,000 reviews a country; about 75% have five stars"
PRINTED = {
    "ORIGINAL": (0.7493, 0.3449, 0.1539, 0.5301),
    "DIFPRIV": (0.7397, 0.3177, 0.1411, 0.5118),
    "ADV-ALL": (0.7165, 0.3076, 0.1080, 0.4716),
    "DPTEXT": (0.7318, 0.1994, 0.0581, 0.3911),
}
"""By method: sentiment (accuracy), age, location, gender (F1)."""
