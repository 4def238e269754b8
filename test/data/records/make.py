"""Writes what pyarrow makes of small tables, for the tests of packed ones.

python make.py > pyarrow.json, with pyarrow 25
"""

import base64
import io
import json

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as parquet


def text(data):
    return base64.b64encode(data).decode()


def parquet_of(table, codec):
    into = io.BytesIO()
    parquet.write_table(table, into, compression=codec, store_schema=False, write_statistics=False)
    return text(into.getvalue())


def feather_of(table, codec):
    into = io.BytesIO()
    feather.write_feather(table, into, compression=codec)
    return text(into.getvalue())


rows = "".join(f"row {number % 97}\n" for number in range(20000)).encode()
table = pa.table({"text": [f"text {number % 3}" for number in range(40)], "none": pa.nulls(40, pa.string())})
print(
    json.dumps(
        {
            "block": text(pa.compress(rows, codec="lz4_raw", asbytes=True)),
            "frame": text(pa.compress(rows, codec="lz4", asbytes=True)),
            "parquet": {codec: parquet_of(table, codec) for codec in ["lz4", "zstd", "gzip", "brotli", "snappy"]},
            "feather": {codec: feather_of(table, codec) for codec in ["lz4", "zstd"]},
        },
        indent=2,
    )
)
