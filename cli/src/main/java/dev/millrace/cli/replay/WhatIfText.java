package dev.millrace.cli.replay;

import dev.millrace.cli.audit.Lines;
import dev.millrace.cli.replay.ReplayTotals.Total;
import dev.millrace.corrections.diagnostics.Cause;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Collectors;

/** The table of a replay under other corrections, for a terminal. */
final class WhatIfText {
    private static final int NAME = 28;
    private static final int ESS = index("ess_ratio");
    private static final int SCALE = index("step_scale");
    private static final int WEIGHT = index("mean_weight");
    private static final int K3 = index("k3");

    private WhatIfText() {}

    private static int index(String key) {
        return Figure.ALL.stream().map(Figure::key).toList().indexOf(key);
    }

    static List<String> lines(ReplayTotals totals, long tokens, double seconds) {
        List<String> lines = new ArrayList<>();
        lines.add(String.format(
                Locale.ROOT,
                "%,d steps, %,d tokens, %d corrections in %.1f s: %,.0f tokens/s",
                totals.steps(),
                tokens,
                totals.names().size(),
                seconds,
                tokens / Math.max(1e-9, seconds)));
        lines.addAll(
                totals.notAsRecorded() == 0
                        ? List.of("the run's own corrections, decided again, give every recorded batch")
                        : Lines.wrapped(
                                "",
                                totals.notAsRecorded() + " of " + totals.steps()
                                        + " batches were not made by these corrections; "
                                        + "give the configuration that the run had with --config"));
        lines.add(String.format(
                Locale.ROOT,
                "%-" + NAME + "s %7s %7s %7s %7s %7s %8s",
                "corrections (means)",
                "tokens",
                "seqs",
                "weight",
                "ESS",
                "scale",
                "k3"));
        lines.add(String.format(Locale.ROOT, "%-" + NAME + "s %7s %7s", "", "masked", "masked"));
        for (int a = 0; a < totals.names().size(); a++) {
            Total total = totals.total(a);
            String name = totals.names().get(a);
            lines.add(String.format(
                    Locale.ROOT,
                    "%-" + NAME + "s %6.2f%% %6.2f%% %7.3f %7.3f %7.3f %8.2g",
                    name.length() <= NAME ? name : name.substring(0, NAME - 3) + "...",
                    100 * total.tokens().fraction(),
                    100 * total.sequences().fraction(),
                    total.mean(WEIGHT, totals.steps()),
                    total.mean(ESS, totals.steps()),
                    total.mean(SCALE, totals.steps()),
                    total.mean(K3, totals.steps())));
        }
        for (int a = 0; a < totals.names().size(); a++) {
            Total total = totals.total(a);
            Map<Cause, Integer> causes = total.causes();
            String counts = causes.entrySet().stream()
                    .map(cause -> cause.getKey().letter() + " " + cause.getValue())
                    .collect(Collectors.joining(", "));
            lines.addAll(Lines.wrapped(
                    "  ",
                    totals.names().get(a) + ": diagnosis by step " + (counts.isEmpty() ? "none" : counts)
                            + total.firstAlarm()
                                    .map(alarm -> "; first at " + alarm)
                                    .orElse("")));
        }
        return lines;
    }
}
