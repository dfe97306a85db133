"""The characters that text may have."""

from hypothesis import strategies as st

CHARACTERS = st.characters(
    exclude_categories=["Cs"]
)  # what UTF-8 has; to ask the codec of each takes two seconds
