#!/usr/bin/env python3
"""Writes table.json: what Jinja 3.1 makes of templates in the environment of transformers.

usage: table.py > table.json     needs python3-jinja2
"""
import json
import re
import sys

import jinja2
import jinja2.ext
from jinja2 import nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment


class Generation(jinja2.ext.Extension):
    """The tag that marks the text of an assistant: its body, with names of its own."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return nodes.CallBlock(self.call_method("_support"), [], [], body).set_lineno(line)

    def _support(self, caller):
        return caller()


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


environment = ImmutableSandboxedEnvironment(
    trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
)
environment.filters["tojson"] = tojson
environment.globals["raise_exception"] = raise_exception

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "look_up",
            "description": "Finds a word's meaning.",
            "parameters": {
                "type": "object",
                "properties": {
                    "word": {"type": "string", "description": "Which \"word\"?"},
                    "limit": {"type": "number", "minimum": 1e-05, "maximum": 1e16, "default": 3.0},
                    "kind": {"type": ["string", "null"], "enum": ["noun", "verb", None]},
                    "exact": {"type": "boolean", "default": False},
                },
                "required": ["word"],
            },
        },
    },
    {"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}},
]
CONVERSATIONS = {
    "plain": [{"role": "user", "content": "Two and two?"}],
    "system": [
        {"role": "system", "content": "  Be brief.\n"},
        {"role": "user", "content": "Two and two?"},
        {"role": "assistant", "content": "Four."},
        {"role": "user", "content": "Größe <b>& 'more'</b> \U0001f989\u2028"},
    ],
    "tools": [
        {"role": "system", "content": "Use tools."},
        {"role": "user", "content": "What is an owl?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "look_up", "arguments": {"word": "owl", "limit": 3, "deep": {"a": [1, 2.5, None, True]}}}},
                {"id": "call_2", "type": "function", "function": {"name": "now", "arguments": {}}},
            ],
        },
        {"role": "tool", "tool_call_id": "call_1", "name": "look_up", "content": "A bird."},
        {"role": "tool", "tool_call_id": "call_2", "name": "now", "content": "12:00"},
        {"role": "assistant", "content": "<think>\nhm\n</think>\n\nA bird of the night."},
        {"role": "user", "content": "Thanks"},
    ],
    "parts": [
        {"role": "user", "content": [{"type": "text", "text": "Look: "}, {"type": "image"}, {"type": "text", "text": "what is it?"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "An owl."}], "reasoning_content": "It has feathers."},
        {"role": "user", "content": [{"type": "text", "text": "Sure?"}]},
    ],
}
EVERY = list(CONVERSATIONS)

# One template a line or more; each is rendered with "system", and those in FORMS with every conversation.
IDIOMS = r"""
{{ 1 }} {{ 1.0 }} {{ -1 }} {{ 1e-5 }} {{ 1e16 }} {{ 123456789.125 }} {{ 0.1 + 0.2 }} {{ 1e15 }} {{ 100.0 }} {{ 1.5e300 }}
{{ true }} {{ false }} {{ none }} {{ True }} {{ None }} {{ [1, 'a', none, true, 1.0] }} {{ {'a': 1, 'b': ['x']} }} {{ (1, 2) }} {{ (1,) }} {{ () }}
{{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % 3 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ 7 / 2 }} {{ 4 / 2 }} {{ 2 ** 10 }} {{ 2 ** -1 }} {{ -2 ** 2 }} {{ 7.5 % 2 }} {{ -7.5 // 2 }}
{{ 'a' ~ 1 ~ none ~ true ~ 1.5 ~ [1] }} {{ 'a' + 'b' }} {{ 'ab' * 3 }} {{ [1] + [2] }} {{ [0] * 3 }} {{ (1,) + (2,) }} {{ true + true }}
{{ 1 == 1.0 }} {{ true == 1 }} {{ 'a' == 'a' }} {{ [1] == [1.0] }} {{ none == false }} {{ 1 < 2 < 3 }} {{ 3 > 2 > 2 }} {{ 'a' < 'b' }} {{ [1, 2] < [1, 3] }} {{ 'B' < 'a' }}
{{ 'a' in 'cat' }} {{ 'a' not in 'cat' }} {{ 1 in [1, 2] }} {{ 'role' in messages[0] }} {{ 'x' in messages[0] }} {{ not 1 in [2] }} {{ 'a' in missing }}
{{ 0 and 1 }} {{ 1 and 2 }} {{ 0 or 'x' }} {{ '' or none }} {{ 'a' and 'b' or 'c' }} {{ not 'a' }} {{ not none and 1 }} {{ messages and messages[0].role }}
{{ 'yes' if true else 'no' }} {{ 'yes' if false }}| {{ 'a' if 0 else 'b' if 0 else 'c' }} {{ ('x' if 1 else 'y') + 'z' }} {{ 1 if missing else 2 }}
{{ missing }}| {{ missing is defined }} {{ missing is none }} {{ messages[0].missing is none }} {{ messages[0].missing is defined }} {{ messages[9] is defined }} {{ messages[9] }}|
{{ missing | default('d') }} {{ '' | default('d') }} {{ '' | default('d', true) }} {{ none | default('d') }} {{ none | d('d', boolean=true) }} {{ messages[0].name | default }}|
{{ missing | length }} {{ missing | list }} {{ missing == missing }} {{ missing != 1 }} {{ missing ~ 'x' }} {{ missing | join(',') }}| {{ missing | string }}| {{ missing | upper }}|
{{ missing.attribute }}
{{ missing + 1 }}
{{ missing() }}
{{ messages[0].content.missing }}| {{ messages[0]['content'] }}
{{ messages[0]['items'] is callable }} {{ messages[0].items is callable }} {{ messages[0].keys() | list }} {{ messages[0].values() | list }} {{ messages[0].items() | list }}
{{ messages[-1].role }} {{ messages[-1]['role'] }} {{ messages[0:2] | length }} {{ messages[::-1][0].role }} {{ messages[1:][0].role }} {{ messages[:-1] | length }} {{ 'hello'[1:3] }} {{ 'hello'[::-1] }} {{ 'hello'[-1] }} {{ 'hello'[::2] }}
{{ [1, 2, 3][1] }} {{ [1, 2, 3][-4] is defined }} {{ (1, 2)[0] }} {{ {'a': {'b': 3}}.a.b }} {{ {'a': 3}['a'] }} {{ {1: 'x'}[1] }} {{ [[1, 2]].0.1 }}
{{ '  a b  '.strip() }}| {{ '  a b  '.lstrip() }}| {{ '  a b  '.rstrip() }}| {{ 'xxaxx'.strip('x') }} {{ '\u00a0a\u2003'.strip() }}| {{ '\n a \t' | trim }}| {{ 'xax' | trim('x') }}
{{ 'a,b,,c'.split(',') }} {{ ' a  b '.split() }} {{ 'a b c'.split(' ', 1) }} {{ 'a,b,c'.rsplit(',', 1) }} {{ 'a</think>b'.split('</think>')[-1] }} {{ ''.split(',') }} {{ ''.split() }} {{ 'a\nb\n'.splitlines() }} {{ 'a b c'.split(none, 1) }}
{{ 'abc'.startswith('a') }} {{ 'abc'.startswith(('x', 'a')) }} {{ 'abc'.endswith('c') }} {{ 'abc'.upper() }} {{ 'ABC'.lower() }} {{ 'aBC d'.capitalize() }} {{ "they're here".title() }} {{ "they're here-now (so)" | title }} {{ 'aBC d' | capitalize }}
{{ 'banana'.replace('a', 'o') }} {{ 'banana'.replace('a', 'o', 1) }} {{ 'banana' | replace('a', 'o') }} {{ 'banana' | replace('a', 'o', 2) }} {{ 'ab'.replace('', '-') }} {{ 'banana'.count('an') }} {{ 'banana'.find('n') }} {{ 'banana'.find('x') }} {{ 'banana'.rfind('n') }} {{ 'banana'.index('n') }}
{{ ', '.join(['a', 'b']) }} {{ ['a', 1, none] | join('-') }} {{ messages | map(attribute='role') | join(',') }} {{ messages | join(',', attribute='role') }} {{ [1, 2] | join }}
{{ 'a1'.isalnum() }} {{ '12'.isdigit() }} {{ ''.isdigit() }} {{ 'a'.isalpha() }} {{ ' '.isspace() }} {{ 'A'.isupper() }} {{ 'a'.islower() }} {{ 'prefix-x'.removeprefix('prefix-') }} {{ 'x.md'.removesuffix('.md') }}
{{ [3, 1, 2] | sort }} {{ ['b', 'A', 'c'] | sort }} {{ ['b', 'A', 'c'] | sort(case_sensitive=true) }} {{ [3, 1, 2] | sort(reverse=true) }} {{ messages | sort(attribute='role') | map(attribute='role') | list }}
{{ [1, 2, 1, 'a', 'A'] | unique | list }} {{ [1, 2, 3] | first }} {{ [1, 2, 3] | last }} {{ [] | first }}| {{ 'abc' | first }} {{ 'abc' | last }} {{ [1, 2, 3] | reverse | list }} {{ 'abc' | reverse }} {{ 'abc' | list }}
{{ [1, 2, 3] | sum }} {{ [1.5, 2] | sum }} {{ [[1], [2]] | sum(start=[]) }} {{ [3, 1] | min }} {{ [3, 1] | max }} {{ ['b', 'A'] | max }} {{ -3 | abs }} {{ 3.7 | int }} {{ '42' | int }} {{ 'x' | int }} {{ 'x' | int(5) }} {{ '4.9' | int }} {{ '3.5' | float }} {{ 'x' | float }} {{ 3 | float }} {{ none | int }}
{{ 3.14159 | round(2) }} {{ 2.5 | round }} {{ 3.5 | round }} {{ 2.1 | round(0, 'ceil') }} {{ 2.9 | round(method='floor') }} {{ 42 | round }} {{ 0.125 | round(2) }}
{{ messages | selectattr('role', 'equalto', 'user') | list | length }} {{ messages | selectattr('role', '==', 'user') | map(attribute='content') | first }} {{ messages | rejectattr('role', 'in', ['system']) | list | length }} {{ messages | selectattr('name') | list }} {{ messages | selectattr('name', 'defined') | list }}
{{ [1, 2, 3, 4] | select('even') | list }} {{ [1, 2, 3, 4] | reject('odd') | list }} {{ [0, 1, '', 'a'] | select | list }} {{ [1, 2, 3] | select('greaterthan', 1) | list }} {{ ['a', 'b'] | map('upper') | join }} {{ ['a', 'b'] | map('replace', 'a', 'c') | list }} {{ [' a '] | map('trim') | list }}
{% if messages | selectattr('role', 'equalto', 'nobody') %}always{% endif %}
{{ (messages | map(attribute='role'))[0] }}|
{{ messages | map(attribute='role') | length }}
{{ {'b': 1, 'a': 2} | dictsort }} {{ {'b': 1, 'a': 2} | dictsort(by='value') }} {{ {'b': 1, 'a': 2} | dictsort(reverse=true) }} {{ {'b': 1, 'a': 2} | items | list }} {{ {'b': 1, 'a': 2} | list }} {{ {'a': 1} | length }}
{% for k, v in {'x': 1, 'y': none}.items() %}{{ k }}={{ v }};{% endfor %}{% for k in {'x': 1} %}{{ k }}{% endfor %}{% for k, v in {'x': 1} | items %}{{ k }}{{ v }}{% endfor %}
{% for m in messages if m.role == 'user' %}<{{ loop.index }} {{ m.content }}>{% else %}none{% endfor %}
{% for m in messages if m.role == 'nobody' %}x{% else %}none{% endfor %}
{% for m in messages %}{% if loop.first %}{% set extra = ' (first)' %}{% endif %}{{ m.role }}{{ extra }};{% endfor %}{{ extra }}
{% set x = 1 %}{% for m in messages %}{% set x = x + 1 %}{{ x }}{% endfor %}{{ x }}
{% set ns = namespace(n=0, names=[]) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{% set ns.names = ns.names + [m.role] %}{% endfor %}{{ ns.n }} {{ ns.names }}
{% for m in messages %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.depth }};{% endfor %}
{% for m in messages %}{% if loop.previtem is defined and loop.previtem.role == 'system' %}after system{% endif %}{% if loop.nextitem is not defined %}last{% endif %}{% endfor %}
{% for m in messages %}{{ loop.cycle('a', 'b') }}{% if loop.changed(m.role) %}!{% endif %}{% endfor %}
{% for m in messages %}{% if m.role == 'system' %}{% continue %}{% endif %}{{ m.role }}{% if loop.index == 3 %}{% break %}{% endif %},{% endfor %}
{% for a in [1, 2] %}{% for b in [3, 4] %}{{ a }}{{ b }}{{ loop.index }} {% endfor %}{{ loop.index }}{% endfor %}
{% for i in range(3) %}{{ i }}{% endfor %} {{ range(2, 10, 3) | list }} {{ range(3, 0, -1) | list }} {{ range(2000) | list | length }} {{ range(0) | list }}
{% for c in 'añ🦉' %}[{{ c }}]{% endfor %} {{ 'añ🦉' | length }} {{ '🦉x'[0] }} {{ '🦉x'[1:] }}
{% for n in [{'v': 1, 'c': [{'v': 2, 'c': []}]}] recursive %}{{ n.v }}({{ loop(n.c) }}){% endfor %}
{% set a, b = 1, 2 %}{{ a }}{{ b }} {% set t = 1, 2 %}{{ t }} {% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}
{% set text %}a{{ 1 }}b{% endset %}[{{ text }}] {% set text | upper %}abc{% endset %}[{{ text }}]
{% if missing %}a{% elif messages %}b{% else %}c{% endif %}{% if not missing and messages[0].role == 'system' %}d{% endif %}
{% macro m(a, b='x', c=none) %}{{ a }}{{ b }}{{ c }}{% endmacro %}[{{ m(1) }}][{{ m(1, 2) }}][{{ m(1, c=3) }}][{{ m(b=1, a=2) }}][{{ m() }}]
{% macro outer(x) %}{{ inner(x) }}{% endmacro %}{% macro inner(x) %}<{{ x }}>{% endmacro %}{{ outer(1) }}
{% set top = 5 %}{% macro m() %}{{ top }}{% endmacro %}{{ m() }}{% set top = 6 %}{{ m() }}
{% macro box() %}[{{ caller() }}]{% endmacro %}{% call box() %}in{% endcall %} {% macro each(l) %}{% for i in l %}{{ caller(i) }}{% endfor %}{% endmacro %}{% call(x) each([1, 2]) %}<{{ x }}>{% endcall %}
{% filter upper %}abc {{ 'd' }}{% endfilter %} {% with a = 1, b = 2 %}{{ a + b }}{% endwith %}{{ a }}
{% generation %}said{% set g = 1 %}{% endgeneration %}{{ g }}
{% raw %}{{ not code }} {% if %}{% endraw %} {{ '{{' }} {{ "{%" }}
{# a comment #}a{#- one that strips -#}  b {# {{ nothing }} #}
{{ messages | tojson }}
{{ tools | tojson }}
{{ tools | tojson(indent=2) }}
{{ tools[0].function.parameters | tojson(indent=4) }}
{{ {'b': 1, 'a': [1, {}], 'c': [], 'd': 'ü\n"'} | tojson }} {{ {'b': 1, 'a': 2} | tojson(sort_keys=true) }} {{ 'ü' | tojson(ensure_ascii=true) }} {{ {'a': [1, 2]} | tojson(separators=(',', ':')) }} {{ 1e-5 | tojson }} {{ [none, true, 1.0, 1e20] | tojson }}
{{ {'a': [1, {}], 'b': {}} | tojson(indent=1) }}
{% for t in tools %}{{ t.function.name }}: {{ t.function.parameters.properties | length }} {{ t.function.description | default('none') }};{% endfor %}
{{ tools is defined }} {{ tools is not none }} {{ tools is iterable }} {{ tools is mapping }} {{ tools is string }} {{ documents is none }}
{{ messages[0].content is string }} {{ messages is sequence }} {{ messages[0] is mapping }} {{ 1 is number }} {{ 1.0 is float }} {{ 1 is integer }} {{ true is integer }} {{ true is boolean }} {{ true is number }} {{ none is none }} {{ 2 is even }} {{ 3 is odd }} {{ 9 is divisibleby 3 }} {{ 'a' is in ['a'] }} {{ 1 is eq 1 }} {{ 1 is ne 1 }} {{ 2 is gt 1 }} {{ 1 is sameas 1 }} {{ true is true }} {{ 1 is true }} {{ 'ab' is lower }} {{ 'AB' is upper }} {{ range is callable }}
{{ 1 is not number }} {{ not 1 is number }} {{ missing is not defined }} {{ (1 is number) and (2 is number) }} {{ 'x' is string and 1 }}
{{ -1 | abs }} {{ (-1) | abs }} {{ 'a' ~ 'b' | upper }} {{ ('a' ~ 'b') | upper }} {{ 1 + 2 * 3 - 4 / 2 }} {{ (1 + 2) * 3 }} {{ 2 + 3 ~ 4 }} {{ 10 - 2 - 3 }} {{ 2 ** 3 ** 2 }} {{ not true or true }} {{ 1 if true or false and false else 2 }}
{{ 'it''s' }} {{ "a" "b" }} {{ 'tab\tnew\\n\x41\u00e9' }} {{ "quote\"d" }} {{ 'it\'s' }} {{ ["it's", 'a"b', 'both\'"', 'line\n', '\x07ü'] }}
{{ {'a': 1}.get('a') }} {{ {'a': 1}.get('b') }} {{ {'a': 1}.get('b', 2) }} {{ dict(a=1, b=2) }} {{ dict([('a', 1)]) }} {{ namespace(a=1).a }} {{ namespace(a=1).b is defined }}
{{ [1, 2, 2].count(2) }} {{ [1, 2].index(2) }} {{ 'x'.join(messages[0].keys()) }} {{ messages[0].copy().role }}
{{ 'line one\nline two\n\nfour' | indent }}| {{ 'a\nb' | indent(2, true) }} {{ 'a\n\nb' | indent(2, blank=true) }} {{ 'a\nb' | indent('> ') }}
{{ 'a b c' | wordcount }} {{ 'x' | safe }} {{ 5 | string }} {{ [1] | string }} {{ 'ABC' | lower }} {{ none | string }} {{ true | string }} {{ 'a' | attr('upper') is callable }}
{{ joiner(', ') is callable }}{% set j = joiner('|') %}{% for i in [1, 2, 3] %}{{ j() }}{{ i }}{% endfor %}
{{ messages.append(1) }}
{{ messages[0].update({'a': 1}) }}
{{ messages[0].pop('role') }}
{{ ''.__class__ }}
{{ messages.__len__() }}
{{ 'a' + 1 }}
{{ 1 < 'a' }}
{{ none | length }}
{{ 5 | join }}
{{ 1 / 0 }}
{{ none.x }}|
{{ none[0] }}|
{{ messages | nofilter }}
{{ messages is notest }}
{{ raise_exception('Only user and assistant roles!') }}
{% do messages %}
{% include 'x' %}
{% if true %}
{{ 1 + }}
{{ 'open }}
{{ [1, 2 }}
{% for a, b in [1] %}{% endfor %}
{% for x in 5 %}{% endfor %}
{% set messages[0].role = 'x' %}
{{ [1, 2] | map('nofilter') | list }}
{{ 3 in 5 }}
{{ 'a' is divisibleby 2 }}
{{ loop.index }}
{{ 'abc' | int + 1 }} {{ '3' | int + 1 }} {{ ('a', 'b') | join('+') }} {{ 'b' in ('a', 'b') }}
{{ messages | length > 2 and messages | length < 9 }} {{ messages | map(attribute='content') | map('length') | list }} {{ (messages | length) % 2 == 0 }}
{{ 1_000 }} {{ 0x1f }} {{ 0b11 }} {{ 0o17 }} {{ 1_0.5 }}
{{ '%s' }} {{ "100%" }} {{ 5 % 3 }}
{{ ' x ' ~ ' y '.strip() }} {{ ('a' if messages[0].role == 'system' else 'b') ~ '!' }} {{ bos_token + 'x' + eos_token }}
{{- '  a' -}}   b {{- 'c' }} d
{%- if true -%}   x   {%- endif -%}   y
a {%+ if true %} b {% endif +%}
 c
{{ '\N{BULLET}' }} {{ '\N{latin small letter a}b' }} {{ '\N{NOPE}' }} {{ '\N' }} {{ '\N{' }} {{ '\x+1' }} {{ '\x4' }} {{ '\U0001F600' }} {{ '\ud83d' }} {{ cycler is defined }} {{ self }}
"""

BLANKS = [
    "{% for m in messages %}[{{ m.role }}] {{ m.content }} {% endfor %}Assistant: {% if add_generation_prompt %}yes{% endif %}",
    "a\n  {% if true %}\n  b\n  {% endif %}\nc\n",
    "a\n  {{ 1 }}\n  b\n",
    "a  {% if true %}  b  {% endif %}  c",
    "\n\n{% if true %}\n\nx\n\n{% endif %}\n\n",
    "a\n\t{# note #}\n\tb\n   {#- note -#}   \n c",
    "a\n  {%- if true %}\n  b\n  {%- endif %}\nc",
    "a\n  {% if true -%}\n  b\n  {% endif -%}\n  c",
    "a\n  {%+ if true %}\n  b\n  {%+ endif %}\nc",
    "a\n  {% if true +%}\n  b\n  {% endif +%}\nc",
    "  {% if true %}x{% endif %}  {% if true %}y{% endif %}",
    "{% if true %}  {% if true %}  x{% endif %}{% endif %}",
    "{% if true %}\n  {% set x = 1 %}\n  {{ x }}\n{% endif %}\n",
    "{{ 'a' }}\n{{ 'b' }}\n\n",
    "{{ 'a' }}\n  {%- for i in [1, 2] %}\n    {{- i }}\n  {%- endfor %}\nz",
    "a\r\n  {% if true %}\r\nb\r\n{% endif %}\r\nc\r\n",
    "x{% raw %}\n  {{ y }}\n{% endraw %}\nz",
    "x  {%- raw -%}  {{ y }}  {%- endraw -%}  z",
    "  {% raw %}  a  {% endraw %}  b",
    "{%- set ns = namespace(a=1) -%}\n\n{{- ns.a -}}\n\nend\n\n",
    "{# first #}\n{# second #}\n  {# third #}  x",
    "\u00a0{% if true %}x{% endif %}\n\u00a0 {% if true %}y{% endif %}",
    "{{\n  'a'\n  ~ 'b'\n}}\n{%\n  if true\n%}\nc{%\nendif\n%}",
    "{",
    "{ {% if true %}}{% endif %} }",
    "a{{ '}}' }}b{{ \"%}\" }}{{ {'a': {'b': 1}} }}",
    "",
]

FORMS = {
    "chatml": "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + (message['content'] or '') | string + '<|im_end|>' + '\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}",
    "alternating": "{{ bos_token }}{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}{% if message['role'] == 'user' %}{{ '[INST] ' + message['content'] | trim + ' [/INST]' }}{% elif message['role'] == 'assistant' %}{{ ' ' + message['content'] | trim + eos_token }}{% endif %}{% endfor %}",
    "system-apart": "{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}{% set system_message = messages[0]['content'] %}{% else %}{% set loop_messages = messages %}{% set system_message = false %}{% endif %}{% for message in loop_messages %}{% if loop.index0 == 0 and system_message != false %}{% set content = '<<SYS>>\\n' + system_message + '\\n<</SYS>>\\n\\n' ~ message['content'] %}{% else %}{% set content = message['content'] %}{% endif %}{{ message.role }}: {{ content }}\n{% endfor %}",
    "headers": "{{- bos_token }}\n{%- if tools is not none %}\n    {{- 'Environment: ipython\\n' }}\n    {%- for t in tools %}\n        {{- t | tojson(indent=4) }}\n        {{- '\\n\\n' }}\n    {%- endfor %}\n{%- endif %}\n{%- for message in messages %}\n    {%- if not (message.role == 'tool' or 'tool_calls' in message) %}\n        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' }}\n        {{- (message['content'] if message['content'] is string else message['content'] | map(attribute='text') | select('string') | join) | trim + '<|eot_id|>' }}\n    {%- elif 'tool_calls' in message %}\n        {%- if not message.tool_calls | length == 1 %}{{- '(several)' }}{%- endif %}\n        {%- set tool_call = message.tool_calls[0].function %}\n        {{- '{\"name\": \"' + tool_call.name + '\", ' }}\n        {{- '\"parameters\": ' }}\n        {{- tool_call.arguments | tojson }}\n        {{- '}' }}\n    {%- else %}\n        {{- '<|start_header_id|>ipython<|end_header_id|>\\n\\n' }}\n        {%- if message.content is mapping or message.content is iterable %}\n            {{- message.content | tojson }}\n        {%- else %}\n            {{- message.content }}\n        {%- endif %}\n    {%- endif %}\n{%- endfor %}\n{%- if add_generation_prompt %}\n    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}\n{%- endif %}\n",
    "tool-blocks": "{%- if tools %}\n    {{- '<|im_start|>system\\n' }}\n    {%- if messages[0].role == 'system' %}\n        {{- messages[0].content + '\\n\\n' }}\n    {%- endif %}\n    {{- \"# Tools\\n\\n<tools>\" }}\n    {%- for tool in tools %}\n        {{- \"\\n\" }}\n        {{- tool | tojson }}\n    {%- endfor %}\n    {{- \"\\n</tools><|im_end|>\\n\" }}\n{%- endif %}\n{%- set ns = namespace(multi_step_tool=true, last_query_index=messages|length - 1) %}\n{%- for message in messages[::-1] %}\n    {%- set index = (messages|length - 1) - loop.index0 %}\n    {%- if ns.multi_step_tool and message.role == \"user\" and message.content is string and not(message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}\n        {%- set ns.multi_step_tool = false %}\n        {%- set ns.last_query_index = index %}\n    {%- endif %}\n{%- endfor %}\n{%- for message in messages %}\n    {%- if message.content is string %}\n        {%- set content = message.content %}\n    {%- else %}\n        {%- set content = '' %}\n    {%- endif %}\n    {%- if (message.role == \"user\") or (message.role == \"system\" and not loop.first) %}\n        {{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>' + '\\n' }}\n    {%- elif message.role == \"assistant\" %}\n        {%- set reasoning_content = '' %}\n        {%- if message.reasoning_content is string %}\n            {%- set reasoning_content = message.reasoning_content %}\n        {%- else %}\n            {%- if '</think>' in content %}\n                {%- set reasoning_content = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}\n                {%- set content = content.split('</think>')[-1].lstrip('\\n') %}\n            {%- endif %}\n        {%- endif %}\n        {%- if loop.index0 > ns.last_query_index and (loop.last or reasoning_content) %}\n            {{- '<|im_start|>' + message.role + '\\n<think>\\n' + reasoning_content.strip('\\n') + '\\n</think>\\n\\n' + content.lstrip('\\n') }}\n        {%- else %}\n            {{- '<|im_start|>' + message.role + '\\n' + content }}\n        {%- endif %}\n        {%- if message.tool_calls %}\n            {%- for tool_call in message.tool_calls %}\n                {%- if (loop.first and content) or (not loop.first) %}\n                    {{- '\\n' }}\n                {%- endif %}\n                {%- if tool_call.function %}\n                    {%- set tool_call = tool_call.function %}\n                {%- endif %}\n                {{- '<tool_call>\\n{\"name\": \"' }}\n                {{- tool_call.name }}\n                {{- '\", \"arguments\": ' }}\n                {%- if tool_call.arguments is string %}\n                    {{- tool_call.arguments }}\n                {%- else %}\n                    {{- tool_call.arguments | tojson }}\n                {%- endif %}\n                {{- '}\\n</tool_call>' }}\n            {%- endfor %}\n        {%- endif %}\n        {{- '<|im_end|>\\n' }}\n    {%- elif message.role == \"tool\" %}\n        {%- if loop.first or (messages[loop.index0 - 1].role != \"tool\") %}\n            {{- '<|im_start|>user' }}\n        {%- endif %}\n        {{- '\\n<tool_response>\\n' }}\n        {{- content }}\n        {{- '\\n</tool_response>' }}\n        {%- if loop.last or (messages[loop.index0 + 1].role != \"tool\") %}\n            {{- '<|im_end|>\\n' }}\n        {%- endif %}\n    {%- endif %}\n{%- endfor %}\n{%- if add_generation_prompt %}\n    {{- '<|im_start|>assistant\\n' }}\n    {%- if enable_thinking is defined and enable_thinking is false %}\n        {{- '<think>\\n\\n</think>\\n\\n' }}\n    {%- endif %}\n{%- endif %}",
    "parameters": "{% for m in messages %}{% for t in m.tool_calls %}<function={{ t.function.name }}>{% for k, v in t.function.arguments|items %}<parameter={{ k }}>{{ v if v is string else v | tojson }}</parameter>{% endfor %}</function>{% endfor %}{{ m.content }}{% endfor %}",
    "parts": "{% for message in messages %}<|{{ message['role'] }}|>{% if message['content'] is string %}{{ message['content'] }}{% else %}{% for part in message['content'] %}{% if part['type'] == 'image' %}<image>{% elif part['type'] == 'text' %}{{ part['text'] }}{% endif %}{% endfor %}{% endif %}<|end|>\n{% endfor %}",
    "macros": "{%- macro json_to_python_type(json_spec) %}\n    {%- set basic_type_map = {'string': 'str', 'number': 'float', 'boolean': 'bool'} %}\n    {%- if basic_type_map[json_spec.type] is defined %}\n        {{- basic_type_map[json_spec.type] }}\n    {%- elif json_spec.type is iterable and json_spec.type is not string %}\n        {{- 'Union[' }}\n        {%- for t in json_spec.type %}\n            {{- json_to_python_type({'type': t}) }}\n            {%- if not loop.last %}{{- ',' }}{%- endif %}\n        {%- endfor %}\n        {{- ']' }}\n    {%- elif json_spec.type == 'object' %}\n        {{- 'dict' }}\n    {%- else %}\n        {{- 'Any' }}\n    {%- endif %}\n{%- endmacro %}\n{%- for tool in tools or [] %}\n    {{- 'def ' + tool.function.name + '(' }}\n    {%- for name, spec in tool.function.parameters.properties.items() %}\n        {{- name + ': ' + json_to_python_type(spec) }}\n        {%- if not loop.last %}{{- ', ' }}{%- endif %}\n    {%- endfor %}\n    {{- ')\\n' }}\n{%- endfor %}\n{%- for m in messages %}{{- m.role + ';' }}{%- endfor %}",
    "model-turns": "{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}{% for message in messages %}{% if (message['role'] == 'assistant') %}{% set role = 'model' %}{% else %}{% set role = message['role'] %}{% endif %}{{ '<start_of_turn>' + role + '\\n' + message['content'] | trim + '<end_of_turn>\\n' }}{% endfor %}{% if add_generation_prompt %}{{'<start_of_turn>model\\n'}}{% endif %}",
    "last-user": "{%- set user_messages = messages | selectattr('role', 'equalto', 'user') | list %}\n{%- for message in messages %}\n{%- if message.role == 'user' and message == user_messages[-1] and tools %}\n{{- '[AVAILABLE_TOOLS] [' }}\n{%- for tool in tools %}\n{%- set tool = tool.function %}\n{{- '{\"type\": \"function\", \"function\": {' }}\n{%- for key, val in tool.items() if key != 'return' %}\n{%- if val is string %}\n{{- '\"' + key + '\": \"' + val + '\"' }}\n{%- else %}\n{{- '\"' + key + '\": ' + val | tojson }}\n{%- endif %}\n{%- if not loop.last %}\n{{- ', ' }}\n{%- endif %}\n{%- endfor %}\n{{- '}}' }}\n{%- if not loop.last %}\n{{- ', ' }}\n{%- else %}\n{{- ']' }}\n{%- endif %}\n{%- endfor %}\n{{- '[/AVAILABLE_TOOLS]' }}\n{%- endif %}\n{{- message.role ~ ': ' ~ message.content ~ eos_token }}\n{%- endfor %}",
}


def rendered(template, conversation, tools):
    try:
        text = environment.from_string(template).render(
            messages=CONVERSATIONS[conversation],
            tools=tools,
            documents=None,
            add_generation_prompt=True,
            bos_token="<s>",
            eos_token="</s>",
        )
        return {"text": text}
    except Exception as e:  # whatever Jinja refuses with
        return {"refused": type(e).__name__ + ": " + str(e)}


cases = []


def add(name, template, conversation, with_tools):
    case = {"name": name, "template": template, "conversation": conversation, "tools": with_tools}
    case.update(rendered(template, conversation, TOOLS if with_tools else None))
    cases.append(case)


for number, line in enumerate(IDIOMS.strip("\n").split("\n"), 1):
    is_of_expressions = not re.search(r"\{%|\{#|\{\{-", line)
    for part, template in enumerate(re.split(r"(?<=\}\})\|? (?=\{\{)", line) if is_of_expressions else [line], 1):
        add("idiom %d.%d" % (number, part), template, "system", True)
for number, template in enumerate(BLANKS, 1):
    add("blanks %d" % number, template, "system", False)
for name, template in FORMS.items():
    for conversation in EVERY:
        add("%s, %s" % (name, conversation), template, conversation, conversation == "tools")
    add("%s, system with tools" % name, template, "system", True)

json.dump(
    {"jinja": jinja2.__version__, "tools": TOOLS, "conversations": CONVERSATIONS, "cases": cases},
    sys.stdout,
    ensure_ascii=True,
    indent=1,
)
print()
