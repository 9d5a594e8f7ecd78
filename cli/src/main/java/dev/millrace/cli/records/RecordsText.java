package dev.millrace.cli.records;

import dev.millrace.corrections.stage.StageInput;
import dev.millrace.replay.archive.RecordedElsewhere;
import dev.millrace.report.Lines;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;

/** What came of files of records, for people. */
final class RecordsText {
    private RecordsText() {}

    /** @param algorithm its name, for what is said of advantages */
    static List<String> lines(RecordedElsewhere steps, String run, String algorithm) {
        List<String> all = new ArrayList<>();
        all.addAll(Lines.wrapped(
                "",
                say(
                        "run %s: %,d steps, %,d sequences, %,d response tokens of which %,d are trained on, the stalest %,d versions old",
                        run,
                        steps.steps(),
                        steps.sequences(),
                        steps.tokens(),
                        steps.trainedTokens(),
                        steps.stalest())));
        Set<StageInput> missing = steps.missing();
        if (missing.contains(StageInput.VERSIONS)) {
            all.addAll(Lines.wrapped(
                    "",
                    "some line does not say which version sampled it, and counts as sampled by the version that its step started"
                            + " from: of staleness these records tell nothing"));
        }
        if (steps.advantagesCompared() > 0) {
            all.addAll(Lines.wrapped(
                    "",
                    say(
                            "the advantages of %,d of %,d sequences are those that %s makes; the largest difference is %.3g",
                            steps.advantagesAgreed(),
                            steps.advantagesCompared(),
                            algorithm,
                            steps.furthestAdvantage())));
        }
        all.addAll(Lines.wrapped(
                "",
                "not on every line: " + missing.stream().map(StageInput::text).collect(Collectors.joining(", "))));
        Map<String, List<String>> byLack = new LinkedHashMap<>();
        steps.ruledOut()
                .forEach((name, lacks) -> byLack.computeIfAbsent(
                                lacks.stream().map(StageInput::text).collect(Collectors.joining(" and ")),
                                unseen -> new ArrayList<>())
                        .add(name));
        if (byLack.isEmpty()) {
            all.add("every named algorithm can decide about them");
        }
        byLack.forEach((lack, names) ->
                all.addAll(Lines.wrapped("  ", "without " + lack + " not: " + String.join(", ", names))));
        return all;
    }

    private static String say(String pattern, Object... values) {
        return String.format(Locale.ROOT, pattern, values);
    }
}
