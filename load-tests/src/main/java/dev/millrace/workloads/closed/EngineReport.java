package dev.millrace.workloads.closed;

import dev.millrace.report.Column;
import dev.millrace.report.Report;
import dev.millrace.report.Section;
import dev.millrace.report.Table;
import dev.millrace.workloads.Goal;
import dev.millrace.workloads.Sample;
import dev.millrace.workloads.closed.EngineBenchmark.Result;
import dev.millrace.workloads.closed.EngineBenchmark.VersionRates;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

public final class EngineReport {
    private static final List<Column<Result>> RATES = List.of(
            Column.text("model", Result::model),
            Column.<Result>number("parameters", 1, r -> r.parameters() / 1e6).in("M"),
            Column.<Result>number("prompts", 0, r -> r.rates().prefillRate()).in("tokens/s"),
            Column.<Result>number("sampled", 0, r -> r.rates().decodeRate()).in("tokens/s"),
            Column.<Result>number("scored", 0, r -> r.rates().scoreRate()).in("tokens/s"),
            Column.<Result>number("differentiated", 0, r -> r.rates().gradientRate())
                    .in("tokens/s"),
            EngineReport.<Result>seconds("step", r -> r.rates().step()),
            EngineReport.<Result>seconds("of it update", r -> r.rates().update()),
            Column.<Result>text("packed", r -> packed(r.rates().pack())).in("s"),
            Column.<Result>text("waits for a version", r -> packed(r.rates().takeUp()))
                    .in("s"),
            Column.<Result>number("resident", 2, r -> r.residentBytes() / 1e9).in("GB"));

    private record Published(String model, VersionRates versions) {}

    private static final List<Column<Published>> VERSIONS = List.of(
            Column.text("model", Published::model),
            Column.<Published>number("whole", 1, r -> r.versions().wholeBytes() / 1e6)
                    .in("MB"),
            Column.<Published>number("delta", 1, r -> r.versions().deltaBytes().median() / 1e6)
                    .in("MB"),
            EngineReport.<Published>seconds("published", r -> r.versions().publishSeconds()),
            EngineReport.<Published>seconds("loaded", r -> r.versions().loadSeconds()),
            Column.<Published>number("versions", 2, r -> r.versions().rate()).in("1/s"));

    private EngineReport() {}

    private static <T> Column<T> seconds(String name, Function<T, Sample> of) {
        return Column.<T>text(name, r -> of.apply(r).range(3)).in("s");
    }

    private static String packed(@Nullable Sample pack) {
        return pack == null ? "-" : pack.range(3);
    }

    /** Ranges are median, minimum and maximum. */
    public static Report of(EngineBenchmark.Report of) {
        EnginePlan plan = of.plan();
        List<Published> published = new ArrayList<>();
        for (Result result : of.results()) {
            VersionRates versions = result.versions();
            if (versions != null) {
                published.add(new Published(result.model(), versions));
            }
        }
        Report report = Report.of("The engine on " + of.device(), Goal.verdict(of.origin(), of.goals()))
                .madeBy(of.origin())
                .with(Section.of("Work")
                        .noting(List.of(String.format(
                                Locale.ROOT,
                                "%d sequences with prompts of %d random tokens and %d sampled ones, %d a call; micro-batches of %,d"
                                        + " padded tokens; %d threads inside an operator; weights %s; medians of %d rounds in which each comes once.",
                                plan.sequences(),
                                plan.promptTokens(),
                                plan.sampledTokens(),
                                plan.tokensPerCall(),
                                plan.tokenBudget(),
                                of.threads(),
                                of.results().stream().anyMatch(r -> r.rates().pack() != null)
                                        ? "packed into the graphs that generate"
                                        : "fed with every call",
                                plan.rounds())))
                        .with(Table.of("", RATES, of.results())));
        if (!published.isEmpty()) {
            report = report.with(Section.of("Versions")
                    .noting(List.of(String.format(
                            Locale.ROOT,
                            "bfloat16, through one broker on this machine; between versions what a step at a learning rate of"
                                    + " %.0e changes.",
                            of.learningRate())))
                    .with(Table.of("", VERSIONS, published)));
        }
        return report.with(Section.of("Agreement").with(Goal.table(of.goals())));
    }
}
