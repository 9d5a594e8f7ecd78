package dev.millrace.cli.audit;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.cli.ScreenCommand;
import dev.millrace.log.run.ClusterRuns;
import dev.millrace.log.run.ClusterRuns.ClusterRun;
import dev.millrace.log.run.ClusterRuns.RunTopic;
import dev.millrace.log.run.RoleRights;
import dev.millrace.log.run.TopicAdministration;
import dev.millrace.log.run.TopicDifference;
import dev.millrace.log.run.TopicSettings;
import dev.millrace.report.Column;
import dev.millrace.report.Lines;
import dev.millrace.report.Table;
import dev.millrace.report.TableText;
import dev.millrace.runtime.config.ConfigException;
import dev.millrace.runtime.config.ConfigTree;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.runtime.config.RecordedConfiguration;
import dev.millrace.runtime.pipeline.RunLookup;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.BiFunction;
import java.util.stream.Collectors;
import org.apache.kafka.common.config.TopicConfig;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** {@code millrace topics}: the topics of a run on a cluster. */
@Command(
        name = "topics",
        synopsisSubcommandLabel = "COMMAND",
        description = "Lists, creates and checks the topics of a run on a Kafka cluster, changelogs included.",
        subcommands = {
            TopicsCommand.ListTopics.class,
            TopicsCommand.CreateTopics.class,
            TopicsCommand.DescribeTopics.class,
            TopicsCommand.CheckTopics.class,
            CommandLine.HelpCommand.class
        },
        footer = {
            "",
            "millrace topics list --bootstrap-servers kafka:9092 --run my-run",
            "millrace topics create --bootstrap-servers kafka:9092 --run my-run --dry-run",
            "millrace topics check --bootstrap-servers kafka:9092 --run my-run"
        })
public final class TopicsCommand extends ScreenCommand {
    @Override
    public Integer call() {
        throw mistake("list, create, describe or check is missing");
    }

    /** A command on the topics of a run. */
    abstract static class TopicCommand extends ScreenCommand {
        @Mixin
        private RunOptions run;

        @Option(names = "--json", description = "Print JSON.")
        boolean json;

        /** Acts on the run of the named topics, which need not exist. */
        final int on(BiFunction<ClusterRuns, ClusterRun, Integer> work) {
            MillraceConfig whereabouts = run.whereabouts();
            if (whereabouts.run().embedded()) {
                throw new ConfigException("the run in " + run.folder()
                        + " has its own broker, which creates and checks the topics; give --bootstrap-servers"
                        + " HOST:PORT and --run ID for a run on a cluster");
            }
            try (ClusterRuns cluster = RunOptions.cluster(whereabouts)) {
                ClusterRun found = cluster.at(whereabouts.run().topics());
                DeleteCommand.requireIts(found, whereabouts.run().id());
                return work.apply(cluster, found);
            }
        }

        /** The recorded configuration of the run; without a record, that of the options. */
        final MillraceConfig config(ClusterRun found) {
            Optional<RecordedConfiguration> recorded = found.claim().flatMap(RunLookup::configuration);
            MillraceConfig config = run.over(
                            recorded.map(RecordedConfiguration::tree).orElseGet(ConfigTree::empty))
                    .resolve();
            recorded.ifPresent(each -> each.require(config, "leave the key out"));
            return config;
        }

        static List<TopicSettings> expected(MillraceConfig config, ClusterRun found) {
            return config.topicSettings(
                    found.claim().map(claim -> claim.run().epoch()).orElse(0));
        }

        /** Acts on the topics of the run's configuration. */
        final int onExpected(BiFunction<TopicAdministration, List<TopicSettings>, Integer> work) {
            run.needs(RoleRights.TOPICS);
            return on((cluster, found) -> {
                MillraceConfig config = config(found);
                List<TopicSettings> expected = expected(config, found);
                try (TopicAdministration administration =
                        new TopicAdministration(RunOptions.client(config), config.sizedTopics())) {
                    return work.apply(administration, expected);
                }
            });
        }
    }

    private static List<RunTopic> there(ClusterRuns cluster, ClusterRun found) {
        List<RunTopic> topics = cluster.topics(found);
        if (topics.isEmpty()) {
            throw new NotFoundException("there is no topic of a run under the prefix '"
                    + found.topics().prefix()
                    + "' that this client may see; 'millrace runs' lists the runs of a cluster");
        }
        return topics;
    }

    private static @Nullable Long known(RunTopic topic) {
        return topic.bytes().isPresent() ? topic.bytes().getAsLong() : null;
    }

    private static ArrayNode json(List<RunTopic> topics) {
        ArrayNode json = new ObjectMapper().createArrayNode();
        for (RunTopic topic : topics) {
            ObjectNode each = json.addObject()
                    .put("topic", topic.name())
                    .put("partitions", topic.partitions())
                    .put("replicas", topic.replicas())
                    .put("in_sync", topic.inSync())
                    .put("bytes", known(topic));
            ObjectNode settings = each.putObject("settings");
            topic.settings().forEach(settings::put);
        }
        return json;
    }

    /** Lists existing topics. */
    @Command(
            name = "list",
            description = "Lists the topics of a run, changelogs of the topology included: partitions, replicas, "
                    + "retention, bytes. Bytes count all copies.",
            footer = {
                "",
                "millrace topics list --bootstrap-servers kafka:9092 --run my-run",
                "",
                "Exit codes: 0 they are listed; 5 there are none; 1 a failure; 2 a mistake in the command line."
            })
    static final class ListTopics extends TopicCommand {
        @Override
        public Integer call() {
            return on((cluster, found) -> {
                List<RunTopic> topics = there(cluster, found);
                if (json) {
                    out().println(json(topics).toPrettyString());
                } else {
                    TableText.lines(table(topics)).forEach(out()::println);
                }
                return 0;
            });
        }

        private static Table table(List<RunTopic> topics) {
            return Table.of(
                    "",
                    List.of(
                            Column.text("topic", RunTopic::name),
                            Column.count("partitions", RunTopic::partitions),
                            Column.count("replicas", RunTopic::replicas),
                            Column.text("retention", ListTopics::retention),
                            Column.countWhereKnown("bytes", TopicsCommand::known)),
                    topics);
        }

        private static @Nullable String retention(RunTopic topic) {
            Map<String, String> settings = topic.settings();
            if (settings.isEmpty()) {
                return null;
            }
            if (!TopicConfig.CLEANUP_POLICY_DELETE.equals(settings.get(TopicConfig.CLEANUP_POLICY_CONFIG))) {
                return settings.get(TopicConfig.CLEANUP_POLICY_CONFIG);
            }
            long ms = Long.parseLong(settings.getOrDefault(TopicConfig.RETENTION_MS_CONFIG, "-1"));
            String bytes = settings.getOrDefault(TopicConfig.RETENTION_BYTES_CONFIG, "-1");
            String time = ms < 0 ? "forever" : Lines.duration(ms);
            return bytes.equals("-1") ? time : bytes + " bytes" + (ms < 0 ? "" : ", " + time);
        }
    }

    /** Describes existing topics with their settings. */
    @Command(
            name = "describe",
            description = "Describes topics of a run: partitions, replicas, replicas in sync, bytes, and the settings "
                    + "that the run depends on or that are set on the topic itself.",
            footer = {
                "",
                "millrace topics describe rollouts scores --bootstrap-servers kafka:9092 --run my-run",
                "",
                "Exit codes: 0 they are described; 5 there are none; 1 a failure; 2 a mistake in the command line."
            })
    static final class DescribeTopics extends TopicCommand {
        @Parameters(
                paramLabel = "TOPIC",
                arity = "0..*",
                description = "Topics, with or without the run's prefix; all if none is given.")
        private List<String> names = new ArrayList<>();

        @Override
        public Integer call() {
            return on((cluster, found) -> {
                String prefix = found.topics().prefix();
                List<RunTopic> topics = there(cluster, found);
                Set<String> wanted = names.stream()
                        .map(name -> name.startsWith(prefix) ? name : prefix + name)
                        .collect(Collectors.toSet());
                Set<String> named = topics.stream().map(RunTopic::name).collect(Collectors.toSet());
                wanted.stream().filter(name -> !named.contains(name)).findAny().ifPresent(name -> {
                    throw new NotFoundException("there is no topic " + name + "; the run has " + named);
                });
                List<RunTopic> chosen = topics.stream()
                        .filter(topic -> wanted.isEmpty() || wanted.contains(topic.name()))
                        .toList();
                if (json) {
                    out().println(json(chosen).toPrettyString());
                } else {
                    chosen.forEach(topic -> print(topic));
                }
                return 0;
            });
        }

        private void print(RunTopic topic) {
            Long bytes = known(topic);
            out().println(topic.name());
            paragraph(
                    "  ",
                    topic.partitions() + " partitions, " + topic.replicas() + " replicas, " + topic.inSync()
                            + " in sync" + (bytes == null ? "" : ", " + bytes + " bytes"));
            topic.settings().forEach((key, value) -> out().println("  " + key + "=" + value));
        }
    }

    /** Creates missing topics. */
    @Command(
            name = "create",
            description =
                    "Creates the topics of a run that are missing, changelogs included, and checks the others, as a"
                            + " role with that right does. Uses the settings recorded by the run, else those of"
                            + " --config and --set. Repeat it for a new epoch.",
            footer = {
                "",
                "millrace topics create --bootstrap-servers kafka:9092 --run my-run --config my.yaml --dry-run",
                "millrace topics create --bootstrap-servers kafka:9092 --run my-run --config my.yaml",
                "millrace topics create --bootstrap-servers kafka:9092 --run my-run --config my.yaml --strimzi my-cluster",
                "",
                "Exit codes: 0 all are there, or are listed; 1 a failure, or one has settings that contradict; 2 a mistake in",
                "the command line."
            })
    static final class CreateTopics extends TopicCommand {
        @Option(names = "--dry-run", description = "Print what would be created, and create nothing.")
        private boolean dryRun;

        @Option(
                names = "--strimzi",
                paramLabel = "CLUSTER",
                description =
                        "Print all of them as KafkaTopics for the Kafka resource of this name, and create nothing.")
        private String strimzi;

        @Override
        public Integer call() {
            if (strimzi != null && (dryRun || json)) {
                throw new ConfigException("--strimzi prints YAML and creates nothing; leave out "
                        + (dryRun ? "--dry-run" : "--json") + ", or --strimzi");
            }
            if (strimzi != null) {
                return on((cluster, found) -> {
                    MillraceConfig config = config(found);
                    expected(config, found)
                            .forEach(topic -> print(topic, config.topics().replicationFactor()));
                    return 0;
                });
            }
            return onExpected((administration, expected) -> {
                Set<String> there = administration.existing(
                        expected.stream().map(TopicSettings::name).toList());
                List<TopicSettings> missing = expected.stream()
                        .filter(topic -> !there.contains(topic.name()))
                        .toList();
                if (!dryRun) {
                    administration.prepare(expected);
                }
                print(missing, there.size());
                return 0;
            });
        }

        /** Kubernetes' names have no underscores and no capitals: the topic's own is in the spec. */
        private void print(TopicSettings topic, int replicas) {
            out().println("---");
            out().println("apiVersion: kafka.strimzi.io/v1");
            out().println("kind: KafkaTopic");
            out().println("metadata:");
            out().println("  name: "
                    + topic.name()
                            .toLowerCase(Locale.ROOT)
                            .replaceAll("[^a-z0-9.-]", "-")
                            .replaceAll("^-+|-+$", ""));
            out().println("  labels:");
            out().println("    strimzi.io/cluster: " + strimzi);
            out().println("spec:");
            out().println("  topicName: \"" + topic.name() + "\"");
            out().println("  partitions: " + topic.partitions());
            if (replicas != -1) {
                out().println("  replicas: " + replicas);
            }
            out().println("  config:");
            topic.configuration().forEach((key, value) -> out().println("    " + key + ": \"" + value + "\""));
        }

        private void print(List<TopicSettings> missing, int there) {
            if (json) {
                ObjectNode json = new ObjectMapper()
                        .createObjectNode()
                        .put("dry_run", dryRun)
                        .put("existing", there);
                ArrayNode created = json.putArray("created");
                for (TopicSettings topic : missing) {
                    ObjectNode settings = created.addObject()
                            .put("topic", topic.name())
                            .put("partitions", topic.partitions())
                            .putObject("settings");
                    topic.configuration().forEach(settings::put);
                }
                out().println(json.toPrettyString());
                return;
            }
            for (TopicSettings topic : missing) {
                paragraph((dryRun ? "would create " : "created ") + topic.name() + " with " + topic.partitions()
                        + " partitions, "
                        + topic.configuration().entrySet().stream()
                                .map(Object::toString)
                                .collect(Collectors.joining(" ")));
            }
            out().println(there + " topics were there, " + missing.size()
                    + (dryRun ? " would be created" : " were created"));
        }
    }

    /** Compares topics with the run's expectation. */
    @Command(
            name = "check",
            description = "Compares each topic of a run with what the run expects: partitions, replicas, retention, "
                    + "cleanup, record size, min.insync.replicas. Prints the command that fixes each difference; "
                    + "changes nothing.",
            footer = {
                "",
                "millrace topics check --bootstrap-servers kafka:9092 --run my-run",
                "",
                "Exit codes: 0 all are as expected; 4 one differs or is missing; 1 a failure; 2 a mistake in the command line."
            })
    static final class CheckTopics extends TopicCommand {
        /** Exit status if a topic differs from the run's expectation. */
        private static final int DIFFERS = 4;

        @Override
        public Integer call() {
            return onExpected((administration, expected) -> {
                List<TopicDifference> differences = administration.differences(expected);
                if (json) {
                    print(expected.size(), differences);
                } else if (differences.isEmpty()) {
                    out().println(expected.size() + " topics are as the run expects them.");
                } else {
                    differences.forEach(difference -> out().println(difference.sentence()));
                }
                return differences.isEmpty() ? 0 : DIFFERS;
            });
        }

        private void print(int topics, List<TopicDifference> differences) {
            ObjectNode json = new ObjectMapper().createObjectNode().put("topics", topics);
            ArrayNode array = json.putArray("differences");
            differences.forEach(difference -> array.addObject()
                    .put("topic", difference.topic())
                    .put("setting", difference.setting())
                    .put("found", difference.found())
                    .put("expected", difference.expected())
                    .put("sentence", difference.sentence()));
            out().println(json.toPrettyString());
        }
    }
}
