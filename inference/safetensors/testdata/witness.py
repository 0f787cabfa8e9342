"""Writes witness.txt: a file by the reference library, in base64.

python3 testdata/witness.py > testdata/witness.txt   (safetensors and numpy installed)
"""
import base64

import numpy as np
import safetensors
from safetensors.numpy import save

raw = save(
    {
        "matrix": np.arange(6, dtype=np.float32).reshape(2, 3),
        "half": np.array([1, -2, 65504], dtype=np.float16),
        "scalar": np.array(2.5, dtype=np.float32),
        "ids": np.arange(4, dtype=np.int64).reshape(1, 4),
    },
    metadata={"format": "np"},
)
print("# safetensors %s: python3 testdata/witness.py > testdata/witness.txt" % safetensors.__version__)
print(base64.b64encode(raw).decode())
