package dev.millrace.cli.audit;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.audit.trace.DeadLetter;
import dev.millrace.audit.trace.DeadLetterFilter;
import dev.millrace.audit.trace.DeadLetterTopic;
import dev.millrace.audit.trace.DeadLetterTopic.Listed;
import dev.millrace.audit.trace.DeadLetterTopic.Listing;
import dev.millrace.cli.ScreenCommand;
import dev.millrace.report.Lines;
import dev.millrace.runtime.config.ConfigException;
import dev.millrace.runtime.report.AuditedRun;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code millrace dead-letters list}. */
@Command(
        name = "list",
        description = "Lists refused records, oldest first: reason, field, source, time and sentence.",
        footer = {"", "The number before a letter is its name: 'millrace dead-letters show NUMBER' shows the record."})
final class ListCommand extends ScreenCommand {
    @Mixin
    private RunOptions run;

    @Option(
            names = "--reason",
            paramLabel = "R",
            defaultValue = "",
            description = "Only those with this reason, such as reward.")
    private String reason;

    @Option(
            names = "--source",
            paramLabel = "TOPIC",
            defaultValue = "",
            description = "Only those from this topic, such as rollouts.")
    private String source;

    @Option(
            names = "--limit",
            paramLabel = "N",
            defaultValue = "20",
            description = "The newest N (default ${DEFAULT-VALUE}).")
    private int limit;

    @Option(names = "--json", description = "Print JSON.")
    private boolean json;

    @Override
    public Integer call() {
        if (limit < 1) {
            throw new ConfigException("--limit must be at least 1: " + limit);
        }
        try (AuditedRun audited = run.read()) {
            Listing listing = new DeadLetterTopic(audited.records(), RunOptions.PATIENCE)
                    .list(
                            new DeadLetterFilter(
                                    List.of(),
                                    reason,
                                    source,
                                    audited.records().topics().prefix()),
                            limit);
            if (json) {
                out().println(json(listing).toPrettyString());
            } else {
                out().println(audited.title());
                print(listing, audited.records().topics().prefix());
            }
            return 0;
        }
    }

    private void print(Listing listing, String prefix) {
        out().println();
        for (Listed listed : listing.newest()) {
            DeadLetter letter = listed.letter();
            out().println(String.format(
                    "%6d  %s  %s%s",
                    letter.offset(),
                    Lines.time(letter.writtenAtMs()),
                    letter.reason(),
                    letter.field().isEmpty() ? "" : " (" + letter.field() + ")"));
            labelled(
                    "from",
                    without(prefix, letter.source())
                            + (letter.rolloutId().isEmpty() ? "" : ", rollout " + letter.rolloutId()));
            labelled("", letter.message());
            if (listed.isRedriven()) {
                labelled(
                        "redriven",
                        "as " + without(prefix, letter.sourceTopic()) + "-" + letter.sourcePartition() + "@"
                                + listed.newOffset());
            }
        }
        if (!listing.newest().isEmpty()) {
            out().println();
        }
        paragraph(String.format(
                Locale.ROOT,
                "%,d refused record%s%s, %,d of them redriven%s",
                listing.count(),
                listing.count() == 1 ? "" : "s",
                listing.count() > listing.newest().size()
                        ? ", the newest " + listing.newest().size() + " shown"
                        : "",
                listing.redriven(),
                listing.byReason().isEmpty()
                        ? ""
                        : "; still refused: "
                                + listing.byReason().entrySet().stream()
                                        .map(e -> String.format(Locale.ROOT, "%s %,d", e.getKey(), e.getValue()))
                                        .collect(Collectors.joining(", "))));
    }

    static String without(String prefix, String topic) {
        return topic.startsWith(prefix) ? topic.substring(prefix.length()) : topic;
    }

    private static ObjectNode json(Listing listing) {
        ObjectNode json = new ObjectMapper().createObjectNode();
        json.put("count", listing.count()).put("redriven", listing.redriven());
        ObjectNode reasons = json.putObject("still_refused");
        listing.byReason().forEach(reasons::put);
        var letters = json.putArray("letters");
        listing.newest().forEach(listed -> put(letters.addObject(), listed.letter(), listed.newOffset()));
        return json;
    }

    static void put(ObjectNode json, DeadLetter letter, long newOffset) {
        json.put("letter", letter.offset())
                .put("partition", letter.partition())
                .put("written_at_ms", letter.writtenAtMs())
                .put("reason", letter.reason())
                .put("field", letter.field())
                .put("message", letter.message());
        json.putObject("source")
                .put("topic", letter.sourceTopic())
                .put("partition", letter.sourcePartition())
                .put("offset", letter.sourceOffset())
                .put("timestamp_ms", letter.sourceTimestampMs());
        json.put("run_id", letter.runId());
        if (letter.epoch() >= 0) {
            json.put("epoch", letter.epoch());
        } else {
            json.putNull("epoch");
        }
        json.put("rollout_id", letter.rolloutId());
        if (newOffset >= 0) {
            json.put("redriven_offset", newOffset);
        } else {
            json.putNull("redriven_offset");
        }
    }
}
