package dev.millrace.cli.audit;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.api.tokenizer.Tokenizer;
import dev.millrace.audit.trace.Found;
import dev.millrace.audit.trace.GroupTrace;
import dev.millrace.audit.trace.RolloutEvents;
import dev.millrace.audit.trace.RolloutEvents.RolloutEvent;
import dev.millrace.audit.trace.RolloutStatus;
import dev.millrace.audit.trace.Tracer;
import dev.millrace.cli.ScreenCommand;
import dev.millrace.replay.archive.ArchivedRun;
import dev.millrace.report.Column;
import dev.millrace.report.Lines;
import dev.millrace.report.Table;
import dev.millrace.report.TableText;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.runtime.pipeline.RunTokenizer;
import dev.millrace.runtime.report.AuditedRun;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.VersionSpan;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** {@code millrace trace}: follows one rollout from prompt to version, or lists the rollouts of a group. */
@Command(
        name = "trace",
        description = "Follows one rollout through the topics of a run: prompt, sampling, scoring, join, batch, "
                + "step, or why it left; with times, versions and record positions. A group's id lists its "
                + "rollouts.",
        footer = {
            "",
            "millrace trace 0-17/3 --run-dir runs/<run id>",
            "millrace trace 0-17 --bootstrap-servers kafka:9092 --run my-run",
            "millrace trace 0-17/3 --archive my-run.archive",
            "",
            "Exit codes: 0 it exists; 5 it does not; 1 a failure; 2 a mistake in the command line."
        })
public final class TraceCommand extends ScreenCommand {

    private static final Pattern SAMPLE = Pattern.compile("(.+)/(\\d{1,9})");

    @Mixin
    private RunOrArchive which = new RunOrArchive();

    @Parameters(
            paramLabel = "ID",
            description =
                    "Rollout, such as 0-17/3, or group, such as 0-17. In another system's run GROUP/SAMPLE or the "
                            + "rollout's own id.")
    private String id;

    @Option(names = "--whole", description = "Read every topic completely to find duplicates.")
    private boolean whole;

    @Option(names = "--json", description = "Print JSON.")
    private boolean json;

    /** A rollout; a group if {@code rolloutId} is empty. */
    private record Named(String groupId, String rolloutId) {
        static Named by(String id) {
            Matcher sample = SAMPLE.matcher(id);
            return sample.matches() ? new Named(sample.group(1), id) : new Named(id, "");
        }

        boolean isOne() {
            return !rolloutId.isEmpty();
        }

        /** Target in another system's run, whose ids lack the group. */
        Optional<Named> elsewhere(Tracer tracer) {
            String id = isOne() ? rolloutId : groupId;
            Optional<Named> sample = isOne()
                    ? tracer.trace(groupId, "", false).inputs().rollouts().stream()
                            .map(Found::value)
                            .filter(rollout -> id.equals(groupId + "/" + rollout.getSampleIndex()))
                            .findFirst()
                            .map(rollout -> new Named(groupId, rollout.getRolloutId()))
                    : Optional.empty();
            return sample.or(() -> tracer.groupOf(id).map(group -> new Named(group, id)));
        }
    }

    @Override
    public Integer call() {
        try (AuditedRun audited = which.read()) {
            boolean isDated = true;
            if (audited.records() instanceof ArchivedRun archive
                    && archive.origin().isPresent()) {
                archive.missing().ifPresent(why -> {
                    throw new RefusedRequestException("cannot trace in the archive: " + why);
                });
                isDated = false; // its records have ages instead of times
            }
            long begun = System.nanoTime();
            Tracer tracer = new Tracer(audited.records(), RunOptions.PATIENCE);
            Named named = Named.by(id);
            GroupTrace trace = tracer.trace(named.groupId(), named.rolloutId(), whole);
            if (trace.isEmpty() && audited.config().run().recorded()) {
                named = named.elsewhere(tracer).orElse(named);
                trace = tracer.trace(named.groupId(), named.rolloutId(), whole);
            }
            boolean one = named.isOne();
            String cost = String.format(
                    Locale.ROOT,
                    "read %,d records, %,.1f MB, in %.1f s",
                    trace.search().recordsRead(),
                    trace.search().bytesRead() / 1e6,
                    (System.nanoTime() - begun) / 1e9);
            String prefix = audited.records().topics().prefix();
            int epoch = audited.records().run().epoch();
            Optional<Tokenizer> tokenizer = RunTokenizer.ofText(
                    audited.config(), audited.log(), why -> err().println("without its text: " + why));
            if (trace.isEmpty()) {
                throw new NotFoundException(hint(tracer, trace, one) + " (" + cost + ")");
            }
            if (json) {
                out().println(
                                one
                                        ? json(trace, prefix, epoch, tokenizer).toPrettyString()
                                        : groupJson(trace, prefix, epoch, tokenizer)
                                                .toPrettyString());
            } else {
                out().println(audited.title());
                out().println();
                if (one) {
                    out().println("rollout " + named.rolloutId() + " — " + RolloutStatus.of(trace, prefix, epoch));
                    printEvents(new RolloutEvents(trace, prefix, tokenizer).inOrder(), isDated);
                } else {
                    printGroup(trace, prefix, epoch);
                }
                if (!trace.copies().isEmpty()) {
                    out().println();
                    labelled("copies", copies(trace, prefix));
                }
                out().println();
                out().println(cost);
            }
            return 0;
        }
    }

    private static String copies(GroupTrace trace, String prefix) {
        return "skipped exact duplicates: "
                + trace.copies().stream()
                        .map(place -> place.substring(prefix.length()))
                        .collect(Collectors.joining(", "));
    }

    private String hint(Tracer tracer, GroupTrace trace, boolean one) {
        if (trace.prompt().isPresent()) {
            var prompt = trace.prompt().get().value();
            String group = "group " + trace.groupId() + " was released at " + Lines.time(prompt.getReleasedAtMs())
                    + " for samples 0 to " + (prompt.getSamples() - 1);
            if (!one) {
                return group + ", and none of them has been sampled yet";
            }
            boolean asked = Integer.parseInt(id.substring(id.lastIndexOf('/') + 1)) < prompt.getSamples();
            return "there is no rollout " + id + (asked ? " yet; " : "; ") + group
                    + siblings(tracer.trace(trace.groupId(), "", false));
        }
        if (one) {
            GroupTrace group = tracer.trace(trace.groupId(), "", false);
            if (!group.isEmpty()) {
                return "there is no rollout " + id + "; its group exists" + siblings(group);
            }
        }
        return "there is no rollout or prompt of " + (one ? "group " + trace.groupId() : "a group " + id)
                + (trace.search().newestGroup().isEmpty()
                        ? ""
                        : "; the newest group of the run is " + trace.search().newestGroup());
    }

    private static String siblings(GroupTrace group) {
        TreeSet<Integer> samples = group.inputs().rollouts().stream()
                .map(found -> found.value().getSampleIndex())
                .collect(Collectors.toCollection(TreeSet::new));
        return samples.isEmpty()
                ? ", none on the log"
                : ", on the log: " + samples.stream().map(String::valueOf).collect(Collectors.joining(", "));
    }

    private void printEvents(List<RolloutEvent> events, boolean isDated) {
        for (int i = 0; i < events.size(); i++) {
            RolloutEvent event = events.get(i);
            long delayMs = i == 0 ? 0 : event.timeMs() - events.get(i - 1).timeMs();
            String delay = i == 0 ? "" : "+" + Lines.duration(delayMs);
            out().println();
            out().println(
                            isDated
                                    ? String.format("%s %14s  %s", Lines.time(event.timeMs()), delay, event.what())
                                    : event.what() + (delayMs == 0 ? "" : ", " + delay));
            event.details().forEach(detail -> paragraph("    ", detail));
            out().println("    " + event.place());
        }
    }

    private void printGroup(GroupTrace trace, String prefix, int epoch) {
        out().println("group " + trace.groupId()
                + trace.prompt()
                        .map(found ->
                                ", released at " + Lines.time(found.value().getReleasedAtMs()) + " for "
                                        + found.value().getSamples() + " samples")
                        .orElse(""));
        out().println();
        TableText.lines(Table.of("", columns(trace, prefix, epoch), rolloutIds(trace)))
                .forEach(out()::println);
        List<Found<Rollout>> found = trace.inputs().rollouts();
        trace.prompt().ifPresent(prompt -> {
            long missing = prompt.value().getSamples()
                    - found.stream()
                            .map(it -> it.value().getSampleIndex())
                            .distinct()
                            .count();
            if (missing > 0) {
                out().println(missing + " of its samples are not on the log");
            }
        });
    }

    private static List<Column<String>> columns(GroupTrace trace, String prefix, int epoch) {
        return List.of(
                Column.text(
                        "sample",
                        id -> id.startsWith(trace.groupId() + "/")
                                ? id.substring(trace.groupId().length() + 1)
                                : id),
                Column.number(
                        "version",
                        0,
                        id -> last(trace, id).map(TraceCommand::newest).orElse(Double.NaN)),
                Column.text(
                        "reward",
                        id -> last(trace, id)
                                .map(rollout -> RolloutEvents.number(rollout.getReward()))
                                .orElse(null)),
                Column.number(
                        "tokens",
                        0,
                        id -> last(trace, id)
                                .map(rollout -> (double) rollout.getMask().remaining())
                                .orElse(Double.NaN)),
                Column.text("state", id -> {
                    GroupTrace one = trace.of(id);
                    int records = one.inputs().rollouts().size();
                    return RolloutStatus.of(one, prefix, epoch) + (records > 1 ? " (" + records + " records)" : "");
                }));
    }

    /** The newest record of a rollout; empty if it was only refused. */
    private static Optional<Rollout> last(GroupTrace trace, String rolloutId) {
        List<Found<Rollout>> records = trace.of(rolloutId).inputs().rollouts();
        return records.isEmpty()
                ? Optional.empty()
                : Optional.of(records.get(records.size() - 1).value());
    }

    private static double newest(Rollout rollout) {
        return rollout.getVersionSpans().stream()
                .mapToLong(VersionSpan::getVersion)
                .max()
                .orElse(-1);
    }

    private static List<String> rolloutIds(GroupTrace trace) {
        TreeSet<String> ids = new TreeSet<>(
                java.util.Comparator.comparingInt((String it) -> it.length()).thenComparing(it -> it));
        trace.inputs().rollouts().forEach(found -> ids.add(found.value().getRolloutId()));
        trace.decisions().letters().stream()
                .map(found -> found.letter().rolloutId())
                .filter(it -> it.startsWith(trace.groupId() + "/"))
                .forEach(ids::add);
        return List.copyOf(ids);
    }

    private static ObjectNode json(GroupTrace trace, String prefix, int epoch, Optional<Tokenizer> tokenizer) {
        ObjectNode json = new ObjectMapper().createObjectNode();
        return put(json, trace, prefix, epoch, tokenizer);
    }

    private static ObjectNode put(
            ObjectNode json, GroupTrace trace, String prefix, int epoch, Optional<Tokenizer> tokenizer) {
        json.put(
                        "rollout_id",
                        trace.inputs().rollouts().isEmpty()
                                ? null
                                : trace.inputs().rollouts().get(0).value().getRolloutId())
                .put("group_id", trace.groupId());
        RolloutStatus fate = RolloutStatus.of(trace, prefix, epoch);
        json.put("fate", fate.word()).put("detail", fate.detail());
        ArrayNode copies = json.putArray("copies");
        trace.copies().forEach(place -> copies.add(place.substring(prefix.length())));
        ArrayNode events = json.putArray("events");
        new RolloutEvents(trace, prefix, tokenizer).inOrder().forEach(event -> {
            ArrayNode details = event.data().putArray("details");
            event.details().forEach(details::add);
            events.add(event.data());
        });
        return json;
    }

    private static ObjectNode groupJson(GroupTrace trace, String prefix, int epoch, Optional<Tokenizer> tokenizer) {
        ObjectNode json = new ObjectMapper().createObjectNode().put("group_id", trace.groupId());
        ArrayNode rollouts = json.putArray("rollouts");
        rolloutIds(trace)
                .forEach(rolloutId -> put(rollouts.addObject(), trace.of(rolloutId), prefix, epoch, tokenizer)
                        .put("rollout_id", rolloutId));
        return json;
    }
}
