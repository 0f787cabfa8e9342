"""Writes golden.json: blocks and their values by the numpy reference of llama.cpp.

python3 testdata/golden.py > testdata/golden.json   (gguf 0.19.0 on the PYTHONPATH, numpy)
"""
import base64
import json

import gguf
import numpy as np
from gguf.quants import dequantize, quantize

rng = np.random.default_rng(20261129)
b64 = lambda a: base64.b64encode(a.tobytes()).decode()


def random_blocks(qtype, n):
    """Random bits everywhere, ordinary numbers where the block keeps its f16 scales."""
    block, size = gguf.GGML_QUANT_SIZES[qtype]
    raw = rng.integers(0, 256, (n, size), dtype=np.uint8)
    scale_at = {"Q6_K": [208], "Q4_1": [0, 2], "Q5_1": [0, 2], "Q4_K": [0, 2], "Q5_K": [0, 2]}.get(qtype.name, [0])
    for at in scale_at:
        raw[:, at : at + 2] = rng.normal(0, 0.05, n).astype(np.float16).view(np.uint8).reshape(n, 2)
    return raw


T = gguf.GGMLQuantizationType
decode, encode = [], []
for qtype in (T.Q4_0, T.Q4_1, T.Q5_0, T.Q5_1, T.Q8_0, T.Q4_K, T.Q5_K, T.Q6_K):
    raw = random_blocks(qtype, 3)
    decode.append({"type": qtype.name, "bytes": b64(raw), "values": b64(dequantize(raw, qtype).astype("<f4"))})
x = np.concatenate([rng.normal(0, 1, 96), np.zeros(32), np.full(32, 0.25), rng.normal(0, 1e-6, 32)]).astype("<f4")
for qtype in (T.BF16, T.Q4_0, T.Q4_1, T.Q5_0, T.Q5_1, T.Q8_0):
    encode.append({"type": qtype.name, "values": b64(x), "bytes": b64(quantize(x, qtype))})
halves = np.concatenate([np.arange(0, 1 << 16, 97), [1, 0x3FF, 0x400, 0x7BFF, 0x7C00, 0x8000, 0xFC00]]).astype("<u2")
encode.append({"type": "F16", "values": b64(x), "bytes": b64(x.astype("<f2"))})
decode.append({"type": "F16", "bytes": b64(halves), "values": b64(halves.view("<f2").astype("<f4"))})
print(json.dumps({"tool": "gguf 0.19.0 (llama.cpp gguf-py), numpy " + np.__version__,
                  "command": "python3 testdata/golden.py > testdata/golden.json", "decode": decode, "encode": encode}, indent=1))
