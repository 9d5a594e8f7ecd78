package dev.millrace.policy.jinja;

import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Cuts a program into data and the tokens of its code, as Jinja does with {@code trim_blocks} and {@code
 * lstrip_blocks}: drops the line end after a block or comment, and the blanks before one that begins its line; {@code
 * -} strips all blanks on its side and {@code +} none. Used by one thread, once.
 */
final class Lexer {
    enum Kind {
        DATA,
        BLOCK_BEGIN,
        BLOCK_END,
        VARIABLE_BEGIN,
        VARIABLE_END,
        NAME,
        STRING,
        INTEGER,
        FLOAT,
        OPERATOR,
        END
    }

    /**
     * One.
     *
     * @param text of data, names and operators; the value of a string; the digits of a number
     * @param line counted from 1
     */
    record Token(Kind kind, String text, int line) {
        boolean is(Kind other, String word) {
            return kind == other && text.equals(word);
        }
    }

    /** Largest nesting of brackets or blocks, so that neither parsing nor rendering overflows the stack. */
    static final int DEEPEST = 64;

    private static final Pattern BLANKS = Pattern.compile("\\s+", Pattern.UNICODE_CHARACTER_CLASS);
    private static final Pattern NAME = Pattern.compile("\\w+", Pattern.UNICODE_CHARACTER_CLASS);
    private static final Pattern FLOAT =
            Pattern.compile("(?:\\d+_)*\\d+(?:\\.(?:\\d+_)*\\d+(?:[eE][+-]?(?:\\d+_)*\\d+)?|[eE][+-]?(?:\\d+_)*\\d+)");
    private static final Pattern INTEGER =
            Pattern.compile("0[bB](?:_?[01])+|0[oO](?:_?[0-7])+|0[xX](?:_?[\\da-fA-F])+|\\d(?:_?\\d)*");
    private static final Pattern RAW = Pattern.compile("\\{%[-+]?\\s*raw\\s*(?:-%}\\s*|%})");
    private static final Pattern END_RAW = Pattern.compile("\\{%([-+]?)\\s*endraw\\s*(?:\\+%}|-%}\\s*|%}\\n?)");
    private static final List<String> OPERATORS = List.of(
            "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[", "]", "(", ")", "{", "}", ">", "<",
            "=", ".", ":", "|", ",", ";");

    private final String source;
    private final List<Token> tokens = new ArrayList<>();
    private int at;
    private int line = 1;
    /** True if the last token read ended with a line end. */
    private boolean beginsLine = true;

    private Lexer(String source) {
        this.source = source;
    }

    /** Normalizes a program: drops one trailing line end, and makes every line end one character. */
    static List<Token> ofTemplate(String program) {
        String text = program.replace("\r\n", "\n").replace('\r', '\n');
        Lexer lexer = new Lexer(text.endsWith("\n") ? text.substring(0, text.length() - 1) : text);
        lexer.template();
        return lexer.end();
    }

    static List<Token> ofExpression(String expression) {
        Lexer lexer = new Lexer(expression);
        lexer.code("");
        return lexer.end();
    }

    private List<Token> end() {
        tokens.add(new Token(Kind.END, "", line));
        return tokens;
    }

    private void template() {
        while (at < source.length()) {
            int begin = nextBegin();
            char sign = begin + 2 < source.length() ? source.charAt(begin + 2) : ' ';
            String data = source.substring(at, begin);
            boolean isVariable = source.startsWith("{{", begin);
            addData(begin < source.length() ? kept(data, sign, isVariable) : data);
            advance(begin);
            if (at >= source.length()) {
                return;
            }
            Matcher raw = RAW.matcher(source).region(at, source.length());
            if (raw.lookingAt()) {
                advance(raw.end());
                raw();
            } else if (source.startsWith("{#", at)) {
                comment();
            } else {
                tokens.add(new Token(isVariable ? Kind.VARIABLE_BEGIN : Kind.BLOCK_BEGIN, "", line));
                advance(at + (sign == '-' || sign == '+' ? 3 : 2));
                code(isVariable ? "}}" : "%}");
            }
        }
    }

    private int nextBegin() {
        for (int i = source.indexOf('{', at); i >= 0 && i + 1 < source.length(); i = source.indexOf('{', i + 1)) {
            if ("%{#".indexOf(source.charAt(i + 1)) >= 0) {
                return i;
            }
        }
        return source.length();
    }

    /** The data before code, after trimming. */
    private String kept(String data, char sign, boolean isVariable) {
        if (sign == '-') {
            return strippedRight(data);
        }
        int lineBegin = data.lastIndexOf('\n') + 1;
        boolean isIndented = (lineBegin > 0 || beginsLine)
                && BLANKS.matcher(data).region(lineBegin, data.length()).matches();
        return sign != '+' && !isVariable && isIndented ? data.substring(0, lineBegin) : data;
    }

    private static String strippedRight(String data) {
        int end = data.length();
        while (end > 0 && PyText.isSpace(data.codePointBefore(end))) {
            end -= Character.charCount(data.codePointBefore(end));
        }
        return data.substring(0, end);
    }

    private void addData(String data) {
        if (!data.isEmpty()) {
            tokens.add(new Token(Kind.DATA, data, line));
        }
    }

    private void raw() {
        Matcher end = END_RAW.matcher(source);
        if (!end.find(at)) {
            throw new TemplateException("raw has no endraw", line);
        }
        String sign = end.group(1);
        addData(kept(source.substring(at, end.start()), sign.isEmpty() ? ' ' : sign.charAt(0), false));
        advance(end.end());
    }

    private void comment() {
        int end = source.indexOf("#}", at + 2);
        if (end < 0) {
            throw new TemplateException("a comment has no end", line);
        }
        char sign = source.charAt(end - 1);
        advance(end + 2);
        skipBehind(sign);
    }

    /** Skips what the end of a code block strips: all blanks, or one line end. */
    private void skipBehind(char sign) {
        if (sign == '-') {
            Matcher blanks = BLANKS.matcher(source).region(at, source.length());
            if (blanks.lookingAt()) {
                advance(blanks.end());
            }
        } else if (sign != '+' && at < source.length() && source.charAt(at) == '\n') {
            advance(at + 1);
        }
    }

    /** Tokens up to this end, which is the end of the source where it is empty. */
    private void code(String end) {
        int brackets = 0;
        while (true) {
            Matcher blanks = BLANKS.matcher(source).region(at, source.length());
            if (blanks.lookingAt()) {
                advance(blanks.end());
            }
            if (at >= source.length()) {
                if (end.isEmpty()) {
                    return;
                }
                throw new TemplateException("code has no end " + end, line);
            }
            if (brackets == 0 && !end.isEmpty() && isEnd(end)) {
                return;
            }
            char c = source.charAt(at);
            if (c == '"' || c == '\'') {
                string(c);
                continue;
            }
            boolean isPart = at > 0 && source.charAt(at - 1) == '.'; // the 0 of x.0.1
            if (Character.isDigit(c) && (!isPart && take(FLOAT, Kind.FLOAT) || take(INTEGER, Kind.INTEGER))
                    || take(NAME, Kind.NAME)) {
                continue;
            }
            String operator = OPERATORS.stream()
                    .filter(each -> source.startsWith(each, at))
                    .findFirst()
                    .orElseThrow(() -> new TemplateException("unexpected character '" + c + "'", line));
            brackets += "([{".contains(operator) ? 1 : ")]}".contains(operator) ? -1 : 0;
            if (brackets > DEEPEST) {
                throw new TemplateException("its brackets are nested more than " + DEEPEST + " deep", line);
            }
            if (brackets < 0) {
                throw new TemplateException("unexpected '" + operator + "'", line);
            }
            tokens.add(new Token(Kind.OPERATOR, operator, line));
            advance(at + operator.length());
        }
    }

    private boolean isEnd(String end) {
        boolean isVariable = end.equals("}}");
        char sign = source.charAt(at);
        boolean isSigned = (sign == '-' || sign == '+' && !isVariable) && source.startsWith(end, at + 1);
        if (!isSigned && !source.startsWith(end, at)) {
            return false;
        }
        tokens.add(new Token(isVariable ? Kind.VARIABLE_END : Kind.BLOCK_END, "", line));
        advance(at + end.length() + (isSigned ? 1 : 0));
        skipBehind(isSigned ? sign : isVariable ? '+' : ' ');
        return true;
    }

    private boolean take(Pattern pattern, Kind kind) {
        Matcher found = pattern.matcher(source).region(at, source.length());
        if (!found.lookingAt()) {
            return false;
        }
        tokens.add(new Token(kind, found.group(), line));
        advance(found.end());
        return true;
    }

    private void string(char quote) {
        int begin = at;
        int i = at + 1;
        while (i < source.length() && source.charAt(i) != quote) {
            i += source.charAt(i) == '\\' ? 2 : 1;
        }
        if (i >= source.length()) {
            throw new TemplateException("a text has no end", line);
        }
        tokens.add(new Token(Kind.STRING, unescaped(source.substring(begin + 1, i)), line));
        advance(i + 1);
    }

    /** As Python's unicode-escape. */
    private String unescaped(String text) {
        if (text.indexOf('\\') < 0) {
            return text;
        }
        StringBuilder out = new StringBuilder();
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (c != '\\' || i + 1 == text.length()) {
                out.append(c);
                continue;
            }
            char escaped = text.charAt(++i);
            int plain = "abfnrtv\\'\"".indexOf(escaped);
            if (plain >= 0) {
                out.append("\u0007\b\f\n\r\t\u000b\\'\"".charAt(plain));
            } else if (escaped == 'x' || escaped == 'u' || escaped == 'U') {
                int digits = escaped == 'x' ? 2 : escaped == 'u' ? 4 : 8;
                out.appendCodePoint(codePoint(text.substring(i - 1, Math.min(text.length(), i + 1 + digits))));
                i += digits;
            } else if (escaped == 'N') {
                int end = Math.max(i, text.indexOf('}', i));
                out.appendCodePoint(codePoint(text.substring(i - 1, end + 1)));
                i = end;
            } else if (escaped >= '0' && escaped <= '7') {
                int end = i + 1;
                while (end < text.length() && end < i + 3 && text.charAt(end) >= '0' && text.charAt(end) <= '7') {
                    end++;
                }
                out.append((char) Integer.parseInt(text.substring(i, end), 8));
                i = end - 1;
            } else if (escaped != '\n') { // line continuation
                out.append('\\').append(escaped);
            }
        }
        return out.toString();
    }

    /** Decodes a numeric or named escape; refuses half a surrogate pair. */
    private int codePoint(String escape) {
        try {
            int code = escape.startsWith("\\N{")
                    ? Character.codePointOf(escape.substring(3, escape.length() - 1))
                    : HexFormat.fromHexDigits(escape, 2, escape.length());
            int digits = escape.charAt(1) == 'x' ? 2 : escape.charAt(1) == 'u' ? 4 : 8;
            if ((escape.startsWith("\\N{") || escape.length() == 2 + digits)
                    && Character.isValidCodePoint(code)
                    && Character.getType(code) != Character.SURROGATE) {
                return code;
            }
        } catch (IllegalArgumentException e) {
            // said below
        }
        throw new TemplateException("a text has an escape that is none: " + escape, line);
    }

    private void advance(int to) {
        for (int i = at; i < to; i++) {
            line += source.charAt(i) == '\n' ? 1 : 0;
        }
        beginsLine = to > at ? source.charAt(to - 1) == '\n' : beginsLine;
        at = to;
    }
}
