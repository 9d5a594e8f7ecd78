package dev.millrace.cli.audit;

import com.fasterxml.jackson.databind.ObjectMapper;
import dev.millrace.cli.ScreenCommand;
import dev.millrace.cli.config.ConfigOptions;
import dev.millrace.log.run.RoleRights;
import dev.millrace.runtime.config.ConfigTree;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.runtime.pipeline.AccountRights;
import dev.millrace.runtime.pipeline.Preflight;
import dev.millrace.runtime.pipeline.PreflightCheck;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.UUID;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code millrace doctor preflight}: checks what a run needs before it starts. */
@Command(
        name = "preflight",
        description = "Checks a configuration before a run: device, model, memory, data, tokenizer, algorithm, "
                + "registry; on a cluster also the rights of 'millrace acls', topic creation under the prefix, a "
                + "transaction with offsets, the largest record, clock and reading. Deletes its test topic.",
        footer = {
            "",
            "millrace doctor preflight",
            "millrace doctor preflight --config my.yaml",
            "millrace doctor preflight --config my.yaml --bootstrap-servers kafka:9092 --set run.id=my-run",
            "millrace doctor preflight --config scorer.yaml --bootstrap-servers kafka:9092 --set run.id=my-run --role scorer",
            "",
            "Exit codes: 0 a run can start; 4 a requirement is missing; 1 a failure; 2 a mistake in the configuration."
        })
public final class PreflightCommand extends ScreenCommand {
    @Mixin
    private ConfigOptions configuration;

    @Option(
            names = "--role",
            paramLabel = "ROLE",
            split = ",",
            description = "Roles that use this account, those of train if none is given: ${COMPLETION-CANDIDATES}.")
    private List<RoleRights> roles = new ArrayList<>();

    @Option(names = "--json", description = "Print JSON.")
    private boolean json;

    @Override
    public Integer call() {
        MillraceConfig config = configuration.over(ConfigTree.empty()).resolve();
        List<PreflightCheck> checks = new Preflight(
                        config,
                        () -> UUID.randomUUID().toString().substring(0, 8),
                        roles.isEmpty() ? AccountRights.roles(config) : roles)
                .run();
        boolean ready = checks.stream()
                .noneMatch(check -> check.outcome() == PreflightCheck.Outcome.FAILED
                        || check.outcome() == PreflightCheck.Outcome.SKIPPED);
        if (json) {
            print(checks, ready);
        } else {
            checks.forEach(check -> labelled(
                    check.outcome().name().toLowerCase(Locale.ROOT), check.subject() + ": " + check.sentence()));
            out().println();
            out().println(ready ? "A run can start." : "A run cannot start with this configuration.");
        }
        return ready ? 0 : DoctorCommand.ATTENTION;
    }

    private void print(List<PreflightCheck> checks, boolean ready) {
        var tree = new ObjectMapper().createObjectNode().put("ready", ready);
        var array = tree.putArray("checks");
        checks.forEach(check -> array.addObject()
                .put("subject", check.subject())
                .put("outcome", check.outcome().name().toLowerCase(Locale.ROOT))
                .put("sentence", check.sentence()));
        out().println(tree.toPrettyString());
    }
}
