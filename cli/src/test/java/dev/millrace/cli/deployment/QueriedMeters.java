package dev.millrace.cli.deployment;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/** What the dashboards and the alert rules ask for. */
public final class QueriedMeters {
    private static final Path INFRA = Path.of("..", "infra");
    private static final Pattern METER = Pattern.compile("\\b(millrace|kafka|jvm|process)_[a-z0-9_]+");
    private static final Pattern RULE = Pattern.compile("(?m)^ *expr: (.*)$");

    private QueriedMeters() {}

    /** Every dashboard, in the order of their names. */
    static List<Path> dashboards() throws IOException {
        try (Stream<Path> files = Files.list(INFRA.resolve("grafana"))) {
            return files.filter(file -> file.toString().endsWith(".json"))
                    .sorted()
                    .toList();
        }
    }

    /** The expressions of a dashboard's panels. */
    static List<String> expressions(Path dashboard) throws IOException {
        List<String> expressions = new ArrayList<>();
        new ObjectMapper()
                .readTree(dashboard.toFile())
                .findValues("expr")
                .forEach(expression -> expressions.add(expression.asText()));
        return expressions;
    }

    /** The meters that an expression asks for. */
    static Set<String> in(String expression) {
        Set<String> named = new TreeSet<>();
        for (Matcher meter = METER.matcher(expression); meter.find(); ) {
            named.add(meter.group());
        }
        return named;
    }

    /** All meters that a dashboard or a rule asks for. */
    public static Set<String> all() throws IOException {
        Set<String> named = new TreeSet<>();
        for (Path dashboard : dashboards()) {
            expressions(dashboard).forEach(expression -> named.addAll(in(expression)));
        }
        for (Matcher rule = RULE.matcher(Files.readString(INFRA.resolve("prometheus/alerts.yaml"))); rule.find(); ) {
            named.addAll(in(rule.group(1)));
        }
        return named;
    }
}
