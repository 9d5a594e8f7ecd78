package dev.millrace.cli.replay;

import dev.millrace.replay.TaskVerdict;
import dev.millrace.report.Lines;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;

/** What a replay as recorded says to a person. */
final class AsRecordedText {
    private AsRecordedText() {}

    /**
     * @param prefix of the run's topics
     * @param isGrowing whether the run goes on, so that its last records may have been read by half
     */
    static List<String> lines(List<TaskVerdict> verdicts, String prefix, double seconds, boolean isGrowing) {
        List<String> lines = new ArrayList<>();
        Map<String, Long> same = new TreeMap<>();
        long taken = 0;
        int again = 0;
        for (TaskVerdict verdict : verdicts) {
            verdict.same().forEach((topic, count) -> same.merge(topic.substring(prefix.length()), count, Long::sum));
            taken += verdict.taken();
            again += Math.max(0, verdict.beginnings() - 1);
            verdict.difference()
                    .ifPresent(difference -> lines.addAll(Lines.wrapped("  differs     ", difference.toString())));
            verdict.gap().ifPresent(gap -> lines.addAll(Lines.wrapped("  not proved  ", verdict.task() + ": " + gap)));
        }
        boolean differs =
                verdicts.stream().anyMatch(verdict -> verdict.difference().isPresent());
        boolean isProved = verdicts.stream().allMatch(TaskVerdict::isProved);
        List<String> all = new ArrayList<>();
        all.add(
                isProved
                        ? "as recorded: the replay made every record of the run again, byte for byte"
                        : differs
                                ? "as recorded: the replay and the run differ"
                                : "as recorded: no difference, but not all could be replayed");
        all.addAll(lines);
        same.forEach(
                (topic, count) -> all.addAll(Lines.labelled(topic, String.format(Locale.ROOT, "%,d the same", count))));
        all.addAll(Lines.labelled(
                "tasks",
                verdicts.size() + ", which took in " + String.format(Locale.ROOT, "%,d", taken)
                        + " records and were restarted or moved " + again + " times"));
        all.addAll(Lines.labelled(
                "time",
                String.format(Locale.ROOT, "%.1f s, %,.0f records/s", seconds, taken / Math.max(1e-9, seconds))));
        if (isGrowing && !isProved) {
            all.addAll(
                    Lines.wrapped(
                            "  ",
                            "The run goes on: what it made while this looked may have been read by half. Replay again, or when it has ended."));
        }
        return all;
    }
}
