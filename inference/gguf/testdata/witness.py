"""Writes witness.txt: a GGUF file by llama.cpp's own writer, in base64.

python3 testdata/witness.py > testdata/witness.txt   (gguf 0.19.0 on the PYTHONPATH, numpy)
"""
import base64
import tempfile

import gguf
import numpy as np

with tempfile.NamedTemporaryFile(suffix=".gguf") as f:
    w = gguf.GGUFWriter(f.name, "llama")
    w.add_uint8("n.u8", 200)
    w.add_int8("n.i8", -100)
    w.add_uint16("n.u16", 60000)
    w.add_int16("n.i16", -30000)
    w.add_uint32("n.u32", 4000000000)
    w.add_int32("n.i32", -2000000000)
    w.add_uint64("n.u64", 1 << 63)
    w.add_int64("n.i64", -(1 << 62))
    w.add_float32("n.f32", 0.5)
    w.add_float64("n.f64", 0.1)
    w.add_bool("n.bool", True)
    w.add_string("n.string", "가나다 🙂")
    w.add_array("a.string", ["", "▁a", "b"])
    w.add_array("a.i32", [1, -2, 3])
    w.add_array("a.f32", [0.25, -1.5])
    w.add_array("a.bytes", b"\x00\x01\xff")
    w.add_tensor("matrix", np.arange(6, dtype=np.float32).reshape(2, 3))
    w.add_tensor("half", np.array([1, -2, 65504], dtype=np.float16))
    q = gguf.quants.quantize(np.linspace(-1, 1, 64, dtype=np.float32).reshape(2, 32), gguf.GGMLQuantizationType.Q8_0)
    w.add_tensor("quantised", q, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    raw = open(f.name, "rb").read()
print("# gguf 0.19.0 (llama.cpp gguf-py): python3 testdata/witness.py > testdata/witness.txt")
print(base64.b64encode(raw).decode())
