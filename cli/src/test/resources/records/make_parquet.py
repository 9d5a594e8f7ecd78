"""The same sequences as JSON lines and in Parquet files of two writers, for ParquetRecordsTest.

    pip install pyarrow==25.0.1 duckdb==1.5.6 numpy==2.4.6
    python3 make_parquet.py .
"""

import json
import random
import sys
from pathlib import Path

import duckdb
import numpy
import pyarrow
import pyarrow.parquet

OUT = Path(sys.argv[1])


def sequences():
    """With and without what may be left out, empty lists, a null among log-probs, texts beyond ASCII."""
    draw = random.Random(3)
    for i in range(24):
        tokens = draw.randint(1, 9)
        mask = [1] + [draw.randint(0, 1) for _ in range(tokens - 1)]

        def floats():
            return [-draw.randint(1, 4096) / 1024 for _ in range(tokens)]

        behavior = [None if m == 0 and draw.random() < 0.5 else p for m, p in zip(mask, floats())]
        row = dict(id=f"ü-{i}", step=i // 8, group=f"g{i // 4}", mask=mask, behavior_log_probs=behavior, proximal_log_probs=floats(),
                   old_log_probs=floats(), reward=draw.randint(0, 8) / 8, version=max(0, i // 8 - 1),
                   prompt_tokens=[draw.randint(0, 70_000) for _ in range(draw.randint(0, 5))])
        row["response_tokens"] = [draw.randint(0, 70_000) for _ in range(tokens)]
        if i % 3:
            row["advantage"] = draw.randint(-8, 8) / 8
        if i % 4:
            row["finish_reason"] = "STOP"
        if i % 2:
            row["reward_components"] = {"correct": 0.5, "short": -0.25}
        yield row


rows = list(sequences())
(OUT / "sequences.jsonl").write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))

numbers, whole = pyarrow.list_(pyarrow.float32()), pyarrow.list_(pyarrow.int32())
schema = pyarrow.schema([
    ("id", pyarrow.string()), ("step", pyarrow.int64()), ("group", pyarrow.string()), ("mask", pyarrow.list_(pyarrow.int8())),
    ("behavior_log_probs", numbers), ("proximal_log_probs", numbers), ("old_log_probs", pyarrow.list_(pyarrow.float64())),
    ("reward", pyarrow.float64()), ("version", pyarrow.uint32()), ("prompt_tokens", whole), ("response_tokens", whole),
    ("advantage", pyarrow.float32()), ("finish_reason", pyarrow.string()),
    ("reward_components", pyarrow.map_(pyarrow.string(), pyarrow.float64()))])
table = pyarrow.Table.from_pylist(rows, schema=schema)
write = pyarrow.parquet.write_table
write(table, OUT / "pyarrow-1-snappy.parquet", compression="snappy", row_group_size=10)
write(table, OUT / "pyarrow-2-zstd.parquet", compression="zstd", data_page_version="2.0", use_dictionary=False, use_byte_stream_split=[
    name + ".list.element" for name in ("behavior_log_probs", "proximal_log_probs", "old_log_probs")])
write(table, OUT / "pyarrow-gzip.parquet", compression="gzip", use_compliant_nested_type=False)
write(table, OUT / "pyarrow-lz4.parquet", compression="lz4", data_page_version="2.0")

halves = schema.set(4, pyarrow.field("behavior_log_probs", pyarrow.list_(pyarrow.float16())))
whole_numbers = [dict(row, behavior_log_probs=[None if p is None else float(int(p) - 1) for p in row["behavior_log_probs"]]) for row in rows]
(OUT / "halves.jsonl").write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in whole_numbers))
write(pyarrow.Table.from_pylist([dict(row, behavior_log_probs=[None if p is None else numpy.float16(p) for p in row["behavior_log_probs"]])
                                 for row in whole_numbers], schema=halves), OUT / "halves.parquet")

# the parts of the reward as a group, and not as a map
parts = pyarrow.struct([("correct", pyarrow.float64()), ("short", pyarrow.float64())])
write(pyarrow.Table.from_pylist(rows, schema=schema.set(13, pyarrow.field("reward_components", parts))), OUT / "group.parquet")
duckdb.register("sequences", table)
duckdb.sql(f"COPY (SELECT * FROM sequences) TO '{OUT / 'duckdb.parquet'}' (FORMAT parquet, COMPRESSION zstd)")
