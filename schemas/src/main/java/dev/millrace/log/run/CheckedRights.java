package dev.millrace.log.run;

import dev.millrace.schemas.run.RunTopics;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.AlterConfigsOptions;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.CreateTopicsOptions;
import org.apache.kafka.clients.admin.DescribeClusterOptions;
import org.apache.kafka.clients.admin.DescribeTopicsOptions;
import org.apache.kafka.clients.admin.MemberToRemove;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RemoveMembersFromConsumerGroupOptions;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.AuthorizationException;
import org.apache.kafka.common.errors.SecurityDisabledException;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourceType;

/**
 * Which of some rights an account has, each with one operation on one name.
 *
 * @param untried rights on topics that do not exist yet, and those without an answer in time
 */
public record CheckedRights(List<Right> granted, List<Right> missing, List<Right> untried) {

    public CheckedRights {
        granted = List.copyOf(granted);
        missing = List.copyOf(missing);
        untried = List.copyOf(untried);
    }

    static CheckedRights of(
            Admin admin, TopicAdministration.ClusterCalls calls, RunTopics topics, Collection<Right> rights) {
        return new Trial(admin, calls, topics).of(rights);
    }

    /**
     * What is missing, and the commands that grant it.
     *
     * @param who has the account, such as {@code generator}
     * @return empty if nothing is missing
     */
    public Optional<String> refusal(String who, String bootstrapServers) {
        if (missing.isEmpty()) {
            return Optional.empty();
        }
        List<Right> merged = Right.merged(missing);
        return Optional.of("the account of the " + who + " lacks "
                + merged.stream().map(Right::toString).collect(Collectors.joining(", "))
                + "; grant it: "
                + merged.stream()
                        .map(right -> right.command(bootstrapServers, Right.ANYBODY))
                        .collect(Collectors.joining(" && ")));
    }

    /** Asks the cluster in ways that change nothing of a run. */
    private static final class Trial {
        /** Behind a prefix, the name of what nobody has. */
        private static final String NOBODYS = "-preflight";

        private final Admin admin;
        private final TopicAdministration.ClusterCalls calls;
        private final RunTopics topics;
        private final List<Right> granted = new ArrayList<>();
        private final List<Right> missing = new ArrayList<>();
        private final List<Right> untried = new ArrayList<>();

        Trial(Admin admin, TopicAdministration.ClusterCalls calls, RunTopics topics) {
            this.admin = admin;
            this.calls = calls;
            this.topics = topics;
        }

        CheckedRights of(Collection<Right> rights) {
            Set<Right> single = new LinkedHashSet<>();
            rights.forEach(right -> single.addAll(right.single()));
            if (!knowsAcls()) {
                return new CheckedRights(List.copyOf(single), List.of(), List.of());
            }
            Set<String> visible = calls.required(admin.listTopics().names(), "list its topics");
            Map<Right, Set<String>> samples = new HashMap<>();
            Set<String> described = new TreeSet<>();
            for (Right right : single) {
                if (isOnTopics(right)) {
                    Set<String> ofRight = samples(right, visible);
                    samples.put(right, ofRight);
                    described.addAll(ofRight);
                }
            }
            Map<String, Set<AclOperation>> allowed = allowed(described);
            addConfigs(described, allowed);
            for (Right right : single) {
                Set<String> ofRight = samples.get(right);
                if (ofRight != null) {
                    topic(right, ofRight, allowed);
                } else {
                    isGranted(right)
                            .map(is -> is ? granted : missing)
                            .orElse(untried)
                            .add(right);
                }
            }
            return new CheckedRights(granted, missing, untried);
        }

        /** False where everybody may do everything. */
        private boolean knowsAcls() {
            Set<AclOperation> onCluster = calls.required(
                    admin.describeCluster(new DescribeClusterOptions().includeAuthorizedOperations(true))
                            .authorizedOperations(),
                    "say what this account may do");
            if (onCluster == null || !onCluster.contains(AclOperation.DESCRIBE)) {
                return true; // which a broker without ACLs allows everybody
            }
            try {
                calls.answer(admin.describeAcls(AclBindingFilter.ANY).values(), "say whether it has ACLs");
                return true;
            } catch (ExecutionException e) {
                return !(e.getCause() instanceof SecurityDisabledException);
            }
        }

        private static boolean isOnTopics(Right right) {
            return right.type() == ResourceType.TOPIC && right.operations().get(0) != AclOperation.CREATE;
        }

        /** Topics that a right must be for, whether they are there or not. */
        private Set<String> samples(Right right, Set<String> visible) {
            String name = right.names().get(0);
            if (right.pattern() == PatternType.LITERAL) {
                return Set.of(name);
            }
            Set<String> samples = new TreeSet<>();
            visible.stream().filter(topic -> topic.startsWith(name)).forEach(samples::add);
            topics.required().stream().filter(topic -> topic.startsWith(name)).forEach(samples::add);
            return samples.isEmpty() ? Set.of(name + NOBODYS) : samples;
        }

        /** By topic; nothing where it may not be seen, no entry where it is not there. */
        private Map<String, Set<AclOperation>> allowed(Set<String> names) {
            Map<String, Set<AclOperation>> allowed = new HashMap<>();
            admin.describeTopics(names, new DescribeTopicsOptions().includeAuthorizedOperations(true))
                    .topicNameValues()
                    .forEach((name, described) -> {
                        try {
                            TopicDescription topic = calls.answer(described, "describe topic " + name);
                            if (topic.authorizedOperations() != null) { // not every broker tells them
                                allowed.put(name, topic.authorizedOperations());
                            }
                        } catch (ExecutionException e) {
                            Throwable cause = TopicAdministration.ClusterCalls.cause(e);
                            if (cause instanceof AuthorizationException) {
                                allowed.put(name, Set.of());
                            } else if (!(cause instanceof UnknownTopicOrPartitionException)) {
                                throw new LogSetupException(
                                        "the cluster could not describe topic " + name + ": " + cause.getMessage(),
                                        cause);
                            }
                        }
                    });
            return allowed;
        }

        /** Which the operations that a description tells leave out where a topic may not be seen. */
        private void addConfigs(Set<String> names, Map<String, Set<AclOperation>> allowed) {
            List<ConfigResource> resources = names.stream()
                    .filter(name -> allowed.containsKey(name)
                            && Objects.requireNonNull(allowed.get(name)).isEmpty())
                    .map(name -> new ConfigResource(ConfigResource.Type.TOPIC, name))
                    .toList();
            admin.describeConfigs(resources).values().forEach((resource, asked) -> {
                try {
                    calls.answer(asked, "describe the settings of topic " + resource.name());
                    allowed.put(resource.name(), Set.of(AclOperation.DESCRIBE_CONFIGS));
                } catch (ExecutionException e) {
                    if (e.getCause() instanceof UnknownTopicOrPartitionException) {
                        allowed.put(resource.name(), Set.of(AclOperation.DESCRIBE_CONFIGS));
                    }
                }
            });
        }

        private void topic(Right right, Set<String> samples, Map<String, Set<AclOperation>> allowed) {
            List<Set<AclOperation>> there = samples.stream()
                    .filter(allowed::containsKey)
                    .map(name -> Objects.requireNonNull(allowed.get(name)))
                    .toList();
            AclOperation operation = right.operations().get(0);
            if (there.isEmpty()) {
                untried.add(right);
            } else {
                (there.stream().allMatch(each -> each.contains(operation)) ? granted : missing).add(right);
            }
        }

        private Optional<Boolean> isGranted(Right right) {
            String name = right.names().get(0) + (right.pattern() == PatternType.PREFIXED ? NOBODYS : "");
            return switch (right.type()) {
                case TOPIC ->
                    isGranted(
                            right,
                            admin.createTopics(
                                            List.of(new NewTopic(name, Optional.empty(), Optional.empty())),
                                            new CreateTopicsOptions().validateOnly(true))
                                    .all());
                case GROUP -> isGranted(right, ofGroup(right.operations().get(0), name));
                default ->
                    isGranted(
                            right,
                            right.operations().get(0) == AclOperation.DESCRIBE
                                    ? admin.describeTransactions(Set.of(name)).all()
                                    // the writers of a table fence each other all the time; ids under a prefix are
                                    // nobody's
                                    : admin.fenceProducers(Set.of(name)).all());
            };
        }

        /** Asks something of a group that is not there. */
        private KafkaFuture<?> ofGroup(AclOperation operation, String name) {
            return switch (operation) {
                case DESCRIBE -> admin.listConsumerGroupOffsets(name).partitionsToOffsetAndMetadata();
                case DELETE -> admin.deleteConsumerGroups(Set.of(name)).all();
                case ALTER_CONFIGS ->
                    admin.incrementalAlterConfigs(
                                    Map.of(
                                            new ConfigResource(ConfigResource.Type.GROUP, name),
                                            List.of(new AlterConfigOp(
                                                    new ConfigEntry("consumer.session.timeout.ms", ""),
                                                    AlterConfigOp.OpType.DELETE))),
                                    new AlterConfigsOptions().validateOnly(true))
                            .all();
                default ->
                    admin.removeMembersFromConsumerGroup(
                                    name,
                                    new RemoveMembersFromConsumerGroupOptions(Set.of(new MemberToRemove("preflight"))))
                            .all();
            };
        }

        /** True unless the cluster denied it, also if it failed otherwise; empty if no answer came in time. */
        private Optional<Boolean> isGranted(Right right, KafkaFuture<?> answer) {
            try {
                calls.answer(answer, "say whether there is " + right);
            } catch (ExecutionException e) {
                Throwable cause = TopicAdministration.ClusterCalls.cause(e);
                return cause instanceof TimeoutException
                        ? Optional.empty()
                        : Optional.of(!(cause instanceof AuthorizationException));
            }
            return Optional.of(true);
        }
    }
}
