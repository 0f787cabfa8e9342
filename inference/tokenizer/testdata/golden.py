#!/usr/bin/env python3
"""Write golden token ids with the reference tokenizers. README.md has the commands.

    go run print.go | golden.py llama  MODEL.gguf     OUT.gz   llama.cpp (LIBLLAMA = libllama.so), plain text
    go run print.go | golden.py parse  MODEL.gguf     OUT.gz   the same, control tokens recognised
    go run print.go | golden.py hf     tokenizer.json OUT.gz   tokenizers, plain text
    go run print.go | golden.py split  PRETOKENIZER   OUT.gz   tokenizers: bytes of each piece instead of ids
    go run print.go | golden.py spm    spm.json       OUT.gz   sentencepiece: trains a small BPE vocabulary on the strings

A file has a comment line, then a line a string: the ids if the string is one of
nasty.txt, else the first 24 bits of the FNV-1a hash of the ids (each four bytes, little
endian) as "=" and six hexadecimal digits.
"""
import ctypes
import gzip
import io
import json
import os
import struct
import sys


class ModelParams(ctypes.Structure):  # llama_model_params of llama.h
    _fields_ = [
        ("devices", ctypes.c_void_p), ("tensor_buft_overrides", ctypes.c_void_p),
        ("n_gpu_layers", ctypes.c_int32), ("split_mode", ctypes.c_int), ("load_mode", ctypes.c_int),
        ("lazy_mode", ctypes.c_int), ("main_gpu", ctypes.c_int32), ("tensor_split", ctypes.c_void_p),
        ("progress_callback", ctypes.c_void_p), ("progress_callback_user_data", ctypes.c_void_p),
        ("kv_overrides", ctypes.c_void_p),
        ("vocab_only", ctypes.c_bool), ("check_tensors", ctypes.c_bool), ("use_extra_bufts", ctypes.c_bool),
        ("no_host", ctypes.c_bool), ("no_alloc", ctypes.c_bool), ("load_mtp", ctypes.c_bool),
    ]


def llama(path, special):
    lib = ctypes.CDLL(os.environ["LIBLLAMA"], mode=ctypes.RTLD_GLOBAL)
    lib.llama_model_default_params.restype = ModelParams
    lib.llama_model_load_from_file.restype = ctypes.c_void_p
    lib.llama_model_load_from_file.argtypes = [ctypes.c_char_p, ModelParams]
    lib.llama_model_get_vocab.restype = ctypes.c_void_p
    lib.llama_model_get_vocab.argtypes = [ctypes.c_void_p]
    lib.llama_tokenize.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int32, ctypes.c_void_p,
                                   ctypes.c_int32, ctypes.c_bool, ctypes.c_bool]
    params = lib.llama_model_default_params()
    params.vocab_only = True
    model = lib.llama_model_load_from_file(path.encode(), params)
    vocab = lib.llama_model_get_vocab(model)

    def encode(text):
        data = text.encode()
        ids = (ctypes.c_int32 * (len(data) + 8))()
        n = lib.llama_tokenize(vocab, data, len(data), ids, len(ids), False, special)
        assert n >= 0, text
        return list(ids[:n])

    return encode, "llama.cpp of llama-cpp-python 0.3.36"


def hugging_face(path):
    import tokenizers
    t = tokenizers.Tokenizer.from_file(path)
    t.no_truncation()
    t.no_padding()
    t.encode_special_tokens = True  # their spelling is ordinary text
    return lambda text: t.encode(text, add_special_tokens=False).ids, "tokenizers " + tokenizers.__version__


GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
MODERN = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def split(name):
    import tokenizers
    from tokenizers import pre_tokenizers as pre
    by = lambda pattern: pre.Split(tokenizers.Regex(pattern), "isolated")
    splitter = {
        "gpt-2": by(GPT2),
        "smollm": pre.Sequence([pre.Digits(individual_digits=True), by(GPT2)]),
        "llama-bpe": by(MODERN % "{1,3}"),
        "qwen2": by(MODERN % ""),
    }[name]
    lengths = lambda text: [len(piece.encode()) for piece, _ in splitter.pre_tokenize_str(text)]
    return lengths, "tokenizers %s, Split" % tokenizers.__version__


def sentencepiece_bpe(out, strings):
    import sentencepiece
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=(s for s in strings if all(31 < ord(c) < 0x460 for c in s)), model_writer=model,
        model_type="bpe", vocab_size=1000, byte_fallback=True, character_coverage=0.995, num_threads=1,
        normalization_rule_name="identity", remove_extra_whitespaces=False, user_defined_symbols=["<think>", "</tool_call>"],
        minloglevel=2)
    sp = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    kind = lambda i: 2 if sp.is_unknown(i) else 3 if sp.is_control(i) else 6 if sp.is_byte(i) else 1
    size = sp.get_piece_size()
    tokens = [sp.id_to_piece(i) for i in range(size)]
    types = [4 if t in ("<think>", "</tool_call>") else kind(i) for i, t in enumerate(tokens)]
    with open(out, "w") as f:
        json.dump({"tokens": tokens, "scores": [sp.get_score(i) for i in range(size)], "types": types}, f,
                  ensure_ascii=False, separators=(",", ":"))
        f.write("\n")
    return sp.encode, "sentencepiece " + sentencepiece.__version__


def fnv1a(ids):
    h = 0x811C9DC5
    for b in struct.pack("<%di" % len(ids), *ids):
        h = (h ^ b) * 0x01000193 & 0xFFFFFFFF
    return "=%06x" % (h >> 8)


def main():
    mode, source, out = sys.argv[1:]
    strings = [json.loads(line) for line in sys.stdin]
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "nasty.txt")) as f:
        nasty = sum(1 for _ in f)
    if mode in ("llama", "parse"):
        encode, tool = llama(source, mode == "parse")
    elif mode == "hf":
        encode, tool = hugging_face(source)
    elif mode == "split":
        encode, tool = split(source)
    else:
        encode, tool = sentencepiece_bpe(source, strings)
    lines = ["# %s; golden.py %s %s" % (tool, mode, os.path.basename(source))]
    for i, s in enumerate(strings):
        ids = encode(s)
        lines.append(" ".join(map(str, ids)) if i < nasty else fnv1a(ids))
    with open(out, "wb") as f, gzip.GzipFile(fileobj=f, mode="wb", mtime=0, filename="") as z:
        z.write(("\n".join(lines) + "\n").encode())


main()
