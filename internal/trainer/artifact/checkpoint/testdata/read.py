"""Reads a safetensors file as the format's description says, with the standard library alone, and prints it as JSON.

The file: 8 bytes, the header's length N, little-endian; N bytes of JSON, which names each tensor's type, shape and place;
then the tensors' bytes, little-endian, in row-major order, without holes.
"""

import json
import struct
import sys

with open(sys.argv[1], "rb") as f:
    (length,) = struct.unpack("<Q", f.read(8))
    header = json.loads(f.read(length))
    data = f.read()

metadata = header.pop("__metadata__", {})
tensors = []
end = 0
for name, place in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
    lo, hi = place["data_offsets"]
    assert lo == end, (name, lo, end)
    end = hi
    assert place["dtype"] == "F32", place
    count = 1
    for size in place["shape"]:
        count *= size
    values = struct.unpack("<%df" % count, data[lo:hi])
    tensors.append({"name": name, "shape": place["shape"], "values": values})
assert end == len(data), (end, len(data))
json.dump({"metadata": metadata, "tensors": tensors}, sys.stdout)
