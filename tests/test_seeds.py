"""A stream is a function of (seed, purpose, indices) and of nothing else."""

from hypothesis import given
from hypothesis import strategies as st

from distpaml import seeds

keys = st.tuples(
    st.integers(0, 2**64),
    st.sampled_from(["design", "uniform", "hidden", "start"]),
    st.integers(0, 2**32 - 1),
)


def draw(key):
    return tuple(seeds.rng(*key).random(4))


@given(st.lists(keys, min_size=1, max_size=8, unique=True), st.randoms())
def test_streams_do_not_depend_on_the_order_and_differ(unique_keys, random):
    first = {key: draw(key) for key in unique_keys}
    shuffled = random.sample(unique_keys, len(unique_keys))
    assert {key: draw(key) for key in shuffled} == first
    assert len(set(first.values())) == len(unique_keys)


def test_a_stream_is_the_same_in_every_process_and_version():
    assert seeds.rng(3, "design").integers(1000, size=3).tolist() == PINNED


PINNED = [246, 637, 838]
