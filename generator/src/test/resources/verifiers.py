#!/usr/bin/env python3
"""Writes verifiers.tsv: what three verifiers of the field say of answers and responses, next to the verdict of the reward "numeric".

math-verify: Math-Verify 0.8.0 with latex2sympy2_extended 1.11.0, called as verl's math_verify scorer calls it.
gsm8k: the rule of verl's gsm8k scorer, method "flexible": the last run of [0-9.,] with its minus, compared as a text.
math_reward: the rule of verl's math_reward scorer: what is in the last box, both sides with the same spelling of LaTeX, compared as a text.

A response alone: "numeric" gives what Math-Verify gives. (response, reason): it gives the opposite, for that reason. With
SPACE only math_reward gives the opposite.
"""
import logging
import pathlib
import re

from math_verify import ExprExtractionConfig, LatexExtractionConfig, parse, verify

LATEX = "Math-Verify reads LaTeX only in math mode"
SIGN = "a minus is read as U+2212, as a dash, with a space behind it or before a currency"
ROUND = "Math-Verify rounds to six digits; numeric has reward.tolerance"
SUM = "Math-Verify evaluates sums and both sides of an equation; the last number counts"
PERCENT = "a percent sign is a unit; Math-Verify takes both 50 and 0.5"
COMMA = "a comma groups thousands; Math-Verify also takes it as a decimal point"
GROUP = "a space that breaks separates two numbers; one that does not break groups thousands"
PLAIN = "Math-Verify reads a number next to this mark as text"
MIXED = "Math-Verify does not read mixed fractions"
POWER = "Math-Verify reads powers and exponents only in math mode"
RANGE = "Math-Verify subtracts; the end of a range is a number"
BOXES = "Math-Verify takes several boxes for several answers; the last box counts"
ROOT = "numeric computes no roots"
SPACE = "math_reward leaves out spaces; a space that breaks separates two numbers"
PI = "Math-Verify leaves out what it cannot read behind the number"

CASES = {
    "5": [
        "5", "The answer is 5.", "so x = 5", "x = -5", "so x = \u22125", "5.0", "5.00", "05", ("+5", PLAIN), "5 apples", "$5", "5 dollars",
        ("\\$5", LATEX), "five", "\\boxed{5}", "$\\boxed{5}$", "\\boxed{-5}", "\\boxed{ 5 }", "**5**", "5%", "5\\%", "15", "5.1",
        "4.9999999", "3 + 2 = 5", ("5 = 3 + 2", SUM), "#### 5", "\\(5\\)", "\\[5\\]", ("`5`", PLAIN), "5 or 6", "\\frac{10}{2}", "10/2",
        "\\sqrt{25}", ("20 - 15", SUM), "5!", "5 cm", "5cm", "5\\text{ cm}", "5\\,\\text{cm}", "5^\\circ", "5\u00b0", "x=5", "A: 5",
        ("Answer:5", PLAIN), "The answer is: 5", "50", "5,", ("(5)", PLAIN), ("[5]", PLAIN), "5km/h", "5 m^2", "5\\text{ m}^2",
        "\\boxed{5 \\text{ m}^2}", "no number", "", "5x", "5 hours and 3 minutes", "\\boxed 5", "$\\boxed 5$", ("\\fbox{5}", PLAIN),
        ("\\boxed{4} or \\boxed{5}", BOXES), "\\boxed{5} or \\boxed{6}", ("\\boxed{5", PLAIN), "\\boxed{x=5}", "\\boxed{x = 5}",
        "\\boxed{sum=5}", ("\\boxed{5.}", PLAIN), "\\boxed{5.0}", "\\boxed{05}", ("\\boxed{5\\%}", PERCENT), "\\boxed{5 \\text{ cm}}",
        "\\boxed{5\\text{cm}}", "\\boxed{10/2}", ("\\boxed{\\sqrt{25}}", ROOT), "\\boxed{\\boxed{5}}", "\\boxed{\\text{5}}",
        "\\boxed{\\mathbf{5}}", "\\boxed{}", "\\boxed{5} metres", "The answer is \\boxed{5}.", ("\\boxed{-5} no, \\boxed{5}", BOXES),
        "\\boxed{5}, which is 6 less than 11", "\\boxed{ 5\\! }", "\\boxed{\\left(5\\right)}", "\\boxed{3+2=5}", "\\boxed{+5}",
    ],
    "-5": [
        "-5", "so x = -5", ("so x = \u22125", SIGN), "- 5", ("x = - 5", SIGN), ("-$5", SIGN), "$-5$", "5", ("he lost -$5", SIGN),
        "\\boxed{-5}", ("(-5)", PLAIN), "\\frac{-10}{2}", "-\\frac{10}{2}", "-5.0", "minus 5", ("\u20135", SIGN), "3 - 8 = -5", "#### -5",
    ],
    "0": ["0", "-0", "0.0", "\\boxed{0}", "0%", "zero", "0/5", "1"],
    "0.5": [
        ".5", "0.5", "1/2", "\\frac{1}{2}", ("\\frac12", LATEX), ("50%", PERCENT), "50\\%", "about .5", "-.5", "0.50", "5",
        ("\\dfrac{1}{2}", LATEX), "\\boxed{\\frac{1}{2}}", ("5 \\times 10^{-1}", LATEX), ("5e-1", POWER), ("0,5", COMMA), "\\boxed{.5}",
        "\\boxed{0.5}", "\\boxed{1/2}", "\\boxed{\\frac12}", "\\boxed{\\dfrac{1}{2}}", "\\boxed{\\tfrac12}", "\\boxed{0.50}", "\\boxed{2/4}",
    ],
    "\\frac{3}{4}": [
        "3/4", "\\frac{3}{4}", ("\\dfrac{3}{4}", LATEX), ("\\tfrac{3}{4}", LATEX), ("\\frac34", LATEX), "0.75", ".75", "6/8", "\\frac{6}{8}",
        "75\\%", ("75%", PERCENT), "4", "3", "-3/4", "\\boxed{\\frac{3}{4}}", "$\\frac{3}{4}$", "3 / 4", "\\frac{4}{3}", "I think 4", "1/4",
        "0.7500", "\\boxed{3/4}", "\\boxed{\\frac34}", "\\boxed{\\frac3{4}}", "\\boxed{0.75}", "\\boxed{\\dfrac{3}{4}}", "\\boxed{6/8}",
        "\\boxed{3 / 4}",
    ],
    "-\\frac{1}{2}": [
        "-1/2", "-\\frac{1}{2}", "\\frac{-1}{2}", "\\frac{1}{-2}", "-0.5", ("-.5", SIGN), "1/2", "\\boxed{-1/2}", "\\boxed{-\\frac12}",
        "\\boxed{-0.5}", "\\boxed{\\frac{-1}{2}}",
    ],
    "\\frac{1}{3}": ["1/3", "0.333", ("0.33333333", ROUND), "\\frac{2}{6}", "33.3%"],
    "1\\frac{1}{2}": ["1.5", "3/2", ("1\\frac{1}{2}", LATEX), ("1 1/2", MIXED), "\\frac{3}{2}", "1/2", "\\boxed{1\\frac12}", "\\boxed{3/2}"],
    "1234": [
        "1234", "1,234", ("1{,}234", LATEX), ("1,\\!234", LATEX), "$1,234$", ("\\$1,234", LATEX), ("1 234", GROUP), ("1\u202f234", GROUP),
        "1.234", "1234.00", "1,234.00", "12,34", "1,234 dollars", "\\boxed{1,234}", "\\boxed{1234}", "\\boxed{1{,}234}",
        "The total is 1,234.", ("1.234 \\times 10^3", LATEX), ("1.234e3", POWER), "234", "\\boxed{1,\\!234}", ("\\boxed{1 234}", SPACE),
        "\\boxed{\\$1234}", "\\boxed{\\$1,234}",
    ],
    "10000": [
        ("10,\\!000", LATEX), "10,000", "$10,\\!000$", "10^4", ("10^{4}", POWER), ("1e4", POWER), ("10 000", GROUP), "\\boxed{10^4}", "10k",
        ("10\\,000", LATEX), "\\boxed{10,\\!000}", "\\boxed{10{,}000}",
    ],
    "1000000": [
        "1,000,000", "10^6", ("10^{6}", POWER), ("1e6", POWER), "1 million", ("1\\times10^6", LATEX), "1 \\times 10^6", "1 \\cdot 10^6",
        "1,000,00", "6",
    ],
    "10^6": ["1000000", "10^6", "6", "10", ("1e6", POWER), ("10^{6}", POWER), "1,000,000", "\\boxed{10^6}", "\\boxed{1000000}"],
    "-1234.5": ["-1,234.5", "-1234.50", ("\u22121,234.5", SIGN), ("-$1,234.50", SIGN), "1234.5"],
    "12.5": [
        "12.5", "12.50", "25/2", ("12 1/2", MIXED), "12.5%", "$12.50", "12.5 dollars", ("12,5", COMMA), "12.5.", "\\frac{25}{2}",
    ],
    "50\\%": [
        "50%", ("50\\%", LATEX), ("50", PERCENT), ("0.5", PERCENT), ("1/2", PERCENT), ("\\boxed{50}", PERCENT), "\\boxed{50\\%}",
        ("\\boxed{0.5}", PERCENT),
    ],
    "\\$18": ["18", "$18", ("\\$18", LATEX), "18 dollars", "18.00", "\\boxed{18}", "\\boxed{\\$18}"],
    "90^\\circ": ["90", "90^\\circ", "90\u00b0", "\\boxed{90^\\circ}", "90 degrees", "\\boxed{90}", "\\boxed{90^{\\circ}}"],
    "72 \\text{ cm}^2": ["72", "72 cm^2", "72\\text{ cm}^2", "2", "\\boxed{72}", "\\boxed{72\\text{ cm}^2}", "\\boxed{72 \\text{ m}}"],
    "2^{10}": ["1024", ("2^{10}", POWER), "2^10", "10", "\\boxed{2^{10}}", "\\boxed{1024}"],
    "3": [("pages 1-3", RANGE), ("1-3", RANGE), "3rd", "-3", "x^2 + 3", "\\sqrt{9}", "\\sqrt{3}", ("3\\pi", PI)],
    "1e3": [("1000", POWER), ("1e3", POWER), "3", ("\\boxed{1000}", POWER)],
}


def math_verify(answer, response):
    gold = parse("\\boxed{" + answer + "}", extraction_config=(LatexExtractionConfig(),))
    said = parse(response, extraction_config=(ExprExtractionConfig(), LatexExtractionConfig()))
    return int(verify(gold, said))


def gsm8k(answer, response):
    found = [run for run in re.findall(r"-?[0-9.,]+", response) if run not in ("", ".")]
    return int(bool(found) and found[-1] == answer)


def boxed(response):
    """What is in the last box; a box with a space instead of braces wins and ends at the next dollar sign."""
    if "\\boxed " in response:
        return response.rpartition("\\boxed ")[2].partition("$")[0]
    head, box, tail = response.rpartition("\\boxed")
    depth = 0
    for at, mark in enumerate(tail if box and tail.startswith("{") else ""):
        depth += (mark == "{") - (mark == "}")
        if depth == 0:
            return tail[1:at]
    return None


def alike(text):
    """The text without units, percent signs, degrees and spaces, each fraction and root with its braces."""
    text = re.sub(r"\n|\\!", "", text).replace("\\\\", "\\")
    text = re.sub(r"[td]frac", "frac", text)
    text = re.sub(r"\\left|\\right|\^\{\\circ\}|\^\\circ|\\\$", "", text)
    text = text.partition("\\text{ ")[0].replace("\\%", "")
    text = re.sub(r"(^|[ {])\.", r"\g<1>0.", text)
    text = re.sub(r"^[^=]{0,2}=([^=]*)$", r"\1", text)
    text = re.sub(r"\\sqrt([^{])", r"\\sqrt{\1}", text).replace(" ", "")
    text = re.sub(r"\\frac([^{])(?:([^{])|(?=\{))", lambda of: "\\frac{%s}" % of[1] + ("{%s}" % of[2] if of[2] else ""), text)
    text = "\\frac{1}{2}" if text == "0.5" else text
    return re.sub(r"^(0|-?[1-9][0-9]*)/(0|-?[1-9][0-9]*)$", r"\\frac{\1}{\2}", text)


def math_reward(answer, response):
    said = boxed(response)
    return int(said is not None and alike(said) == alike(answer))


logging.disable(logging.CRITICAL)
with pathlib.Path(__file__).with_suffix(".tsv").open("w", encoding="utf-8") as out:
    print("answer", "response", "reward", "math-verify", "gsm8k", "math_reward", "reason", sep="\t", file=out)
    for answer, responses in CASES.items():
        for case in responses:
            response, reason = case if isinstance(case, tuple) else (case, "")
            theirs = math_verify(answer, response)
            reward = 1 - theirs if reason not in ("", SPACE) else theirs
            print(answer, response, reward, theirs, gsm8k(answer, response), math_reward(answer, response), reason, sep="\t", file=out)
