"""Renders the test templates with the reference and writes golden.json."""
import datetime
import json
import random
import struct
import sys

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

NOW = datetime.datetime(2026, 3, 5, 14, 7, 9)


class Generation(Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return nodes.CallBlock(self.call_method("_same"), [], [], body).set_lineno(line)

    def _same(self, caller):
        return caller()


def environment():
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols])

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    def refuse(message):
        raise jinja2.exceptions.TemplateError(message)

    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = refuse
    env.globals["strftime_now"] = lambda f: NOW.strftime(f)
    return env


def chat_template(path):
    """The template in the first megabytes of a GGUF file."""
    key = b"tokenizer.chat_template"
    head = open(path, "rb").read(8 << 20)
    at = head.index(key) + len(key)
    _, size = struct.unpack("<IQ", head[at : at + 12])
    return head[at + 12 : at + 12 + size].decode()


# Expressions, one output each.
EXPRESSIONS = r"""
1 + 2 * 3 - 4
7 // 2, -7 // 2, 7 % 3, -7 % 3, 7 / 2
-7.5 // 2, 7.5 % -2
2 * 'ab', 'ab' * 0
1 ~ 'x' ~ none ~ true ~ 2.50
1e0, 2.5E+3, 1e-7 if false else 3.0
10000000000000000.0, 0.0001, 0.00001, 1.5
(1, 2) + (3,), [1] + [[2]], (), (1,)
{'a': 1, "b": [true, none, 'it\'s', "say \"it's\""]}
'a\tb\\n\x41\u00e9\n' 'joined'
'tab\there and \x7f \u200b 한' | list
[['tab\t', "q'", '한', '\x07', '\u200b']]
not true or 1 and 'last'
0 or '' or 'c', 1 and 0
1 < 2 < 3, 1 < 3 < 2, 1 == 1.0, true == 1, 'a' < 'b', '1' == 1
'ell' in 'hello', 2 in [1, 2], 'a' not in {'a': 1}, 'x' in nothing
[1, [2]] == [1, [2]], {'a': 1} == {'a': 1.0}, (1,) == [1]
('yes' if messages else 'no') ~ ('x' if false)
(messages | length > 1) and 'many'
messages[0].role, messages[0]['role'], messages[-1].role, messages[99], messages[0].nothing
'hello'[1], 'hello'[-1], 'hello'[1:3], 'hello'[::-1], 'hello'[3:0:-2], 'hello'[-3:], 'hello'[5:2], 'hello'[:99]
'가나다라마'[1:3], '가나다라마'[::-2], '가나다라마' | length, '가나다라마'[2]
[1, 2, 3, 4][1:], [1, 2, 3, 4][::-1], [1, 2, 3, 4][::2], [1, 2, 3, 4][-9:2], [1, 2, 3][5:], [1, 2, 3][:-5:-1]
'  x  '.strip() ~ '|' ~ '  x  '.lstrip() ~ '|' ~ '  x  '.rstrip() ~ '|' ~ 'xxaxx'.strip('x') ~ '|' ~ '\x1c\u3000x\xa0'.strip()
'a,b,,c'.split(','), 'a,b,c'.split(',', 1), '  a  b '.split(), ' a b c '.split(None, 1), ''.split(), ''.split(',')
'a</think>b</think>c'.split('</think>')[-1], 'x'.split('y')[0]
'one\ntwo\r\nthree'.splitlines(), 'abc'.startswith('ab'), 'abc'.endswith(('x', 'c')), 'abc'.find('c'), 'abc'.find('z')
'aXbX'.replace('X', 'yy'), 'aaa'.replace('a', 'b', 2), 'ab'.replace('', '-'), 'abc' | replace('b', '')
'straße'.upper(), 'ÀÉ'.lower(), 'hELLO wORLD'.capitalize(), 'hello world'.title(), 'Ab' | upper, 'Ab' | lower, 'ab' | capitalize
'-'.join(['a', 'b']), [1, none, 'x'] | join(', '), 'abc' | join('.'), [] | join
'{}-{}'.format('a', 1)
{'a': 1, 'b': 2}.items() | list, {'a': 1, 'b': 2}.keys() | list, {'a': 1}.values() | list, {'a': 1}.get('a'), {'a': 1}.get('z'), {'a': 1}.get('z', 3)
{'a': 1, 'b': 2} | items | list, {'b': 1, 'A': 2, 'c': 0} | dictsort, {'b': 1, 'a': 2} | dictsort(false, 'value')
none | default('x'), nothing | default('x'), '' | default('x', true), nothing | d, 0 | default(5, boolean=true)
[3, 1, 2] | sort, ['b', 'A', 'c'] | sort, [3, 1, 2] | sort(reverse=true), [3, 1, 2] | min, [3, 1, 2] | max, ['b', 'a', 'b'] | unique | list
[1, 2, 3] | first, [1, 2, 3] | last, [] | first, 'abc' | first, [1, 2] | reverse | list, 'abc' | reverse, 'abc' | list
[1, 2, 3, 4] | select('odd') | list, [1, 2, 3] | reject('equalto', 2) | list, [0, 1, ''] | select | list, [1, 2, 3] | select('>', 1) | list
messages | selectattr('role', 'equalto', 'user') | list | length, messages | rejectattr('role', 'in', ['user', 'system']) | map(attribute='role') | join('+')
messages | map(attribute='nothing', default='-') | list, ['a', 'b'] | map('upper') | list, none | map('upper') | list
'12' | int, 'x' | int, 'x' | int(7), '3.9' | int, 4.7 | int, -3 | abs, -2.5 | abs, 12 | string ~ '!'
'a\nb\n\nc' | indent(2), 'a\nb' | indent(2, true), 'a\nb' | indent('> ')
'  x ' | trim ~ '|', none | string, true | string, [1, 'a'] | string
1 is number, 1.5 is number, '1' is number, 1 is integer, 1.0 is integer, 1.0 is float, true is boolean, true is integer, true is number
nothing is defined, messages is defined, nothing is undefined, none is none, 0 is none
'' is string, {} is mapping, [] is mapping, [] is iterable, 'x' is iterable, {} is iterable, [] is sequence, 'x' is sequence, 1 is iterable
true is true, 1 is true, false is false, 3 is odd, 4 is even, 9 is divisibleby 3, 4 is divisibleby(3), 3 is eq 3, 3 is ne(3), 3 is gt 2, 2 is in [1, 2]
1 is not none and 'a' is not string, not 1 is none
{'b': [1, 2.0, none, true], 'a': '한 <b> & \'q\' "d" \\ \n\t'} | tojson
{'b': [1, {}], 'a': []} | tojson(indent=2)
{'b': [1, {}], 'a': []} | tojson(indent=4, sort_keys=true), {'a': [1, 2]} | tojson(separators=(',', ':')), '한😀' | tojson(ensure_ascii=true), 1.0 | tojson, {1: 2, none: 3, true: 4} | tojson
range(3) | list, range(1, 7, 2) | list, range(3, 0, -1) | list, dict(a=1, b='x'), dict({'a': 1}, b=2)
strftime_now('%d %b %Y'), strftime_now('%Y-%m-%d %H:%M:%S %A %B %j %y %p %I %%'), strftime_now('%-d/%-m')
bos_token + messages[0]['role'] + '\n' + messages[0]['content'] + eos_token
""".strip().split("\n")

TEMPLATES = {
    "headers": """{{- bos_token }}
{%- set loop_messages = messages %}
{%- for message in loop_messages %}
    {%- set content = '<|head|>' + message['role'] + '<|/head|>\n\n' + message['content'] | trim + '<|eot|>' %}
    {%- if loop.index0 == 0 and not tools is defined %}
        {{- '<|first|>' }}
    {%- endif %}
    {{- content }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|head|>assistant<|/head|>\n\n' }}
{%- endif %}
""",
    "alternating": """{% if messages[0]['role'] == 'system' %}
  {% set preface = messages[0]['content'] | trim + '\n\n' %}
  {% set turns = messages[1:] %}
{% else %}
  {% set preface = '' %}{% set turns = messages %}
{% endif %}
{% for m in turns %}
    {% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}
        {{ raise_exception('user and assistant must take turns, not ' + m.role) }}
    {% endif %}
{% set role = 'model' if m.role == 'assistant' else m.role %}
{{ '<turn>' + role + '\n' + (preface if loop.first else '') }}
    {%- if m['content'] is string %}
{{ m['content'] | trim }}
    {%- elif m['content'] is iterable %}
        {%- for item in m['content'] %}{{ item.text }}{%- endfor %}
    {%- endif %}
</turn>
{% endfor %}
{% if add_generation_prompt %}{{ '<turn>model\n' }}{% endif %}
""",
    "thinking": """{%- if tools %}
{{- '<sys>' }}
{%- for tool in tools %}
{{- "\n" ~ (tool | tojson) }}
{%- endfor %}
{{- '</sys>\n' }}
{%- endif %}
{%- set ns = namespace(searching=true, last=messages | length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages | length - 1) - loop.index0 %}
    {%- if ns.searching and message.role == "user" and message.content is string and not (message.content.startswith('<result>') and message.content.endswith('</result>')) %}
        {%- set ns.searching = false %}
        {%- set ns.last = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- set content = message.content if message.content is string else '' %}
    {%- set thought = '' %}
    {%- if message.role == 'assistant' and '</think>' in content %}
        {%- set thought = content.split('</think>')[0].rstrip('\n').split('<think>')[-1].lstrip('\n') %}
        {%- set content = content.split('</think>')[-1].lstrip('\n') %}
    {%- endif %}
    {{- '<|s|>' + message.role + '\n' }}
    {%- if loop.index0 > ns.last and (loop.last or thought) %}
        {{- '<think>\n' + thought.strip('\n') + '\n</think>\n\n' }}
    {%- endif %}
    {{- content + '<|e|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|s|>assistant\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}{{- '<think>\n\n</think>\n\n' }}{%- endif %}
{%- endif %}""",
    "macros": """{% macro turn(role, text, end='<end>') -%}
  [{{ role | upper }}] {{ text }}{{ end }}
{%- endmacro %}
{% macro shape(x, depth=0) %}
{%- if x is mapping %}{ {%- for k, v in x | items %}{{ k }}: {{ shape(v, depth + 1) }}{{ ', ' if not loop.last }}{% endfor %} }
{%- elif x is string %}"{{ x }}"{% elif x is iterable %}({% for v in x %}{{ shape(v, depth=depth + 1) }};{% endfor %}){% else %}{{ x }}@{{ depth }}{% endif %}
{%- endmacro %}
{{ shape({'a': [1, 'b', {'c': none}]}) }}
{% for m in messages if m.role != 'system' %}
{% if loop.index > 3 %}{% break %}{% endif %}
{% if not m.content %}{% continue %}{% endif %}
{{ turn(m.role, m.content) }} {{ loop.index }}/{{ loop.length }} {{ loop.revindex }}
{% if loop.previtem is defined %}after {{ loop.previtem.role }}{% endif %}{% if loop.nextitem is defined %} before {{ loop.nextitem.role }}{% endif %}

{% else %}
nobody
{% endfor %}
{{ turn(role='x', text=turn('y', 'z', end='')) }}""",
    "blocks": """{# a comment
over lines #}
  {#- stripped -#}
{% set intro %}
Rules for {{ messages[0].role }}:
    {% if true %}indented{% endif %}
{% endset %}
{{ intro | trim }}
{% set shout | upper %}loud {{ messages[0].content }}{% endset %}
{{ shout }}
{% filter replace('a', 'b') | trim %} banana {{ messages[0].content }} {% endfilter %}

{% raw %}{{ not evaluated }} {% if %}{% endraw %}
    {%+ if true %}kept indent{% endif +%}

{% for x in [1, 2] %}{% set intro = x %}{{ intro }}{% endfor %}{{ intro | length }}
{% for a, b in [(1, 2), (3, 4)] %}{{ a }}-{{ b }} {% endfor %}
{% for c in 'né' %}{{ c }}.{% endfor %}{% for x in nothing %}{% else %}none{% endfor %}
{% generation %}inside {{ eos_token }}{% endgeneration %}
{% if false %}{% elif messages | length == 1 %}one{% else %}more{% endif %}
{% set a, b = 1, 'two' %}{{ b }}{{ a }}
""",
}

TEXTS = [
    "Where is the key?", "  padded \n", "it says <|im_end|> and <|im_start|>system here", "열쇠는 어디에 있나요?", "", "\n\n",
    "<think>\nweigh it\n</think>\n\nIn the drawer.", "a </think> b", "quotes ' and \" and \\ <b>&amp;</b>", "👩‍🚀 e\u0301",
    "<result>12</result>", "line one\r\nline two", "\u00a0\u3000wide\u2003", "{{ 7 * 7 }} {% if %}",
]
TOOLS = [{"type": "function", "function": {"name": "find", "description": "A <thing> & 'more'", "parameters": {"properties": {"이름": {"default": 1.0}}, "required": []}}}]


def conversation(rng):
    out = []
    if rng.random() < 0.5:
        out.append({"role": "system", "content": rng.choice(TEXTS)})
    for _ in range(rng.randint(1, 2)):
        out.append({"role": "user", "content": rng.choice(TEXTS)})
        if rng.random() < 0.75:
            out.append({"role": "assistant", "content": rng.choice(TEXTS)})
    return out


def context(rng):
    ctx = {"messages": conversation(rng), "add_generation_prompt": rng.random() < 0.5, "bos_token": "<s>", "eos_token": "</s>"}
    if rng.random() < 0.25:
        ctx["tools"] = TOOLS
    if rng.random() < 0.25:
        ctx["enable_thinking"] = rng.random() < 0.5
    return ctx


def render(env, source, ctx):
    try:
        return {"want": env.from_string(source).render(**ctx)}
    except jinja2.exceptions.TemplateError as e:
        return {"error": str(e)}


def main():
    rng = random.Random(11)
    env = environment()
    sources = dict(TEMPLATES)
    cases = []
    ctx = {"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes?"}], "bos_token": "<s>", "eos_token": "</s>"}
    for i, e in enumerate(EXPRESSIONS):
        name = f"expression {i + 1}"
        sources[name] = "{{ " + e + " }}"
        cases.append({"template": name, "context": ctx, **render(env, sources[name], ctx)})
    real = {"smollm2": chat_template(sys.argv[1])}
    for name, source in (real | TEMPLATES).items():
        for _ in range(24 if name == "smollm2" else 10):
            c = context(rng)
            cases.append({"template": name, "context": c, **render(env, source, c)})
    note = "made by golden.py with Jinja2 " + jinja2.__version__ + "; see README.md"
    with open("golden.json", "w") as f:
        json.dump({"note": note, "templates": sources, "cases": cases}, f, ensure_ascii=False, indent=0)
        f.write("\n")


main()
