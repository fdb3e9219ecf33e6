"""TFRecord by its description alone, without TensorFlow: the test's second opinion.

    tfrecord.py write none|gzip|zlib < records > file    a line of hexadecimal digits is a record
    tfrecord.py read  none|gzip|zlib < file > records
"""

import gzip
import struct
import sys
import zlib


def crc32c(data):
    """Bit by bit, with the reversed polynomial of Castagnoli."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def write(records):
    for record in records:
        length = struct.pack("<Q", len(record))
        yield length + struct.pack("<I", masked(length)) + record + struct.pack("<I", masked(record))


def read(data):
    at = 0
    while at < len(data):
        length, check = struct.unpack_from("<QI", data, at)
        assert check == masked(data[at : at + 8]), at
        record = data[at + 12 : at + 12 + length]
        (check,) = struct.unpack_from("<I", data, at + 12 + length)
        assert check == masked(record), at
        yield record
        at += 16 + length


verb, compression = sys.argv[1:]
if verb == "write":
    data = b"".join(write(bytes.fromhex(line) for line in sys.stdin))
    sys.stdout.buffer.write({"none": bytes, "gzip": gzip.compress, "zlib": zlib.compress}[compression](data))
else:
    data = {"none": bytes, "gzip": gzip.decompress, "zlib": zlib.decompress}[compression](sys.stdin.buffer.read())
    for record in read(data):
        print(record.hex())
