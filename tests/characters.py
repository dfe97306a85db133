"""All characters that UTF-8 can encode."""

from hypothesis import strategies as st

CHARACTERS = st.characters(
    exclude_categories=["Cs"]
)  # computed from ranges: encoding each character takes two seconds
