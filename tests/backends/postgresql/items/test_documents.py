"""What `jsonb` gives back is what was stored."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from locus_memory.backends.postgresql.items.documents import (
    encode_string,
)

control = st.text("\x00\x01\x02\x03\x04ab\\u", max_size=8)


@given(control, control)
def test_order_and_parts_stay_as_they_are(one, other):
    assert (encode_string(one) < encode_string(other)) == (one < other)
    assert (encode_string(one) in encode_string(other)) == (one in other)
