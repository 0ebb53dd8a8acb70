"""Zhou, Tan, Shroff 2018: heavy traffic under thresholds."""
