#!/usr/bin/env python3
"""Tokenizers, token ids and scores of two tiny cross-encoders with random weights.

    LLAMA=…/llama-embedding python3 cross.py XLM-ROBERTA.gguf > cross_golden.json

The ids, token types and cuts are those of the tokenizers library (version in the
file). The scores are computed in numpy by the independent forward pass of
inference/model/testdata/reference.py, in float32, from weights that are a function
of their names. `llama` is what llama.cpp prints, three digits, for the GGUF file that
package encodetest writes for the second family; without a file that column is left out.
"""
import json
import os
import subprocess
import sys

import tokenizers
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../../model/testdata"))
import reference  # noqa: E402

CONTEXT = 48
LETTERS = "abcdefghijklmnopqrstuvwxyz"
WORDS = ["the", "crane", "lift", "lifts", "how", "much", "does", "ten", "tonnes", "boat", "is", "blue", "배", "는", "짐", "열", "톤"]

PAIRS = [
    ("How much does the crane lift?", "The crane lifts ten tonnes."),
    ("How much does the crane lift?", "The boat is blue."),
    ("how", ""),
    ("배는 열 톤?", "짐은 열 톤, the boat [SEP] does lift"),
    ("Is the boat blue?", "the crane lifts ten tonnes " * 20),
    ("What is the boat\u2019s colour, exactly?", "quay wharf zig"),
    ("the boat is blue " * 6, "ten tonnes"),
]


def bert():
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", ",", "?"] + WORDS
    tokens += list(LETTERS) + ["##" + c for c in LETTERS] + ["##는", "##은"]
    t = Tokenizer(models.WordPiece({s: i for i, s in enumerate(tokens)}, unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer(lowercase=True)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.add_special_tokens(tokens[:5])
    t.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return t


def xlm_roberta():
    pieces = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -4.0)]
    pieces += [("▁" + w, -5.0 - i / 8) for i, w in enumerate(WORDS)]
    pieces += [(c, -7.0 - i / 8) for i, c in enumerate(LETTERS + ".,?는은")]
    pieces += [("<mask>", 0.0)]
    t = Tokenizer(models.Unigram(pieces, unk_id=3, byte_fallback=False))
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    t.add_special_tokens(["<s>", "<pad>", "</s>", "<unk>", tokenizers.AddedToken("<mask>", lstrip=True, special=True)])
    t.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    return t


def weights(vocab, types):
    m = reference.tinybert()
    t = m.tensors
    w = 48
    t["token_embd.weight"], t["position_embd.weight"] = ([vocab, w], "noise"), ([CONTEXT, w], "noise")
    t["token_types.weight"] = ([types, w], "noise")
    t["cls.output.weight"], t["cls.output.bias"] = ([1, w], "matrix"), ([1], "noise")
    return reference.Encoder(m)


def cases(t, model, pairs):
    for question, passage in pairs:
        t.no_truncation()
        t.encode_special_tokens = True  # their spelling is ordinary text
        whole = t.encode(question, passage)
        t.enable_truncation(CONTEXT, strategy="only_second")
        e = t.encode(question, passage)
        second = e.type_ids.index(1) if 1 in e.type_ids else 0
        x = model.rows(e.ids, second)
        direct = float(model.linear(x[:1], "cls.output")[0, 0])
        yield {"question": question, "passage": passage, "tokens": e.ids, "second": second, "cut": len(whole.ids) - len(e.ids),
               "score": round(float(model.score(e.ids, second)[0]), 6), "direct": round(direct, 6)}


def family(t, types):
    model = weights(t.get_vocab_size(), types)
    out = {"tokenizer": json.loads(t.to_str()), "types": types, "cases": list(cases(t, model, PAIRS))}
    return out


def llama(path, case):
    """The score that llama.cpp prints, which makes its own tokens of the two texts."""
    out = subprocess.run([os.environ["LLAMA"], "-m", path, "--pooling", "rank", "--embd-normalize", "-1", "--cls-separator", "\t",
                          "-p", case["question"] + "\t" + case["passage"]], capture_output=True, text=True, check=True).stdout
    return float(out.split("rerank score 0:")[1])


families = {"bert": family(bert(), 2), "xlm-roberta": family(xlm_roberta(), 1)}
if sys.argv[1:]:
    for case in families["xlm-roberta"]["cases"]:
        if case["passage"] and not case["cut"]:
            case["llama"] = llama(sys.argv[1], case)
json.dump({"tool": f"cross.py: tokenizers {tokenizers.__version__}, numpy {reference.np.__version__}, llama.cpp of llama-cpp-python 0.3.36",
           "context": CONTEXT, "families": families}, sys.stdout, ensure_ascii=False, separators=(",", ":"))
print()
