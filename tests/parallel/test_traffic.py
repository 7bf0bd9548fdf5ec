"""Bytes read from the text of compiled programs, in the forms that processors with asynchronous collectives write."""

from __future__ import annotations

import pytest

from sciml.parallel.traffic import bytes_sent, collectives

PROGRAM = """HloModule step

ENTRY %main (p: f32[1024], q: f32[64]) -> f32[1024] {{
  %p = f32[1024] parameter(0)
  %q = f32[64] parameter(1)
  {line}
}}
"""
SUM = (
    "%s = (f32[1024], f32[64]) all-reduce-start(%p, %q), replica_groups={{0,1,2,3}}, to_apply=%add\n"
    "  %d = (f32[1024], f32[64]) all-reduce-done(%s)"
)
GATHER = (
    "%s = (f32[1024], f32[4096]) all-gather-start(%p), replica_groups=[1,4]<=[4], dimensions={0}\n"
    "  %d = f32[4096] all-gather-done((f32[1024], f32[4096]) %s)"
)
PASS = (
    "%s = (f32[1024], f32[1024], u32[], u32[]) collective-permute-start(%p), source_target_pairs={{0,1},{1,0}}\n"
    "  %d = f32[1024] collective-permute-done(%s)"
)


@pytest.mark.parametrize(
    ("line", "sent"),
    [
        ("%d = f32[1024] all-reduce(%p), replica_groups={{0,1,2,3}}, to_apply=%add", 2 * 4096 * 3 / 4),
        (SUM, 2 * 4352 * 3 / 4),
        (GATHER, 16384 * 3 / 4),
        (PASS, 4096),
        ("%d = f32[1024] all-reduce(%p), replica_groups={{0},{1}}, to_apply=%add", 0),
    ],
)
def test_bytes_are_those_of_the_result(line, sent):
    program = PROGRAM.format(line=line)
    assert bytes_sent(program) == sent
    assert len(collectives(program)) == (1 if sent else 0)
