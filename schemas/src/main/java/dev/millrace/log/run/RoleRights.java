package dev.millrace.log.run;

import static org.apache.kafka.common.acl.AclOperation.ALTER_CONFIGS;
import static org.apache.kafka.common.acl.AclOperation.CREATE;
import static org.apache.kafka.common.acl.AclOperation.DESCRIBE;
import static org.apache.kafka.common.acl.AclOperation.DESCRIBE_CONFIGS;
import static org.apache.kafka.common.acl.AclOperation.READ;
import static org.apache.kafka.common.acl.AclOperation.WRITE;
import static org.apache.kafka.common.resource.ResourceType.GROUP;
import static org.apache.kafka.common.resource.ResourceType.TOPIC;
import static org.apache.kafka.common.resource.ResourceType.TRANSACTIONAL_ID;

import dev.millrace.log.transaction.LogTable;
import dev.millrace.schemas.run.RunTopics;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.resource.PatternType;

/**
 * The least rights of each role of a run, and of each command that writes to one, on a cluster with ACLs. {@code READ}, {@code WRITE} and
 * {@code DELETE} imply {@code DESCRIBE}, which is listed where it is needed alone.
 */
public enum RoleRights {
    /** Creates the run. One of its roles has these rights in addition to its own. */
    CREATOR,
    ADMISSION,
    GENERATOR,
    GATEWAY,
    SCORER,
    REFERENCE,
    TEACHER,
    TOPOLOGY,
    LEARNER,
    EVALUATOR,
    /** Every command that only reads: ledger, trace, lap, doctor, runs, replay, export, view, evaluate without {@code --follow}. */
    READER,
    /** {@code topics create} and {@code topics check}. */
    TOPICS,
    /** {@code dead-letters redrive}. */
    REDRIVE,
    /** {@code quarantine lift}. */
    QUARANTINE,
    ROLLBACK,
    /** {@code repair} with each of its ways out but one: a hanging transaction takes {@code ALTER} on the cluster. */
    REPAIR,
    IMPORT,
    STOP,
    DELETE;

    public String lowerCase() {
        return name().toLowerCase(Locale.ROOT);
    }

    /** What the topics of a preflight begin with, and its group and transactional id. */
    public static String ofPreflight(RunTopics topics) {
        return topics.prefix() + "preflight-";
    }

    /**
     * The list.
     *
     * @param schemasTopic empty where a registry keeps the schemas
     */
    public List<Right> of(RunTopics topics, String schemasTopic) {
        String prefix = topics.prefix();
        List<Right> rights = new ArrayList<>();
        if (compareTo(READER) > 0) {
            return ofCommand(topics, schemasTopic);
        }
        if (this == CREATOR) {
            rights.add(Right.under(TOPIC, prefix, READ, DESCRIBE_CONFIGS, CREATE));
            rights.add(written(topics.run(), topics.files()));
            List<String> tables = new ArrayList<>(List.of(topics.run(), topics.files()));
            if (!schemasTopic.isEmpty()) {
                rights.add(Right.on(TOPIC, schemasTopic, READ, WRITE, DESCRIBE_CONFIGS, CREATE));
                tables.add(schemasTopic);
            }
            rights.add(writersOf(tables));
            rights.add(Right.under(TOPIC, ofPreflight(topics), WRITE, AclOperation.DELETE));
            rights.add(Right.under(GROUP, ofPreflight(topics), READ));
            rights.add(Right.under(TRANSACTIONAL_ID, ofPreflight(topics), WRITE));
            return rights;
        }
        AclOperation[] reading =
                this == READER ? new AclOperation[] {READ} : new AclOperation[] {READ, DESCRIBE_CONFIGS};
        rights.add(Right.under(TOPIC, prefix, reading));
        if (!schemasTopic.isEmpty()) {
            rights.add(Right.on(TOPIC, schemasTopic, reading));
        }
        rights.add(Right.under(GROUP, prefix, DESCRIBE));
        switch (this) {
            case ADMISSION -> rights.addAll(writing(prefix + "admission", topics.prompts(), topics.admission()));
            case GENERATOR ->
                rights.addAll(writing(prefix + "generator", topics.rollouts(), topics.serving(), topics.deadLetters()));
            case GATEWAY -> // in the generators' group, under their ids
                rights.addAll(writing(
                        prefix + "generator",
                        topics.rollouts(),
                        topics.serving(),
                        topics.deadLetters(),
                        topics.sessions()));
            case SCORER -> rights.addAll(writing(prefix + "scorer", topics.scores(), topics.serving()));
            case REFERENCE -> rights.addAll(writing(prefix + "reference", topics.referenceScores(), topics.serving()));
            case TEACHER -> rights.addAll(writing(prefix + "teacher", topics.teacherScores(), topics.serving()));
            case TOPOLOGY -> {
                rights.addAll(writing(
                        prefix + "topology",
                        topics.trajectories(),
                        topics.batches(),
                        topics.outcomes(),
                        topics.deadLetters()));
                rights.add(Right.under(TOPIC, prefix + "topology", WRITE, CREATE)); // changelogs
            }
            case LEARNER -> {
                rights.addAll(writing(
                        prefix + "learner",
                        topics.policyVersions(),
                        topics.weights(),
                        topics.optimizerState(),
                        topics.trainingLog(),
                        topics.deadLetters()));
                rights.add(
                        new Right( // of versions that are no longer needed
                                TOPIC,
                                PatternType.LITERAL,
                                List.of(topics.weights(), topics.optimizerState()),
                                List.of(AclOperation.DELETE)));
            }
            case EVALUATOR -> rights.addAll(writing(prefix + "evaluator", topics.evaluations(), topics.serving()));
            default -> {}
        }
        return rights;
    }

    private List<Right> ofCommand(RunTopics topics, String schemasTopic) {
        String prefix = topics.prefix();
        List<Right> rights = new ArrayList<>();
        List<AclOperation> onAll = new ArrayList<>(List.of(READ));
        List<AclOperation> onSchemas = new ArrayList<>(List.of(READ));
        List<String> tables = new ArrayList<>();
        switch (this) {
            case TOPICS -> {
                onAll.addAll(List.of(DESCRIBE_CONFIGS, CREATE));
                onSchemas.addAll(List.of(DESCRIBE_CONFIGS, CREATE));
            }
            case REDRIVE ->
                rights.addAll(writing(
                        prefix + "dead-letters",
                        topics.prompts(),
                        topics.rollouts(),
                        topics.scores(),
                        topics.rewards(),
                        topics.referenceScores(),
                        topics.teacherScores(),
                        topics.trajectories(),
                        topics.deadLetters()));
            case QUARANTINE -> rights.add(written(topics.admission()));
            case ROLLBACK, REPAIR -> {
                onAll.add(DESCRIBE_CONFIGS);
                onSchemas.add(DESCRIBE_CONFIGS);
                rights.add(written(topics.run(), topics.policyVersions(), topics.weights(), topics.optimizerState()));
                rights.add(Right.under(TRANSACTIONAL_ID, prefix, WRITE)); // of every role, to fence it
                if (this == ROLLBACK) {
                    rights.add(Right.under(GROUP, prefix + "learner", READ));
                } else {
                    rights.add(written(topics.trainingLog(), topics.outcomes()));
                    rights.add(Right.under(GROUP, prefix, READ));
                }
            }
            case IMPORT -> {
                onAll.addAll(List.of(WRITE, AclOperation.DELETE, DESCRIBE_CONFIGS, CREATE));
                onSchemas.addAll(List.of(WRITE, DESCRIBE_CONFIGS, CREATE));
                tables.add(topics.run());
                rights.add(Right.under(TRANSACTIONAL_ID, prefix + "import-", WRITE));
            }
            case STOP -> {
                rights.add(written(topics.run()));
                rights.add(Right.under(GROUP, prefix, DESCRIBE));
                rights.add(Right.under(TRANSACTIONAL_ID, prefix, DESCRIBE));
                tables.add(topics.run());
            }
            case DELETE -> {
                onAll.add(AclOperation.DELETE);
                onSchemas.add(WRITE);
                rights.add(Right.under(GROUP, prefix, AclOperation.DELETE, ALTER_CONFIGS));
                rights.add(Right.under(TRANSACTIONAL_ID, prefix, DESCRIBE));
            }
            default -> throw new IllegalStateException(this + " is no command");
        }
        if (!schemasTopic.isEmpty()) {
            rights.add(0, Right.on(TOPIC, schemasTopic, onSchemas.toArray(AclOperation[]::new)));
            if (onSchemas.contains(WRITE)) {
                tables.add(schemasTopic);
            }
        }
        rights.add(0, Right.under(TOPIC, prefix, onAll.toArray(AclOperation[]::new)));
        if (!tables.isEmpty()) {
            rights.add(writersOf(tables));
        }
        return rights;
    }

    private static Right writersOf(List<String> tables) {
        return new Right(
                TRANSACTIONAL_ID,
                PatternType.LITERAL,
                tables.stream().map(LogTable::transactionalId).toList(),
                List.of(WRITE));
    }

    private static Right written(String... topics) {
        return new Right(TOPIC, PatternType.LITERAL, List.of(topics), List.of(WRITE));
    }

    /**
     * Of a role that writes in transactions.
     *
     * @param ids what its groups and transactional ids begin with
     */
    private static List<Right> writing(String ids, String... topics) {
        return List.of(written(topics), Right.under(GROUP, ids, READ), Right.under(TRANSACTIONAL_ID, ids, WRITE));
    }
}
