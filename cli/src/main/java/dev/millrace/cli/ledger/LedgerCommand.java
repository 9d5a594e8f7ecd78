package dev.millrace.cli.ledger;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.audit.ledger.Account;
import dev.millrace.audit.ledger.LedgerReader;
import dev.millrace.cli.audit.RunOptions;
import dev.millrace.runtime.config.ConfigException;
import dev.millrace.runtime.report.AuditedRun;
import java.io.PrintWriter;
import java.time.Clock;
import java.time.Duration;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** {@code millrace ledger}: what became of every rollout of a run, added up from its topics. */
@Command(
        name = "ledger",
        mixinStandardHelpOptions = true,
        sortOptions = false,
        description = {
            "Adds up, from the topics alone, what became of every rollout of a run, by policy version and in all:",
            "generated = trained + masked + dropped + dead-lettered + in flight, and superseded by a rollback.",
            "Works while the run goes on and afterwards.",
            "A rollout counts under the newest version that sampled one of its tokens."
        },
        footer = {
            "",
            "millrace ledger --run-dir runs/<run id>",
            "millrace ledger --bootstrap-servers kafka:9092 --run my-run --json",
            "",
            "Exit codes: 0 it adds up; 4 it does not; 1 a failure; 2 a mistake in the command line."
        })
public final class LedgerCommand implements Callable<Integer> {
    /** Exit status if the topics contradict each other. */
    public static final int DOES_NOT_ADD_UP = 4;

    private static final Duration PATIENCE = Duration.ofSeconds(30);

    @Mixin
    private RunOptions run;

    @Option(names = "--policy-version", paramLabel = "V", description = "Only rollouts of this version.")
    private Long only;

    @Option(names = "--from-version", paramLabel = "A", description = "Only rollouts of this version and newer ones.")
    private Long from;

    @Option(names = "--to-version", paramLabel = "B", description = "Only rollouts of this version and older ones.")
    private Long to;

    @Option(names = "--json", description = "Print JSON: every version, reasons, contradictions.")
    private boolean json;

    @Spec
    private CommandSpec spec;

    @Override
    public Integer call() {
        VersionRange versions = versions();
        PrintWriter out = spec.commandLine().getOut();
        try (AuditedRun audited = run.open()) {
            Account account = new LedgerReader(audited.connection()).read(PATIENCE);
            if (json) {
                ObjectNode tree = LedgerJson.of(audited.connection().run(), account, versions);
                out.println(tree.toPrettyString());
            } else {
                out.println(audited.title());
                new LedgerText(account.balance(), versions, Clock.systemUTC().millis())
                        .lines()
                        .forEach(out::println);
            }
            out.flush();
            return account.balance().addsUp() ? 0 : DOES_NOT_ADD_UP;
        }
    }

    private VersionRange versions() {
        if (only != null && (from != null || to != null)) {
            throw new ConfigException("--policy-version " + only + " and a range contradict each other; leave one out");
        }
        if (only != null) {
            return new VersionRange(only, only);
        }
        return new VersionRange(from == null ? Long.MIN_VALUE : from, to == null ? Long.MAX_VALUE : to);
    }
}
