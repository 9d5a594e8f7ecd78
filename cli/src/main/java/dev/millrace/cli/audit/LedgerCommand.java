package dev.millrace.cli.audit;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.audit.ledger.Account;
import dev.millrace.audit.ledger.Balance;
import dev.millrace.audit.ledger.LedgerReader;
import dev.millrace.audit.ledger.RolloutOrigin;
import dev.millrace.audit.ledger.Tally;
import dev.millrace.cli.ScreenCommand;
import dev.millrace.replay.archive.ArchivedRun;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.runtime.config.ConfigException;
import dev.millrace.runtime.report.AuditedRun;
import dev.millrace.schemas.run.RunIdentity;
import java.time.Clock;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code millrace ledger}: accounts for every rollout of a run from its topics. */
@Command(
        name = "ledger",
        description = "Accounts for every rollout of a run from its topics, by policy version and in total: "
                + "generated = trained + masked + dropped + dead-lettered + in flight, plus superseded by a "
                + "rollback. Works during and after the run. A rollout counts under the newest version that "
                + "sampled one of its tokens.",
        footer = {
            "",
            "millrace ledger --run-dir runs/<run id>",
            "millrace ledger --bootstrap-servers kafka:9092 --run my-run --json",
            "millrace ledger --archive my-run.archive",
            "",
            "Exit codes: 0 it adds up; 4 it does not; 1 a failure; 2 a mistake in the command line."
        })
public final class LedgerCommand extends ScreenCommand {
    /** Exit status if the topics contradict each other. */
    public static final int DOES_NOT_ADD_UP = 4;

    @Mixin
    private RunOrArchive which = new RunOrArchive();

    @Option(names = "--policy-version", paramLabel = "V", description = "Only rollouts of this version.")
    private Long only;

    @Option(names = "--from-version", paramLabel = "A", description = "Only rollouts of this version and newer ones.")
    private Long from;

    @Option(names = "--to-version", paramLabel = "B", description = "Only rollouts of this version and older ones.")
    private Long to;

    @Option(names = "--json", description = "Print JSON: every version, reasons, contradictions.")
    private boolean json;

    @Override
    public Integer call() {
        VersionRange versions = versions();
        try (AuditedRun audited = which.read()) {
            if (audited.records() instanceof ArchivedRun archive
                    && archive.missing().isPresent()) {
                throw new RefusedRequestException("cannot account for every rollout of the archive: "
                        + archive.missing().get());
            }
            Account account = new LedgerReader(audited.records()).read(RunOptions.PATIENCE);
            if (json) {
                ObjectNode tree = json(audited.records().run(), account, versions);
                out().println(tree.toPrettyString());
            } else {
                out().println(audited.title());
                new LedgerText(account.balance(), versions, Clock.systemUTC().millis())
                        .lines()
                        .forEach(out()::println);
            }
            return account.balance().addsUp() ? 0 : DOES_NOT_ADD_UP;
        }
    }

    private VersionRange versions() {
        if (only != null && (from != null || to != null)) {
            throw new ConfigException("--policy-version " + only + " and a range exclude each other; leave one out");
        }
        if (only != null) {
            return new VersionRange(only, only);
        }
        return new VersionRange(from == null ? Long.MIN_VALUE : from, to == null ? Long.MAX_VALUE : to);
    }

    /** The names are a contract. */
    private static ObjectNode json(RunIdentity run, Account account, VersionRange versions) {
        Balance balance = account.balance();
        SortedMap<RolloutOrigin, Tally> chosen = versions.of(balance);
        ObjectNode json = new ObjectMapper().createObjectNode();
        json.put("run_id", run.runId()).put("epoch", run.epoch()).put("policy_id", run.policyId());
        json.put("adds_up", balance.addsUp()).put("complete", balance.gaps().isEmpty());
        put(json.putObject("all"), chosen.values().stream().reduce(Tally.NONE, Tally::plus));
        var epochs = json.putArray("epochs");
        epochs(chosen).forEach((epoch, tally) -> put(epochs.addObject().put("epoch", epoch), tally));
        var rows = json.putArray("versions");
        chosen.forEach((origin, tally) -> {
            ObjectNode row = rows.addObject();
            if (origin.equals(RolloutOrigin.NOT_OURS)) {
                row.putNull("epoch").putNull("version");
            } else {
                row.put("epoch", origin.epoch()).put("version", origin.version());
            }
            put(row, tally);
        });
        json.put("redriven", balance.redriven());
        reasons(json.putObject("copies"), balance.unmatched().copies());
        reasons(json.putObject("strays"), balance.unmatched().strays());
        reasons(json.putObject("other_dead_letters"), balance.unmatched().otherDeadLetters());
        var oldest = json.putArray("oldest_waiting");
        balance.oldestWaiting()
                .forEach(waiting -> oldest.addObject()
                        .put("waits_for", waiting.stage())
                        .put("rollout_id", waiting.rolloutId())
                        .put("since_ms", waiting.sinceMs()));
        balance.gaps().forEach(json.putArray("gaps")::add);
        json.put("contradiction_count", balance.contradictionCount());
        balance.contradictions().forEach(json.putArray("contradictions")::add);
        return json;
    }

    /** Totals per epoch. */
    private static SortedMap<Integer, Tally> epochs(SortedMap<RolloutOrigin, Tally> chosen) {
        SortedMap<Integer, Tally> epochs = new TreeMap<>();
        chosen.forEach((origin, tally) -> {
            if (!origin.equals(RolloutOrigin.NOT_OURS)) {
                epochs.merge(origin.epoch(), tally, Tally::plus);
            }
        });
        return epochs;
    }

    private static void put(ObjectNode json, Tally tally) {
        json.put("generated", tally.generated()).put("trained", tally.trained());
        reasons(json.putObject("masked"), tally.masked());
        reasons(json.putObject("dropped"), tally.dropped());
        reasons(json.putObject("dead_lettered"), tally.deadLettered());
        json.putObject("in_flight")
                .put("waiting_for_score", tally.unfinished().waitingForScore())
                .put("waiting_for_batch", tally.unfinished().waitingForBatch())
                .put("waiting_for_step", tally.unfinished().waitingForStep());
        json.put("expired", tally.unfinished().expired())
                .put("superseded", tally.unfinished().superseded());
    }

    private static void reasons(ObjectNode json, Map<String, Long> counts) {
        counts.forEach(json::put);
    }
}
