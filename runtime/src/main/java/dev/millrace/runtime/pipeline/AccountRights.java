package dev.millrace.runtime.pipeline;

import dev.millrace.log.run.LogSetupException;
import dev.millrace.log.run.Right;
import dev.millrace.log.run.RoleRights;
import dev.millrace.log.run.TopicAdministration;
import dev.millrace.runtime.config.MillraceConfig;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Optional;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.errors.AuthorizationException;
import org.apache.kafka.common.resource.ResourceType;

/** ACLs that a process's account needs, and a message with the commands that grant the missing ones. */
public final class AccountRights {
    private AccountRights() {}

    /** The roles that {@code train} runs under one account, the creator first. */
    public static List<RoleRights> roles(MillraceConfig config) {
        List<RoleRights> roles = new ArrayList<>(List.of(
                RoleRights.CREATOR,
                RoleRights.ADMISSION,
                config.gateway().enabled() ? RoleRights.GATEWAY : RoleRights.GENERATOR,
                RoleRights.SCORER));
        if (config.scorer().reference().isGiven()) {
            roles.add(RoleRights.REFERENCE);
        }
        if (config.scorer().teacher().isGiven()) {
            roles.add(RoleRights.TEACHER);
        }
        roles.addAll(List.of(RoleRights.TOPOLOGY, RoleRights.LEARNER));
        if (config.evaluation().isOn()) {
            roles.add(RoleRights.EVALUATOR);
        }
        return roles;
    }

    /** The least rights of roles of a run, whose id must be known. */
    public static List<Right> of(MillraceConfig config, Collection<RoleRights> roles) {
        String schemasTopic = config.run().schemaRegistryUrl().written().isEmpty()
                ? config.topics().schemasTopic()
                : "";
        return roles.stream()
                .flatMap(role -> role.of(config.run().topics(), schemasTopic).stream())
                .toList();
    }

    /** Returns whether a cluster denied the account something. */
    public static boolean isCauseOf(Throwable failure) {
        for (Throwable e = failure; e != null; e = e.getCause()) {
            if (e instanceof AuthorizationException) {
                return true;
            }
        }
        return false;
    }

    /**
     * Refuses to start roles that lack a right for their work. It does not check rights that are needed only later: to create a topic, a
     * transactional id, to delete old versions.
     *
     * @throws LogSetupException naming each right that is missing
     */
    public static void requireNone(MillraceConfig config, List<RoleRights> roles) {
        missing(
                        config,
                        roles,
                        right -> right.type() != ResourceType.TRANSACTIONAL_ID
                                && !List.of(AclOperation.CREATE, AclOperation.DELETE)
                                        .contains(right.operations().get(0)))
                .ifPresent(sentence -> {
                    throw new LogSetupException(sentence);
                });
    }

    /**
     * Refuses a command before it changes anything.
     *
     * @throws LogSetupException naming each right that is missing
     */
    public static void requireAll(MillraceConfig config, RoleRights account) {
        missing(config, List.of(account), right -> true).ifPresent(sentence -> {
            throw new LogSetupException(sentence);
        });
    }

    /**
     * Rights that the account lacks to create the run.
     *
     * @return empty if none is missing
     * @throws LogSetupException if it may not look the run up
     */
    public static Optional<String> toCreate(MillraceConfig config) {
        boolean isMade;
        try (TopicAdministration administration = new TopicAdministration(RunLookup.client(config), config.topics())) {
            isMade = !administration
                    .existing(List.of(config.run().topics().run()))
                    .isEmpty();
        }
        return missing(
                config,
                List.of(RoleRights.CREATOR),
                right -> !isMade || right.operations().get(0) != AclOperation.CREATE);
    }

    /**
     * Returns the failure with the missing rights as its message if a missing right caused it, otherwise the failure
     * itself.
     */
    public static RuntimeException explained(MillraceConfig config, List<RoleRights> roles, RuntimeException failure) {
        if (!isCauseOf(failure)) {
            return failure;
        }
        try {
            return missing(config, roles, right -> true)
                    .<RuntimeException>map(sentence -> new LogSetupException(sentence, failure))
                    .orElse(failure);
        } catch (LogSetupException e) { // the cluster is unreachable by now
            failure.addSuppressed(e);
            return failure;
        }
    }

    /** Empty if none of these rights is missing. */
    private static Optional<String> missing(MillraceConfig config, List<RoleRights> roles, Predicate<Right> needed) {
        List<Right> rights = of(config, roles).stream()
                .flatMap(right -> right.single().stream())
                .filter(right -> !right.names()
                        .contains(RoleRights.ofPreflight(config.run().topics())))
                .filter(needed)
                .toList();
        try (TopicAdministration administration = new TopicAdministration(RunLookup.client(config), config.topics())) {
            return administration
                    .tried(config.run().topics(), rights)
                    .refusal(
                            roles.stream().map(RoleRights::lowerCase).collect(Collectors.joining(", ")),
                            config.run().bootstrapServers());
        }
    }
}
