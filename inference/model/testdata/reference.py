"""An independent float32 forward pass of both model families, in numpy.

It shares no code with the engine: it reads GGUF files by itself, turns every
weight into float32 and computes the published formulas with full score
matrices. The golden files beside it are its output:

    python3 reference.py smollm2 SmolLM2-135M-Instruct.Q4_1.gguf CASES > smollm2_golden.json
    python3 reference.py tiny > tiny_golden.json
    python3 reference.py tinybert > tinybert_golden.json
    python3 reference.py embed MODEL CASES > ../../encode/testdata/NAME_golden.json
    python3 reference.py maxsim MODEL CASES > ../../../internal/app/testdata/maxsim_golden.json

CASES is a golden file made before, whose texts and tokens are taken again. MODEL is a
GGUF file (multilingual-e5-small) or a Hugging Face folder (all-MiniLM-L6-v2).
"""
import json
import math
import os
import struct
import sys

import numpy as np

F = np.float32


# --- GGUF ---------------------------------------------------------------------
class Gguf:
    def __init__(self, path):
        self.data = np.memmap(path, dtype=np.uint8, mode="r")
        self.at = 4
        self.u32()
        tensors, keys = self.u64(), self.u64()
        self.meta = {}
        for _ in range(keys):
            name = self.text()
            self.meta[name] = self.value(self.u32())
        table = []
        for _ in range(tensors):
            name = self.text()
            dims = [self.u64() for _ in range(self.u32())]
            table.append((name, dims, self.u32(), self.u64()))
        align = self.meta.get("general.alignment", 32)
        start = (self.at + align - 1) // align * align
        self.tensors = {n: (d, t, start + o) for n, d, t, o in table}

    def take(self, fmt):
        v = struct.unpack_from("<" + fmt, self.data, self.at)[0]
        self.at += struct.calcsize(fmt)
        return v

    def u32(self):
        return self.take("I")

    def u64(self):
        return self.take("Q")

    def text(self):
        n = self.u64()
        s = bytes(self.data[self.at:self.at + n])
        self.at += n
        return s.decode("utf-8", "replace")

    def value(self, kind):
        if kind == 8:
            return self.text()
        if kind == 9:
            sub = self.u32()
            return [self.value(sub) for _ in range(self.u64())]
        return self.take({0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}[kind])

    def get(self, name):
        dims, kind, at = self.tensors[name]
        n = int(np.prod(dims))
        raw = self.data[at:]
        if kind == 0:
            x = np.frombuffer(raw[:4 * n].tobytes(), "<f4")
        elif kind == 1:
            x = np.frombuffer(raw[:2 * n].tobytes(), "<f2").astype(F)
        elif kind == 2:
            b = raw[:n // 32 * 18].reshape(-1, 18)
            q = np.concatenate([b[:, 2:] & 15, b[:, 2:] >> 4], axis=1).astype(F)
            x = (q - 8) * half(b, 0)
        elif kind == 3:
            b = raw[:n // 32 * 20].reshape(-1, 20)
            q = np.concatenate([b[:, 4:] & 15, b[:, 4:] >> 4], axis=1).astype(F)
            x = q * half(b, 0) + half(b, 2)
        elif kind == 8:
            b = raw[:n // 32 * 34].reshape(-1, 34)
            x = np.ascontiguousarray(b[:, 2:]).view(np.int8).astype(F) * half(b, 0)
        else:
            raise ValueError(f"type {kind} of {name}")
        return np.asarray(x, F).reshape([int(d) for d in reversed(dims)])


def half(b, at):
    return np.ascontiguousarray(b[:, at:at + 2]).view("<f2").astype(F)


# --- tiny models whose weights both sides can make -----------------------------
def noise(name, n):
    """splitmix64 of a FNV-1a hash of the name and the index, as floats in [-1, 1)."""
    seed = 14695981039346656037
    for c in name.encode():
        seed = (seed ^ c) * 1099511628211 % 2**64
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + (np.arange(n, dtype=np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    return ((z >> np.uint64(40)).astype(np.float64) / 2**23 - 1).astype(F)


class Tiny:
    """A model of random weights: matrices scaled by 1/sqrt(cols), gains near one."""

    def __init__(self, meta, tensors):
        self.meta, self.tensors = meta, tensors

    def get(self, name):
        shape, kind = self.tensors[name]
        x = noise(name, int(np.prod(shape)))
        if kind == "gain":
            x = 1 + x / 2
        elif kind == "factor":
            x = 2 + x
        elif kind == "matrix":
            x = x * F(2 / np.sqrt(shape[-1]))
        return x.astype(F).reshape(shape)


def tiny(arch, width, layers, heads, kv, dim, ff, vocab, bias=False, qknorm=False, post=False, tied=False, factors=False, **keys):
    meta = {"general.architecture": arch, f"{arch}.block_count": layers, f"{arch}.embedding_length": width,
            f"{arch}.attention.head_count": heads, f"{arch}.attention.head_count_kv": kv, f"{arch}.feed_forward_length": ff,
            f"{arch}.attention.key_length": dim, f"{arch}.attention.value_length": dim, f"{arch}.context_length": 512,
            f"{arch}.attention.layer_norm_rms_epsilon": 1e-5}
    meta.update({f"{arch}.{k}": v for k, v in keys.items()})
    t = {"token_embd.weight": ([vocab, width], "noise"), "output_norm.weight": ([width], "gain")}
    if not tied:
        t["output.weight"] = ([vocab, width], "matrix")
    if factors:
        t["rope_freqs.weight"] = ([dim // 2], "factor")
    for i in range(layers):
        p = f"blk.{i}."
        for n in ["attn_norm", "ffn_norm"] + (["post_attention_norm", "post_ffw_norm"] if post else []):
            t[p + n + ".weight"] = ([width], "gain")
        for n in ["attn_q_norm", "attn_k_norm"] if qknorm else []:
            t[p + n + ".weight"] = ([dim], "gain")
        for n, r, c in [("attn_q", heads * dim, width), ("attn_k", kv * dim, width), ("attn_v", kv * dim, width), ("attn_output", width, heads * dim),
                        ("ffn_gate", ff, width), ("ffn_up", ff, width), ("ffn_down", width, ff)]:
            t[p + n + ".weight"] = ([r, c], "matrix")
        for n, r in [("attn_q", heads * dim), ("attn_k", kv * dim), ("attn_v", kv * dim)] if bias else []:
            t[p + n + ".bias"] = ([r], "noise")
    return Tiny(meta, t)


TINY = {
    "mistral": lambda: tiny("llama", 64, 3, 4, 2, 16, 96, 160, **{"rope.freq_base": 1e6, "rope.dimension_count": 16, "attention.sliding_window": 24}),
    "llama3": lambda: tiny("llama", 64, 2, 8, 2, 16, 96, 160, tied=True, factors=True, **{"rope.freq_base": 5e5, "rope.dimension_count": 16}),
    "qwen2": lambda: tiny("qwen2", 64, 2, 4, 1, 16, 96, 160, bias=True, tied=True, **{"rope.freq_base": 1e6}),
    "qwen3": lambda: tiny("qwen3", 64, 2, 4, 2, 32, 96, 160, qknorm=True, **{"rope.freq_base": 1e6}),
    "gemma3": lambda: tiny("gemma3", 64, 7, 4, 1, 32, 96, 160, qknorm=True, post=True, tied=True,
                           **{"rope.freq_base": 1e6, "attention.sliding_window": 20, "rope.scaling.type": "linear", "rope.scaling.factor": 8.0}),
}


# --- the forward pass ---------------------------------------------------------
def rms(x, w, eps):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True, dtype=np.float64) + eps).astype(F) * w


class Decoder:
    def __init__(self, src):
        self.src, self.meta = src, src.meta
        self.arch = a = src.meta["general.architecture"]
        k = lambda name, default=None: src.meta.get(f"{a}.{name}", default)
        self.layers, self.heads = k("block_count"), k("attention.head_count")
        self.kv = k("attention.head_count_kv", self.heads)
        self.dim = k("attention.key_length", k("embedding_length") // self.heads)
        self.eps = k("attention.layer_norm_rms_epsilon")
        self.window = k("attention.sliding_window", 0)
        self.base, self.scale = k("rope.freq_base", 1e4), 1.0
        if k("rope.scaling.type") == "linear":
            self.scale = k("rope.scaling.factor")
        self.w = {}
        for name in src.tensors:
            self.w[name] = src.get(name)
        self.cache = {}
        self.length = 0

    def opt(self, name):
        return self.w.get(name)

    def linear(self, x, name):
        y = x @ self.w[name + ".weight"].T
        b = self.opt(name + ".bias")
        return y if b is None else y + b

    def is_global(self, layer):
        if self.arch == "gemma3":
            return (layer + 1) % 6 == 0
        return self.window == 0

    def rope(self, x, pos, layer):
        """x: tokens × heads × dim"""
        base, scale = self.base, self.scale
        if self.arch == "gemma3" and not self.is_global(layer):
            base, scale = 1e4, 1.0
        half_dim = self.dim // 2
        freq = base ** (-np.arange(half_dim, dtype=np.float64) * 2 / self.dim) / scale
        factors = self.opt("rope_freqs.weight")
        if factors is not None:
            freq = freq / factors.astype(np.float64)
        angle = pos[:, None].astype(np.float64) * freq
        c, s = np.cos(angle).astype(F)[:, None, :], np.sin(angle).astype(F)[:, None, :]
        y = np.empty_like(x)
        if self.arch == "llama":
            a, b = x[..., 0::2], x[..., 1::2]
            y[..., 0::2], y[..., 1::2] = a * c - b * s, a * s + b * c
        else:
            a, b = x[..., :half_dim], x[..., half_dim:]
            y[..., :half_dim], y[..., half_dim:] = a * c - b * s, a * s + b * c
        return y

    def attention(self, x, layer, pos):
        p, n = f"blk.{layer}.", len(x)
        q = self.linear(x, p + "attn_q").reshape(n, self.heads, self.dim)
        k = self.linear(x, p + "attn_k").reshape(n, self.kv, self.dim)
        v = self.linear(x, p + "attn_v").reshape(n, self.kv, self.dim)
        if self.opt(p + "attn_q_norm.weight") is not None:
            q = rms(q, self.w[p + "attn_q_norm.weight"], self.eps)
            k = rms(k, self.w[p + "attn_k_norm.weight"], self.eps)
        q, k = self.rope(q, pos, layer), self.rope(k, pos, layer)
        if layer in self.cache:
            k, v = np.concatenate([self.cache[layer][0], k]), np.concatenate([self.cache[layer][1], v])
        self.cache[layer] = (k, v)
        past = np.arange(len(k))
        mask = past[None, :] > pos[:, None]
        if self.window and not self.is_global(layer):
            mask |= past[None, :] <= pos[:, None] - self.window
        out = np.empty((n, self.heads, self.dim), F)
        group = self.heads // self.kv
        for h in range(self.heads):
            s = (q[:, h] @ k[:, h // group].T) * F(1 / np.sqrt(self.dim))
            s[mask] = -np.inf
            s = np.exp(s - s.max(axis=1, keepdims=True))
            out[:, h] = (s / s.sum(axis=1, keepdims=True)) @ v[:, h // group]
        return self.linear(out.reshape(n, -1), p + "attn_output")

    def ffn(self, x, layer):
        p = f"blk.{layer}."
        g, u = self.linear(x, p + "ffn_gate"), self.linear(x, p + "ffn_up")
        if self.arch == "gemma3":
            g = F(0.5) * g * (1 + np.tanh(F(np.sqrt(2 / np.pi)) * (g + F(0.044715) * g * g * g)))
        else:
            with np.errstate(over="ignore"):
                g = g / (1 + np.exp(-g))
        return self.linear(g * u, p + "ffn_down")

    def forward(self, tokens):
        """Logits of the last token; earlier tokens stay in the cache."""
        pos = np.arange(self.length, self.length + len(tokens))
        self.length += len(tokens)
        x = self.w["token_embd.weight"][np.array(tokens)]
        if self.arch == "gemma3":
            x = x * F(np.sqrt(x.shape[1]))
        for i in range(self.layers):
            p = f"blk.{i}."
            for norm, part, post in [("attn_norm", lambda h: self.attention(h, i, pos), "post_attention_norm"),
                                     ("ffn_norm", lambda h: self.ffn(h, i), "post_ffw_norm")]:
                y = part(rms(x, self.w[p + norm + ".weight"], self.eps))
                w = self.opt(p + post + ".weight")
                x = x + (y if w is None else rms(y, w, self.eps))
        out = self.opt("output.weight")
        return rms(x[-1], self.w["output_norm.weight"], self.eps) @ (self.w["token_embd.weight"] if out is None else out).T

    def reset(self):
        self.cache, self.length = {}, 0


# --- encoders -----------------------------------------------------------------
class Folder:
    """A Hugging Face folder of BERT, its tensors under GGUF's names."""

    NAMES = {"token_embd": "embeddings.word_embeddings", "position_embd": "embeddings.position_embeddings", "token_types": "embeddings.token_type_embeddings",
             "token_embd_norm": "embeddings.LayerNorm"}
    LAYER = {"attn_q": "attention.self.query", "attn_k": "attention.self.key", "attn_v": "attention.self.value", "attn_output": "attention.output.dense",
             "attn_output_norm": "attention.output.LayerNorm", "ffn_up": "intermediate.dense", "ffn_down": "output.dense", "layer_output_norm": "output.LayerNorm"}

    def __init__(self, path):
        c = json.load(open(os.path.join(path, "config.json")))
        self.meta = {"bert.block_count": c["num_hidden_layers"], "bert.attention.head_count": c["num_attention_heads"],
                     "bert.attention.layer_norm_epsilon": c["layer_norm_eps"]}
        raw = open(os.path.join(path, "model.safetensors"), "rb").read()
        n = struct.unpack_from("<Q", raw)[0]
        head = json.loads(raw[8:8 + n])
        names = dict(self.NAMES)
        for i in range(c["num_hidden_layers"]):
            names.update({f"blk.{i}.{g}": f"encoder.layer.{i}.{h}" for g, h in self.LAYER.items()})
        self.tensors = {}
        for g, h in names.items():
            for end in (".weight", ".bias"):
                if h + end in head:
                    a, b = head[h + end]["data_offsets"]
                    self.tensors[g + end] = np.frombuffer(raw[8 + n + a:8 + n + b], "<f4").reshape(head[h + end]["shape"])

    def get(self, name):
        return self.tensors[name]


def tinybert():
    width, layers, ff, vocab = 48, 2, 80, 120
    meta = {"bert.block_count": layers, "bert.attention.head_count": 4, "bert.attention.layer_norm_epsilon": 1e-12}
    t = {"token_embd.weight": ([vocab, width], "noise"), "position_embd.weight": ([40, width], "noise"), "token_types.weight": ([2, width], "noise"),
         "cls.weight": ([width, width], "matrix"), "cls.bias": ([width], "noise"), "cls.output.weight": ([3, width], "matrix"), "cls.output.bias": ([3], "noise")}
    norms = ["token_embd_norm"]
    for i in range(layers):
        p = f"blk.{i}."
        norms += [p + "attn_output_norm", p + "layer_output_norm"]
        for n, r, c in [("attn_q", width, width), ("attn_k", width, width), ("attn_v", width, width), ("attn_output", width, width),
                        ("ffn_up", ff, width), ("ffn_down", width, ff)]:
            t[p + n + ".weight"], t[p + n + ".bias"] = ([r, c], "matrix"), ([r], "noise")
    for n in norms:
        t[n + ".weight"], t[n + ".bias"] = ([width], "gain"), ([width], "noise")
    return Tiny(meta, t)


erf = np.frompyfunc(math.erf, 1, 1)


class Encoder:
    def __init__(self, src):
        self.w = {n: src.get(n) for n in src.tensors}
        self.layers, self.heads = src.meta["bert.block_count"], src.meta["bert.attention.head_count"]
        self.eps = src.meta["bert.attention.layer_norm_epsilon"]

    def linear(self, x, name):
        return x @ self.w[name + ".weight"].T + self.w[name + ".bias"]

    def norm(self, x, name):
        x = x.astype(np.float64)
        x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + self.eps)
        return x.astype(F) * self.w[name + ".weight"] + self.w[name + ".bias"]

    def rows(self, tokens, second=0):
        n = len(tokens)
        types = np.array([1 if 0 < second <= i else 0 for i in range(n)])
        x = self.w["token_embd.weight"][np.array(tokens)] + self.w["position_embd.weight"][:n] + self.w["token_types.weight"][types]
        x = self.norm(x, "token_embd_norm")
        dim = x.shape[1] // self.heads
        for i in range(self.layers):
            p = f"blk.{i}."
            q, k, v = (self.linear(x, p + a).reshape(n, self.heads, dim) for a in ("attn_q", "attn_k", "attn_v"))
            out = np.empty_like(q)
            for h in range(self.heads):
                s = (q[:, h] @ k[:, h].T) * F(1 / np.sqrt(dim))
                s = np.exp(s - s.max(axis=1, keepdims=True))
                out[:, h] = (s / s.sum(axis=1, keepdims=True)) @ v[:, h]
            x = self.norm(x + self.linear(out.reshape(n, -1), p + "attn_output"), p + "attn_output_norm")
            u = self.linear(x, p + "ffn_up")
            u = F(0.5) * u * (1 + erf(u / F(np.sqrt(2))).astype(F))
            x = self.norm(x + self.linear(u, p + "ffn_down"), p + "layer_output_norm")
        return x

    def embed(self, tokens, second=0):
        x = self.rows(tokens, second).mean(axis=0, dtype=np.float64)
        return x / np.sqrt((x * x).sum())

    def states(self, tokens, prefix):
        x = self.rows(tokens)[prefix:-1].astype(np.float64)
        return x / np.sqrt((x * x).sum(axis=1, keepdims=True))

    def score(self, tokens, second):
        return self.linear(np.tanh(self.linear(self.rows(tokens, second)[0], "cls")), "cls.output")


def maxsim(path, cases):
    """Late interaction of each query with each passage: the mean over the query's tokens, weighted by their rarity in the
    unigram vocabulary, of the best cosine to a token of the passage, the mean state of all passages subtracted from both;
    special tokens and those that all texts of a kind begin with left out."""
    src = Gguf(path)
    m, rarity = Encoder(src), -np.array(src.meta["tokenizer.ggml.scores"], dtype=np.float64)
    kinds = {}
    for kind in ("query: ", "passage: "):
        own = [c for c in cases if c["text"].startswith(kind)]
        prefix = len(os.path.commonprefix([c["tokens"] for c in own]))
        kinds[kind] = [(c, m.states(c["tokens"], prefix), rarity[c["tokens"][prefix:-1]]) for c in own]
    mean = np.concatenate([states for _, states, _ in kinds["passage: "]]).mean(axis=0)

    def centred(rows):
        x = rows - mean
        return x / np.sqrt((x * x).sum(axis=1, keepdims=True))

    for q, rows, weights in kinds["query: "]:
        for p, states, _ in kinds["passage: "]:
            best = (centred(rows) @ centred(states).T).max(axis=1)
            yield {"question": q["text"][7:], "passage": p["text"][9:], "tokens": [len(rows), len(states)],
                   "score": round(float((weights * best).sum() / weights.sum()), 6)}


# --- golden files --------------------------------------------------------------
def num(x, digits=7):
    return float(f"{x:.{digits}g}")


def sample(logits):
    """The 64 largest logits, every 1,024th, and the mean of all."""
    top = np.argsort(-logits, kind="stable")[:64]
    return {"top": [[int(i), num(logits[i])] for i in top], "every1024": [num(x) for x in logits[::1024]],
            "mean": num(np.mean(logits, dtype=np.float64)), "meanSquare": num(np.mean(logits.astype(np.float64) ** 2))}


def greedy(m, logits, n):
    """n greedy tokens, each with its lead over the second best."""
    out = []
    for _ in range(n):
        best = int(np.argmax(logits))
        second = np.partition(logits, -2)[-2]
        out.append([best, num(logits[best] - second, 4)])
        logits = m.forward([best])
    return out


def emit(header, key, rows):
    print("{" + f'"comment": {json.dumps(header)},\n"{key}": [')
    for i, row in enumerate(rows):
        print(json.dumps(row, separators=(",", ":"), ensure_ascii=False) + ("," if i + 1 < len(rows) else ""))
    print("]}")


def main():
    header = f"reference.py {sys.argv[1]}, numpy {np.__version__}"
    rows = []
    if sys.argv[1] == "tiny":
        for name, make in TINY.items():
            m = Decoder(make())
            tokens = [(7 * i * i + 3 * i + 1) % 160 for i in range(70)]
            rows.append({"model": name, "tokens": tokens, "logits": [num(x) for x in m.forward(tokens)]})
    elif sys.argv[1] == "tinybert":
        m = Encoder(tinybert())
        for n, second in [(1, 0), (7, 3), (16, 0), (17, 9), (40, 21)]:
            tokens = [(5 * i * i + n + i) % 120 for i in range(n)]
            rows.append({"tokens": tokens, "second": second, "embedding": [num(x) for x in m.embed(tokens, second)],
                         "scores": [num(x) for x in m.score(tokens, second)]})
    elif sys.argv[1] == "embed":
        m = Encoder(Folder(sys.argv[2]) if os.path.isdir(sys.argv[2]) else Gguf(sys.argv[2]))
        for case in json.load(open(sys.argv[3]))["cases"]:
            rows.append({**case, "vector": [round(float(x), 6) for x in m.embed(case["tokens"])]})
    elif sys.argv[1] == "maxsim":
        rows = list(maxsim(sys.argv[2], json.load(open(sys.argv[3]))["cases"]))
    else:
        m = Decoder(Gguf(sys.argv[2]))
        for tokens in [case["tokens"] for case in json.load(open(sys.argv[3]))["cases"]]:
            m.reset()
            logits = m.forward(tokens)
            rows.append({"tokens": tokens, **sample(logits), "greedy": greedy(m, logits, 48)})
            print(len(tokens), file=sys.stderr)
    emit(header, "cases", rows)


if __name__ == "__main__":
    main()
