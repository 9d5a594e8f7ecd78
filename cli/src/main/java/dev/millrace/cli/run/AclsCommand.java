package dev.millrace.cli.run;

import dev.millrace.cli.ScreenCommand;
import dev.millrace.cli.audit.RunOptions;
import dev.millrace.log.run.CheckedRights;
import dev.millrace.log.run.Right;
import dev.millrace.log.run.RoleRights;
import dev.millrace.log.run.TopicAdministration;
import dev.millrace.runtime.config.ConfigException;
import dev.millrace.runtime.config.ConfigLayers;
import dev.millrace.runtime.config.ConfigTree;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.runtime.pipeline.AccountRights;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourceType;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code millrace acls}: the least rights of a run's roles on a cluster with ACLs. */
@Command(
        name = "acls",
        description = "Prints the minimal rights of each role, and of each command that writes to a run, on a cluster"
                + " with ACLs, as "
                + "kafka-acls commands or Strimzi KafkaUsers, or checks them. Needs no run and, without"
                + " --check, no cluster.",
        footer = {
            "",
            "millrace acls --run my-run --bootstrap-servers kafka:9092",
            "millrace acls --run my-run --role creator,learner --principal User:trainer",
            "millrace acls --run my-run --role generator --strimzi my-cluster",
            "millrace acls --run my-run --role generator --check --config generator.yaml --bootstrap-servers kafka:9092",
            "",
            "Exit codes: 0 nothing is missing; 4 --check found a missing right; 1 a failure; 2 a mistake in the"
                    + " command line."
        })
public final class AclsCommand extends ScreenCommand {
    /** Exit status if a right is missing. */
    private static final int MISSING = 4;

    private static final String ANY_BROKER = "kafka:9092";

    @Mixin
    private RunOptions run;

    @Option(
            names = "--role",
            paramLabel = "ROLE",
            split = ",",
            description =
                    "Roles, all if none is given: ${COMPLETION-CANDIDATES}. One role needs CREATOR in addition to its own; READER "
                            + "is for commands that only read; those after it are for the commands of these names.")
    private List<RoleRights> roles = new ArrayList<>();

    @Option(
            names = "--principal",
            paramLabel = "PRINCIPAL",
            description = "Principal of these roles (default: User: and the role's name).")
    private String principal;

    @Option(
            names = "--strimzi",
            paramLabel = "CLUSTER",
            description = "Print KafkaUsers for the Kafka resource of this name.")
    private String strimzi;

    @Option(
            names = "--check",
            description =
                    "Check the rights of --role for the account of the client settings; changes nothing of a run.")
    private boolean check;

    @Override
    public Integer call() {
        if (check && (strimzi != null || principal != null)) {
            throw new ConfigException("--check checks the account of the client settings; leave out "
                    + (strimzi != null ? "--strimzi" : "--principal") + ", or --check");
        }
        if (check && roles.isEmpty()) {
            throw new ConfigException("--check needs the roles of the account; give them with --role ROLE[,ROLE]");
        }
        MillraceConfig config = whereabouts();
        int status = check ? checked(config) : printed(config);
        return status;
    }

    private MillraceConfig whereabouts() {
        if (run.folder() != null) {
            throw new ConfigException("a run with --run-dir has its own broker without ACLs; give --run ID");
        }
        ConfigLayers layers = run.over(ConfigTree.empty());
        MillraceConfig config = layers.whereabouts();
        if (config.run().embedded()) {
            if (check) {
                throw new ConfigException("no cluster given; give --bootstrap-servers HOST:PORT");
            }
            config = layers.set("run.bootstrap_servers", ANY_BROKER).whereabouts();
        }
        if (config.run().id().isEmpty() && config.run().topicPrefix().isEmpty()) {
            throw new ConfigException(
                    "no run given; give --run ID, or --topic-prefix PREFIX if its topics have another prefix than"
                            + " millrace.<id>.");
        }
        return config;
    }

    private int printed(MillraceConfig config) {
        Map<String, Set<RoleRights>> accounts = new LinkedHashMap<>();
        for (RoleRights role : roles.isEmpty() ? List.of(RoleRights.values()) : roles) {
            accounts.computeIfAbsent(
                            principal == null ? "User:" + role.lowerCase() : principal, unseen -> new LinkedHashSet<>())
                    .add(role);
        }
        accounts.forEach((account, itsRoles) -> {
            List<Right> rights = Right.merged(AccountRights.of(config, itsRoles));
            String names = itsRoles.stream().map(RoleRights::lowerCase).collect(Collectors.joining(", "));
            if (strimzi == null) {
                out().println("# " + names);
                rights.forEach(right -> out().println(right.command(config.run().bootstrapServers(), account)));
            } else {
                print(account, names, rights);
            }
        });
        return 0;
    }

    private void print(String account, String names, List<Right> rights) {
        out().println("---");
        out().println("# " + names);
        out().println("apiVersion: kafka.strimzi.io/v1");
        out().println("kind: KafkaUser");
        out().println("metadata:");
        out().println("  name: " + account.replaceFirst("^User:(CN=)?", ""));
        out().println("  labels:");
        out().println("    strimzi.io/cluster: " + strimzi);
        out().println("spec:");
        out().println("  authentication:");
        out().println("    type: scram-sha-512");
        out().println("  authorization:");
        out().println("    type: simple");
        out().println("    acls:");
        for (Right right : rights) {
            for (String name : right.names()) {
                out().println("      - resource:");
                out().println("          type: "
                        + (right.type() == ResourceType.TRANSACTIONAL_ID
                                ? "transactionalId"
                                : right.type() == ResourceType.GROUP ? "group" : "topic"));
                out().println("          name: \"" + name + "\"");
                out().println("          patternType: "
                        + (right.pattern() == PatternType.PREFIXED ? "prefix" : "literal"));
                out().println("        operations: ["
                        + right.operations().stream().map(Right::named).collect(Collectors.joining(", ")) + "]");
            }
        }
    }

    private int checked(MillraceConfig config) {

        List<Right> rights = AccountRights.of(config, roles);
        try (TopicAdministration administration = new TopicAdministration(RunOptions.client(config), config.topics())) {
            administration.requireReachable();
            CheckedRights tried = administration.tried(config.run().topics(), rights);
            Right.merged(tried.granted()).forEach(right -> out().println("ok       " + right));
            Right.merged(tried.untried()).forEach(right -> out().println("unknown  " + right + "; not there yet"));
            Right.merged(tried.missing()).forEach(right -> out().println("missing  " + right));
            if (tried.missing().isEmpty()) {
                return 0;
            }
            out().println();
            Right.merged(tried.missing())
                    .forEach(right -> out().println(right.command(config.run().bootstrapServers(), Right.ANYBODY)));
            return MISSING;
        }
    }
}
