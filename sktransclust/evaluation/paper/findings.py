"""Why a claim of the paper fails in the tables of the documentation, by the claim's name."""

FINDINGS: dict[str, str] = {}
