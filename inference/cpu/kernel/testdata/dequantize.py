"""Writes dequantised.json: for every block format random bytes of 256 values
and what ggml makes of them.

    python3 dequantize.py path/to/libggml-base.so > dequantised.json
"""
import ctypes, json, random, struct, sys

SIZES = {"q4_0": 18 * 8, "q4_1": 20 * 8, "q5_0": 22 * 8, "q5_1": 24 * 8, "q8_0": 34 * 8,
         "q4_K": 144, "q5_K": 176, "q6_K": 210}
HALVES = {"q4_0": [0], "q4_1": [0, 2], "q5_0": [0], "q5_1": [0, 2], "q8_0": [0],
          "q4_K": [0, 2], "q5_K": [0, 2], "q6_K": [208]}

lib = ctypes.CDLL(sys.argv[1])
rng = random.Random(20)
out = {}
for name, size in SIZES.items():
    data = bytearray(rng.randbytes(size))
    step = size if name.endswith("K") else size // 8
    for at in range(0, size, step):
        for off in HALVES[name]:
            struct.pack_into("<e", data, at + off, rng.gauss(0, 0.02))
    values = (ctypes.c_float * 256)()
    src = (ctypes.c_ubyte * size).from_buffer(data)
    getattr(lib, "dequantize_row_" + name)(src, values, ctypes.c_int64(256))
    out[name] = {"bytes": bytes(data).hex(), "values": struct.pack("<256f", *values).hex()}
json.dump(out, sys.stdout, indent=0)
print()
