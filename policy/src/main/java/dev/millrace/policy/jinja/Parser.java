package dev.millrace.policy.jinja;

import dev.millrace.policy.jinja.Lexer.Kind;
import dev.millrace.policy.jinja.Lexer.Token;
import dev.millrace.policy.jinja.Node.Arguments;
import dev.millrace.policy.jinja.Node.Expression;
import dev.millrace.policy.jinja.Node.Parameters;
import dev.millrace.policy.jinja.Node.Statement;
import dev.millrace.policy.jinja.Node.Target;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/** Parses tokens into nodes, with Jinja's precedence. Used by one thread, once. */
final class Parser {
    private static final Set<String> COMPARISONS = Set.of("==", "!=", "<", "<=", ">", ">=");

    private static final int MOST_LINKS = 1000;

    private final List<Token> tokens;
    private Set<String> mentioned = new TreeSet<>();
    private int at;
    private int depth;

    Parser(List<Token> tokens) {
        this.tokens = tokens;
    }

    List<Statement> template() {
        List<Statement> all = statements(Set.of());
        if (now().kind() != Kind.END) {
            throw unexpected();
        }
        return all;
    }

    Expression wholeExpression() {
        Expression expression = expression();
        if (now().kind() != Kind.END) {
            throw unexpected();
        }
        return expression;
    }

    private Token now() {
        return tokens.get(at);
    }

    private Token take() {
        return tokens.get(at++);
    }

    private boolean isName(String word) {
        return now().is(Kind.NAME, word);
    }

    private boolean skip(Kind kind, String word) {
        boolean is = now().is(kind, word);
        at += is ? 1 : 0;
        return is;
    }

    private boolean isOperator(String word) {
        return now().is(Kind.OPERATOR, word);
    }

    private boolean skipOperator(String word) {
        return skip(Kind.OPERATOR, word);
    }

    private void expectOperator(String word) {
        if (!skipOperator(word)) {
            throw unexpected();
        }
    }

    private void expect(Kind kind) {
        if (take().kind() != kind) {
            at--;
            throw unexpected();
        }
    }

    private String expectName() {
        Token token = take();
        if (token.kind() != Kind.NAME) {
            at--;
            throw unexpected();
        }
        return token.text();
    }

    private TemplateException unexpected() {
        Token token = now();
        return new TemplateException(
                switch (token.kind()) {
                    case END -> "it ends too early";
                    case BLOCK_END, VARIABLE_END -> "an expression is missing or ends too early";
                    default -> "unexpected '" + token.text() + "'";
                },
                token.line());
    }

    /** Parses up to a block that begins with one of these words, and stops before the word. */
    private List<Statement> statements(Set<String> ends) {
        if (++depth > Lexer.DEEPEST) {
            throw new TemplateException("its blocks are nested more than " + Lexer.DEEPEST + " deep", now().line());
        }
        List<Statement> all = new ArrayList<>();
        while (true) {
            Token token = now();
            switch (token.kind()) {
                case DATA -> all.add(new Node.Data(take().text()));
                case VARIABLE_BEGIN -> {
                    at++;
                    all.add(new Node.Output(tuple(), token.line()));
                    expect(Kind.VARIABLE_END);
                }
                case BLOCK_BEGIN -> {
                    at++;
                    if (now().kind() == Kind.NAME && ends.contains(now().text())) {
                        depth--;
                        return all;
                    }
                    all.add(statement());
                }
                case END -> {
                    if (!ends.isEmpty()) {
                        throw new TemplateException(
                                "there is no " + String.join(" or ", new TreeSet<>(ends)), token.line());
                    }
                    depth--;
                    return all;
                }
                default -> throw unexpected();
            }
        }
    }

    private List<Statement> body(String end) {
        expect(Kind.BLOCK_END);
        List<Statement> body = statements(Set.of(end));
        at++;
        expect(Kind.BLOCK_END);
        return body;
    }

    private Statement statement() {
        Token token = now();
        String word = expectName();
        return switch (word) {
            case "if" -> ifs();
            case "for" -> loop(token.line());
            case "set" -> set();
            case "macro" -> {
                String name = expectName();
                Parameters parameters = parameters();
                yield macro(name, parameters, "endmacro");
            }
            case "call" -> {
                Parameters parameters = isOperator("(") ? parameters() : new Parameters(List.of(), List.of());
                if (!(expression() instanceof Node.Call call)) {
                    throw new TemplateException("a call block needs a call", token.line());
                }
                yield new Node.CallBlock(macro("caller", parameters, "endcall"), call);
            }
            case "filter" -> {
                List<Node.Filter> filters = new ArrayList<>(List.of(filter(null)));
                filters.addAll(filters());
                yield new Node.FilterBlock(filters, body("endfilter"));
            }
            case "with" -> with();
            case "generation" -> new Node.Scope(body("endgeneration"));
            case "break" -> {
                expect(Kind.BLOCK_END);
                yield new Node.Break();
            }
            case "continue" -> {
                expect(Kind.BLOCK_END);
                yield new Node.Continue();
            }
            default -> throw new TemplateException("unknown tag '" + word + "'", token.line());
        };
    }

    private Node.Macro macro(String name, Parameters parameters, String end) {
        Set<String> before = mentioned;
        mentioned = new TreeSet<>();
        List<Statement> body = body(end);
        Set<String> inside = mentioned;
        mentioned = before;
        mentioned.addAll(inside);
        return new Node.Macro(name, parameters, body, inside);
    }

    /** Names that the program reads. */
    Set<String> mentioned() {
        return mentioned;
    }

    private Statement ifs() {
        List<Expression> conditions = new ArrayList<>();
        List<List<Statement>> bodies = new ArrayList<>();
        List<Statement> otherwise = List.of();
        conditions.add(tuple());
        while (true) {
            expect(Kind.BLOCK_END);
            bodies.add(statements(Set.of("elif", "else", "endif")));
            String word = take().text();
            if (word.equals("elif")) {
                conditions.add(tuple());
                continue;
            }
            if (word.equals("else")) {
                expect(Kind.BLOCK_END);
                otherwise = statements(Set.of("endif"));
                at++;
            }
            expect(Kind.BLOCK_END);
            return new Node.If(conditions, bodies, otherwise);
        }
    }

    private Statement loop(int line) {
        Target target = targets();
        if (!skip(Kind.NAME, "in")) {
            throw unexpected();
        }
        Expression items = tuple(false);
        Expression filter = skip(Kind.NAME, "if") ? expression() : null;
        boolean isRecursive = skip(Kind.NAME, "recursive");
        expect(Kind.BLOCK_END);
        List<Statement> body = statements(Set.of("endfor", "else"));
        List<Statement> otherwise = List.of();
        if (take().text().equals("else")) {
            expect(Kind.BLOCK_END);
            otherwise = statements(Set.of("endfor"));
            at++;
        }
        expect(Kind.BLOCK_END);
        return new Node.For(target, items, filter, body, otherwise, isRecursive, line);
    }

    private Statement set() {
        Target target = targets();
        if (skipOperator("=")) {
            Expression value = tuple();
            expect(Kind.BLOCK_END);
            return new Node.Set(target, value);
        }
        return new Node.SetBlock(target, filters(), body("endset"));
    }

    private List<Node.Filter> filters() {
        List<Node.Filter> filters = new ArrayList<>();
        while (skipOperator("|")) {
            filters.add(filter(null));
        }
        return filters;
    }

    private Statement with() {
        List<Target> targets = new ArrayList<>();
        List<Expression> values = new ArrayList<>();
        while (now().kind() != Kind.BLOCK_END) {
            if (!targets.isEmpty()) {
                expectOperator(",");
            }
            targets.add(target());
            expectOperator("=");
            values.add(expression());
        }
        return new Node.With(targets, values, body("endwith"));
    }

    private Target targets() {
        List<Target> all = new ArrayList<>(List.of(target()));
        boolean isSeveral = false;
        while (skipOperator(",")) {
            isSeveral = true;
            if (now().kind() != Kind.NAME && !isOperator("(")) {
                break;
            }
            all.add(target());
        }
        return isSeveral ? new Target.Several(all) : all.get(0);
    }

    private Target target() {
        if (skipOperator("(")) {
            Target inner = targets();
            expectOperator(")");
            return inner;
        }
        String name = expectName();
        if (Set.of("true", "false", "none", "True", "False", "None").contains(name)) {
            throw new TemplateException("cannot assign to " + name, now().line());
        }
        return skipOperator(".") ? new Target.Attribute(name, expectName()) : new Target.Name(name);
    }

    private Parameters parameters() {
        List<String> names = new ArrayList<>();
        List<Expression> defaults = new ArrayList<>();
        expectOperator("(");
        while (!skipOperator(")")) {
            if (!names.isEmpty()) {
                expectOperator(",");
            }
            names.add(expectName());
            if (skipOperator("=")) {
                defaults.add(expression());
            } else if (!defaults.isEmpty()) {
                throw new TemplateException("a parameter without a default comes behind one with it", now().line());
            }
        }
        return new Parameters(names, defaults);
    }

    private Expression tuple() {
        return tuple(true);
    }

    /** One expression, or several as a tuple. */
    private Expression tuple(boolean withConditional) {
        Expression first = withConditional ? expression() : or();
        if (!isOperator(",")) {
            return first;
        }
        List<Expression> items = new ArrayList<>(List.of(first));
        while (skipOperator(",")) {
            if (now().kind() == Kind.VARIABLE_END || now().kind() == Kind.BLOCK_END || isOperator(")")) {
                break;
            }
            items.add(withConditional ? expression() : or());
        }
        return new Node.TupleOf(items);
    }

    private Expression expression() {
        deeper();
        Expression value = conditional();
        depth--;
        return value;
    }

    /** Counts the links of a chain: each adds one call to the depth of evaluation. */
    private int linked(int links) {
        if (links == MOST_LINKS) {
            throw new TemplateException("an expression chains more than " + MOST_LINKS + " operators", now().line());
        }
        return links + 1;
    }

    private Expression conditional() {
        Expression value = or();
        while (skip(Kind.NAME, "if")) {
            Expression condition = or();
            value = new Node.Conditional(condition, value, skip(Kind.NAME, "else") ? expression() : null);
        }
        return value;
    }

    private Expression or() {
        Expression left = and();
        int links = 0;
        while (isName("or")) {
            links = linked(links);
            int line = take().line();
            left = new Node.Binary("or", left, and(), line);
        }
        return left;
    }

    private Expression and() {
        Expression left = not();
        int links = 0;
        while (isName("and")) {
            links = linked(links);
            int line = take().line();
            left = new Node.Binary("and", left, not(), line);
        }
        return left;
    }

    private Expression not() {
        if (isName("not")) {
            int line = take().line();
            deeper();
            Expression of = not();
            depth--;
            return new Node.Unary("not", of, line);
        }
        return comparison();
    }

    private void deeper() {
        if (++depth > 4 * Lexer.DEEPEST) {
            throw new TemplateException("it is nested too deeply", now().line());
        }
    }

    private Expression comparison() {
        Expression first = sum();
        List<String> operators = new ArrayList<>();
        List<Expression> others = new ArrayList<>();
        int line = now().line();
        while (true) {
            if (now().kind() == Kind.OPERATOR && COMPARISONS.contains(now().text())) {
                operators.add(take().text());
            } else if (skip(Kind.NAME, "in")) {
                operators.add("in");
            } else if (isName("not") && tokens.get(at + 1).is(Kind.NAME, "in")) {
                at += 2;
                operators.add("not in");
            } else {
                return operators.isEmpty() ? first : new Node.Compare(first, operators, others, line);
            }
            others.add(sum());
        }
    }

    private Expression sum() {
        Expression left = concatenation();
        int links = 0;
        while (isOperator("+") || isOperator("-")) {
            links = linked(links);
            Token operator = take();
            left = new Node.Binary(operator.text(), left, concatenation(), operator.line());
        }
        return left;
    }

    private Expression concatenation() {
        Expression left = product();
        int links = 0;
        while (isOperator("~")) {
            links = linked(links);
            int line = take().line();
            left = new Node.Binary("~", left, product(), line);
        }
        return left;
    }

    private Expression product() {
        Expression left = power();
        int links = 0;
        while (isOperator("*") || isOperator("/") || isOperator("//") || isOperator("%")) {
            links = linked(links);
            Token operator = take();
            left = new Node.Binary(operator.text(), left, power(), operator.line());
        }
        return left;
    }

    private Expression power() {
        Expression left = unary(true);
        int links = 0;
        while (isOperator("**")) {
            links = linked(links);
            int line = take().line();
            left = new Node.Binary("**", left, unary(true), line);
        }
        return left;
    }

    private Expression unary(boolean withFilters) {
        Expression value;
        if (isOperator("-") || isOperator("+")) {
            Token operator = take();
            deeper();
            value = new Node.Unary(operator.text(), unary(false), operator.line());
            depth--;
        } else {
            value = primary();
        }
        value = postfixed(value);
        return withFilters ? filtered(value) : value;
    }

    private Expression primary() {
        Token token = take();
        switch (token.kind()) {
            case NAME -> {
                return switch (token.text()) {
                    case "true", "True" -> new Node.Constant(true);
                    case "false", "False" -> new Node.Constant(false);
                    case "none", "None" -> new Node.Constant(null);
                    default -> {
                        mentioned.add(token.text());
                        yield new Node.Name(token.text(), token.line());
                    }
                };
            }
            case STRING -> {
                StringBuilder text = new StringBuilder(token.text());
                while (now().kind() == Kind.STRING) {
                    text.append(take().text());
                }
                return new Node.Constant(text.toString());
            }
            case INTEGER -> {
                return new Node.Constant(integer(token));
            }
            case FLOAT -> {
                return new Node.Constant(Double.parseDouble(token.text().replace("_", "")));
            }
            case OPERATOR -> {
                switch (token.text()) {
                    case "(" -> {
                        if (skipOperator(")")) {
                            return new Node.TupleOf(List.of());
                        }
                        Expression inner = tuple();
                        expectOperator(")");
                        return inner;
                    }
                    case "[" -> {
                        return new Node.ListOf(items("]"));
                    }
                    case "{" -> {
                        return dictionary();
                    }
                    default -> {}
                }
            }
            default -> {}
        }
        at--;
        throw unexpected();
    }

    private static Object integer(Token token) {
        String digits = token.text().replace("_", "").toLowerCase(java.util.Locale.ROOT);
        int radix = digits.startsWith("0x") ? 16 : digits.startsWith("0o") ? 8 : digits.startsWith("0b") ? 2 : 10;
        BigInteger value = new BigInteger(radix == 10 ? digits : digits.substring(2), radix);
        if (value.bitLength() > 63) {
            throw new TemplateException("a number has more than 64 bits: " + token.text(), token.line());
        }
        return value.longValue();
    }

    private List<Expression> items(String end) {
        List<Expression> items = new ArrayList<>();
        while (!skipOperator(end)) {
            if (!items.isEmpty()) {
                expectOperator(",");
                if (skipOperator(end)) {
                    return items;
                }
            }
            items.add(expression());
        }
        return items;
    }

    private Expression dictionary() {
        List<Expression> keys = new ArrayList<>();
        List<Expression> values = new ArrayList<>();
        while (!skipOperator("}")) {
            if (!keys.isEmpty()) {
                expectOperator(",");
                if (skipOperator("}")) {
                    break;
                }
            }
            keys.add(expression());
            expectOperator(":");
            values.add(expression());
        }
        return new Node.DictOf(keys, values);
    }

    private Expression postfixed(Expression of) {
        Expression value = of;
        for (int links = 0; ; links = linked(links)) {
            Token token = now();
            if (skipOperator(".")) {
                Token name = take();
                value = switch (name.kind()) {
                    case NAME -> new Node.Attribute(value, name.text(), name.line());
                    case INTEGER -> new Node.Item(value, new Node.Constant(integer(name)), name.line());
                    default -> {
                        at--;
                        throw unexpected();
                    }
                };
            } else if (skipOperator("[")) {
                value = subscript(value, token.line());
            } else if (isOperator("(")) {
                value = new Node.Call(value, arguments(), token.line());
            } else {
                return value;
            }
        }
    }

    private Expression subscript(Expression of, int line) {
        List<@Nullable Expression> parts = new ArrayList<>();
        boolean isSlice = false;
        Expression part = null;
        while (!skipOperator("]")) {
            if (skipOperator(":")) {
                parts.add(part);
                part = null;
                isSlice = true;
            } else if (part == null) {
                part = expression();
            } else {
                throw unexpected();
            }
        }
        if (!isSlice) {
            if (part == null) {
                at--;
                throw unexpected();
            }
            return new Node.Item(of, part, line);
        }
        parts.add(part);
        if (parts.size() > 3) {
            throw new TemplateException("a slice has more than three parts", line);
        }
        return new Node.Slice(of, parts.get(0), parts.get(1), parts.size() > 2 ? parts.get(2) : null, line);
    }

    private Arguments arguments() {
        List<Expression> values = new ArrayList<>();
        Map<String, Expression> named = new LinkedHashMap<>();
        Expression spread = null;
        expectOperator("(");
        boolean isFirst = true;
        while (!skipOperator(")")) {
            if (!isFirst) {
                expectOperator(",");
                if (skipOperator(")")) {
                    break;
                }
            }
            isFirst = false;
            if (skipOperator("*")) {
                spread = expression();
            } else if (now().kind() == Kind.NAME && tokens.get(at + 1).is(Kind.OPERATOR, "=")) {
                String name = expectName();
                at++;
                named.put(name, expression());
            } else if (named.isEmpty()) {
                values.add(expression());
            } else {
                throw unexpected();
            }
        }
        return new Arguments(values, named, spread);
    }

    private Expression filtered(Expression of) {
        Expression value = of;
        for (int links = 0; ; links = linked(links)) {
            Token token = now();
            if (skipOperator("|")) {
                value = filter(value);
            } else if (skip(Kind.NAME, "is")) {
                value = test(value, token.line());
            } else if (isOperator("(")) {
                value = new Node.Call(value, arguments(), token.line());
            } else {
                return value;
            }
        }
    }

    private Node.Filter filter(@Nullable Expression of) {
        int line = now().line();
        String name = dotted();
        return new Node.Filter(
                of, name, isOperator("(") ? arguments() : new Arguments(List.of(), Map.of(), null), line);
    }

    private String dotted() {
        StringBuilder name = new StringBuilder(expectName());
        while (skipOperator(".")) {
            name.append('.').append(expectName());
        }
        return name.toString();
    }

    private Expression test(Expression of, int line) {
        boolean isNegated = skip(Kind.NAME, "not");
        String name = dotted();
        Arguments arguments = new Arguments(List.of(), Map.of(), null);
        if (isOperator("(")) {
            arguments = arguments();
        } else if (beginsArgument()) {
            if (isName("is")) {
                throw new TemplateException("tests cannot be chained with is", line);
            }
            arguments = new Arguments(List.of(postfixed(primary())), Map.of(), null);
        }
        return new Node.Test(of, name, arguments, isNegated, line);
    }

    private boolean beginsArgument() {
        return switch (now().kind()) {
            case NAME -> !Set.of("else", "or", "and").contains(now().text());
            case STRING, INTEGER, FLOAT -> true;
            case OPERATOR -> isOperator("[") || isOperator("{");
            default -> false;
        };
    }
}
